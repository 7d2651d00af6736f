"""Which table of a fleet is compacted next, so that as few tables as possible miss their target lag.

For each table, the scheduler measures how fast its lag and its backlog grow, and what a byte of backlog costs: each is a
moving average. From these it predicts when the table misses its target, and how long its next compaction takes.

1. A table can be chosen if it doesn't run already, has not just failed, its window is open, half of the time from its
   last compaction to its target is over, and it has rested as long as its compactions take. Earlier, a compaction would
   cost as much and gain less. So one table takes at most half of one worker, however late the records are that it gets.
2. The largest set of tables that can still be on time is found as by Moore and Hodgson: in the order of their deadlines,
   and whenever one would be late, the one of these that costs most is left out. Each worker counts as its part of one
   machine that is as fast as all of them.
3. Every eighth start is for the table that has waited longest of those that are late or were left out. It waits from the
   moment at which it was late, or from the end of its last compaction: one that is late again and again, because late
   records lower its watermark, takes turns with the others. At the other starts, these tables take the slack of that set:
   the cheapest one first that makes none of the set late.
4. Otherwise the table with the least laxity is chosen, which is the time to its deadline minus the cost. If its turn
   would make another one late, the next one is tried; the one with the earliest deadline always fits.

So a table that stays beyond its target, and doesn't fail, is compacted again within a bound: twice its target, in which the
scheduler notices that it is late, and eight compactions for each table of the fleet, of which `workers` run at a time.

A table that fails waits one retry interval, then twice as long each time, up to a bound. The first success ends that.

The scheduler has no clock: every method takes the present time. Times, durations and lags are in milliseconds.
"""

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from eventide_core.action.fleet.daily_window import DailyWindow

LOG_FILE_BYTES: Final = 64 << 10
"""To open a log file costs about as much as to merge that many bytes of it."""
COMPACTION_BYTES: Final = 4 << 20
"""To list, plan and commit costs about as much as to merge that many bytes."""
_COST_PER_BYTE_MS: Final = 1e-5  # before anything is measured: 100 MB a second
_WEIGHT: Final = 0.3  # of the newest measurement in a moving average
_READY_SHARE: Final = 0.5
_LATE_TURN: Final = 8
_GROWTH_MIN, _GROWTH_MAX = 0.5, 1.0
"""Bounds of the growth of a lag, in milliseconds a millisecond: 1 while a watermark stands still.

It is less where another process compacts, too, and that may end. It is more where late records lower the watermark, which
no earlier compaction prevents.
"""
_RETRY_MS: Final = 30_000
_RETRY_MAX_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Target:
    """A table with the lag that its read-optimized view may have, and when it may be compacted.

    `name` distinguishes the tables of a fleet. `lag_ms` is the clock minus the watermark, at most. `window` is None if it
    may be compacted at any time.
    """

    name: str
    lag_ms: int
    window: DailyWindow | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A table at the moment `at_ms`, in epoch milliseconds.

    `lag_ms` is the clock minus the watermark; None before the first compaction. `log_files` and `log_bytes` are its backlog.
    """

    at_ms: int
    lag_ms: int | None
    log_files: int
    log_bytes: int

    @property
    def work(self) -> int:
        """What a compaction costs, in bytes that cost as much to merge."""
        return COMPACTION_BYTES + LOG_FILE_BYTES * self.log_files + self.log_bytes


@dataclass(frozen=True, slots=True)
class Learned:
    """The moving averages of a table, with which another process continues.

    `lag_growth` is in milliseconds a millisecond, `work_growth` in bytes a millisecond. `residual_ms` is the lag right after
    a compaction. `cost_per_byte_ms` is what a compaction took, divided by the bytes of its `Measured.work`.
    """

    lag_growth: float
    work_growth: float
    residual_ms: float
    cost_per_byte_ms: float


@dataclass(frozen=True, slots=True)
class TableLoad:
    """The `share` of one worker that a table needs to stay within its target: 0.5 is half its time.

    `is_possible`: on any number of workers; if it isn't, the share is infinite. A table with a window needs a greater share,
    because only that part of a day counts.
    """

    name: str
    share: float
    is_possible: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the fleet needs: `loads` of the tables that were measured, and the `workers` that it has.

    `unmet` are the tables to leave out so that the others fit: those that no number of workers helps, then the most
    expensive first.
    """

    loads: tuple[TableLoad, ...]
    workers: int

    @property
    def share(self) -> float:
        return sum(load.share for load in self.loads if load.is_possible)

    @property
    def more_workers(self) -> int:
        """How many more workers let all possible tables meet their targets."""
        return max(0, math.ceil(self.share) - self.workers)

    @property
    def unmet(self) -> tuple[str, ...]:
        left = self.share
        names = [load.name for load in self.loads if not load.is_possible]
        for load in sorted(
            (load for load in self.loads if load.is_possible), key=lambda load: (-load.share, load.name)
        ):
            if left <= self.workers:
                break
            left -= load.share
            names.append(load.name)
        return tuple(names)


@dataclass(slots=True)
class _Table:
    target: Target
    since_ms: int  # of the last measurement, or when the table was added
    lag_ms: float | None = None
    work: float = COMPACTION_BYTES
    lag_growth: float = 1.0
    work_growth: float = 0.0  # bytes a millisecond
    residual_ms: float = 0.0  # the lag right after a compaction
    cost_per_byte_ms: float | None = None
    ready_at_ms: float = 0.0
    retry_at_ms: int = 0
    failures: int = 0
    failed_after_ms: float = 0.0  # what the last attempt took, if it failed
    took_ms: float = 0.0  # by a compaction
    ended_ms: float = -math.inf  # the last attempt
    is_running: bool = False

    def measure(self, seen: Measured) -> None:
        """A measurement without a compaction since the last one."""
        passed = seen.at_ms - self.since_ms
        if passed > 0 and self.lag_ms is not None and seen.lag_ms is not None:
            growth = min(_GROWTH_MAX, max(_GROWTH_MIN, (seen.lag_ms - self.lag_ms) / passed))
            self.lag_growth += _WEIGHT * (growth - self.lag_growth)
        if passed > 0 and self.lag_ms is not None:
            self.work_growth += _WEIGHT * (max(0.0, (seen.work - self.work) / passed) - self.work_growth)
        self._stand(seen)

    def reached(self, took_ms: int, seen: Measured) -> None:
        """A measurement right after a compaction that took so long."""
        self.took_ms += (_WEIGHT if self.took_ms else 1.0) * (took_ms - self.took_ms)
        if seen.lag_ms is not None:
            is_first = self.residual_ms == 0.0
            self.residual_ms += (1.0 if is_first else _WEIGHT) * (seen.lag_ms - self.residual_ms)
        self._stand(seen)
        self.ready_at_ms = seen.at_ms + max(_READY_SHARE * self.room_ms() / self.lag_growth, self.took_ms)

    def _stand(self, seen: Measured) -> None:
        self.since_ms, self.lag_ms, self.work = seen.at_ms, seen.lag_ms, seen.work

    def room_ms(self) -> float:
        """How much the lag may grow between two compactions; the whole target if a compaction cannot reach it."""
        room = self.target.lag_ms - self.residual_ms
        return room if room > 0 else float(self.target.lag_ms)

    def cost_ms(self, now_ms: float, otherwise: float) -> float:
        work = self.work + self.work_growth * max(0.0, now_ms - self.since_ms)
        expected = work * (otherwise if self.cost_per_byte_ms is None else self.cost_per_byte_ms)
        return max(expected, self.failed_after_ms)

    def starts_from_ms(self, now_ms: int) -> float:
        """The earliest moment from `now_ms` at which the table can be chosen."""
        at = max(float(now_ms), self.ready_at_ms, float(self.retry_at_ms))
        window = self.target.window
        return at if window is None or window.is_open(int(at)) else float(window.opens_at(int(at)))

    def deadline_ms(self, now_ms: int, cost_ms: float) -> float:
        """When the compaction has to be done: before the target is missed, or before a window closes for too long."""
        misses = self.since_ms + (self.target.lag_ms - (self.lag_ms or 0.0)) / self.lag_growth
        window = self.target.window
        if window is None:
            return misses
        closes = window.closes_at(now_ms)
        return closes if closes < misses < window.opens_at(closes) + cost_ms else misses


@dataclass(frozen=True, slots=True)
class _Job:
    """A compaction that could start now. Its cost is a part of what all workers do in that time."""

    name: str
    deadline_ms: float
    cost_ms: float
    ended_ms: float = -math.inf
    """When the last attempt ended."""


@dataclass(slots=True)
class FleetScheduler:
    """Chooses the next table. `workers` compactions run at a time."""

    workers: int = 1
    _tables: dict[str, _Table] = field(default_factory=dict[str, _Table], repr=False)
    _cost_per_byte_ms: float = _COST_PER_BYTE_MS
    _starts: int = 0

    def add(self, target: Target, now_ms: int, learned: Learned | None = None) -> None:
        """Adds a table, which can be chosen at once. `learned` are the averages of an earlier process."""
        table = _Table(target, now_ms)
        if learned is not None:
            table.lag_growth, table.work_growth = learned.lag_growth, learned.work_growth
            table.residual_ms, table.cost_per_byte_ms = learned.residual_ms, learned.cost_per_byte_ms
        self._tables[target.name] = table

    def learned(self, name: str) -> Learned | None:
        """The averages of a table; None before its first compaction."""
        table = self._tables[name]
        if table.cost_per_byte_ms is None:
            return None
        return Learned(table.lag_growth, table.work_growth, table.residual_ms, table.cost_per_byte_ms)

    def measured(self, name: str, seen: Measured) -> None:
        """Records a measurement of a table, before its compaction or without one."""
        self._tables[name].measure(seen)

    def succeeded(self, name: str, took_ms: int, seen: Measured) -> None:
        """Records what a compaction cost, and the table after it. `measured` was called with the table before it."""
        table = self._tables[name]
        per_byte = took_ms / max(1.0, table.work)
        known = table.cost_per_byte_ms
        table.cost_per_byte_ms = per_byte if known is None else known + _WEIGHT * (per_byte - known)
        self._cost_per_byte_ms += _WEIGHT * (per_byte - self._cost_per_byte_ms) / len(self._tables)
        table.reached(took_ms, seen)
        table.ended_ms = seen.at_ms
        table.failures, table.failed_after_ms, table.retry_at_ms, table.is_running = 0, 0.0, 0, False

    def failed(self, name: str, took_ms: int, now_ms: int) -> int:
        """Records a failure after `took_ms`, the expected time of the next attempt. Returns when the table is retried."""
        table = self._tables[name]
        table.failed_after_ms, table.ended_ms = took_ms, now_ms
        table.is_running = False
        table.retry_at_ms = now_ms + min(_RETRY_MAX_MS, _RETRY_MS << min(table.failures, 20))
        table.failures += 1
        return table.retry_at_ms

    def start(self, now_ms: int) -> str | None:
        """The table to compact now, which thereby runs; None if none can be chosen."""
        jobs = [
            self._job(table, now_ms)
            for table in self._tables.values()
            if not table.is_running and table.starts_from_ms(now_ms) <= now_ms
        ]
        if not jobs:
            return None
        self._starts += 1
        chosen = self._choose(jobs, now_ms)
        self._tables[chosen].is_running = True
        return chosen

    def wakes_at(self, now_ms: int) -> int | None:
        """When the next table that doesn't run can be chosen; None if all of them run."""
        at = [table.starts_from_ms(now_ms) for table in self._tables.values() if not table.is_running]
        return math.ceil(min(at)) if at else None

    def forecast(self) -> Forecast:
        """What the tables need, as far as it is measured by now: tables that were never compacted are left out."""
        return Forecast(
            tuple(_load(table) for table in self._tables.values() if table.cost_per_byte_ms is not None), self.workers
        )

    def _job(self, table: _Table, now_ms: int) -> _Job:
        cost = table.cost_ms(now_ms, self._cost_per_byte_ms)
        return _Job(table.target.name, table.deadline_ms(now_ms, cost), cost, table.ended_ms)

    def _choose(self, jobs: Sequence[_Job], now_ms: int) -> str:
        on_time = largest_on_time_set(jobs, now_ms, self.workers)
        names = {job.name for job in on_time}
        others = [job for job in jobs if job.name not in names]
        if others and self._starts % _LATE_TURN == 0:
            # From then on, a table that is late waits for its turn.
            return min(others, key=lambda job: (max(job.deadline_ms, job.ended_ms), job.name)).name
        ends = list(accumulate(job.cost_ms / self.workers for job in on_time))
        # The slack of a job is the least one of itself and the jobs behind it.
        slacks = [job.deadline_ms - now_ms - end for job, end in zip(on_time, ends, strict=True)]
        if others:
            cheapest = min(others, key=lambda job: (job.cost_ms, job.deadline_ms, job.name))
            if cheapest.cost_ms / self.workers <= min(slacks, default=math.inf):
                return cheapest.name
        slack_before = list(accumulate(slacks, min, initial=math.inf))
        by_laxity = sorted(range(len(on_time)), key=lambda at: (on_time[at].deadline_ms - on_time[at].cost_ms, at))
        first = next(at for at in by_laxity if on_time[at].cost_ms / self.workers <= slack_before[at])
        return on_time[first].name


def largest_on_time_set(jobs: Iterable[_Job], now_ms: int, workers: int) -> list[_Job]:
    """The largest set of jobs that are all on time if they run in the order of their deadlines, in that order."""
    chosen: list[tuple[float, float, str, _Job]] = []  # the most expensive first
    end_ms = float(now_ms)
    for job in sorted(jobs, key=lambda job: (job.deadline_ms, job.name)):
        if now_ms + job.cost_ms > job.deadline_ms:
            continue  # it is late in any order
        heapq.heappush(chosen, (-job.cost_ms, job.deadline_ms, job.name, job))
        end_ms += job.cost_ms / workers
        if end_ms > job.deadline_ms:
            end_ms += heapq.heappop(chosen)[0] / workers
    return sorted((job for *_, job in chosen), key=lambda job: (job.deadline_ms, job.name))


def _load(table: _Table) -> TableLoad:
    """One compaction for each time in which the lag grows from its least value to the target."""
    per_byte, window = table.cost_per_byte_ms or 0.0, table.target.window
    room_ms = table.target.lag_ms - table.residual_ms
    period_ms = room_ms / table.lag_growth
    cost_ms = (COMPACTION_BYTES + table.work_growth * max(0.0, period_ms)) * per_byte
    is_possible = 0.0 < cost_ms < period_ms
    if not is_possible:
        return TableLoad(table.target.name, math.inf, is_possible=False)
    open_share = 1.0 if window is None else window.share_of_day
    return TableLoad(table.target.name, cost_ms / (period_ms - cost_ms) / open_share, is_possible=True)
