"""The tasks of a compaction: what each executor merges, and into which files.

The process that put a plan begins its tasks at once if its engine can (`merges_ahead`), while the plan gets its owner and
the clock skew passes:

1. They are the tasks that follow from the state of the table in which the plan was made. They read, and wait before they
   write anything.
2. Under the lock, the plan is checked in a new state (`run`). If exactly the same tasks follow from that state, they may
   write. The content of what they have read is the same, too: a base file never changes, and of a log file they read
   only as many bytes as it had, to which writers at most append.
3. If other tasks follow, or the plan isn't begun, they end, and nothing remains of them.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from eventide_core.access.threads import Gate
from eventide_core.config.compaction import ParquetCodec
from eventide_core.errors import PlanMismatchError
from eventide_core.ports import BackgroundEngine, Engine, MergeResult, MergeTask, Progress, RunningTask, Tracer
from eventide_core.service.common.state.table import TableState
from eventide_core.service.compaction.compact_slice import SliceCompactor
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.records.supplemental_logging import SupplementalLogging
from eventide_core.table.timeline.contents.plans import CompactionPlan


def merge_tasks(state: TableState, codec: ParquetCodec, plan: CompactionPlan) -> tuple[MergeTask, ...]:
    """One task for each slice, in the order of the operations. The slices must be as planned in `state`."""
    # The plan's schema, which the commit records; a later write may have changed the table's.
    shape = state.shape_of(plan.schema, plan.event_time_field, as_of=plan.instant)
    _refuse_other_names(shape, plan)
    blocks = state.blocks_to_merge()
    captures = any(op.captures_changes for op in plan.operations)
    logged = SupplementalLogging.of(state.config.properties if captures else {})
    return tuple(
        MergeTask(
            plan.instant,
            op,
            plan.link_mode,
            shape,
            blocks.of_logs([log.path for log in op.read_logs]),
            codec,
            logged,
        )
        for op in plan.operations
    )


def _refuse_other_names(shape: RecordShape, plan: CompactionPlan) -> None:
    """Raises PlanMismatchError if columns have other names as of the plan's instant: its base files are read with those."""
    if shape.column_names is None:
        return
    own = set(shape.column_names.current.columns.values())
    for name in shape.schema.field_names:
        if name not in own:
            raise PlanMismatchError(
                f"the plan at {plan.instant} and its column {name!r} are from different sides of a change of the schema, "
                "and a base file of its instant would be read with the other names; roll the plan back, then plan again"
            )


@dataclass(frozen=True, slots=True)
class MergesAhead:
    """Merges that have begun, and wait for `_may_write` before they write.

    `tasks` were made of the plan before this process owned its instant; their results count if the plan still makes the
    same.
    """

    tasks: tuple[MergeTask, ...]
    _may_write: Gate
    _results: Sequence[RunningTask[MergeResult]]

    def finished(self, tasks: Sequence[MergeTask]) -> list[MergeResult] | None:
        """Lets them write, if they are these tasks. None if they aren't, or if they have ended before.

        Raises what a task raises.
        """
        if self.tasks != tasks or self._may_write.is_decided:
            self.abandon()
            return None
        self._may_write.decide(is_open=True)
        return [result.result() for result in self._results]

    def abandon(self) -> None:
        """Ends those that still wait, which have written nothing. Those that write end as usual, and no other one begins."""
        self._may_write.decide(is_open=False)
        for result in self._results:
            result.cancel()
        for result in self._results:
            result.join()


@contextmanager
def merges_ahead(
    engine: Engine, compact_slice: SliceCompactor, tasks: tuple[MergeTask, ...], progress: Progress
) -> Generator[MergesAhead | None]:
    """Begins the tasks, and abandons them at the end of the block. None if the engine runs them elsewhere."""
    may_write = Gate()
    begun: Sequence[RunningTask[MergeResult]] | None = None
    if isinstance(engine, BackgroundEngine) and tasks:
        try:
            begun = engine.begin(partial(compact_slice, may_write=may_write.wait), tasks, on_done=progress.advance)
        except BaseException:
            may_write.decide(is_open=False)
            raise
    if begun is None:
        yield None
        return
    ahead = MergesAhead(tasks, may_write, begun)
    try:
        yield ahead
    finally:
        ahead.abandon()


def run_tasks(
    engine: Engine,
    compact_slice: SliceCompactor,
    plan: CompactionPlan,
    tasks: tuple[MergeTask, ...],
    progress: Progress,
    tracer: Tracer,
    ahead: MergesAhead | None = None,
) -> list[MergeResult]:
    """The result of each task, in their order. Those that run ahead go on if they are the same. Raises what one raises.

    Each is a span of the trace, which can begin before this call's.

    A result belongs to the task of its base file, whatever the order in which an engine returns them: the commit states
    figures of each slice.
    """
    progress.start("compacting", len(tasks))
    with tracer.span("merge", slices=len(tasks)):
        results = None if ahead is None else ahead.finished(tasks)
        sizes = [op.base_size + sum(log.size for log in op.read_logs) for op in plan.operations]
        if results is None:
            results = engine.map(compact_slice, tasks, sizes=sizes, on_done=progress.advance)
        by_base = {result.new_base_path: result for result in results}
        in_order = [by_base[task.op.new_base_path] for task in tasks]
        for op, size, result in zip(plan.operations, sizes, in_order, strict=True):
            tracer.past(
                "merge slice",
                result.began_ns,
                result.ended_ns,
                partition=op.partition,
                file_group=op.file_id,
                log_files=len(op.read_logs),
                bytes_read=size,
                bytes_written=result.base_size,
                rows=result.num_writes,
                log_records=result.log_records,
            )
    return in_order
