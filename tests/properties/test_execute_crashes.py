"""A compaction interrupted at every write, and at every second one, and ended in every way: no reader ever notices."""

from collections.abc import Callable

import pytest

from eventide.testing.compaction_case import Case
from eventide.testing.crash_enumeration import (
    Protocol,
    crash_states,
    execute,
    execute_at_once,
    roll_back,
    schedule,
)
from eventide.testing.inspection.checks import check_nothing_left
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, InstantNotFoundError
from support.pasts.compaction_cells import TALLY, check_reach

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("attempt", [execute, execute_at_once])
def test_a_compaction_that_dies_at_any_write_can_be_ended_in_any_way(
    case: Case, attempt: Callable[[str], Protocol]
) -> None:
    for number, left in crash_states(case.bench, case.scheduled, attempt(case.instant)):
        TALLY.add("crash states")
        status = case.check(left)
        later = left.after_the_lock_expired()

        done, after_retry, failure = case.attempt(later, execute(case.instant))
        assert (after_retry, failure) == ("completed", None), f"write {number}"
        again, status_again, failure = case.attempt(done, execute(case.instant))
        assert (status_again, failure, again.visible) == ("completed", None, done.visible)

        undone, after_rollback, failure = case.attempt(later, roll_back(case.instant))
        if failure is None:
            assert after_rollback == "absent"
            check_nothing_left(undone.files, case.start.files)
            TALLY.add("rollbacks completed")
        else:
            # Its completion has been decided.
            assert (status, after_rollback) == ("pending", "pending")
            assert isinstance(failure, BusyError)

        _, after_schedule, failure = case.attempt(later, schedule(case.history, LinkChoice.COPY))
        assert after_schedule == status
        assert isinstance(failure, BusyError) == (status == "pending")

        written_case, written = case.with_write(later)
        written_case.finish(written)
        TALLY.add("recoveries", 4)
        TALLY.add("compactions completed")


def test_a_compaction_that_dies_twice_can_be_ended(paired_case: Case) -> None:
    """At every write of the first attempt, and at every one of the second."""
    for _, left in crash_states(paired_case.bench, paired_case.scheduled, execute(paired_case.instant)):
        for _, again in crash_states(paired_case.bench, left.after_the_lock_expired(), execute(paired_case.instant)):
            TALLY.add("pairs of crashes, execute")
            paired_case.check(again)
            paired_case.finish(again.after_the_lock_expired())


def test_a_scheduling_that_dies_at_any_write_leaves_a_plan_or_none(case: Case) -> None:
    link = LinkChoice(case.plan.link_mode)
    for _, left in crash_states(case.bench, case.start, schedule(case.history, link)):
        TALLY.add("crash states")
        later = left.after_the_lock_expired()
        status = case.check(left)
        if status == "pending":
            case.finish(later)
        else:
            _, failure = case.bench.attempt(later, schedule(case.history, link))
            assert failure is None
            _, failure = case.bench.attempt(later, execute(case.instant))
            assert isinstance(failure, InstantNotFoundError)
        TALLY.add("recoveries", 2)


def test_the_enumeration_reached_what_it_is_for() -> None:
    check_reach(
        {"crash states": 120, "recoveries": 400, "compactions completed": 400, "pairs of crashes, execute": 300}
    )
