"""Whether a compaction may be planned now: Hudi's trigger strategies, EVENT_TIME_TRIGGER first among them.

EVENT_TIME_TRIGGER (RFC-74 section 3): never while a compaction, log compaction or clustering is pending, or two plans
together would break the rule that everything before T is compacted. Nor while a write that was requested before the
compaction is pending: its log would belong to the old slice, or sort after left-overs that are newer (safety rule 0).
"""

from eventide_core.errors import BusyError
from eventide_core.table.instant import Action
from eventide_core.table.timeline import Timeline

TRIGGER_NAME = "EVENT_TIME_TRIGGER"

_UNDOING = (Action.ROLLBACK, Action.RESTORE)


def check_trigger(timeline: Timeline) -> None:
    """Raises BusyError while something pending excludes any new plan."""
    for instant in timeline.pending_plans:
        raise BusyError(
            f"a {instant.action} is pending at {instant.requested_time}: no second plan may be made; "
            f"run it (--execute {instant.requested_time}), roll it back, or try again when it has ended"
        )
    for instant in timeline.pending:
        if instant.action in _UNDOING:
            raise BusyError(f"a {instant.action} is under way at {instant.requested_time}; try again when it has ended")


def check_pending_writes(timeline: Timeline, instant: str) -> None:
    """Raises BusyError while a write that was requested before the compaction's instant is pending."""
    for write in timeline.pending_writes:
        if write.requested_time < instant:
            raise BusyError(
                f"a {write.action} requested at {write.requested_time} has not completed: its records would end up on the "
                "wrong side of the compaction; try again when it has ended, or roll it back if its writer is dead"
            )
