"""How far a consumer is: a chain of frozen states, each made of the one before.

1. `view` is the read-optimized view that all windows before `next_ms` are as of: each of them has been delivered as that
   view shows it, or as an earlier view did that showed the same rows.
2. When a newer view is there, the windows before `next_ms` that it shows differently are `due` as corrections; `before` is
   the view that the consumer had seen. No newer view counts until all of them are done.
3. Then the window at `next_ms` is due as soon as it is closed: a view up to this one published a watermark at or after its
   end. It is delivered as of the same `view`.
4. One window is open at a time. A runner holds it until its lease ends; then another one gets it, with the same rows.

So a consumer needs the files of two views at most, and no window is read again unless a newer view changed it.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from eventide_core.action.windows.calendar import WindowCalendar

_DOUBTFUL_MAX: Final = 20  # each costs a request a round
_TAKEN_OVER_MAX: Final = 100  # no runner is paused while its consumer's windows are taken over that often


class LatePolicy(StrEnum):
    """What happens to a done window that late data changed: it is delivered again, only recorded, or nothing."""

    REDELIVER = "redeliver"
    LEDGER = "ledger"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class WindowTerms:
    """What a consumer asks for. `since_ms` is the begin of its first window; None: the window of the earliest event time.

    `calendar` has the windows, and `zone` the name of its zone as the user wrote it, for the consumer's file. `late` says
    what happens to windows that late data changed. `corrections_for_ms`: how long before the next window a window may begin
    that is corrected; None: any. `lease_ms`: how long a runner holds a window. `keep_ms`: for how long after the last step
    cleaning keeps the consumer's views.
    """

    calendar: WindowCalendar
    zone: str
    since_ms: int | None = None
    late: LatePolicy = LatePolicy.REDELIVER
    corrections_for_ms: int | None = None
    lease_ms: int = 15 * 60 * 1000
    keep_ms: int = 7 * 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class ConsumerView:
    """The view that the compaction at `instant` left. `name` is the name of the file that records its base files."""

    instant: str
    name: str


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window that a runner holds. `token` rises with every delivery of the consumer, so that a sink can fence by it.

    `begin_ms`, `end_ms`: the window, in epoch milliseconds, the end excluded. `is_correction`: it was done before, and a
    newer view shows it otherwise. `runner` is the name of who holds it, until `lease_until_ms` by the clock.
    """

    begin_ms: int
    end_ms: int
    is_correction: bool
    token: int
    runner: str
    lease_until_ms: int


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A done window that late data changed, and the compaction that brought the change into the view.

    `begin_ms`, `end_ms`: the window, in epoch milliseconds, the end excluded.
    """

    begin_ms: int
    end_ms: int
    instant: str


@dataclass(frozen=True, slots=True)
class Marks:
    """What a consumer that marks windows as done has beside its progress (done_markers.py).

    `reopened` are the begins of the windows before the next one whose marker was withdrawn, and not put again. `event` is
    the number of the open window's event, whoever delivers it; `is_reopening`: it withdraws the marker. `doubtful` are
    windows whose runner was overtaken: it may still do what it was about to do.
    """

    reopened: tuple[int, ...] = ()
    event: int = 0
    is_reopening: bool = False
    doubtful: tuple[int, ...] = ()

    def has_done(self, begin_ms: int) -> "Marks":
        """The marks once the open window, which begins there, is done."""
        left = {one for one in self.reopened if one != begin_ms}
        reopened = {*left, begin_ms} if self.is_reopening else left
        return replace(self, reopened=tuple(sorted(reopened)), is_reopening=False)


@dataclass(frozen=True, slots=True)
class ConsumerProgress:
    """A consumer's state. `number` rises by one with every change.

    Times are in epoch milliseconds, and are the begins or ends of windows. `seconds` and `zone` are the calendar's, so that
    no runner goes on with another one. `first_ms` is the begin that the user asked for; None if the earliest event time
    decided. `begun_ms` is where the first window begins, `next_ms` the first one never done; both None before there is
    any event time. `closed_ms`: windows that end there or before are closed; None: none is.

    `view` is the one that windows are delivered as of; None before the first. `before` is the view that the consumer had
    seen of the windows in `due`, the begins of those to be delivered again, earliest first; it is None also while windows
    are due if the files of that view were cleaned. `open` is the window that a runner holds. `ledger` has the done windows
    that late data changed and that are not delivered again (LatePolicy.LEDGER). Cleaning keeps the files of the `views`
    until `keep_until_ms`. `taken_over` has the tokens of the latest deliveries that ended without being done, in order.
    `marks` is None unless the consumer marks windows as done.
    """

    number: int
    seconds: int
    zone: str
    first_ms: int | None = None
    next_ms: int | None = None
    begun_ms: int | None = None
    closed_ms: int | None = None
    view: ConsumerView | None = None
    before: ConsumerView | None = None
    due: tuple[int, ...] = ()
    open: OpenWindow | None = None
    ledger: tuple[LedgerEntry, ...] = ()
    keep_until_ms: int = 0
    taken_over: tuple[int, ...] = ()
    marks: Marks | None = None

    @property
    def views(self) -> tuple[ConsumerView, ...]:
        """The views whose files the consumer needs."""
        return tuple(view for view in (self.view, self.before) if view is not None)

    def correctable_from(self, terms: WindowTerms) -> int | None:
        """The begin of the earliest window that is corrected; None if any is."""
        if terms.corrections_for_ms is None or self.next_ms is None:
            return self.first_ms
        earliest_ms = terms.calendar.begin_of(self.next_ms - terms.corrections_for_ms)
        return earliest_ms if self.first_ms is None else max(self.first_ms, earliest_ms)

    def seen(
        self,
        view: ConsumerView,
        closed_ms: int | None,
        changed: Collection[int],
        before: ConsumerView | None,
        terms: WindowTerms,
    ) -> "ConsumerProgress":
        """Step 2. `changed` are the begins of the done windows that the newer view shows otherwise than `before`."""
        begins = tuple(sorted(set(changed).difference(self.marks.reopened if self.marks else ())))
        ledger, since_ms = self.ledger, self.correctable_from(terms)
        if terms.late is LatePolicy.LEDGER:
            ledger += tuple(LedgerEntry(at, terms.calendar.end_of(at), view.instant) for at in begins)
            begins = ()
        return replace(
            self,
            number=self.number + 1,
            view=view,
            before=before if begins else None,
            closed_ms=closed_ms,
            due=begins,
            ledger=tuple(entry for entry in ledger if since_ms is None or entry.begin_ms >= since_ms),
        )

    def begun_at(self, begin_ms: int) -> "ConsumerProgress":
        """The first window."""
        return replace(self, number=self.number + 1, next_ms=begin_ms, begun_ms=begin_ms)

    def due_window(self, calendar: WindowCalendar) -> tuple[int, int] | None:
        """Begin and end of the window to be delivered next, by steps 2 and 3; None if none is due."""
        begin_ms = self.due[0] if self.due else self.next_ms
        if begin_ms is None:
            return None
        end_ms = calendar.end_of(begin_ms)
        is_closed = bool(self.due) or (self.closed_ms is not None and end_ms <= self.closed_ms)
        return (begin_ms, end_ms) if is_closed else None

    def opened(
        self, window: tuple[int, int], runner: str, lease_until_ms: int, *, is_reopening: bool = False
    ) -> "ConsumerProgress":
        """The progress once the window is open, again or for the first time."""
        number, marks = self.number + 1, self.marks
        held = OpenWindow(*window, bool(self.due), number, runner, lease_until_ms)
        if marks is not None and self.open is None:
            marks = replace(marks, event=number, is_reopening=is_reopening)
        elif marks is not None and self.open is not None and self.open.runner != runner:
            others = tuple(one for one in marks.doubtful if one != self.open.begin_ms)
            marks = replace(marks, doubtful=(*others, self.open.begin_ms)[-_DOUBTFUL_MAX:])
        return replace(self.without_open(), number=number, open=held, marks=marks)

    def without_open(self) -> "ConsumerProgress":
        """The progress whose open window, if there is one, is to be delivered again. The number stays."""
        if self.open is None:
            return self
        return replace(self, open=None, taken_over=(*self.taken_over, self.open.token)[-_TAKEN_OVER_MAX:])

    def is_taken_over(self, token: int) -> bool:
        """Whether a delivery ended without being done; true also if that is too long ago to be known."""
        is_long_ago = len(self.taken_over) == _TAKEN_OVER_MAX and token < self.taken_over[0]
        return is_long_ago or token in self.taken_over

    def renewed(self, lease_until_ms: int) -> "ConsumerProgress":
        assert self.open is not None, "only an open window has a lease"
        return replace(self, number=self.number + 1, open=replace(self.open, lease_until_ms=lease_until_ms))

    def done(self) -> "ConsumerProgress":
        """The progress once the open window is done."""
        assert self.open is not None, "only an open window can be done"
        begin_ms, marks = self.open.begin_ms, self.marks
        is_again = self.open.is_correction
        if marks is not None:
            is_again = marks.is_reopening or begin_ms in marks.reopened
            marks = marks.has_done(begin_ms)
        done = replace(self, number=self.number + 1, open=None, marks=marks)
        if not is_again:
            return replace(done, next_ms=self.open.end_ms)
        left = tuple(due for due in self.due if due != begin_ms)
        return replace(done, due=left, before=self.before if left else None)
