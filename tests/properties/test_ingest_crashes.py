"""A write interrupted at every one of its own writes, held to the invariants I1 to I14, and continued from.

Beside another writer, or a scheduling, snapshot and time travel alone are checked: on version 6 the logs of two writers may
lie in another order than their instants, which is what the oracle goes by, and it knows of no compaction here. So I11
and I13, which speak of pending plans, say nothing; compactions are held to them by test_execute_crashes.py.
"""

import sys

import pytest

from eventide.testing.crash_enumeration import (
    LOCK_EXPIRY_MS,
    Bench,
    Moment,
    Tally,
    crash_states,
    execute,
    faults,
    interludes,
    pending_plan,
    schedule,
)
from eventide.testing.histories import Commit, Layout, layouts, put
from eventide.testing.oracle import Order
from eventide_adapters.storage.faulty import Fault
from eventide_core.config import LinkChoice
from eventide_core.errors import LockError, WriteConflictError
from support.cases.ingest import BEGINNING, HEARTBEAT_EXPIRY_MS, WRITTEN, IngestCase, ingest, ingest_case
from support.faults.lost_completions import check_no_lost_completion

pytestmark = pytest.mark.slow

RIVAL = (put("k0", 7, "rival"),)
ELSEWHERE = (put("k9", 7, "far off", partition="z"),)
TALLY = Tally()
FLOORS = {"crash states": 40, "faults": 120, "writes rolled back": 20, "conflicts": 10, "both committed": 40}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            layout,
            id=f"v{layout.version}-{layout.order.name}",
            marks=() if layout.order is Order.EVENT_TIME else pytest.mark.broad,
        )
        for layout in layouts()
    ],
)
def case(request: pytest.FixtureRequest) -> IngestCase:
    layout: Layout = request.param
    return ingest_case(layout, Bench("ingest-crashes"))


def test_a_write_that_dies_at_any_step_is_never_visible_and_the_next_one_continues(case: IngestCase) -> None:
    for number, left in crash_states(case.bench, case.start, ingest(WRITTEN)):
        TALLY.add("crash states")
        seen = case.check(left, WRITTEN)
        check_no_lost_completion(case.bench, left)
        later = left.after_the_lock_expired().later(HEARTBEAT_EXPIRY_MS)

        again, failure = case.bench.attempt(later, ingest(WRITTEN))
        assert failure is None, f"write {number}: {failure!r}"
        assert case.check(again, WRITTEN, WRITTEN)[-1:] == (WRITTEN,)
        check_nothing_is_pending(case, again)
        TALLY.add("writes rolled back", not seen)

        compacted = case.bench.run(again, lambda a: schedule(BEGINNING, LinkChoice.COPY)(a))
        plan = pending_plan(case.bench.process())
        done, failure = case.bench.attempt(compacted, execute(plan.instant))
        assert failure is None
        case.bench.load(done)
        assert case.bench.process().state().timeline.find(plan.instant) is not None


def test_a_write_whose_storage_fails_or_loses_a_reply_is_whole_or_not_there(case: IngestCase) -> None:
    for fault, operation, left, failure in faults(case.bench, case.start, ingest(WRITTEN)):
        TALLY.add("faults")
        seen = case.check(left, WRITTEN)
        if failure is None:
            assert seen == (WRITTEN,), f"{fault} at {operation}"
        elif fault is Fault.REPLY_LOST:
            assert not seen, f"the write has completed, but the user got {failure!r}"
        later = left.after_the_lock_expired().later(HEARTBEAT_EXPIRY_MS)
        again, failure = case.bench.attempt(later, ingest(RIVAL))
        assert failure is None
        case.check(again, *seen, RIVAL)
        check_nothing_is_pending(case, again)


@pytest.mark.parametrize(("other", "may_go_together"), [(RIVAL, False), (ELSEWHERE, True)])
def test_of_two_writers_at_once_both_are_seen_or_the_slower_is_reported(
    case: IngestCase, other: Commit, may_go_together: bool
) -> None:
    for operation, left, failure, others_failure in interludes(case.bench, case.start, ingest(WRITTEN), ingest(other)):
        seen = case.check(left, WRITTEN, other, is_alone=False)
        assert isinstance(failure, WriteConflictError | None), operation
        assert isinstance(others_failure, LockError | None), operation
        assert (failure is None, others_failure is None) == (WRITTEN in seen, other in seen), operation
        assert not (may_go_together and failure), operation
        TALLY.add("conflicts", failure is not None)
        TALLY.add("both committed", failure is None and others_failure is None)
        if failure is not None:
            check_nothing_is_pending(case, left)


def test_a_write_beside_a_scheduling_keeps_its_records_whichever_is_first(case: IngestCase) -> None:
    plan_for = schedule(BEGINNING, LinkChoice.COPY)
    for operation, left, failure, _ in interludes(case.bench, case.start, ingest(WRITTEN), plan_for):
        assert failure is None, operation
        assert case.check(left, WRITTEN, is_alone=False) == (WRITTEN,)
        case.bench.load(left)
        application = case.bench.process()
        pending = application.state().timeline.pending_plans
        if pending:
            done, failure = case.bench.attempt(left.later(LOCK_EXPIRY_MS), execute(pending[0].requested_time))
            assert failure is None
            assert case.check(done, WRITTEN, is_alone=False) == (WRITTEN,)


def check_nothing_is_pending(case: IngestCase, moment: Moment) -> None:
    """No write of a dead process is left, nor, where Hudi's rollback removes them, a data file of one."""
    case.bench.load(moment)
    state = case.bench.process().state()
    assert not state.timeline.pending
    committed = {stat.path for metadata in state.commits.values() for stat in metadata.stats}
    if case.layout.version >= 8:
        assert {file.path for file in state.listing if not file.name.startswith(".hoodie_")} == committed


def test_the_campaign_reached_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{TALLY}\n")
    missed = {what: TALLY.counts[what] for what, floor in FLOORS.items() if TALLY.counts[what] < floor}
    assert not missed, f"reached only {missed}, of {FLOORS}"
