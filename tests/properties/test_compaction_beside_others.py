"""A compaction that stands still before every write, while another process does something as a whole."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from eventide.bootstrap import Application
from eventide.testing.compaction_case import MEANWHILE, Case
from eventide.testing.crash_enumeration import (
    LOCK_EXPIRY_MS,
    Moment,
    Protocol,
    crash_states,
    execute,
    execute_at_once,
    interludes,
    roll_back,
    writes_of,
)
from eventide.testing.histories import Story
from eventide.testing.inspection.checks import check_nothing_left
from eventide.testing.inspection.observation import LOCK_PREFIX
from eventide.testing.oracle import Oracle
from eventide_core.table.timeline.contents.plans import require_ours
from support.pasts.compaction_cells import TALLY, check_reach

pytestmark = pytest.mark.slow


ATTEMPTS = pytest.mark.parametrize("attempt", [execute, execute_at_once])


@ATTEMPTS
def test_two_processes_at_work_on_one_plan_make_one_compaction(case: Case, attempt: Callable[[str], Protocol]) -> None:
    for other, waits in ((execute(case.instant), 0), (execute(case.instant), LOCK_EXPIRY_MS)):
        for operation, left, failure, others_failure in interludes(
            case.bench, case.scheduled, attempt(case.instant), after_waiting(case, waits, other)
        ):
            TALLY.add("interludes")
            assert failure is None or others_failure is None, f"{operation}: {failure!r} and {others_failure!r}"
            assert case.check(left) == "completed"


@ATTEMPTS
def test_a_rollback_beside_a_running_compaction_ends_one_of_the_two(
    case: Case, attempt: Callable[[str], Protocol]
) -> None:
    for waits in (0, LOCK_EXPIRY_MS):
        other = after_waiting(case, waits, roll_back(case.instant))
        for operation, left, failure, others_failure in interludes(
            case.bench, case.scheduled, attempt(case.instant), other
        ):
            TALLY.add("interludes")
            status = case.check(left)
            if failure is None:
                assert (status, others_failure is None) == ("completed", False), operation
            elif others_failure is None:
                assert status == "absent", operation
                check_nothing_left(left.files, case.start.files)
            else:
                case.finish(left.after_the_lock_expired())


@ATTEMPTS
def test_a_writer_that_commits_beside_a_running_compaction_loses_nothing(
    case: Case, attempt: Callable[[str], Protocol]
) -> None:
    told: list[tuple[Oracle, Moment, Moment]] = []

    def write(_: Application) -> None:
        alone = case.bench.moment()
        before = case.before.copy()
        Story(case.layout, case.bench.storage, case.bench.clock, before, 7).commit(MEANWHILE)
        told.append((before, alone, case.bench.moment()))

    for _, left, failure, others_failure in interludes(case.bench, case.scheduled, attempt(case.instant), write):
        TALLY.add("interludes")
        status = case.having(*told.pop()).check(left)
        assert (status, failure, others_failure) == ("completed", None, None)


def test_a_writer_that_had_not_seen_the_plan_loses_nothing(case: Case) -> None:
    """In version 6 its log lies in the slice that the plan took, and so the slice is planned again, in full."""
    before, written = unaware_write(case)
    begun = Moment({**case.scheduled.files, **written.files}, written.time_ms)
    for _, left in crash_states(case.bench, begun, execute(case.instant)):
        TALLY.add("crash states")
        done, failure = case.bench.attempt(left.after_the_lock_expired(), execute(case.instant))
        assert failure is None
        assert as_planned_now(case).having(before, case.start, written).check(done) == "completed"


@ATTEMPTS
def test_a_writer_that_has_not_seen_the_plan_and_starts_while_it_runs_loses_nothing(
    case: Case, attempt: Callable[[str], Protocol]
) -> None:
    """Up to the last look inside the lock; a writer who shares no lock and comes after it is the documented risk."""
    before, written = unaware_write(case)

    def write(_: Application) -> None:
        for path in written.files.keys() - case.start.files.keys():
            case.bench.storage.put(path, written.files[path].data)

    steps = writes_of(case.bench, case.scheduled, attempt(case.instant))
    locked = max(n for n, step in enumerate(steps) if (step.kind, step.path) == ("put_if_absent", LOCK_PREFIX))
    left_by = interludes(case.bench, case.scheduled, attempt(case.instant), write)
    for number, (operation, left, failure, _) in enumerate(left_by):
        if number > locked:
            break
        TALLY.add("interludes")
        case.bench.load(left)
        told = as_planned_now(case).having(before, case.start, written)
        status = told.check(left)
        assert (status == "completed") == (failure is None), f"{operation}: {failure!r}"
        if status == "pending":
            undone, failure = case.bench.attempt(left, roll_back(case.instant))
            assert failure is None
            assert told.check(undone) == "absent"


def unaware_write(case: Case) -> tuple[Oracle, Moment]:
    """What a writer commits who looked at the table before it was planned; the oracle and the files it leaves."""
    case.bench.load(case.start.later(10))
    before = case.before.copy()
    Story(case.layout, case.bench.storage, case.bench.clock, before, 7).commit(MEANWHILE)
    return before, case.bench.moment()


def as_planned_now(case: Case) -> Case:
    """The case with the plan that stands on the timeline of the table as it is, which may have been made again."""
    files = case.bench.process().files
    return replace(case, plan=require_ours(files.plan(files.config(), case.instant)))


def after_waiting(case: Case, milliseconds: int, protocol: Protocol) -> Protocol:
    def run(_: Application) -> None:
        case.bench.clock.sleep(milliseconds)
        protocol(case.bench.process())

    return run


def test_the_enumeration_reached_what_it_is_for() -> None:
    check_reach({"interludes": 700})
