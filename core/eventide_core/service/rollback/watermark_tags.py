"""Tags the read-optimized view when the watermark passes a boundary (action/freshness/watermark_tags.py).

Order of writes: first the new tag, then the deletion of old ones. Each tag is a separate savepoint. A crash in between
leaves old tags, which the next run deletes, and never fewer than are retained.
"""

from dataclasses import dataclass
from typing import Final

from eventide_core.action.freshness.watermark_tags import TagSchedule, boundary_in, plan_tags, remark_of
from eventide_core.errors import CleanedHistoryError, TagNotFoundError
from eventide_core.service.facts.needed_files import savepoints_of
from eventide_core.service.facts.watermark_views import last_write_of, readable_views, view_as_of_watermark
from eventide_core.service.rollback.savepoint import Savepoints
from eventide_core.service.state.table import TableState


@dataclass(frozen=True, slots=True)
class TagChange:
    """Names of tags that came and went with the watermark.

    `made` is None if none was due, if a savepoint keeps that state of the table already, or if its files have been cleaned,
    as they may have been when tags are asked for the first time. `deleted` are those beyond the number to retain, oldest
    first.
    """

    made: str | None = None
    deleted: tuple[str, ...] = ()


NO_TAGS: Final = TagChange()


@dataclass(frozen=True, slots=True)
class WatermarkTags:
    """`schedule` is None if the options ask for no tags."""

    savepoints: Savepoints
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
        watermark = max((view.watermark_ms for view in readable_views(state)), default=None)
        changes = plan_tags(self.schedule, watermark, tagged)
        made = None
        if changes.boundary_ms is not None and changes.name is not None:
            write = _write_of(state, changes.boundary_ms)
            if write is not None and write not in saved:
                remark = remark_of(changes.boundary_ms)
                made = self.savepoints.save_tag(
                    changes.name, instant=None, before_ms=changes.boundary_ms, comments=remark
                ).name
        expired = changes.expired if made is not None or changes.name is None else changes.expired[:-1]
        return TagChange(made, tuple(name for name in expired if self._delete(name)))

    def _delete(self, name: str) -> bool:
        """Whether the tag was there: another process may have deleted it."""
        try:
            self.savepoints.delete_tag(name)
        except TagNotFoundError:
            return False
        return True


def _write_of(state: TableState, boundary_ms: int) -> str | None:
    try:
        return last_write_of(state, view_as_of_watermark(state, boundary_ms))
    except CleanedHistoryError:
        return None
