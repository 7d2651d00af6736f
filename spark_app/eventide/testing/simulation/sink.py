"""What a consumer of windows does with them: each once, complete, and again only as a correction."""

from dataclasses import dataclass, field

from eventide.table.table import Table
from eventide.table.window import Window, Windows
from eventide.testing.simulation.ledger import BrokenPromiseError
from eventide.testing.simulation.process import Store
from eventide_core.errors import CleanedHistoryError

_Rows = frozenset[tuple[object, ...]]
_SURELY_HELD_MS = 60_000  # less than the lease, which begins before the rows are there


@dataclass(frozen=True, slots=True)
class _Taken:
    """A window that was delivered and perhaps not done: to whom, and when."""

    instant: str
    is_correction: bool
    rows: _Rows
    runner: str = field(compare=False)
    at_ms: int = field(compare=False)


@dataclass(slots=True, eq=False)
class Sink:
    """`done` has what was done last of each window by its begin, `taken` what was delivered last, perhaps done, too."""

    number: int = 1
    done: dict[int, _Taken] = field(default_factory=dict[int, _Taken])
    taken: dict[int, _Taken] = field(default_factory=dict[int, _Taken])
    is_renewed: bool = False

    def next(self) -> "Sink":
        return Sink(self.number + 1)

    def windows(self, table: Table, *, renew: bool = False) -> Windows:
        return table.windows("1s", f"billing-{self.number}", lease="5m", renew=renew)

    def take(self, table: Table, runner: str, store: Store, *, take_over: bool = False) -> bool:
        """Takes the next window, stores its rows and ends it. Returns whether there was one.

        A window that another runner has is a broken promise before its lease is over, unless it is taken over, or a clock
        may have jumped.
        """
        try:
            window = self.windows(table).take(runner, take_over=take_over)
            rows = frozenset() if window is None else _rows(window)
        except CleanedHistoryError:  # what a user does then
            self.is_renewed = True
            self.taken.clear()
            window = self.windows(table, renew=True).take(runner, take_over=take_over)
            rows = frozenset() if window is None else _rows(window)
        if window is None:
            return False
        begin, taken = (
            window.begin_ms,
            _Taken(window.instant, window.is_correction, rows, runner, store.scheduler.now_ms),
        )
        self._receive(window, taken, may_be_held=take_over or store.is_disturbed)
        window.done()  # if it fails, it may be done all the same: `taken` keeps it
        done = self.done.get(begin)
        if done is None or done.at_ms < taken.at_ms:  # another runner may have had a correction of it since
            self.done[begin] = taken
        if self.taken.get(begin) is taken:
            del self.taken[begin]
        return True

    def _receive(self, window: Window, taken: _Taken, *, may_be_held: bool) -> None:
        begin, known = window.begin_ms, self.taken.get(window.begin_ms)
        if begin in self.done and not window.is_correction:
            raise BrokenPromiseError("window twice", f"{window} came again without being a correction")
        if known is not None and known != taken and known.instant == taken.instant:
            raise BrokenPromiseError("window changed", f"{window}: first {known}, then {taken}")
        others = None if known is None or known.runner == taken.runner or may_be_held else known
        if others is not None and others == taken and taken.at_ms < others.at_ms + _SURELY_HELD_MS:
            raise BrokenPromiseError("window to two", f"{window}: {others} has it, and {taken} got it")
        self.taken[begin] = taken

    def check(self, table: Table, expected: _Rows) -> None:
        """Once no window is due: `expected` are the rows of the last view."""
        progress = self.windows(table).progress()
        if progress.view is None or progress.next_ms is None:
            return
        closed = {row for row in expected if isinstance(row[2], int) and row[2] < progress.next_ms}
        # What was taken and doesn't come again is done, though its runner died before it knew.
        ended = sorted([*self.done.items(), *self.taken.items()], key=lambda item: item[1].at_ms)
        seen = {row for last in dict(ended).values() for row in last.rows}
        if seen != closed:
            raise BrokenPromiseError(
                "windows",
                f"before {progress.next_ms}: missing {sorted(closed - seen)}, too many {sorted(seen - closed)}",
            )


def _rows(window: Window) -> _Rows:
    columns = window.rows().to_arrow().select(["_hoodie_partition_path", "key", "ms", "word"])
    return frozenset(tuple(row.values()) for row in columns.to_pylist())
