"""Whether a plan of eventide can still be run, and completed, as the table is now."""

from collections.abc import Iterable

from eventide_core.action.compaction.quiet_moment import open_at
from eventide_core.action.compaction.trigger import check_undoing, cure_of
from eventide_core.errors import BusyError, MissingFileError, PlanMismatchError
from eventide_core.ports import AddedFile
from eventide_core.service.state.table import TableState
from eventide_core.table.timeline.instant import Action
from eventide_core.table.timeline.plans import CompactionPlan


def check_pending(state: TableState, plan: CompactionPlan) -> None:
    check_undoing(state.timeline)
    for other in state.timeline.pending_plans:
        if other.action is Action.COMPACTION and other.requested_time > plan.instant:
            raise PlanMismatchError(
                f"a {other.action} was planned at {other.requested_time}: a process that was paused put the plan at "
                f"{plan.instant} afterwards; roll that plan back"
            )
        if other.requested_time != plan.instant:
            raise BusyError(
                f"a {other.action} is pending at {other.requested_time} beside the plan at {plan.instant}; "
                f"{cure_of(other)}"
            )
    planned = set(plan.file_groups)
    if any(s.file_group in planned and s.base_instant > plan.instant for s in state.view.latest_slices()):
        raise PlanMismatchError(
            f"slices after {plan.instant} exist: a process that was paused put the plan when others had compacted; roll "
            "the plan back and plan again"
        )
    if state.config.layout.names_logs_by_write and (state.timeline.start or "") > plan.instant:
        raise PlanMismatchError(
            f"instants after {plan.instant} were archived since the plan was made: readers would treat the "
            "log files above its base file as uncommitted; roll the plan back and plan again"
        )


def why_overtaken(state: TableState, plan: CompactionPlan) -> str | None:
    """Why the plan's instant isn't quiet after all (version 8 and later); None if it is.

    A writer chooses its instant before it creates its file. So a write with an earlier instant may have become visible
    only now, pending or already completed: its log file would sort before the left-overs. A plan without slices
    conflicts with nothing. A plan whose slices writers of version 6 have used, before the table was upgraded, has to be
    run: their log files name their slices, whatever the instants of these writes.
    """
    if state.config.layout.writers_follow_plans or not plan.operations or state.logs_on_top_of(plan):
        return None
    across = open_at(state.timeline, plan.instant)
    return f"the write requested at {across[0].requested_time} was open at {plan.instant}" if across else None


def check_made(state: TableState, added: Iterable[AddedFile]) -> None:
    """Raises MissingFileError unless the files that the commit adds are there, with the sizes that it records."""
    present = {file.path: file.size for file in state.listing}
    for file in added:
        if present.get(file.path) != file.size:
            is_there = file.path in present
            problem = f"has {present[file.path]} bytes instead of {file.size}" if is_there else "is missing"
            raise MissingFileError(f"{file.path}, which this compaction made, {problem}; nothing was committed")
