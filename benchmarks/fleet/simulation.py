"""The simulated fleet, and the ways to choose its next table. Nothing here reads a clock or a disk.

A table receives bytes at its own rate, and in bursts ten times as many. A compaction takes a fixed time and a time for each
byte, of which the latter varies. It takes everything that had arrived when it started, so the lag of a table is the present
time minus the start of its last completed compaction. Sizes and targets are skewed: few tables have most of the bytes.
"""

import heapq
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from eventide_core.action.fleet.scheduler import FleetScheduler, Measured, Target

MINUTE_MS = 60_000
SETUP_MS = 1_500
_TARGETS = {5: 0.1, 15: 0.2, 60: 0.4, 360: 0.2, 1440: 0.1}  # minutes, and the share of the tables
_BURST, _BURST_MS, _CALM_MS = 10.0, 10 * MINUTE_MS, 240 * MINUTE_MS
_PER_BYTE_MS = 2e-5


@dataclass(slots=True)
class SimulatedTable:
    """A table. `bursts` are the times at which its bursts begin."""

    name: str
    target_ms: int
    bytes_per_ms: float
    bursts: Sequence[int]
    per_byte_ms: float
    compacted_to_ms: int = 0
    late_ms: int = 0

    def arrived(self, begin_ms: int, end_ms: int) -> float:
        in_bursts = sum(
            max(0, min(end_ms, burst + _BURST_MS) - max(begin_ms, burst))
            for burst in self.bursts
            if burst < end_ms and burst + _BURST_MS > begin_ms
        )
        return self.bytes_per_ms * (end_ms - begin_ms + (_BURST - 1) * in_bursts)

    def cost_ms(self, now_ms: int) -> float:
        return SETUP_MS + self.per_byte_ms * self.arrived(self.compacted_to_ms, now_ms)

    def move_to(self, compacted_to_ms: int, now_ms: int, since_ms: int) -> None:
        """Ends a compaction at `now_ms`, and counts the time since `since_ms` in which the lag exceeded the target."""
        self.count_late(now_ms, since_ms)
        self.compacted_to_ms = compacted_to_ms

    def count_late(self, now_ms: int, since_ms: int) -> None:
        misses_at = self.compacted_to_ms + self.target_ms
        self.late_ms += max(0, now_ms - max(misses_at, since_ms))


class Policy(Protocol):
    """Chooses the next table. Positions are in the fleet."""

    def start(self, now_ms: int) -> int | None: ...
    def finished(self, position: int, began_ms: int, now_ms: int) -> None: ...
    def wakes_at(self, now_ms: int) -> int | None: ...


@dataclass(slots=True)
class RoundRobin:
    """One table after the other, again and again."""

    tables: Sequence[SimulatedTable]
    next_: int = 0
    running: set[int] = field(default_factory=set[int])

    def start(self, now_ms: int) -> int | None:
        del now_ms
        for _ in self.tables:
            position, self.next_ = self.next_, (self.next_ + 1) % len(self.tables)
            if position not in self.running:
                self.running.add(position)
                return position
        return None

    def finished(self, position: int, began_ms: int, now_ms: int) -> None:
        del began_ms, now_ms
        self.running.remove(position)

    def wakes_at(self, now_ms: int) -> int | None:
        del now_ms
        return None


@dataclass(slots=True)
class Cron:
    """Each table twice in its target, at fixed times, in the order in which they come. A table waits only once."""

    tables: Sequence[SimulatedTable]
    times: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    queue: deque[int] = field(default_factory=deque[int])
    waiting: set[int] = field(default_factory=set[int])

    def __post_init__(self) -> None:
        self.times = [(0, position) for position in range(len(self.tables))]

    def start(self, now_ms: int) -> int | None:
        while self.times and self.times[0][0] <= now_ms:
            at, position = heapq.heappop(self.times)
            heapq.heappush(self.times, (at + self.tables[position].target_ms // 2, position))
            if position not in self.waiting:
                self.waiting.add(position)
                self.queue.append(position)
        return self.queue.popleft() if self.queue else None

    def finished(self, position: int, began_ms: int, now_ms: int) -> None:
        del began_ms, now_ms
        self.waiting.remove(position)

    def wakes_at(self, now_ms: int) -> int | None:
        del now_ms
        return self.times[0][0]


@dataclass(slots=True)
class LeastLaxity:
    """The scheduler of `eventide serve --fleet`. It sees a table only when it compacts it, as the service does."""

    tables: Sequence[SimulatedTable]
    scheduler: FleetScheduler

    @classmethod
    def of(cls, tables: Sequence[SimulatedTable], workers: int) -> "LeastLaxity":
        scheduler = FleetScheduler(workers)
        for position, table in enumerate(tables):
            scheduler.add(Target(str(position), table.target_ms), 0)
        return cls(tables, scheduler)

    def start(self, now_ms: int) -> int | None:
        name = self.scheduler.start(now_ms)
        if name is None:
            return None
        self.scheduler.measured(name, self._seen(int(name), now_ms))
        return int(name)

    def finished(self, position: int, began_ms: int, now_ms: int) -> None:
        self.scheduler.succeeded(str(position), now_ms - began_ms, self._seen(position, now_ms))

    def wakes_at(self, now_ms: int) -> int | None:
        return self.scheduler.wakes_at(now_ms)

    def _seen(self, position: int, now_ms: int) -> Measured:
        table = self.tables[position]
        lag_ms = now_ms - table.compacted_to_ms
        return Measured(now_ms, lag_ms, lag_ms // (5 * MINUTE_MS), int(table.arrived(table.compacted_to_ms, now_ms)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The share of the time in which a table was within its target, on average over all tables; the tables that always
    were; and the share of the workers' time that compactions took."""

    met: float
    tables_always_met: float
    busy: float
    compactions: int


def fleet(count: int, load: float, workers: int, until_ms: int, seed: int = 74) -> list[SimulatedTable]:
    """Tables whose compactions need `load` times the workers, if each one runs just before its target is missed."""
    chance = random.Random(seed)
    tables: list[SimulatedTable] = []
    for number in range(count):
        target = chance.choices(list(_TARGETS), list(_TARGETS.values()))[0] * MINUTE_MS
        bursts, at = list[int](), int(chance.expovariate(1 / _CALM_MS))
        while at < until_ms:
            bursts.append(at)
            at += _BURST_MS + int(chance.expovariate(1 / _CALM_MS))
        size = min(300.0, chance.paretovariate(1.1))
        tables.append(SimulatedTable(f"t{number}", target, size, bursts, _PER_BYTE_MS * chance.uniform(0.7, 1.4)))
    fixed = sum(SETUP_MS / table.target_ms for table in tables)
    of_bytes = sum(table.arrived(0, until_ms) / until_ms * table.per_byte_ms for table in tables)
    factor = max(0.0, load * workers - fixed) / of_bytes
    for table in tables:
        table.bytes_per_ms *= factor
    return tables


def simulate(tables: Sequence[SimulatedTable], policy: Policy, workers: int, until_ms: int, seed: int = 7) -> Outcome:
    """Runs the fleet up to a time. The first tenth, in which nothing is measured yet, doesn't count."""
    chance = random.Random(seed)
    counts_from = until_ms // 10
    ends: list[tuple[int, int, int]] = []
    now_ms, busy_ms, compactions = 0, 0.0, 0
    while now_ms < until_ms:
        while len(ends) < workers and (position := policy.start(now_ms)) is not None:
            cost_ms = tables[position].cost_ms(now_ms) * chance.uniform(0.8, 1.25)
            busy_ms += cost_ms
            compactions += 1
            heapq.heappush(ends, (now_ms + max(1, round(cost_ms)), position, now_ms))
        wakes = policy.wakes_at(now_ms) if len(ends) < workers else None
        times = [time for time in (ends[0][0] if ends else None, wakes) if time is not None]
        now_ms = max(now_ms + 1, min(times)) if times else until_ms
        while ends and ends[0][0] <= now_ms:
            end_ms, position, began_ms = heapq.heappop(ends)
            if end_ms <= until_ms:
                tables[position].move_to(began_ms, end_ms, counts_from)
                policy.finished(position, began_ms, end_ms)
    counted = until_ms - counts_from
    for table in tables:
        table.count_late(until_ms, counts_from)
    late = [table.late_ms / counted for table in tables]
    return Outcome(
        1 - sum(late) / len(late), sum(not one for one in late) / len(late), busy_ms / workers / until_ms, compactions
    )
