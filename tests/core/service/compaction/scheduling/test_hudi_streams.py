"""Beside a stream of Hudi, whose start takes up every pending plan, eventide makes no plan and leaves Hudi's alone."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from eventide.testing.crash_enumeration import OPTIONS, Bench
from eventide.testing.histories import EPOCH_MS, Layout, Story, put
from eventide.testing.living_table.stock_engine import schedule_as_stock
from eventide.testing.oracle import Order
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import EXCLUSIVE, STREAMS_COMPACT, LinkChoice
from eventide_core.errors import RefusedError
from eventide_core.ports import NoProgress
from eventide_core.table.settings.stream_batch import BATCH_KEY
from eventide_core.table.timeline.contents.checksums import CHECKSUMS_KEY

LATER = CompactionRequest(EPOCH_MS + 10, None, LinkChoice.AUTO)


def table(options: Mapping[str, str] | None = None, version: int = 9, *, is_of_hudi: bool = True) -> Bench:
    """A table whose second write is a batch of a stream, of Hudi or of eventide; the third is not."""
    bench = Bench("streams", {**OPTIONS, **(options or {})})
    story = Story.begin(Layout(version, Order.EVENT_TIME), bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"),))
    record_batch(bench, story.commit((put("k0", 5, "streamed"),)), is_of_hudi=is_of_hudi)
    story.commit((put("k0", 6, "since"),))
    bench.clock.sleep(10)
    return bench


def record_batch(bench: Bench, instant: str, *, is_of_hudi: bool) -> None:
    process = bench.process()
    config = process.files.config()
    state = process.state()
    write = state.find_write(instant)
    assert write is not None
    commit = state.commit(write)
    extra = {**commit.extra_metadata, BATCH_KEY: json.dumps({"sink": "7"})}
    if is_of_hudi:
        del extra[CHECKSUMS_KEY]
    data = process.files.codec.encode_commit(replace(commit, extra_metadata=extra), config.version)
    bench.storage.put(process.files.on_timeline(config).path(write), data)


@pytest.mark.parametrize("version", [6, 9])
def test_no_plan_is_made_beside_a_stream_of_hudi(version: int) -> None:
    bench = table(version=version)
    before = bench.moment()
    with pytest.raises(RefusedError, match=rf"a stream of Hudi wrote at \d+.*then set {STREAMS_COMPACT}=false here"):
        bench.process().scheduler.schedule(LATER)
    assert bench.moment().files == before.files


def test_a_dry_run_beside_a_stream_of_hudi_names_what_would_refuse_the_plan() -> None:
    draft = table().process().scheduler.plan(LATER)
    assert draft.plan.operations
    assert [note for note in draft.notes if f"{STREAMS_COMPACT}=false" in note]


@pytest.mark.parametrize("options", [{STREAMS_COMPACT: "false"}, {EXCLUSIVE: "true"}], ids=["off", "exclusive"])
def test_a_plan_is_made_beside_a_stream_that_does_not_compact(options: Mapping[str, str]) -> None:
    scheduler = table(options).process().scheduler
    assert not [note for note in scheduler.plan(LATER).notes if "stream" in note]
    assert scheduler.schedule(LATER).put is not None


def test_a_plan_is_made_beside_a_stream_of_eventide() -> None:
    assert table(is_of_hudi=False).process().scheduler.schedule(LATER).put is not None


def test_a_plan_of_hudi_is_left_to_its_stream_without_a_wait() -> None:
    bench = table()
    instant = schedule_as_stock(bench.process())
    process, began = bench.process(), bench.clock.now_ms()
    assert process.pending.end(NoProgress()).resumed == ()
    assert bench.clock.now_ms() == began
    with pytest.raises(RefusedError, match="a stream of Hudi wrote"):
        process.scheduler.schedule(LATER)
    assert process.runner.execute(instant, NoProgress()).instant == instant, "by name it is run all the same"


def test_a_plan_of_hudi_is_run_beside_a_stream_that_does_not_compact() -> None:
    bench = table({STREAMS_COMPACT: "false"})
    instant = schedule_as_stock(bench.process())
    assert bench.process().pending.end(NoProgress()).resumed == (instant,)
