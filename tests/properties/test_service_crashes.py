"""Rollback, clean, savepoint, restore and archival interrupted at every write: the same again ends them, and no row is lost.

Each is begun on a table with a past: commits, a partial compaction, left-overs, a full compaction, later commits, a write
whose writer died. Whatever a process leaves that dies, whose write fails, or whose reply is lost, is recovered from by
running the same again, also after another write, and must then be what the undisturbed run leaves, and keep each of the
invariants I1 to I14 (I11 and I13 speak of pending plans, of which no service here leaves one).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import pytest

from eventide.testing.crash_enumeration import (
    Bench,
    Moment,
    Protocol,
    crash_states,
    faults,
    interludes,
)
from eventide.testing.histories import Layout, Story, put
from eventide.testing.inspection.observation import OUTCOMES_PREFIX, BlockInstants, Observer
from eventide.testing.invariants import Inspection, check_invariants
from eventide.testing.oracle import Oracle, Rows
from eventide_adapters.storage.faulty import FaultyStorage, Operation
from eventide_core.errors import EventideError, RefusedError
from support.faults.lost_completions import check_no_lost_completion
from support.pasts.served import (
    EARLY,
    LAYOUTS,
    SEAMLESS,
    SERVICES,
    Service,
    begin_and_die,
    begin_past,
    returns_nothing,
    rows,
)

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Past:
    """A table, what a service does to it, and what the oracle says of it before and after; `undisturbed` is what it leaves.

    `is_seamless`: no reader notices the service, at any moment of it.
    """

    bench: Bench
    layout: Layout
    start: Moment
    service: Service
    before: Oracle
    undisturbed: Moment
    observer: Observer = field(default_factory=Observer)
    blocks: BlockInstants = field(default_factory=BlockInstants)

    @property
    def run(self) -> Protocol:
        return self.service.run

    @property
    def after(self) -> Oracle:
        return self.service.after

    @property
    def is_seamless(self) -> bool:
        return self.before.snapshot() == self.after.snapshot()


def cells(services: Sequence[Callable[[Story, Bench], Service]]) -> pytest.MarkDecorator:
    """The pasts of these services on both layouts."""
    made = [(service, layout) for service in services for layout in LAYOUTS]
    return pytest.mark.parametrize(
        "past", made, indirect=True, ids=[f"{service.__name__}-v{layout.version}" for service, layout in made]
    )


@pytest.fixture
def past(request: pytest.FixtureRequest) -> Past:
    return _past(*request.param)


@cache
def _past(begin: Callable[[Story, Bench], Service], layout: Layout) -> Past:
    begun = begin_past(begin, layout)
    undisturbed = begun.bench.run(begun.start, begun.service.run)
    return Past(begun.bench, layout, begun.start, begun.service, begun.story.oracle, undisturbed)


@cells(SERVICES)
def test_a_service_that_dies_at_any_write_is_ended_by_the_same_again(past: Past) -> None:
    check(past, past.undisturbed)
    assert past.undisturbed.visible != past.start.visible
    count = 0
    for number, left in crash_states(past.bench, past.start, past.run):
        count += 1
        check_no_lost_completion(past.bench, left)
        if past.is_seamless:
            check_rows(past, left, past.after.snapshot())
        again, operations, failure = go_on(past, left)
        # A failure says that it had come to its end before it died: there was nothing left to undo.
        assert data_files(again) == data_files(past.undisturbed), f"write {number}: {failure!r}"
        check(past, again, operations)
    assert count >= 3


def go_on(past: Past, left: Moment) -> tuple[Moment, tuple[Operation, ...], EventideError | None]:
    """What the same service makes of what was left, and by which operations."""
    past.bench.load(left.after_the_lock_expired())
    storage = FaultyStorage(past.bench.storage)
    failure: EventideError | None = None
    try:
        past.run(past.bench.process(storage))
    except EventideError as error:
        failure = error
    return past.bench.moment(), storage.operations, failure


@cells(SEAMLESS)  # what is being undone is nobody's ground to build on
def test_a_writer_continues_after_any_crash_of_a_service(past: Past) -> None:
    assert past.is_seamless
    for _, left in crash_states(past.bench, past.start, past.run):
        later = left.after_the_lock_expired()
        past.bench.load(later)
        oracle = past.after.copy()
        Story(past.layout, past.bench.storage, past.bench.clock, oracle, 7).commit((put("k1", 90, "meanwhile"),))
        written = past.bench.moment()
        check_rows(past, written, oracle.snapshot())
        again, _ = past.bench.attempt(written, past.run)
        check_rows(past, again, oracle.snapshot())


@cells(SERVICES)
def test_a_write_that_fails_or_loses_its_reply_or_is_sent_twice_does_no_harm(past: Past) -> None:
    for fault, operation, left, failure in faults(past.bench, past.start, past.run):
        if past.is_seamless:
            check_rows(past, left, past.after.snapshot())
        if failure is None:
            assert data_files(left) == data_files(past.undisturbed), f"{fault} at {operation} was not noticed"
        again, operations, _ = go_on(past, left)
        assert data_files(again) == data_files(past.undisturbed), f"{fault} at {operation}"
        check(past, again, operations)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_writer_that_was_considered_dead_commits_whole_or_not_at_all(layout: Layout) -> None:
    """It wakes up after the process that rolled it back has died at any write."""
    bench = Bench("service-crashes", EARLY)
    story = Story.begin(layout, bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"),))
    failed = begin_and_die(story, (put("k0", 50, "awake"), put("k7", 51, "awake")))
    start, without = bench.moment(), story.oracle.snapshot()
    ended: set[bool] = set()
    for number, left in crash_states(
        bench, start, lambda application: returns_nothing(application.rollback.undo(failed.instant))
    ):
        bench.load(left.after_the_lock_expired())
        application = bench.process()
        try:
            application.append.complete(failed)
        except RefusedError:
            ended.add(False)
            assert rows(bench.process()) == without, f"write {number}"
        else:
            ended.add(True)
            words = {row[3] for row in rows(bench.process())}
            assert words == {"awake"}, f"write {number}"
    assert ended == {True, False}


@cells(SERVICES)
def test_two_processes_at_the_same_service_do_it_once(past: Past) -> None:
    for operation, left, failure, others_failure in interludes(past.bench, past.start, past.run, past.run):
        assert failure is None or others_failure is None or isinstance(failure, EventideError), operation
        again, operations, _ = go_on(past, left)
        assert data_files(again) == data_files(past.undisturbed), f"{operation}: {failure!r} and {others_failure!r}"
        check(past, again, operations)


def check(past: Past, moment: Moment, operations: Sequence[Operation] = ()) -> None:
    """Every invariant, and that nothing is left half done but a write that the service has nothing to do with."""
    past.bench.load(moment)
    application, oracle = past.bench.process(), past.after
    promised = oracle.instants[-1:] if past.service.removes_history else None
    kept = {p: f for p, f in past.start.files.items() if p in past.undisturbed.files}
    check_invariants(
        Inspection(
            files=moment.files,
            state=application.state(),
            seen=past.observer.look(application, oracle.instants, promised),
            oracle=oracle,
            blocks=past.blocks,
            reader_orders=past.layout.reader_orders,
            untouched={p: f for p, f in kept.items() if past.undisturbed.files[p].data == f.data},
            rolled_back=past.service.undone,
            cut_ms=oracle.freshness().cut_ms,
            operations=operations,
        )
    )
    pending = [i for i in past.bench.process().state().timeline.pending if i.action not in ("deltacommit", "commit")]
    assert pending == []


def check_rows(past: Past, moment: Moment, expected: Rows) -> None:
    past.bench.load(moment)
    application = past.bench.process()
    assert rows(application) == expected


def data_files(moment: Moment) -> frozenset[str]:
    return frozenset(path for path in moment.files if path.startswith("part=") and not path.startswith(OUTCOMES_PREFIX))
