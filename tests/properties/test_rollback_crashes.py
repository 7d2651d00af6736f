"""The rollback of a pending compaction interrupted at every write, and at every second one: it can always be ended."""

import pytest

from eventide.testing.compaction_case import Case
from eventide.testing.crash_enumeration import (
    Moment,
    crash_states,
    execute,
    roll_back,
)
from eventide.testing.inspection.checks import check_nothing_left
from support.pasts.compaction_cells import TALLY, check_reach

pytestmark = pytest.mark.slow


def test_a_rollback_that_dies_at_any_write_can_be_ended(case: Case) -> None:
    for start in (case.scheduled, begun(case)):
        for number, left in crash_states(case.bench, start, roll_back(case.instant)):
            TALLY.add("crash states")
            status = case.check(left)
            later = left.after_the_lock_expired()
            is_requested = any(path.endswith(f"/{case.instant}.compaction.requested") for path in left.files)
            if status == "absent" and not is_requested:  # else its request doesn't count any longer, and is to go
                check_nothing_left(left.files, case.start.files)
                continue
            undone, status, failure = case.attempt(later, roll_back(case.instant))
            assert (status, failure) == ("absent", None), f"write {number}"
            check_nothing_left(undone.files, case.start.files)
            case.finish(later)
            TALLY.add("recoveries", 2)
            TALLY.add("rollbacks completed")


def test_a_rollback_that_dies_twice_can_be_ended(paired_case: Case) -> None:
    """At every write of the first attempt, and at every one of the second."""
    for _, left in crash_states(paired_case.bench, begun(paired_case), roll_back(paired_case.instant)):
        if paired_case.check(left) == "absent":
            continue
        for _, again in crash_states(paired_case.bench, left.after_the_lock_expired(), roll_back(paired_case.instant)):
            TALLY.add("pairs of crashes, rollback")
            paired_case.check(again)
            paired_case.finish(again.after_the_lock_expired())


def begun(case: Case) -> Moment:
    """The table when its compaction has made all files and has not decided to complete."""
    states = [left for _, left in crash_states(case.bench, case.scheduled, execute(case.instant))]
    undecided = [left for left in states if not any(path.endswith(".outcome") for path in left.files)]
    return undecided[-1].after_the_lock_expired()


def test_the_enumeration_reached_what_it_is_for() -> None:
    check_reach({"rollbacks completed": 300, "pairs of crashes, rollback": 100})
