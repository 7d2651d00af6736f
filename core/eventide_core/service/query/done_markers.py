"""Marks windows as done, and withdraws a marker while late data waits (action/windows/done_markers.py).

A marker is a consumer of windows, with the states, the lease and the crashes of one (service/query/windows.py). An event
takes three steps, and its number is the first step's:

1. The window opens: the state with the event and its runner.
2. The target gets the event: the file is put or deleted, or the URL called.
3. Done: the state with the window marked, or reopened.

A crash before 3 leaves the window open, and the next runner sends the same event again. A runner that was paused beyond its
lease may send an old event late. So the window of a runner that was overtaken is compared with the target in later rounds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eventide_core.action.windows.done_markers import Bounds, WindowGate, is_marked, next_mark
from eventide_core.action.windows.progress import ConsumerProgress, Marks, WindowTerms
from eventide_core.errors import WindowTakenError
from eventide_core.ports import MarkerEvent, MarkerTarget
from eventide_core.service.common.facts.freshness import FreshnessReader
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.window_consumers import ConsumerFiles
from eventide_core.service.query.windows import WindowService
from eventide_core.table.files.slice_read import QueryPlan

_EVENTS_MAX = 1000  # of a call; the next one goes on


@dataclass(slots=True)
class _Seen:
    """A state of the table and its gate. They hold for the consumer's state of that `number`, which this runner made."""

    state: TableState
    gate: WindowGate
    number: int = -1


@dataclass(frozen=True, slots=True)
class DoneMarkers(WindowService):
    """The markers of one target."""

    freshness: FreshnessReader
    target: MarkerTarget
    _seen: list[_Seen] = field(default_factory=list[_Seen])

    def mark(
        self, consumer: str, terms: WindowTerms, goes_on: Callable[[], bool] = lambda: True
    ) -> tuple[MarkerEvent, ...]:
        """Sends the target all events that are due; at most a thousand, and while it `goes_on`. Returns them.

        Raises WindowTakenError while another runner sends one, MarkerError or StorageError if the target cannot get it,
        and what `next` raises.
        """
        files, sent = ConsumerFiles(self.files.storage, consumer), list[MarkerEvent]()
        self._seen.clear()
        self._settle(files, terms)
        while len(sent) < _EVENTS_MAX and goes_on():
            progress = self._open(files, terms, take_over=False, renew=True)
            if progress is None:
                break
            assert progress.open is not None, "an event is of an open window"
            assert progress.marks is not None, "this consumer marks windows"
            window, marks = progress.open, progress.marks
            basis = self._seen[-1].gate.basis if self._seen else ""
            event = MarkerEvent(marks.event, window.begin_ms, window.end_ms, not marks.is_reopening, basis)
            self.target.tell(event)
            try:
                self._hold(files, window, ConsumerProgress.done, ends=True)
            except WindowTakenError:
                self._settle(files, terms)
                raise
            for seen in self._seen:
                seen.number = progress.number + 1
            sent.append(event)
        return tuple(sent)

    def _settle(self, files: ConsumerFiles, terms: WindowTerms) -> None:
        """Compares the windows of runners that were overtaken with the target. The one that is open has a runner."""
        progress = files.progress()
        if progress is None or progress.marks is None:
            return
        for begin_ms in progress.marks.doubtful:
            if progress.open is None or progress.open.begin_ms != begin_ms:
                end_ms = terms.calendar.end_of(begin_ms)
                self.target.settle(begin_ms, end_ms, is_done=is_marked(progress, begin_ms))

    def _new(self, terms: WindowTerms) -> ConsumerProgress:
        return replace(WindowService._new(self, terms), marks=Marks())

    def _state_after(self, progress: ConsumerProgress) -> TableState:
        """The state that the last event was decided by, if nobody else has made a step since."""
        for seen in self._seen:
            if seen.number == progress.number:
                seen.number = -1  # if files of it are gone, the next attempt loads another one
                return seen.state
        return self._load()

    def _due(self, progress: ConsumerProgress, terms: WindowTerms, state: TableState) -> tuple[Bounds, bool] | None:
        if not self._seen or self._seen[-1].state is not state:
            gate = WindowGate.of(state.cut_ms, self.arrival.progress(state), self.freshness.waiting(state))
            self._seen[:] = [_Seen(state, gate)]
        return next_mark(progress, terms.calendar, self._seen[-1].gate)

    def _begun(
        self, state: TableState, plan: QueryPlan, progress: ConsumerProgress, terms: WindowTerms
    ) -> ConsumerProgress | None:
        """As for any consumer. Late data before the first window marks nothing."""
        begun = WindowService._begun(self, state, plan, progress, terms)
        return None if begun is None else replace(begun, first_ms=begun.begun_ms)
