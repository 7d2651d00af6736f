"""What every write of a world was, and whether its rows must be there. The oracle folds those that are.

Each write has a marker, a row that no other write touches, so the rows themselves show which writes are there. A write of
unknown outcome may be there or not, but not by half.

Only one writer writes a key that is ever deleted, and none again whose last write has an unknown outcome: a compaction
forgets deletes, as Hudi's do, so an older version that came after it would show. All writers upsert the other keys, late,
too, and at times several insert the same one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random
from zlib import crc32

from eventide.testing.histories import EPOCH_MS, Commit, at_epoch, delete, put
from eventide.testing.oracle import Change, Oracle, Order, Rows

TICK_MS = 400
"""The time between two writes in event time, so that a window of a second has two or three."""
_SHARED = tuple(f"k{number}" for number in range(5))
_INSERTS_OF_ONE_KEY = 3
_LATE_TICKS = (0, 0, 0, 3, 10, 25)


class BrokenPromiseError(AssertionError):
    """A check of a world failed. `check` is which, for comparing failures."""

    def __init__(self, check: str, text: str) -> None:
        super().__init__(check, text)  # both, so that it can go from process to process
        self.check, self.text = check, text

    def __str__(self) -> str:
        return f"{self.check}: {self.text}"


class Fate(Enum):
    KEPT = auto()
    UNKNOWN = auto()
    GONE = auto()


@dataclass(slots=True, eq=False)
class Write:
    """`began` and `ended` are moments of the ledger; `ended` is None until the writer knows that it has succeeded.

    `meets_a_restore`: one ran while the write did, and may have undone it between its commit and its answer.
    """

    number: int
    changes: Commit
    began: int
    ended: int | None = None
    fate: Fate = Fate.UNKNOWN
    meets_a_restore: bool = False

    @property
    def marker(self) -> str:
        return f"w{self.number}"


@dataclass(frozen=True, slots=True)
class Saved:
    """A savepoint, and the moments between which it was made."""

    instant: str
    began: int
    ended: int


def partition_of(key: str) -> str:
    return "ab"[crc32(key.encode()) % 2]


@dataclass(slots=True)
class Ledger:
    base: Commit = tuple(put(key, number, "base", partition=partition_of(key)) for number, key in enumerate(_SHARED))
    writes: list[Write] = field(default_factory=list[Write])
    moment: int = 0
    _own: dict[str, dict[str, bool]] = field(default_factory=dict[str, dict[str, bool]])
    _times: set[int] = field(default_factory=set[int])
    _keys: int = 0

    def now(self) -> int:
        self.moment += 1
        return self.moment

    @property
    def latest_ms(self) -> int:
        """The event time of the last write, in milliseconds since the epoch."""
        return EPOCH_MS + len(self.writes) * TICK_MS

    def begin(self, writer: str, dice: Random) -> Write:
        number = len(self.writes) + 1
        ms, word = number * TICK_MS, f"{writer} {number}"
        own = self._own.setdefault(writer, {})
        if len(own) < 3:
            self._keys += 1
            own[f"o{self._keys}"] = False
        mine = dice.choice(sorted(own))
        is_there = own.pop(mine)
        if is_there and dice.random() < 0.5:
            changes = [delete(mine, self._unused(ms), partition=partition_of(mine))]
        else:
            changes = [put(mine, self._unused(ms), word, partition=partition_of(mine))]
        for key in dice.sample(_SHARED, dice.randint(0, 2)):
            late_ms = ms - TICK_MS * dice.choice(_LATE_TICKS)
            changes.append(put(key, self._unused(max(late_ms, TICK_MS)), word, partition=partition_of(key)))
        if dice.random() < 0.3:
            key = f"n{number // _INSERTS_OF_ONE_KEY}"
            changes.append(put(key, self._unused(ms), word, partition=partition_of(key)))
        write = Write(number, (), self.now())
        changes.append(put(write.marker, self._unused(ms), word, partition=partition_of(write.marker)))
        write.changes = tuple(changes)
        self.writes.append(write)
        return write

    def succeeded(self, writer: str, write: Write) -> None:
        """The writer knows that it has."""
        write.ended = self.now()
        if not write.meets_a_restore:
            write.fate = Fate.KEPT
        self._own[writer][write.changes[0].key] = write.changes[0].word is not None

    def restored(self, saved: Saved, began: int | None) -> None:
        """A restore that began at that moment has succeeded; None: it may have happened, or may happen later."""
        for write in self.writes:
            write.meets_a_restore |= write.ended is None
            if write.ended is not None and write.ended < saved.began:
                continue
            if began is not None and write.began > saved.ended and write.ended is not None and write.ended < began:
                write.fate = Fate.GONE
            elif write.fate is Fate.KEPT:
                write.fate = Fate.UNKNOWN

    def shown(self, rows: Rows) -> list[Write]:
        keys = {row[1] for row in rows}
        return [write for write in self.writes if write.marker in keys]

    def check(self, rows: Rows, since: int | None = None) -> None:
        """Checks the rows of a query that began at the moment `since`; None: everything before it has ended."""
        shown = self.shown(rows)
        for write in self.writes:
            is_old = since is None or (write.ended is not None and write.ended < since)
            if write.fate is Fate.KEPT and is_old and write not in shown:
                raise BrokenPromiseError(
                    "lost write", f"write {write.number} was acknowledged, and is gone: {write.changes}"
                )
            if write.fate is Fate.GONE and is_old and write in shown:
                raise BrokenPromiseError("undone write", f"write {write.number} was undone, and is there")
        expected, seen = self.rows_of(shown), without_instants(rows)
        if seen != expected:
            numbers = [write.number for write in shown]
            raise BrokenPromiseError(
                "rows",
                f"with the writes {numbers}, missing {sorted(expected - seen)}, too many {sorted(seen - expected)}",
            )

    def rows_of(self, writes: Iterable[Write]) -> frozenset[tuple[object, ...]]:
        oracle = Oracle(Order.EVENT_TIME)
        oracle.commit("0", [at_epoch(change) for change in self.base])
        oracle.commit("1", [at_epoch(change) for write in writes for change in write.changes])
        return without_instants(oracle.snapshot())

    def check_watermark(self, rows: Rows, read_optimized: Rows, watermark_ms: int) -> None:
        """Everything before the watermark is in the read-optimized view."""
        seen = {(row[0], row[1]): row for row in read_optimized}
        for key, latest in self._latest(self.shown(rows)).items():
            if latest.ms is None or latest.ms >= watermark_ms:
                continue
            row = seen.get(key)
            if (None if row is None else row[3]) != latest.word:
                raise BrokenPromiseError("watermark", f"it is {watermark_ms}, and the view shows {row} for {latest}")

    def _latest(self, writes: Sequence[Write]) -> dict[tuple[str, str], Change]:
        latest: dict[tuple[str, str], Change] = {}
        for change in (*self.base, *(change for write in writes for change in write.changes)):
            key, change = (change.partition, change.key), at_epoch(change)
            if key not in latest or (latest[key].ms or 0) < (change.ms or 0):
                latest[key] = change
        return latest

    def _unused(self, ms: int) -> int:
        while ms in self._times:
            ms += 1
        self._times.add(ms)
        return ms


def without_instants(rows: Rows) -> frozenset[tuple[object, ...]]:
    return frozenset(row[:-1] for row in rows)
