"""The oracle: what every reader of a merge-on-read table must see, computed independently in plain dictionaries.

It shares no code with eventide. It receives a table commit by commit and compaction by compaction, and computes what each
query must then answer. A partition has one file group for each bucket. If a partition has only one file group, the group
has the name of the partition.

A file group is a base (key -> change), with the commits above it as log files. The first commit into a group makes its
base. A compaction merges the first n log files into the base. It drops the deletes among them, except for those that it
carries.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto


class Order(Enum):
    """Which of two versions of a key wins, for each kind of reader."""

    COMMIT_TIME = auto()
    EVENT_TIME = auto()
    HUDI_0X_OVERWRITE = auto()
    HUDI_0X_DEFAULT = auto()


@dataclass(frozen=True, slots=True)
class Change:
    """One version of a key: an upsert with its word, or a delete (no word).

    The `ms` of a delete in natural order is None. If the table orders by commit time, the `ms` of an upsert can be None,
    too. With `is_unreadable`, the record has an event time, `UNREADABLE`, that nobody can read; `ms` is None.
    """

    partition: str
    key: str
    ms: int | None
    word: str | None
    instant: str = ""
    is_unreadable: bool = False


UNREADABLE = "soon"
Row = tuple[str, str, int | str | None, str, str]
"""Partition, key, event time, word, instant of the commit."""
Rows = frozenset[Row]


@dataclass(frozen=True, slots=True)
class ExpectedFreshness:
    cut_ms: int | None
    watermark_ms: int | None
    late_records: int
    unknown_event_time_records: int
    unreadable_event_time_records: int = 0


@dataclass(slots=True)
class _Group:
    """A file group. `early` holds the changes in its log files that an exact cut has already merged into the base."""

    base: dict[str, Change]
    logs: list[tuple[Change, ...]] = field(default_factory=list)
    early: set[Change] = field(default_factory=set)


@dataclass(slots=True)
class Oracle:
    """A table, computed from its history. `as_of` holds the snapshot after each commit."""

    order: Order
    buckets: int = 1
    as_of: dict[str, Rows] = field(default_factory=dict)
    _groups: dict[str, _Group] = field(default_factory=dict)
    _history: list[tuple[Change, ...]] = field(default_factory=list)
    _cut_ms: int | None = None

    def copy(self) -> "Oracle":
        groups = {name: _Group(dict(g.base), list(g.logs), set(g.early)) for name, g in self._groups.items()}
        return Oracle(self.order, self.buckets, dict(self.as_of), groups, list(self._history), self._cut_ms)

    def as_planned(self, known: Mapping[str, int]) -> "Oracle":
        """The groups in `known` as a plan knew them: each with only its first log files, of the given number."""
        other = self.copy()
        other._groups = {name: group for name, group in other._groups.items() if name in known}
        for name, group in other._groups.items():
            group.logs = group.logs[: known[name]]
        return other

    @property
    def instants(self) -> tuple[str, ...]:
        return tuple(self.as_of)

    def commit(self, instant: str, changes: Sequence[Change]) -> None:
        stamped = tuple(replace(change, instant=instant) for change in changes)
        for group, here in self._by_group(stamped).items():
            if group in self._groups:
                self._groups[group].logs.append(here)
            elif any(change.word is not None for change in here):
                self._groups[group] = _Group({c.key: c for c in here if c.word is not None})
        self._history.append(stamped)
        self._remember(instant, stamped)

    def compact(
        self,
        cut_ms: int | None,
        merged: Mapping[str, int],
        threshold_ms: int | None = None,
        known: Mapping[str, int] | None = None,
        by: Order | None = None,
        above: Mapping[str, int] | None = None,
    ) -> None:
        """Merges the first log files of each group in `merged`, of the given number. Without a cut, the last cut stays.

        `threshold_ms`: the changes before it in the log files above the merged ones are merged, too, and also stay there.
        `known` is how many log files of the group the plan knew. Nothing of later log files is merged, and no delete is
        carried for them. `above` is how many of the known log files completed after the compaction's instant. Nothing of
        these is merged, but deletes are carried for them. `by` is the merge order of the engine that executes the
        compaction; the default is the table's order.
        """
        for name, count in merged.items():
            group = self._groups[name]
            taken, left = group.logs[:count], group.logs[count:]
            seen = left if known is None else left[: known[name] - count]
            old = seen[: len(seen) - (above or {}).get(name, 0)]
            early = [tuple(change for change in log if _is_early(change, threshold_ms)) for log in old]
            carried = self._carried(group.base, taken, early, seen)
            group.base = _merged(by or self.order, group.base, [*taken, *early])
            group.logs = [carried, *left] if carried else left
            group.early = {*carried, *(change for log in early for change in log)}
        if cut_ms is not None:
            self._cut_ms = cut_ms

    def snapshot(self, order: Order | None = None, group: str | None = None, *, by_instant: bool = False) -> Rows:
        """The rows of a snapshot, limited to `group` if given, as a reader with `order` sees them.

        The default order is the table's. Readers merge log files block by block or, `by_instant`, the blocks of each
        instant together, in the order of their first blocks, as hudi-rs does.
        """
        groups = self._groups.values() if group is None else [self._groups[group]]
        logs = ((g.base, _by_instant(g.logs) if by_instant else g.logs) for g in groups)
        return _rows(c for base, blocks in logs for c in _merged(order or self.order, base, blocks).values())

    def read_optimized(self) -> Rows:
        return _rows(change for group in self._groups.values() for change in group.base.values())

    def log_counts(self) -> dict[str, int]:
        """How many log files each group has, including a log file of carried tombstones."""
        return {partition: len(group.logs) for partition, group in self._groups.items()}

    def log_instants(self, group: str) -> list[frozenset[str]]:
        """The instants of the changes in each log file of a group, in order."""
        return [frozenset(change.instant for change in log) for log in self._groups[group].logs]

    def fewest_merged(self, group: str, cut_ms: int) -> int:
        """How many log files of a group a compaction at T must merge: up to the last with a possible record before T."""
        return max(
            (
                number
                for number, log in enumerate(self._groups[group].logs, start=1)
                if any(change.ms is None or change.ms < cut_ms for change in log)
            ),
            default=0,
        )

    def longest_prefix(self, partition: str, cut_ms: int) -> int:
        """How many of a group's first log files hold nothing at or after T."""
        count = 0
        for log in self._groups[partition].logs:
            if any(change.ms is not None and change.ms >= cut_ms for change in log):
                break
            count += 1
        return count

    def is_waiting(self, partition: str, cut_ms: int, but: Collection[str] = ()) -> bool:
        """True if a group's log files hold a change before T that is in no base file. Ignores the commits in `but`."""
        group = self._groups[partition]
        waiting = (change for log in group.logs for change in log if change not in group.early)
        return any(_is_early(change, cut_ms) and change.instant not in but for change in waiting)

    def exactly_before(self, cut_ms: int) -> Rows:
        """The rows of a table that received only the changes before T and the changes without an event time."""
        groups: dict[str, list[tuple[Change, ...]]] = {}
        for changes in self._history:
            for partition in {change.partition for change in changes}:
                here = tuple(c for c in changes if c.partition == partition and _is_early(c, cut_ms))
                groups.setdefault(partition, []).append(here)
        return _rows(change for logs in groups.values() for change in _merged(self.order, {}, logs).values())

    def shared_keys(self, group: str, count: int) -> frozenset[str]:
        """The keys that the first log files of a group share with the rest."""
        logs = self._groups[group].logs
        first, rest = ({c.key for log in part for c in log} for part in (logs[:count], logs[count:]))
        return frozenset(first & rest)

    def incremental_most(self, instants: Collection[str]) -> Rows:
        """The rows of a query over these commits if nothing is compacted: only their versions, merged."""
        groups: dict[str, _Group] = {}
        for changes in self._history:
            for group, here in self._by_group(changes).items():
                if group not in groups:
                    if all(change.word is None for change in here):
                        continue
                    base = {c.key: c for c in here if c.word is not None}
                    groups[group] = _Group(base if here[0].instant in instants else {})
                elif here[0].instant in instants:
                    groups[group].logs.append(here)
        return _rows(c for g in groups.values() for c in _merged(self.order, g.base, g.logs).values())

    def incremental_least(self, instants: Collection[str]) -> Rows:
        """The rows that such a query shows at least, compacted or not: the current rows of these commits."""
        return frozenset(row for row in self.snapshot() if row[-1] in instants)

    def freshness(self) -> ExpectedFreshness:
        pending = [c for group in self._groups.values() for log in group.logs for c in log if c not in group.early]
        times = [change.ms for change in pending if change.ms is not None]
        unreadable = sum(change.is_unreadable for change in pending)
        unknown = sum(change.ms is None for change in pending) - unreadable
        if self._cut_ms is None:
            return ExpectedFreshness(None, None, 0, unknown, unreadable)
        late = sum(time < self._cut_ms for time in times)
        watermark_ms = None if unreadable else min([self._cut_ms, *times])
        return ExpectedFreshness(self._cut_ms, watermark_ms, late, unknown, unreadable)

    def _remember(self, instant: str, changes: Sequence[Change]) -> None:
        """Records the snapshot as of an instant, and updates those as of later instants that completed before it.

        As of these later instants, the changed keys have their present rows, because overlapping writes never change the
        same key.
        """
        now = self.snapshot()
        earlier = max((time for time in self.as_of if time < instant), default=None)
        is_last = earlier == max(self.as_of, default=None)
        self.as_of[instant] = now if is_last or earlier is None else self.as_of[earlier]
        if not is_last:
            keys = {(change.partition, change.key) for change in changes}
            new = {row for row in now if row[:2] in keys}
            for time in [time for time in self.as_of if time >= instant]:
                self.as_of[time] = frozenset({row for row in self.as_of[time] if row[:2] not in keys} | new)

    def _by_group(self, changes: Iterable[Change]) -> dict[str, tuple[Change, ...]]:
        """Changes by their file group. The bucket comes from Hudi's hash of the key, as a Java list with one string."""
        groups: dict[str, tuple[Change, ...]] = {}
        for change in changes:
            group = change.partition
            if self.buckets > 1:
                group += f"/{((31 + _java_hash(change.key)) & 0x7FFFFFFF) % self.buckets:08d}"
            groups[group] = (*groups.get(group, ()), change)
        return groups

    def _carried(
        self,
        base: Mapping[str, Change],
        taken: Sequence[tuple[Change, ...]],
        early: Sequence[tuple[Change, ...]],
        left: Sequence[tuple[Change, ...]],
    ) -> tuple[Change, ...]:
        """The deletes in the merged log files that win over a live record above them. Left-overs keep their own."""
        if self.order is not Order.EVENT_TIME:
            return ()
        carried: list[Change] = []
        kept = {change for log in early for change in log}
        for key, delete in _folded(self.order, [*taken, *early]).items():
            if delete.word is not None or delete.ms is None or delete in kept:
                continue
            if key in base and _ms(base[key]) > delete.ms:
                continue
            above = [change for log in left for change in log if change.key == key and change.word is not None]
            if any(_ms(change) < delete.ms for change in above):
                carried.append(delete)
        return tuple(carried)


def _merged(order: Order, base: Mapping[str, Change], logs: Iterable[Sequence[Change]]) -> dict[str, Change]:
    """The live version of each key in a base and the log files above it."""
    seen = dict(base)
    for key, change in _folded(order, logs).items():
        old = base.get(key)
        if old is not None and order is not Order.COMMIT_TIME and change.ms is not None and change.ms < _ms(old):
            loses_to_base = {
                Order.HUDI_0X_OVERWRITE: False,
                Order.EVENT_TIME: True,
                Order.HUDI_0X_DEFAULT: change.word is not None,
            }
            if loses_to_base[order]:
                continue
        if change.word is None:
            seen.pop(key, None)
        else:
            seen[key] = change
    return seen


def _by_instant(logs: Iterable[Sequence[Change]]) -> list[list[Change]]:
    """The changes of each instant together. A log file of carried tombstones has a block for each instant, ascending."""
    by_instant: dict[str, list[Change]] = {}
    for log in logs:
        for change in sorted(log, key=lambda change: change.instant):
            by_instant.setdefault(change.instant, []).append(change)
    return list(by_instant.values())


def _folded(order: Order, logs: Iterable[Sequence[Change]]) -> dict[str, Change]:
    """The winning version of each key in the log files alone, without the base."""
    winners: dict[str, Change] = {}
    for log in logs:
        for change in log:
            old = winners.get(change.key)
            if old is None or _takes_its_place(order, old, change):
                winners[change.key] = change
    return winners


def _takes_its_place(order: Order, old: Change, new: Change) -> bool:
    # A delete in natural order wins over every earlier version, and every later version wins over it.
    if order is Order.COMMIT_TIME or old.ms is None or new.ms is None:
        return True
    if order is not Order.EVENT_TIME and old.word is None and new.word is not None:
        return True  # Hudi 0.x: an insert beats any earlier delete
    return new.ms >= old.ms


def _is_early(change: Change, threshold_ms: int | None) -> bool:
    return threshold_ms is not None and (change.ms is None or change.ms < threshold_ms)


def _java_hash(text: str) -> int:
    value = 0
    for letter in text:
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return value


def _ms(change: Change) -> int:
    assert change.ms is not None
    return change.ms


def _rows(changes: Iterable[Change]) -> Rows:
    return frozenset(
        (c.partition, c.key, UNREADABLE if c.is_unreadable else c.ms, c.word or "", c.instant) for c in changes
    )
