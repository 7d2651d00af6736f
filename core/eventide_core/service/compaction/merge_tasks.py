"""The tasks of a compaction: what each executor merges, and into which files."""

from collections.abc import Sequence
from dataclasses import replace

from eventide_core import config as keys
from eventide_core.config import Options
from eventide_core.ports import Engine, MergeResult, MergeTask, Progress
from eventide_core.service.compaction.compact_slice import SliceCompactor
from eventide_core.service.rollback.compaction_files import marker_path
from eventide_core.service.state.table import TableState
from eventide_core.table.change_log import SupplementalLogging
from eventide_core.table.plans import CompactionPlan


def merge_tasks(state: TableState, options: Options, plan: CompactionPlan) -> tuple[MergeTask, ...]:
    """One task for each slice, in the order of the operations. The slices must be as planned in `state`."""
    # The plan's schema, which the commit records; a later write may have changed the table's.
    shape = replace(state.shape(plan.event_time_field), schema=plan.schema)
    blocks = state.blocks_to_merge()
    codec = options.get(keys.PARQUET_CODEC)
    captures = any(op.captures_changes for op in plan.operations)
    logged = SupplementalLogging.of(state.config.properties if captures else {})
    return tuple(
        MergeTask(
            partition=op.partition,
            file_id=op.file_id,
            instant=plan.instant,
            base_path=op.base_path,
            merged=tuple((log.path, log.size) for log in op.compacted),
            left_overs=tuple(
                (left.log_file.path, left.log_file.size, op.path_of(left.new_name) if left.new_name else None)
                for left in op.left_overs
            ),
            early=op.merged_before_ms,
            link_mode=plan.link_mode,
            carried_path=op.path_of(op.carried_name) if op.carried_name else None,
            new_base_path=op.path_of(op.new_base_name),
            marker_path=marker_path(plan.instant, op),
            shape=shape,
            blocks=blocks.of_logs([log.path for log in op.read_logs]),
            codec=codec,
            change_log_path=None if op.change_log_name is None else op.path_of(op.change_log_name),
            logged=logged,
        )
        for op in plan.operations
    )


def run_tasks(
    engine: Engine,
    compact_slice: SliceCompactor,
    plan: CompactionPlan,
    tasks: Sequence[MergeTask],
    progress: Progress,
) -> list[MergeResult]:
    """The result of each task, in their order. Raises what a task raises."""
    progress.start("compacting", len(tasks))
    sizes = [op.base_size + sum(log.size for log in op.read_logs) for op in plan.operations]
    return engine.map(compact_slice, tasks, sizes=sizes, on_done=progress.advance)
