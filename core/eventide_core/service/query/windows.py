"""Delivers a consumer's windows of event time, one after another, each as of one view (action/windows/progress.py).

Order of writes, each of them as service/common/state/window_consumers.py has it:

1. A newer view: its base files, then the state with it and with the windows that late data has changed.
2. The first window: the state with its begin.
3. The window opens: the state with its runner and its lease. Only then does the runner get it.
4. Done: the state without it. The runner's own work comes before this one.

A crash before 4 leaves the window open. After its lease, or at once if it is taken over, it is delivered again, with the
rows of the same base files.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from eventide_core.action.freshness.arrival import held
from eventide_core.action.freshness.watermark_view import PublishedView
from eventide_core.action.windows.progress import ConsumerProgress, ConsumerView, LatePolicy, OpenWindow, WindowTerms
from eventide_core.config import Options, duration_text
from eventide_core.cure import Cure
from eventide_core.errors import (
    BusyError,
    CleanedHistoryError,
    ConfigError,
    UnsupportedTableError,
    WindowTakenError,
    format_timestamp,
)
from eventide_core.ports import Engine, WindowContent
from eventide_core.service.common.facts.arrival import ArrivalReader
from eventide_core.service.common.facts.event_time_field import event_time_field_of
from eventide_core.service.common.facts.watermark_views import (
    latest_readable_view,
    published_views,
)
from eventide_core.service.common.state.table import TableState, read_from
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.state.window_consumers import ConsumerFiles, RecordedView
from eventide_core.service.query.window_views import ConsumerViews, is_newer, recorded_view, without_shared
from eventide_core.table.files.slice_read import QueryPlan
from eventide_core.table.records.event_time import EventTimeSpan
from eventide_core.table.schema.avro_schema import PARTITION_PATH, RECORD_KEY

_ATTEMPTS = 10  # a window takes three steps at most; the others are for those that other runners make
_UNASKED_MAX = 10_000  # windows that come before any newer one: a wrong event time of 1970 makes more


@dataclass(frozen=True, slots=True)
class Delivery:
    """An open window of a consumer, whose name is `consumer`.

    `window` is as the consumer's state has it, `span` its event times in the column that they are read from. `view` is the
    one that its rows are read as of. `before` is the view that the consumer had seen, if the window is a correction; it is
    None also where the files of that view were cleaned.
    """

    consumer: str
    window: OpenWindow
    span: EventTimeSpan
    view: ConsumerView
    before: ConsumerView | None


@dataclass(frozen=True, slots=True)
class WindowService:
    """`runner` distinguishes the runners of a consumer. A window that it holds is delivered to it again at once."""

    files: TableFiles
    content: Callable[[], WindowContent]
    engine: Engine
    options: Options
    arrival: ArrivalReader
    runner: str

    def progress(self, consumer: str) -> ConsumerProgress | None:
        """The consumer's state; None if it has had no window yet."""
        return ConsumerFiles(self.files.storage, consumer).progress()

    def preview(self, consumer: str, terms: WindowTerms) -> ConsumerProgress:
        """The consumer's state with the windows that are closed by now.

        Writes nothing, and compares no rows, so windows that late data has changed since the last step are not among those
        that are due.
        """
        files = ConsumerFiles(self.files.storage, consumer)
        progress = files.progress() or ConsumerProgress(0, terms.calendar.seconds, terms.zone)
        _check_terms(consumer, progress, terms)
        return read_from(self._load, partial(self._preview, files, progress, terms))

    def _preview(
        self, files: ConsumerFiles, progress: ConsumerProgress, terms: WindowTerms, state: TableState
    ) -> ConsumerProgress:
        self._check_table(state)
        newest = latest_readable_view(state)
        if newest is None or not is_newer(state, newest, progress.view):
            return progress
        progress = replace(progress, closed_ms=_closed_ms(self.arrival, state, newest, progress))
        if progress.next_ms is not None:
            return progress
        plan = ConsumerViews(self.files, files).plan_of(state, recorded_view(state, newest))
        return self._begun(state, plan, progress, terms) or progress

    def next(
        self, consumer: str, terms: WindowTerms, *, take_over: bool = False, renew: bool = False
    ) -> Delivery | None:
        """The next window, now held by this runner; None if none is due. An open one comes again, with the same rows.

        `take_over` takes it from another runner before its lease ends. `renew` goes on where files of its view, or of the
        view before, were cleaned: it is delivered as of the latest view, and every done window that can still be corrected
        comes again. Raises WindowTakenError, CleanedHistoryError without `renew`, ConfigError for other windows than the
        consumer has, UnsupportedTableError for a table without watermark.
        """
        files = ConsumerFiles(self.files.storage, consumer)
        opened = self._open(files, terms, take_over=take_over, renew=renew)
        return None if opened is None else self._delivery(consumer, opened)

    def _open(
        self, files: ConsumerFiles, terms: WindowTerms, *, take_over: bool, renew: bool
    ) -> ConsumerProgress | None:
        """The state with the next window open; None if none is due."""
        for _ in range(_ATTEMPTS):
            progress = files.progress() or self._new(terms)
            _check_terms(files.consumer, progress, terms)
            step = partial(self._step, files, progress, terms, take_over=take_over, renew=renew)
            newer = read_from(partial(self._state_after, progress), step)
            if newer is None:
                return None
            newer = replace(newer, keep_until_ms=self.files.clock.now_ms() + terms.keep_ms)
            if not files.put(newer):
                continue  # another runner was faster
            files.remove_views(newer.views, _dropped(progress, newer), self.files.clock.now_ms())
            if newer.open is not None:
                return newer
        raise BusyError(f"other runners of the consumer {files.consumer} go on all the time; try again")

    def done(self, delivery: Delivery) -> None:
        """Marks the window as done. Raises WindowTakenError if this delivery is no longer the latest one of it."""
        files = ConsumerFiles(self.files.storage, delivery.consumer)
        self._hold(files, delivery.window, ConsumerProgress.done, ends=True)

    def renew_lease(self, delivery: Delivery, terms: WindowTerms) -> None:
        """Prolongs the lease of a window that takes longer. Raises WindowTakenError."""
        files = ConsumerFiles(self.files.storage, delivery.consumer)
        until_ms = self.files.clock.now_ms() + terms.lease_ms
        self._hold(files, delivery.window, lambda progress: progress.renewed(until_ms), ends=False)

    def open_delivery(self, consumer: str, token: int | None = None) -> Delivery | None:
        """The window that a runner holds, whoever that is; None if there is none, or its token is another one."""
        progress = self.progress(consumer)
        if progress is None or progress.open is None or token not in (None, progress.open.token):
            return None
        return self._delivery(consumer, progress)

    def rows(self, delivery: Delivery) -> QueryPlan:
        """The base files of the delivered view. Their rows in the delivery's span are the window's.

        Raises CleanedHistoryError.
        """
        return self._views(delivery).plan(self._load(), delivery.view)

    def difference(self, delivery: Delivery) -> tuple[QueryPlan, QueryPlan]:
        """The base files that the view before and the delivered one don't share, both read as the delivered one.

        The first plan is empty for a window that isn't a correction. Raises CleanedHistoryError, also where the view before
        is unknown.
        """
        state, views = self._load(), self._views(delivery)
        after = views.plan(state, delivery.view)
        if not delivery.window.is_correction:
            return replace(after, slices=()), after
        if delivery.before is None:
            raise CleanedHistoryError(
                f"the files of the view that the consumer {delivery.consumer} had seen were cleaned, so the changes since "
                "are unknown: replace the window by its rows"
            )
        before = views.plan(state, delivery.before)
        return without_shared(before, after)

    def keys(self) -> tuple[str, ...]:
        """The fields that identify a row, if its table has them as columns."""
        config = self.files.config()
        if config.virtual_key_fields:
            return (*config.virtual_key_fields, *config.partition_fields)
        return (RECORD_KEY, PARTITION_PATH)

    def _views(self, delivery: Delivery) -> ConsumerViews:
        return ConsumerViews(self.files, ConsumerFiles(self.files.storage, delivery.consumer))

    def _load(self) -> TableState:
        return TableState.load_committed(self.files)

    def _new(self, terms: WindowTerms) -> ConsumerProgress:
        return ConsumerProgress(0, terms.calendar.seconds, terms.zone)

    def _state_after(self, progress: ConsumerProgress) -> TableState:  # noqa: ARG002 - done markers load less often
        """A state of the table that is later than this state of the consumer."""
        return self._load()

    def _due(
        self,
        progress: ConsumerProgress,
        terms: WindowTerms,
        state: TableState,  # noqa: ARG002 - done markers ask the gate
    ) -> tuple[tuple[int, int], bool] | None:
        """The window that is due, and whether its marker is withdrawn."""
        window = progress.due_window(terms.calendar)
        return None if window is None else (window, False)

    def _step(
        self,
        files: ConsumerFiles,
        progress: ConsumerProgress,
        terms: WindowTerms,
        state: TableState,
        *,
        take_over: bool,
        renew: bool,
    ) -> ConsumerProgress | None:
        """The state after the consumer's next step; None if there is none to make."""
        now_ms = self.files.clock.now_ms()
        held = progress.open
        if held is not None and held.runner != self.runner and held.lease_until_ms > now_ms and not take_over:
            raise _taken(files.consumer, held)
        self._check_table(state)
        lease_until_ms = now_ms + terms.lease_ms
        if held is not None and progress.marks is not None:  # its event comes first, whatever the table is now
            return progress.opened((held.begin_ms, held.end_ms), self.runner, lease_until_ms)
        views = ConsumerViews(self.files, files)
        if renew:
            progress = _renewed(state, views, progress)
        due: tuple[tuple[int, int], bool] | None
        if progress.open is not None:
            due = (progress.open.begin_ms, progress.open.end_ms), False
        else:
            newest = None if progress.due else latest_readable_view(state)
            if newest is not None and is_newer(state, newest, progress.view):
                return self._with_view(state, files, progress, newest, terms, renew=renew)
            if progress.view is not None and progress.next_ms is None:
                return self._begun(state, views.plan(state, progress.view), progress, terms)
            due = self._due(progress, terms, state)
        if due is None:
            return None
        for view in progress.views if progress.marks is None else ():  # a marker has no rows
            views.plan(state, view)  # raises an error before the window is taken
        return progress.opened(due[0], self.runner, lease_until_ms, is_reopening=due[1])

    def _with_view(
        self,
        state: TableState,
        files: ConsumerFiles,
        progress: ConsumerProgress,
        newest: PublishedView,
        terms: WindowTerms,
        *,
        renew: bool,
    ) -> ConsumerProgress:
        """Step 1."""
        recorded = recorded_view(state, newest)
        changed, before = self._changed(state, ConsumerViews(self.files, files), progress, recorded, terms, renew=renew)
        view = files.record(newest.compaction.requested_time, self.runner, recorded)
        return progress.seen(view, _closed_ms(self.arrival, state, newest, progress), changed, before, terms)

    def _changed(
        self,
        state: TableState,
        views: ConsumerViews,
        progress: ConsumerProgress,
        recorded: RecordedView,
        terms: WindowTerms,
        *,
        renew: bool,
    ) -> tuple[frozenset[int], ConsumerView | None]:
        """The begins of the done windows that the newer view shows otherwise; and the view before, unless it was cleaned."""
        if progress.view is None or progress.next_ms is None or terms.late is LatePolicy.IGNORE:
            return frozenset(), None
        field = event_time_field_of(state, self.options)
        span = EventTimeSpan(field, progress.correctable_from(terms), progress.next_ms)
        after = views.plan_of(state, recorded)
        if renew and not views.is_readable(state, progress.view):
            return self._all_done(after, span, progress, terms), None
        before, after = without_shared(views.plan(state, progress.view), after)
        times = self.content().changed_times(before.slices, after.slices, after.shape, span, self.keys(), self.engine)
        return frozenset(map(terms.calendar.begin_of, times)), progress.view

    def _all_done(
        self, after: QueryPlan, span: EventTimeSpan, progress: ConsumerProgress, terms: WindowTerms
    ) -> frozenset[int]:
        """Every done window that can be corrected, and that was delivered or has rows now."""
        begun_ms = span.end_ms if progress.begun_ms is None else progress.begun_ms
        before = EventTimeSpan(span.field, span.begin_ms, begun_ms)
        times = self.content().changed_times((), after.slices, after.shape, before, self.keys(), self.engine)
        begins = set(map(terms.calendar.begin_of, times))
        at = terms.calendar.begin_of(begun_ms if span.begin_ms is None else max(begun_ms, span.begin_ms))
        while at < span.end_ms:
            begins.add(at)
            at = terms.calendar.end_of(at)
        return frozenset(begins)

    def _earliest(self, plan: QueryPlan, field: str) -> int | None:
        shape = replace(plan.shape, event_time_field=field)
        return self.content().earliest(plan.slices, shape, self.engine)

    def _begun(
        self, state: TableState, plan: QueryPlan, progress: ConsumerProgress, terms: WindowTerms
    ) -> ConsumerProgress | None:
        """Step 2; None if the view has no event time. Raises ConfigError if one row may have made far too many windows."""
        if terms.since_ms is not None:
            begin_ms = terms.calendar.begin_of(terms.since_ms)
            return replace(progress.begun_at(begin_ms), first_ms=begin_ms)
        earliest_ms = self._earliest(plan, event_time_field_of(state, self.options))
        if earliest_ms is None:
            return None
        begin_ms = terms.calendar.begin_of(earliest_ms)
        count = ((state.cut_ms or 0) - begin_ms) // (1000 * terms.calendar.seconds)
        if count > _UNASKED_MAX:
            raise ConfigError(
                f"the earliest event time of {self.files.storage.root} is {format_timestamp(earliest_ms)}, so {count:,} "
                f"windows would come first; if that time is wrong, or to have them all, pass {Cure.argument('since', 'T')}: "
                "the first window holds T"
            )
        return progress.begun_at(begin_ms)

    def _check_table(self, state: TableState) -> None:
        """Raises UnsupportedTableError, ConfigError, RefusedError."""
        if state.config.is_copy_on_write:
            raise UnsupportedTableError(
                f"{self.files.storage.root}: a copy-on-write table has no watermark, which windows wait for; read its "
                "changes with an incremental query"
            )
        event_time_field_of(state, self.options)

    def _hold(
        self,
        files: ConsumerFiles,
        window: OpenWindow,
        change: Callable[[ConsumerProgress], ConsumerProgress],
        *,
        ends: bool,
    ) -> None:
        """Changes the state as long as this delivery is the latest one of its window. `ends`: the window is done then.

        Others may go on between the put and its check. If they went on from this runner's state, the window is done.
        """
        for attempt in range(_ATTEMPTS):
            progress = files.progress()
            held = None if progress is None else progress.open
            if progress is None or held is None or held.token != window.token:
                if ends and attempt and progress is not None and not progress.is_taken_over(window.token):
                    return
                raise WindowTakenError(
                    f"the window {_named(window)} of the consumer {files.consumer} is no longer this runner's: its lease "
                    "ended, and another one has taken it or marked it as done; discard what this runner made of it"
                )
            newer = change(progress)
            if files.put(newer):
                files.remove_views(newer.views, _dropped(progress, newer), self.files.clock.now_ms())
                return
        raise BusyError(
            f"others change the state of the consumer {files.consumer} all the time; mark the window {_named(window)} as "
            "done again"
        )

    def _delivery(self, consumer: str, progress: ConsumerProgress) -> Delivery:
        assert progress.open is not None, "a delivery is of an open window"
        assert progress.view is not None, "a window opens as of a view"
        state = self._load()
        window = progress.open
        span = EventTimeSpan(event_time_field_of(state, self.options), window.begin_ms, window.end_ms)
        return Delivery(consumer, window, span, progress.view, progress.before)


def _renewed(state: TableState, views: ConsumerViews, progress: ConsumerProgress) -> ConsumerProgress:
    """The state without what needs files that were cleaned."""
    if progress.view is not None and not views.is_readable(state, progress.view):
        return replace(progress.without_open(), due=(), before=None)
    if progress.before is not None and not views.is_readable(state, progress.before):
        return replace(progress, before=None)
    return progress


def _closed_ms(
    arrival: ArrivalReader, state: TableState, newest: PublishedView, progress: ConsumerProgress
) -> int | None:
    """The time up to which windows are closed as of that view: late records don't open them again.

    They close no earlier than the sources had come by the writes that the view has. These are asked once: a consumer that
    has seen an earlier view knows what was closed then.
    """
    if progress.marks is not None:
        return None  # a marker waits for no view
    watermarks: list[int | None]
    if sources := arrival.progress(state, before=newest.compaction.requested_time):
        watermarks = [held(newest.watermark_ms, sources)]
    else:
        watermarks = [view.watermark_ms for view in published_views(state) if view.completed <= newest.completed]
    if progress.view is not None and state.find_write(progress.view.instant):
        watermarks.append(progress.closed_ms)  # else a restore has undone that view
    return max((watermark for watermark in watermarks if watermark is not None), default=None)


def _check_terms(consumer: str, progress: ConsumerProgress, terms: WindowTerms) -> None:
    """Raises ConfigError if the consumer has other windows."""
    if (progress.seconds, progress.zone) != (terms.calendar.seconds, terms.zone):
        raise ConfigError(
            f"the consumer {consumer} has windows of {duration_text(progress.seconds)} in {progress.zone}, not of "
            f"{duration_text(terms.calendar.seconds)} in {terms.zone}: use another consumer for these"
        )
    if progress.marks is None or progress.begun_ms is None or terms.since_ms is None:
        return
    if terms.calendar.begin_of(terms.since_ms) != progress.begun_ms:
        raise ConfigError(
            f"the markers began with the window of {format_timestamp(progress.begun_ms)}, not of "
            f"{format_timestamp(terms.since_ms)}: use another directory or name for these"
        )


def _dropped(progress: ConsumerProgress, newer: ConsumerProgress) -> tuple[ConsumerView, ...]:
    return tuple(view for view in progress.views if view not in newer.views)


def _taken(consumer: str, held: OpenWindow) -> WindowTakenError:
    return WindowTakenError(
        f"another runner holds the window {_named(held)} of the consumer {consumer} until "
        f"{format_timestamp(held.lease_until_ms)}; mark it as done, try again then, or take it over if that runner is dead"
    )


def _named(window: OpenWindow) -> str:
    return f"[{format_timestamp(window.begin_ms)}, {format_timestamp(window.end_ms)})"
