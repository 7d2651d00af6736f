"""T below the watermark, T beyond the clock, and plans of someone else: what is refused, and what is true afterwards."""

import io
from typing import Any

import fastavro
import pytest

from eventide.testing.crash_enumeration import OPTIONS, Bench, Moment, Protocol, execute, pending_plan, schedule
from eventide.testing.histories import EPOCH_MS, History, Layout, Story, put
from eventide.testing.inspection.observation import LOCK_PREFIX
from eventide.testing.living_table.stock_engine import run_plan_as_stock
from eventide.testing.oracle import Order
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import (
    BusyError,
    EventideError,
    InvalidThresholdError,
    RefusedError,
    format_moment,
)
from support.pasts.served import returns_nothing, rows

LAYOUTS = (Layout(6, Order.EVENT_TIME), Layout(9, Order.EVENT_TIME))
FUTURE_MS = 10_000_000_000_000  # three centuries later
DAY_MS = 24 * 3_600_000


@pytest.fixture(params=LAYOUTS, ids=lambda layout: f"v{layout.version}")
def story(request: pytest.FixtureRequest) -> tuple[Bench, Story]:
    bench = Bench("asked", OPTIONS)
    story = Story.begin(request.param, bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"), put("k1", 2, "base")))
    story.commit((put("k0", 5, "early"),))
    story.commit((put("k1", 20, "late"),))
    return bench, story


def before(cut_ms: int) -> Protocol:
    return schedule(History("asked", (), cut_ms), LinkChoice.COPY)


def written_to(moment: Moment, start: Moment) -> set[str]:
    """Files that differ, except for the files of the lock and of its trial of the storage."""
    changed = set(moment.files.keys() ^ start.files.keys())
    changed |= {path for path in moment.files.keys() & start.files.keys() if moment.files[path] != start.files[path]}
    return {path for path in changed if not path.startswith(LOCK_PREFIX)}


def compact(bench: Bench, cut_ms: int) -> None:
    before(cut_ms)(bench.process())
    execute(pending_plan(bench.process()).instant)(bench.process())


@pytest.mark.parametrize("asked", [10, 9, 0])
def test_a_t_that_is_already_reached_is_reported_and_nothing_is_written(story: tuple[Bench, Story], asked: int) -> None:
    bench, _ = story
    compact(bench, 10)
    start = bench.moment()
    left, failure = bench.attempt(start, before(asked))
    assert failure is None
    assert written_to(left, start) == set()
    draft = bench.process().scheduler.plan(CompactionRequest(EPOCH_MS + asked, None, LinkChoice.COPY))
    assert draft.is_reached
    assert draft.idle == "already reached: everything before T is compacted"


def test_late_records_below_t_are_compacted_up_to_the_published_cut(story: tuple[Bench, Story]) -> None:
    bench, told = story
    compact(bench, 10)
    told.commit((put("k0", 7, "late"), put("k8", 7, "late, too")))
    start = bench.moment()
    for reached in (0, 7):
        assert bench.process().scheduler.plan(CompactionRequest(EPOCH_MS + reached, None, LinkChoice.COPY)).is_reached
    left, failure = bench.attempt(start, before(8))
    assert failure is None
    assert written_to(left, start) != set()
    bench.load(left)
    plan = pending_plan(bench.process())
    assert plan.cut_ms == EPOCH_MS + 10
    execute(plan.instant)(bench.process())
    process = bench.process()
    assert process.freshness.now(process.state()).watermark_ms == EPOCH_MS + 10
    assert rows(process) == told.oracle.snapshot()


def test_a_t_beyond_the_clock_and_all_records_is_refused_and_nothing_is_written(story: tuple[Bench, Story]) -> None:
    """A digit too many, say: published, it would refuse every T before it forever."""
    bench, _ = story
    start = bench.moment()
    left, failure = bench.attempt(start, before(FUTURE_MS))
    assert isinstance(failure, InvalidThresholdError)
    assert written_to(left, start) == set()
    reach_ms = bench.clock.now_ms() + DAY_MS
    assert f"at most {format_moment(reach_ms)}, " in str(failure)
    _, failure = bench.attempt(start, before(reach_ms + 1 - EPOCH_MS))
    assert isinstance(failure, InvalidThresholdError)
    bench.load(start)
    compact(bench, reach_ms - EPOCH_MS)
    assert bench.process().freshness.now(bench.process().state()).watermark_ms == reach_ms


def test_event_times_that_are_dates_to_come_are_compacted_up_to_the_last_of_them(story: tuple[Bench, Story]) -> None:
    bench, told = story
    told.commit((put("k0", FUTURE_MS, "due then"),))
    start = bench.moment()
    _, failure = bench.attempt(start, before(FUTURE_MS + 2))
    assert isinstance(failure, InvalidThresholdError)
    bench.load(start)
    compact(bench, FUTURE_MS + 1)
    assert rows(bench.process()) == told.oracle.snapshot()
    again = CompactionRequest(EPOCH_MS + FUTURE_MS + 1, None, LinkChoice.COPY)
    assert bench.process().scheduler.plan(again).is_reached
    told.commit((put("k0", FUTURE_MS + 30, "after it"),))
    fresh = bench.process().freshness.now(bench.process().state())
    assert (fresh.cut_ms, fresh.watermark_ms) == (EPOCH_MS + FUTURE_MS + 1, EPOCH_MS + FUTURE_MS + 1)


def test_a_foreign_plan_excludes_another_until_either_engine_has_run_it(story: tuple[Bench, Story]) -> None:
    bench, told = story
    before(10)(bench.process())
    instant = pending_plan(bench.process()).instant
    path = f"{bench.process().files.config().timeline_path}/{instant}.compaction.requested"
    bench.storage.put(path, without_eventide(bench.storage.read(path)))
    start = bench.moment()
    refusals: dict[str, tuple[Protocol, type[EventideError]]] = {
        "plan beside it": (before(10), BusyError),
    }
    if told.layout.version == 6:
        refusals["undo"] = (lambda application: returns_nothing(application.rollback.undo(instant)), RefusedError)
    for what, (act, kind) in refusals.items():
        left, failure = bench.attempt(start, act)
        assert isinstance(failure, kind), what
        assert written_to(left, start) == set(), what
    for run in (lambda application: run_plan_as_stock(application, instant), execute(instant)):
        bench.load(start)
        run(bench.process())
        assert rows(bench.process()) == told.oracle.snapshot()
        compact(bench, 10)
        assert rows(bench.process()) == told.oracle.snapshot()


def without_eventide(data: bytes) -> bytes:
    """A plan as Hudi writes it, without what eventide says beside it."""
    reader: Any = fastavro.reader(io.BytesIO(data))
    record: Any = next(reader)
    record["extraMetadata"].clear()
    out = io.BytesIO()
    fastavro.writer(out, reader.writer_schema, [record])
    return out.getvalue()
