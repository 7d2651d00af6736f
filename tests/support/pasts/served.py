"""Tables with a history, and a service that runs on each of them.

The history consists of commits, a partial compaction, left-overs, a full compaction, later commits, and a write whose
writer died.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from eventide.bootstrap import Application
from eventide.rows.reader import Rows as RowReader
from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import OPTIONS, Bench, Moment, Protocol, pending_plan
from eventide.testing.histories import EPOCH_MS, Commit, Layout, Story, put, records
from eventide.testing.inspection.checks import exact_threshold, merged_counts
from eventide.testing.oracle import Oracle, Order, Rows
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.write.pending_write import PendingWrite
from eventide_core.config import LinkChoice
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation

EARLY = {
    **OPTIONS,
    "hoodie.keep.min.commits": "1",
    "hoodie.keep.max.commits": "2",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}
LAYOUTS = (Layout(6, Order.EVENT_TIME), Layout(9, Order.EVENT_TIME))
HEARTBEAT_EXPIRY_MS = 120_001  # twice Hudi's interval of a minute, and a minute more
COLUMNS = ("_hoodie_partition_path", "key", "ms", "word", "_hoodie_commit_time")


@dataclass(frozen=True, slots=True)
class Service:
    """A service.

    `undone` are the instants that it undoes. If it removes history, time travel is promised to the last write.
    """

    run: Protocol
    after: Oracle
    undone: tuple[str, ...] = ()
    removes_history: bool = False


def undo_failed(story: Story, _: Bench) -> Service:
    failed = begin_and_die(story, (put("k0", 50, "never"), put("k7", 51, "never"))).instant
    return Service(lambda application: returns_nothing(application.rollback.undo(failed)), story.oracle, (failed,))


def begin_and_die(story: Story, changes: Commit) -> PendingWrite:
    """A write whose files exist, and whose last heartbeat is long past."""
    writer = story.writer
    failed = writer.append.begin(WriteOperation.UPSERT, arrow_records(writer, *records(changes)), NoProgress())
    writer.heartbeats.stop(failed.instant)
    story.clock.sleep(HEARTBEAT_EXPIRY_MS)
    return failed


def undo_completed(story: Story, _: Bench) -> Service:
    before = story.oracle.copy()
    last = story.commit((put("k0", 50, "rolled back"), put("k8", 51, "rolled back")))
    return Service(lambda application: returns_nothing(application.rollback.undo(last)), before, (last,))


def undo_compaction(story: Story, bench: Bench) -> Service:
    before = story.oracle.copy()
    instant = compact(bench, 16, story.oracle)
    return Service(lambda application: returns_nothing(application.rollback.undo(instant)), before, (instant,))


def clean(story: Story, _: Bench) -> Service:
    return Service(
        lambda application: returns_nothing(application.cleaner.clean(1)), story.oracle, removes_history=True
    )


def save(story: Story, bench: Bench) -> Service:
    saved = bench.process().state().timeline.writes[-1].requested_time
    return Service(lambda application: returns_nothing(application.savepoints.save(saved)), story.oracle)


def restore(story: Story, bench: Bench) -> Service:
    saved = bench.process().state().timeline.writes[-1].requested_time
    bench.process().savepoints.save(saved)
    before = story.oracle.copy()
    later = story.commit((put("k0", 60, "after the savepoint"), put("k9", 61, "after the savepoint")))
    compaction = compact(bench, 55, story.oracle)
    failed = begin_and_die(story, (put("k1", 70, "never"),)).instant
    return Service(
        lambda application: returns_nothing(application.restorer.restore(saved)), before, (later, compaction, failed)
    )


def archive(story: Story, bench: Bench) -> Service:
    bench.process().cleaner.clean(1)
    return Service(
        lambda application: returns_nothing(application.archiver.archive()), story.oracle, removes_history=True
    )


SEAMLESS: tuple[Callable[[Story, Bench], Service], ...] = (undo_failed, undo_compaction, clean, save, archive)
SERVICES = (*SEAMLESS, undo_completed, restore)


def returns_nothing(_: object) -> None:
    """A protocol that returns nothing."""


def compact(bench: Bench, before_ms: int, oracle: Oracle) -> str:
    """Compacts everything before T. Returns the instant."""
    application = bench.process()
    application.scheduler.schedule(CompactionRequest(EPOCH_MS + before_ms, None, LinkChoice.COPY))
    plan = pending_plan(application)
    application.runner.execute(plan.instant, NoProgress())
    oracle.compact(plan.cut_ms, merged_counts(plan, oracle.buckets), exact_threshold(plan))
    return plan.instant


@dataclass(frozen=True, slots=True)
class Past:
    """A table at `start`, the oracle with the history of `story`, and the service that runs next."""

    bench: Bench
    story: Story
    service: Service
    start: Moment


@cache
def begin_past(begin: Callable[[Story, Bench], Service], layout: Layout) -> Past:
    bench = Bench("pasts", EARLY)
    story = Story.begin(layout, bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"), put("k1", 2, "base"), put("k2", 3, "base", partition="b")))
    story.commit((put("k0", 5, "early"), put("k2", 6, "early", partition="b")))
    story.commit((put("k1", 12, "left over"), put("k3", 13, "left over")))
    compact(bench, 10, story.oracle)
    compact(bench, 14, story.oracle)
    story.commit((put("k0", 20, "later"), put("k2", 21, "later", partition="b")))
    service = begin(story, bench)
    return Past(bench, story, service, bench.moment())


def rows(application: Application) -> Rows:
    reader = RowReader(application.queries.snapshot(), application.reader, application.engine)
    found = [
        row
        for batch in reader.to_batches(columns=COLUMNS)
        for row in zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True)
    ]
    assert len({row[:2] for row in found}) == len(found), f"a key is there twice: {sorted(found)}"
    return frozenset(found)
