"""Tags the read-optimized view when the watermark passes a boundary (action/freshness/watermark_tags.py).

Order of writes: first the new tag, then the deletion of old ones. Each tag is a separate savepoint. A crash in between
leaves old tags, which the next run deletes, and never fewer than are retained.
"""

from dataclasses import dataclass
from typing import Final

from eventide_core.action.freshness.arrival import held
from eventide_core.action.freshness.watermark_tags import TagSchedule, boundary_in, plan_tags, remark_of
from eventide_core.action.freshness.watermark_view import PublishedView
from eventide_core.errors import CleanedHistoryError, TagNotFoundError
from eventide_core.service.common.facts.arrival import ArrivalReader
from eventide_core.service.common.facts.needed_files import savepoints_of
from eventide_core.service.common.facts.watermark_views import last_write_of, readable_views, view_as_of_watermark
from eventide_core.service.common.state.table import TableState
from eventide_core.service.rollback.savepoint import Savepoints


@dataclass(frozen=True, slots=True)
class TagChange:
    """Names of tags that came and went with the watermark.

    `made` is None if none was due, if a savepoint keeps that state of the table already, if the sources had not come to the
    boundary when its view was made, or if its files have been cleaned, as they may have been when tags are asked for the
    first time. `deleted` are those beyond the number to retain, oldest first.
    """

    made: str | None = None
    deleted: tuple[str, ...] = ()


NO_TAGS: Final = TagChange()


@dataclass(frozen=True, slots=True)
class WatermarkTags:
    """`schedule` is None if the options ask for no tags. A tag is of a view that has what the sources vouch for."""

    savepoints: Savepoints
    arrival: ArrivalReader
    schedule: TagSchedule | None

    def tag(self) -> TagChange:
        """Makes the tag that is due, and deletes those that are too old. Raises what `Savepoints.save` raises."""
        if self.schedule is None:
            return NO_TAGS
        state = TableState.load(self.savepoints.files)
        saved = savepoints_of(self.savepoints.files, state)
        tagged = {
            kept.tag: boundary
            for kept in saved.values()
            if kept.tag is not None and (boundary := boundary_in(kept.remarks)) is not None
        }
        watermark_ms = max((view.watermark_ms for view in readable_views(state)), default=None)
        sources = self.arrival.progress(state)
        changes = plan_tags(self.schedule, held(watermark_ms, sources), tagged)
        made = None
        if changes.boundary_ms is not None and changes.name is not None:
            view = self._view(state, changes.boundary_ms, is_newest=bool(sources))
            if view is not None and last_write_of(state, view) not in saved:
                made = self.savepoints.save_tag(
                    changes.name,
                    instant=None,
                    threshold_ms=changes.boundary_ms,
                    comments=remark_of(changes.boundary_ms),
                    compaction=view.compaction.requested_time,
                ).name
        expired = changes.expired if made is not None or changes.name is None else changes.expired[:-1]
        return TagChange(made, tuple(name for name in expired if self._delete(name)))

    def _view(self, state: TableState, boundary_ms: int, *, is_newest: bool) -> PublishedView | None:
        try:
            view = view_as_of_watermark(state, boundary_ms, is_newest=is_newest)
        except CleanedHistoryError:
            return None
        return view if self.arrival.had_come(state, view, boundary_ms) else None

    def _delete(self, name: str) -> bool:
        """Whether the tag was there: another process may have deleted it."""
        try:
            self.savepoints.delete_tag(name)
        except TagNotFoundError:
            return False
        return True
