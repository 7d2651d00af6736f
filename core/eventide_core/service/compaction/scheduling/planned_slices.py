"""Whether the slices of a plan are unchanged."""

from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.file_slice import FileSlice, LogFile
from eventide_core.table.timeline.contents.plans import CompactionPlan, PlannedOperation


def is_as_planned(state: TableState, plan: CompactionPlan, op: PlannedOperation) -> bool:
    """Whether a slice of the plan is unchanged: the same base file, and the same log files below the new slice.

    It is the last one below the plan's instant, unless an earlier plan that was put late has been run meanwhile.
    """
    below = [s for s in state.view.slices.get((op.partition, op.file_id), ()) if s.base_instant < plan.instant]
    if not below or not _holds(below[-1], op):
        return False
    file_slice = below[-1]
    present = {(log.path, log.size) for log in file_slice.log_files if not is_in_new_slice(state, plan.instant, log)}
    linked = [left.log_file for left in op.left_overs if left.new_name is not None]
    expected = {(log.path, log.size) for log in (*op.compacted, *linked)}
    all_logs = {(log.path, log.size) for log in file_slice.log_files}
    return present == expected and all((left.log_file.path, left.log_file.size) in all_logs for left in op.left_overs)


def _holds(file_slice: FileSlice, op: PlannedOperation) -> bool:
    base = file_slice.base_file
    return file_slice.base_instant == op.base_instant and (base.path if base else None) == op.base_path


def is_in_new_slice(state: TableState, instant: str, log: LogFile) -> bool:
    """Whether the log file belongs, or will belong, to the slice that begins at the plan's instant."""
    return state.config.layout.is_in_slice_from(instant, log.name, state.timeline)
