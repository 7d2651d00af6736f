"""Which window is marked as done next, and which marker is withdrawn, because late data has come.

A consumer that marks windows goes through the same states as any other one (progress.py). Beside what is due there:

1. A done window that a newer view shows otherwise, or that the gate no longer holds for, is reopened: its marker is
   withdrawn.
2. A reopened window that the gate holds for is done again.
3. The next window is done as soon as the gate holds for it: a marker has no rows, so that it waits for no later view.

The gate holds for a window if the cut and every source have reached its end, and no record that may be in it waits in a log
file. A source that doesn't say how far it has come lets nothing be done, and withdraws nothing: a source that can't be
asked for a minute isn't late data. The same holds for a record whose event time can't be read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from eventide_core.action.windows.calendar import WindowCalendar
from eventide_core.action.windows.progress import ConsumerProgress
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.timeline.source_progress import SourceProgress, basis_of

Bounds = tuple[int, int]


@dataclass(frozen=True, slots=True)
class WindowGate:
    """What a table and its sources say of a window at one moment.

    `known_ms`: no window that ends later is complete; None: none is. `is_known`: nothing else may hold a window.
    `waiting` are the event times of the records that are in no base file yet, first and last, by log file. `basis`: what
    the answer rests on.
    """

    known_ms: int | None
    is_known: bool
    waiting: tuple[Bounds, ...]
    basis: str

    @classmethod
    def of(
        cls, cut_ms: int | None, sources: Sequence[SourceProgress], waiting: Iterable[EventTimeRange]
    ) -> "WindowGate":
        ranges = tuple(waiting)
        bounds = [one.progress_ms for one in sources if not one.is_complete]
        known = [bound for bound in bounds if bound is not None]
        return cls(
            None if cut_ms is None else min([cut_ms, *known]),
            len(known) == len(bounds) and not any(one.unreadable_records for one in ranges),
            merged((one.min_ms, one.max_ms) for one in ranges if one.min_ms is not None and one.max_ms is not None),
            basis_of(sources),
        )

    def holds(self, window: Bounds) -> bool:
        """Whether the window is complete, as far as anybody knows."""
        return self.is_known and not self.refuses(window)

    def refuses(self, window: Bounds) -> bool:
        """Whether the window is surely incomplete."""
        begin_ms, end_ms = window
        waits = any(first < end_ms and begin_ms <= last for first, last in self.waiting)
        return waits or self.known_ms is None or end_ms > self.known_ms


def merged(spans: Iterable[Bounds]) -> tuple[Bounds, ...]:
    """Spans that are apart, in order, which hold the times of the given ones."""
    apart: list[Bounds] = []
    for first, last in sorted(spans):
        if apart and first <= apart[-1][1]:
            apart[-1] = apart[-1][0], max(last, apart[-1][1])
        else:
            apart.append((first, last))
    return tuple(apart)


def next_mark(progress: ConsumerProgress, calendar: WindowCalendar, gate: WindowGate) -> tuple[Bounds, bool] | None:
    """The window whose marker is due, and whether it is withdrawn; None if nothing is due."""
    assert progress.marks is not None, "only a consumer that marks windows has marks"
    reopened = progress.marks.reopened
    known = frozenset(reopened)
    for begin_ms in chain(progress.due, _refused(progress, calendar, gate)):
        if begin_ms not in known:
            return (begin_ms, calendar.end_of(begin_ms)), True
    for begin_ms in reopened if progress.next_ms is None else (*reopened, progress.next_ms):
        window = begin_ms, calendar.end_of(begin_ms)
        if gate.holds(window):
            return window, False
    return None


def is_marked(progress: ConsumerProgress, begin_ms: int) -> bool:
    """Whether the window that begins there has its marker, unless it is open."""
    assert progress.marks is not None, "only a consumer that marks windows has marks"
    return progress.next_ms is not None and begin_ms < progress.next_ms and begin_ms not in progress.marks.reopened


def _refused(progress: ConsumerProgress, calendar: WindowCalendar, gate: WindowGate) -> Iterator[int]:
    """The begins of the windows before the next one that the gate refuses."""
    if progress.begun_ms is None or progress.next_ms is None:
        return
    spans = [*gate.waiting, (progress.begun_ms if gate.known_ms is None else gate.known_ms, progress.next_ms)]
    for first_ms, last_ms in sorted(spans):
        at = calendar.begin_of(max(first_ms, progress.begun_ms))
        while at < progress.next_ms and at <= last_ms:
            if gate.refuses((at, calendar.end_of(at))):
                yield at
            at = calendar.end_of(at)
