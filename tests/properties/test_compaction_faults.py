"""A compaction and its rollback with a storage that fails, loses replies and repeats requests, at every operation."""

import pytest

from eventide.testing.compaction_case import Case
from eventide.testing.crash_enumeration import (
    execute,
    failing_reads,
    faults,
    roll_back,
)
from eventide_adapters.storage.faulty import Fault
from support.pasts.compaction_cells import TALLY, check_reach

pytestmark = pytest.mark.slow


def test_a_write_that_fails_or_loses_its_reply_or_is_sent_twice_does_no_harm(case: Case) -> None:
    for protocol, start in ((execute(case.instant), case.scheduled), (roll_back(case.instant), case.scheduled)):
        for fault, operation, left, failure in faults(case.bench, start, protocol):
            TALLY.add("faults")
            status = case.check(left)
            if failure is None:
                assert status != "pending", f"{fault} at {operation} was not noticed"
            if fault is Fault.REPLY_LOST and status == "completed":
                assert failure is None, f"the compaction has completed, but the user got {failure}"
            case.finish(left.after_the_lock_expired())


def test_a_read_that_fails_does_no_harm(case: Case) -> None:
    for _, left in failing_reads(case.bench, case.scheduled, execute(case.instant)):
        TALLY.add("failing reads")
        case.check(left)


def test_the_enumeration_reached_what_it_is_for() -> None:
    check_reach({"faults": 500, "failing reads": 150})
