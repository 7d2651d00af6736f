"""A window of event time as a consumer gets it, and the iteration over those that are due."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

from eventide.bootstrap import Application
from eventide_core.action.windows.calendar import WindowCalendar
from eventide_core.action.windows.progress import LatePolicy, WindowTerms
from eventide_core.config import duration_of, positive_duration_of, zone_of
from eventide_core.errors import ConfigError, RefusedError, format_timestamp
from eventide_core.table.records.event_time import Moment, parse_threshold

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from eventide.rows.reader import Rows
    from eventide_adapters.format.slice.comparison.row_changes import RowChanges
    from eventide_core.action.windows.progress import ConsumerProgress
    from eventide_core.service.query.windows import Delivery, WindowService
    from eventide_core.table.files.slice_read import QueryPlan

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Window:
    """The rows with an event time from `begin` on and before `end`, as of one view of the read-optimized table.

    `begin` and `end` are datetimes in the windows' time zone, `begin_ms` and `end_ms` epoch milliseconds. `token` rises with
    every delivery of the consumer. `instant` is the compaction that left the view. `is_done` is true once this object's
    `done` has succeeded.
    """

    _application: Application = field(repr=False)
    _service: "WindowService" = field(repr=False)
    _delivery: "Delivery" = field(repr=False)
    _terms: WindowTerms = field(repr=False)
    is_done: bool = False

    @property
    def begin_ms(self) -> int:
        return self._delivery.window.begin_ms

    @property
    def end_ms(self) -> int:
        return self._delivery.window.end_ms

    @property
    def begin(self) -> datetime:
        return self._local(self.begin_ms)

    @property
    def end(self) -> datetime:
        return self._local(self.end_ms)

    @property
    def is_correction(self) -> bool:
        """Whether the window was done before, and late data has changed it since."""
        return self._delivery.window.is_correction

    @property
    def token(self) -> int:
        return self._delivery.window.token

    @property
    def instant(self) -> str:
        return self._delivery.view.instant

    @property
    def root(self) -> str:
        """The URI of the table."""
        return self._application.storage.root

    def rows(self) -> "Rows":
        """All rows of the window: of a correction, too, and the same ones however often it is delivered.

        Raises CleanedHistoryError if files that it needs were cleaned.
        """
        plan_again = partial(self._service.rows, self._delivery)
        return self._rows(plan_again(), plan_again)

    def changes(self) -> "RowChanges":
        """What has changed in the window since it was done: `inserted`, `updated` and `deleted` rows, as Arrow tables.

        A row whose event time moved to another window is deleted in one and inserted in the other. In a window that isn't
        a correction, every row is inserted. Raises CleanedHistoryError if the files of that time were cleaned.
        """
        from eventide_adapters.format.slice.comparison.row_changes import row_changes

        before, after = self._service.difference(self._delivery)
        return row_changes(self._rows(before).to_arrow(), self._rows(after).to_arrow(), self._service.keys())

    def to_arrow(self) -> "pa.Table":
        return self.rows().to_arrow()

    def to_spark(self, spark: "SparkSession") -> "DataFrame":
        """The rows as a DataFrame that executors read."""
        return self.rows().to_spark(spark)

    def done(self) -> None:
        """Marks the window as done: it comes again only if late data changes it.

        Raises WindowTakenError if another runner has taken it since its lease ended.
        """
        self._service.done(self._delivery)
        self.is_done = True

    def renew_lease(self) -> None:
        """Holds the window for another lease from now. Raises WindowTakenError."""
        self._service.renew_lease(self._delivery, self._terms)

    def __str__(self) -> str:
        text = f"[{format_timestamp(self.begin_ms)}, {format_timestamp(self.end_ms)}) as of {self.instant}"
        return f"correction of {text}" if self.is_correction else text

    def _rows(self, plan: "QueryPlan", plan_again: "Callable[[], QueryPlan] | None" = None) -> "Rows":
        from eventide.rows.reader import Rows
        from eventide_adapters.format.slice.comparison.window_content import SpanSliceReader

        application = self._application
        reader = SpanSliceReader(application.storage, self._delivery.span)
        lookup = application.key_lookup
        return Rows(plan, reader, application.engine, plan_again, application.files.config, lookup)

    def _local(self, epoch_ms: int) -> datetime:
        return (_EPOCH + timedelta(milliseconds=epoch_ms)).astimezone(self._terms.calendar.zone)


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one consumer. Iteration gives those that are due, one after the other, until none is.

    Call `done` of each window before the next one. `consumer` is the name under which the table keeps the progress, and
    `terms` are the windows' length and the rest that the consumer asks for. `take_over`: the first window is taken even if
    another runner holds it. `renew`: where files that are needed were cleaned, the latest view takes the place of the lost
    one.
    """

    _application: Application = field(repr=False)
    consumer: str
    terms: WindowTerms
    take_over: bool = False
    renew: bool = False

    def __iter__(self) -> Iterator[Window]:
        runner, take_over = self._application.new_uuid(), self.take_over
        while True:
            window = self.take(runner, take_over=take_over)
            if window is None:
                return
            yield window
            take_over = False  # of a runner that was dead when the iteration began
            if not window.is_done:
                raise RefusedError(
                    f"the window {window} of the consumer {self.consumer} is not done, and windows come in order: call "
                    "`window.done()` before the next one"
                )

    def take(self, runner: str, *, take_over: bool = False) -> Window | None:
        """Takes the next window for a runner of that name, which gets back at once what it holds; None if none is due.

        Raises what the iteration raises.
        """
        service = self._application.windows(runner)
        delivery = service.next(self.consumer, self.terms, take_over=take_over, renew=self.renew)
        return None if delivery is None else Window(self._application, service, delivery, self.terms)

    def progress(self) -> "ConsumerProgress":
        """How far the consumer is, with the windows that are closed by now. Writes nothing, and compares no rows."""
        return self._application.windows("").preview(self.consumer, self.terms)

    def open_window(self, token: int | None = None) -> Window | None:
        """The window that a runner holds, in any process; None if none is, or if `token` is another delivery's."""
        service = self._application.windows("")
        delivery = service.open_delivery(self.consumer, token)
        return None if delivery is None else Window(self._application, service, delivery, self.terms)


def runner_of(name: str) -> str:
    """The runner of the stream of that name, in any process."""
    return str(uuid5(NAMESPACE_URL, name))


def held_window(application: Application, consumer: str, stream: str) -> Window | None:
    """The window of a consumer that the stream of that name holds; None if it holds none."""
    service = application.windows("")
    progress = service.progress(consumer)
    if progress is None or progress.open is None or progress.open.runner != runner_of(stream):
        return None
    delivery = service.open_delivery(consumer, progress.open.token)
    calendar = WindowCalendar(progress.seconds, zone_of(progress.zone, "time zone "))
    return None if delivery is None else Window(application, service, delivery, WindowTerms(calendar, progress.zone))


def window_terms(
    every: str, *, time_zone: str, since: Moment | None, late: str, corrections_for: str | None, lease: str, keep: str
) -> WindowTerms:
    """The terms of these arguments of `Table.windows`. Raises ConfigError, InvalidThresholdError."""
    zone = zone_of(time_zone, "time_zone=")
    retention = None if corrections_for is None else duration_of(corrections_for, "corrections_for=") * 1000
    if late not in list(LatePolicy):
        raise ConfigError(f"late={late!r} is none of {', '.join(LatePolicy)}")
    return WindowTerms(
        WindowCalendar(positive_duration_of(every, "every="), zone),
        time_zone,
        None if since is None else parse_threshold(since),
        LatePolicy(late),
        retention,
        positive_duration_of(lease, "lease=") * 1000,
        positive_duration_of(keep, "keep=") * 1000,
    )
