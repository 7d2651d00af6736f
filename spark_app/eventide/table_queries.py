"""What is read of a table: the four queries, now, as of an instant, a watermark or a tag."""

from collections.abc import Callable
from functools import partial

from eventide.bootstrap import Application
from eventide.reader import Rows
from eventide_core.action.watermark_view import PublishedView
from eventide_core.errors import ConfigError
from eventide_core.service.facts.watermark_views import readable_views
from eventide_core.table.event_time import parse_threshold
from eventide_core.table.slice_read import QueryPlan


class TableQueries:
    """The queries of `eventide.Table`. The rows are read when they are asked for, not before."""

    __slots__ = ()

    _application: Application

    def snapshot(self, *, tag: str | None = None) -> Rows:
        """Every row as of now, or as of the commit that bears the tag."""
        queries = self._application.queries
        return self._rows(queries.snapshot if tag is None else partial(queries.tagged, tag))

    def read_optimized(self, *, as_of_watermark: str | int | None = None, tag: str | None = None) -> Rows:
        """The rows of base files alone: fast, and as fresh as `freshness()` says.

        With `as_of_watermark`, a T, as the first compaction left them whose published watermark is T or later: all that lies
        before T and had been committed then, and with an exact cut at T nothing else. With `tag` those that the tag keeps.

        Raises WatermarkNotFoundError and CleanedHistoryError, which name the watermarks that can be read; TagNotFoundError.
        """
        queries = self._application.queries
        if as_of_watermark is not None and tag is not None:
            raise ConfigError("give either a watermark or a tag, not both")
        if as_of_watermark is not None:
            return self._rows(partial(queries.as_of_watermark, parse_threshold(str(as_of_watermark))))
        return self._rows(queries.read_optimized if tag is None else partial(queries.tagged_read_optimized, tag))

    def watermarks(self) -> tuple[PublishedView, ...]:
        """The compactions whose read-optimized view can still be read, the earliest first."""
        return readable_views(self._application.state())

    def as_of(self, instant: str) -> Rows:
        """Every row as of an instant, inclusive."""
        return self._rows(partial(self._application.queries.as_of, instant))

    def incremental(self, begin: str, end: str | None = None) -> Rows:
        """The latest state of the rows that commits in (begin, end] changed.

        Times are completion times on table version 8 and later, and instants on version 6, as Hudi has it.
        """
        return self._rows(partial(self._application.queries.incremental, begin, end))

    def settled_until(self) -> str:
        """The end of the longest span that `incremental` tells once and for all, for who asks again and again.

        The last completion, on table version 8 and later; on version 6 the last instant before any write that is pending.
        """
        return self._application.queries.settled_until()

    def _rows(self, plan: Callable[[], QueryPlan]) -> Rows:
        return Rows(plan(), self._application.reader, self._application.engine, plan)
