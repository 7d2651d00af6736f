"""The four queries of a table: now, or as of an instant, a watermark or a tag; and its closed windows of event time."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol

from eventide.options.queries import INCREMENTAL_FORMAT, IncrementalFormat
from eventide.table.arguments import require_given_texts, require_texts
from eventide.table.open_table import OpenTable
from eventide_core.errors import ConfigError, InstantNotFoundError
from eventide_core.table.records.event_time import Moment, parse_threshold

if TYPE_CHECKING:
    from eventide.rows.reader import Rows
    from eventide.table.window import Windows
    from eventide_core.action.freshness.watermark_view import PublishedView
    from eventide_core.ports import MarkerEvent
    from eventide_core.service.common.state.table import TableState
    from eventide_core.table.files.slice_read import QueryPlan


class Result(Protocol):
    """The result of a write or of a compaction."""

    @property
    def instant(self) -> str: ...


class TableQueries(OpenTable):
    """The queries of `eventide.Table`. They are lazy: rows are read when you request them.

    A time is Hudi's digits, ISO-8601, or a datetime with a time zone.
    """

    __slots__ = ()

    def snapshot(self, *, tag: str | None = None) -> "Rows":
        """Every current row, or every row as of the tagged commit."""
        require_given_texts(tag=tag)
        queries = self._application.queries
        return self._rows(queries.snapshot if tag is None else partial(queries.tagged, tag))

    def read_optimized(self, *, as_of_watermark: Moment | None = None, tag: str | None = None) -> "Rows":
        """The rows of base files only: fast, and as fresh as `freshness()` states.

        With `as_of_watermark`, a T, the rows are those that the first compaction left whose published watermark is T or
        later: everything before T that was committed then, and with an exact cut at T nothing else. With `tag`, they are
        those that the tag keeps.

        Raises WatermarkNotFoundError and CleanedHistoryError, which name the readable watermarks, and TagNotFoundError.
        """
        require_given_texts(tag=tag)
        queries = self._application.queries
        if as_of_watermark is not None and tag is not None:
            raise ConfigError("pass either a watermark or a tag, not both")
        if as_of_watermark is not None:
            return self._rows(partial(queries.as_of_watermark, parse_threshold(as_of_watermark)))
        return self._rows(queries.read_optimized if tag is None else partial(queries.tagged_read_optimized, tag))

    def watermarks(self) -> "tuple[PublishedView, ...]":
        """The compactions whose read-optimized view can still be read, earliest first."""
        from eventide_core.service.common.facts.watermark_views import readable_views

        return readable_views(self._application.state())

    def as_of(self, instant: str | datetime) -> "Rows":
        """Every row as of an instant, inclusive. Before the first commit there are none, as `note` of the rows says."""
        return self._rows(partial(self._application.queries.as_of, _instant(instant)))

    def incremental(
        self,
        begin: str | datetime | Result | None = None,
        end: str | datetime | Result | None = None,
        *,
        since: Result | None = None,
    ) -> "Rows":
        """The latest state of the rows that commits in (begin, end] changed; `since` is another word for `begin`.

        As in Hudi, times are completion times on table version 8 and later, and instants on version 6: for a write, its
        `completion_time`, not its `instant`. Pass the result of a write or compaction itself, and that time is taken. With
        the option `hoodie.datasource.query.incremental.format=cdc`, it is `changes(begin, end)`.

        On version 6, a write that is pending now may complete with an earlier instant than those in the answer, and the next
        increment skips it. `note` of the rows names such a write; end at `settled_until()` to get each row once.
        """
        if (begin is None) == (since is None):
            raise ConfigError(
                "pass either a begin, such as `earliest`, or `since`, the result of a write or compaction"
            )
        after, until = self._time(begin if since is None else since), None if end is None else self._time(end)
        if self._application.options.get(INCREMENTAL_FORMAT) is IncrementalFormat.CDC:
            return self.changes(after, until)
        return self._rows(partial(self._application.queries.incremental, after, until))

    def changes(self, begin: str | datetime, end: str | datetime | None = None) -> "Rows":
        """Each change that commits in (begin, end] made, on a table with change data capture (`hoodie.table.cdc.enabled`).

        The columns are Hudi's: `op` (i, u, or d), `ts_ms` (the instant), and `before` and `after`, the row as JSON. Raises
        CleanedHistoryError if the files of that time have been cleaned.
        """
        from eventide.rows.reader import Rows

        application = self._application
        plan = partial(application.queries.changes, _instant(begin), None if end is None else _instant(end))
        return Rows(plan(), application.change_reader, application.engine, plan)

    def instant_time(self, time: str | datetime) -> str:
        """A time as it is on the table's timeline, in Hudi's digits: `incremental` and `as_of` take the same.

        Raises InstantNotFoundError if instants are local times of another time zone, or of an hour that a clock change
        repeats.
        """
        return self._application.queries.instant_time(_instant(time))

    def _time(self, given: str | datetime | Result | None) -> str:
        """The time that an incremental query counts from. Raises InstantNotFoundError for a result that is gone."""
        if given is None or isinstance(given, str | datetime):
            return _instant(given or "")
        if not hasattr(given, "instant"):
            raise _no_time(given)
        completion = getattr(given, "completion_time", None)
        if completion is None:
            state = self._application.state()
            instant = state.timeline.find(given.instant) or state.archive.find(given.instant)
            if instant is None or not instant.is_completed:
                raise InstantNotFoundError(f"there is no completed commit at {given.instant}: it was rolled back")
            completion = instant.completion_time or given.instant
        return str(completion)

    def settled_until(self) -> str:
        """The latest `end` for which the answer of `incremental` is final. Use it to read changes repeatedly.

        This is the last completion on table version 8 and later, and the last instant before any pending write on version 6.
        """
        return self._application.queries.settled_until()

    def windows(
        self,
        every: str,
        consumer: str,
        *,
        time_zone: str = "UTC",
        since: Moment | None = None,
        late: str = "redeliver",
        corrections_for: str | None = None,
        lease: str = "15m",
        keep: str = "7d",
        take_over: bool = False,
        renew: bool = False,
    ) -> "Windows":
        """The closed windows of event time that a consumer has not had yet, in order.

            for window in table.windows(every="1h", consumer="billing"):
                bill(window.rows())
                window.done()

        A window is closed as soon as a compaction has published a watermark at or after its end. `every` is a length that
        divides an hour or a day, counted from midnight in `time_zone`: 15m, 1h, 1d. The first window is the one that holds
        `since`, or otherwise the earliest event time. Rows whose event time is null or cannot be read are in no window.

        A done window that late data changes comes again (`window.is_correction`), before any new one, if it begins at most
        `corrections_for` before the next window (None: always). With `late="ledger"`, it is only recorded
        (`.progress().ledger`), with "ignore" not even that.

        A runner holds a window for the `lease`; then, or with `take_over`, another one gets it with the same rows. Until
        `keep` after a consumer's last step, `clean` keeps the files that the consumer needs, of two views at most.
        Without them, CleanedHistoryError is raised, and `renew` goes on with the latest view.

        Raises ConfigError, WindowTakenError while another runner holds a window, UnsupportedTableError for a copy-on-write
        table, which has no watermark.
        """
        from eventide.table.window import Windows, window_terms

        require_texts(every=every, consumer=consumer, time_zone=time_zone, late=late, lease=lease, keep=keep)
        require_given_texts(corrections_for=corrections_for)
        terms = window_terms(
            every,
            time_zone=time_zone,
            since=since,
            late=late,
            corrections_for=corrections_for,
            lease=lease,
            keep=keep,
        )
        return Windows(self._application, consumer, terms, take_over, renew)

    def mark_done(self) -> "tuple[MarkerEvent, ...]":
        """Marks the windows that are complete as done, as the options `eventide.done.marker.*` say, and returns them.

        Withdraws the marker of a window that late data has reopened, and puts it again when the data is in. A call ends
        after a thousand windows, and the next one goes on. Raises ConfigError, WindowTakenError while another process marks
        one, MarkerError if a URL doesn't take its event, UnsupportedTableError for a copy-on-write table.
        """
        from eventide.table.done_markers import mark_done

        return mark_done(self._application, self._application.options)

    def _snapshot_of(self, state: "TableState") -> "Rows":
        """Every row of a state that has just been loaded."""
        from eventide_core.service.query.read import QueryService

        plan = QueryService(self._application.files, state).snapshot()
        return replace(self._rows(self._application.queries.snapshot, plan), config=lambda: state.config)

    def _rows(self, plan_again: "Callable[[], QueryPlan]", plan: "QueryPlan | None" = None) -> "Rows":
        from eventide.rows.reader import Rows

        application = self._application
        lookup = application.key_lookup
        return Rows(
            plan or plan_again(), application.reader, application.engine, plan_again, application.files.config, lookup
        )


def _no_time(given: object) -> ConfigError:
    return ConfigError(f"{given!r} isn't a time: pass Hudi's digits, ISO-8601 with a time zone, or a datetime with one")


def _instant(time: str | datetime) -> str:
    if isinstance(time, str):
        return time
    if not isinstance(time, datetime):
        raise _no_time(time)
    if time.tzinfo is None:
        raise InstantNotFoundError(f"the time {time} has no time zone: pass one, such as tzinfo=datetime.UTC")
    return time.isoformat(timespec="milliseconds")
