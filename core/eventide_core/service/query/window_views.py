"""The views that a consumer of windows reads: which base files each has, and what took those that are gone."""

from dataclasses import dataclass

from eventide_core.action.freshness.watermark_view import PublishedView
from eventide_core.action.query.planner import plan_slices
from eventide_core.action.windows.progress import ConsumerView
from eventide_core.cure import Cure
from eventide_core.errors import CleanedHistoryError, MissingFileError
from eventide_core.service.common.facts.watermark_views import base_files_of, last_write_of
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.state.window_consumers import ConsumerFiles, RecordedView
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.files.slice_read import QueryPlan
from eventide_core.table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class ConsumerViews:
    """The views of one consumer. `files` are the table's, `consumer` has the files of its state."""

    files: TableFiles
    consumer: ConsumerFiles

    def plan(self, state: TableState, view: ConsumerView) -> QueryPlan:
        """A read of the base files of a view that the consumer has recorded. Raises CleanedHistoryError."""
        try:
            return self.plan_of(state, self.consumer.view(view))
        except MissingFileError as missing:
            raise CleanedHistoryError(_cleaned(self.consumer.consumer, str(missing))) from missing

    def plan_of(self, state: TableState, recorded: RecordedView) -> QueryPlan:
        """A read of the view's base files. Raises CleanedHistoryError."""
        present = [
            file for file in state.listing if file.path in recorded.paths and BaseFileName.parse(file.name) is not None
        ]
        missing = recorded.paths - {file.path for file in present}
        if missing:
            raise CleanedHistoryError(self._gone(state, min(missing)))
        slices = state.view_of(present, lambda _: False).latest_base_files()
        return QueryPlan(plan_slices(slices, state.blocks()), state.shape(None, as_of=recorded.schema_as_of))

    def is_readable(self, state: TableState, view: ConsumerView) -> bool:
        try:
            self.plan(state, view)
        except CleanedHistoryError:
            return False
        return True

    def _gone(self, state: TableState, path: str) -> str:
        """What took a base file of a recorded view, for people."""
        consumer = self.consumer.consumer
        name = BaseFileName.parse(path.rpartition("/")[2])
        written = "" if name is None else name.instant
        for undoing in reversed(state.timeline.completed):
            if undoing.is_undoing and written in self.files.undone(state.config, Timeline.of((undoing,))):
                return _undone(consumer, path, f"the {undoing.action} {undoing.requested_time}, which undid {written}")
        if written and state.timeline.find(written) is None and not state.timeline.is_archived(written):
            return _undone(consumer, path, f"a rollback of {written}")
        return _cleaned(consumer, f"{path} is gone")


def is_newer(state: TableState, newest: PublishedView, view: ConsumerView | None) -> bool:
    """Whether the view comes after the consumer's one, which may be archived; or that one was undone by a restore."""
    known = None if view is None else state.find_write(view.instant)
    return known is None or newest.completed > (known.completion_time or known.requested_time, known.requested_time)


def recorded_view(state: TableState, view: PublishedView) -> RecordedView:
    bases = base_files_of(state, view)
    paths = frozenset(file_slice.base_file.path for file_slice in bases if file_slice.base_file is not None)
    return RecordedView(last_write_of(state, view), paths)


def without_shared(before: QueryPlan, after: QueryPlan) -> tuple[QueryPlan, QueryPlan]:
    """Both without the base files that they share, and the first one with the columns of the second."""
    shared = before.paths & after.paths
    first, second = (
        tuple(slice_read for slice_read in plan.slices if slice_read.base_path not in shared)
        for plan in (before, after)
    )
    return QueryPlan(first, after.shape), QueryPlan(second, after.shape)


def _cleaned(consumer: str, what: str) -> str:
    return (
        f"{what}, which the consumer {consumer} has still to read: pass {Cure.argument('renew')} to deliver its windows as "
        "of the latest view; in the future, let it run more often, set a longer `keep`, and retain more in Hudi's own "
        "cleaner (hoodie.cleaner.commits.retained)"
    )


def _undone(consumer: str, path: str, what: str) -> str:
    return (
        f"{path} went with {what}, and the consumer {consumer} has still to read it: pass {Cure.argument('renew')} to "
        "deliver its windows as of the latest view; each done window that can still be corrected comes again"
    )
