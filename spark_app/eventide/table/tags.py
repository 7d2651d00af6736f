"""Savepoints of a table, and their tags."""

from typing import TYPE_CHECKING

from eventide.table.arguments import require_given_texts, require_texts
from eventide.table.open_table import OpenTable
from eventide_core.errors import ConfigError
from eventide_core.table.records.event_time import parse_threshold

if TYPE_CHECKING:
    from eventide_core.service.rollback.savepoint import Tag
    from eventide_core.table.timeline.savepoint_metadata import SavepointMetadata


class TableTags(OpenTable):
    """The savepoints and tags of `eventide.Table`."""

    __slots__ = ()

    def savepoint(self, instant: str, *, comments: str = "", tag: str | None = None) -> "SavepointMetadata":
        """Keeps the table as of the completed write at an instant: cleaning removes nothing of it until you delete it.

        `tag` is a name for the savepoint. Hudi stores it in the comments.
        """
        require_texts(instant=instant, comments=comments)
        require_given_texts(tag=tag)
        return self._application.savepoints.save(instant, comments=comments, tag=tag)

    def delete_savepoint(self, instant: str) -> None:
        require_texts(instant=instant)
        self._application.savepoints.delete(instant)

    def tag(
        self,
        name: str,
        *,
        instant: str | None = None,
        as_of_watermark: str | int | None = None,
        comments: str = "",
    ) -> "Tag":
        """Keeps the table under a name: as of an instant, as of the compaction that reached a watermark, or as it is now.

        `snapshot(tag=name)` and `read_optimized(tag=name)` read it.
        """
        if not isinstance(name, str):
            raise ConfigError(f"{name!r} is no name of a tag: pass a text")
        require_texts(comments=comments)
        require_given_texts(instant=instant)
        if instant is not None and as_of_watermark is not None:
            raise ConfigError("pass either an instant or a watermark, not both")
        before_ms = None if as_of_watermark is None else parse_threshold(as_of_watermark)
        return self._application.savepoints.save_tag(name, instant=instant, before_ms=before_ms, comments=comments)

    def tags(self) -> "tuple[Tag, ...]":
        """All tags, sorted by name."""
        return self._application.savepoints.tags()

    def delete_tag(self, name: str) -> str:
        """Deletes a tag, and returns its instant."""
        require_texts(name=name)
        return self._application.savepoints.delete_tag(name)
