"""`python -m benchmarks.fleet.real_tables [--tables N] [--seconds S]`: real tables on a disk, served beside their writer.

One process writes to all tables, much to a few of them. The service compacts them, with its own scheduler and then, on
tables like them, with round-robin and cron in its place. The lag of a table is the clock minus its watermark. Of each
run, the first fifth doesn't count.
"""

import argparse
import multiprocessing
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.fleet.simulation import Cron, Policy, RoundRobin, SimulatedTable
from eventide import Table
from eventide.fleet.service import FleetRound, FleetService
from eventide.fleet.settings import FleetSettings, FleetTable
from eventide_core.action.fleet.scheduler import FleetScheduler, Measured, Target
from eventide_core.config import BUCKETS, DATA_LATENCY

_TARGETS = {20: 0.1, 45: 0.2, 90: 0.4, 300: 0.2, 900: 0.1}  # seconds, and the share of the tables
_LATENCY_SECONDS = 2
_WRITES_PER_SECOND = 4
_ROWS_MAX = 20_000
_COUNTED_FROM = 0.2  # of a run


@dataclass(frozen=True, slots=True)
class Member:
    """A table of the fleet, and the rows of each of its writes."""

    path: Path
    target_ms: int
    rows: int


def members(directory: Path, count: int, seed: int = 74) -> list[Member]:
    chance = random.Random(seed)
    targets = chance.choices(list(_TARGETS), list(_TARGETS.values()), k=count)
    sizes = [min(_ROWS_MAX, int(50 * chance.paretovariate(0.8))) for _ in range(count)]
    found = zip(targets, sizes, strict=True)
    return [Member(directory / f"t{i:03}", target * 1000, rows) for i, (target, rows) in enumerate(found)]


def records(rows: int, chance: random.Random) -> pa.Table:
    """Rows of now, half of them of keys that are there already."""
    now_ms = time.time_ns() // 1_000_000
    return pa.table(
        {
            "id": [f"k{chance.randrange(2 * rows)}" for _ in range(rows)],
            "at": [now_ms] * rows,
            "word": [f"{chance.getrandbits(64):x}" for _ in range(rows)],
        }
    )


def make(fleet: Sequence[Member]) -> None:
    chance = random.Random(1)
    for one in fleet:
        first = records(one.rows, chance)
        table = Table.create(one.path, schema=first.schema, record_key="id", event_time="at", options={BUCKETS: 1})
        table.upsert(first)


def write(fleet: Sequence[Member], until: float) -> None:
    """Writes to one table after the other, in a random order, until a time of the clock."""
    chance = random.Random(2)
    tables = [Table.open(one.path) for one in fleet]
    while time.time() < until:
        begun = time.monotonic()
        position = chance.randrange(len(fleet))
        tables[position].upsert(records(fleet[position].rows, chance))
        time.sleep(max(0.0, 1 / _WRITES_PER_SECOND - (time.monotonic() - begun)))


class ByPolicy(FleetScheduler):
    """The service's scheduler, but another policy chooses the next table."""

    def __init__(self, policy: Policy, fleet: Sequence[Member], began_ms: int) -> None:
        super().__init__(1)
        self._policy, self._began_ms = policy, began_ms
        self._positions = {one.path.name: position for position, one in enumerate(fleet)}
        self._names = [one.path.name for one in fleet]
        for one in fleet:
            self.add(Target(one.path.name, one.target_ms), began_ms)

    def start(self, now_ms: int) -> str | None:
        position = self._policy.start(now_ms - self._began_ms)
        return None if position is None else self._names[position]

    def succeeded(self, name: str, took_ms: int, seen: Measured) -> None:
        self._end(name, took_ms, seen.at_ms)

    def failed(self, name: str, took_ms: int, now_ms: int) -> int:
        self._end(name, took_ms, now_ms)
        return now_ms

    def measured(self, name: str, seen: Measured) -> None:
        """The policy measures nothing."""

    def wakes_at(self, now_ms: int) -> int | None:
        wakes = self._policy.wakes_at(now_ms - self._began_ms)
        return None if wakes is None else wakes + self._began_ms

    def _end(self, name: str, took_ms: int, now_ms: int) -> None:
        end = now_ms - self._began_ms
        self._policy.finished(self._positions[name], end - took_ms, end)


@dataclass(slots=True)
class Lags:
    """How long each table was later than its target."""

    fleet: Sequence[Member]
    counted_from_ms: int
    until_ms: int
    watermarks: dict[str, int] = field(default_factory=dict[str, int])
    seen_at: dict[str, int] = field(default_factory=dict[str, int])
    late_ms: dict[str, int] = field(default_factory=dict[str, int])

    def take(self, done: FleetRound) -> None:
        fresh = None if done.done is None else done.done.freshness
        if fresh is not None and fresh.watermark_ms is not None:
            self.took(done.table.name, done.table.target.lag_ms, done.at_ms + done.took_ms, fresh.watermark_ms)

    def took(self, name: str, target_ms: int, now_ms: int, watermark_ms: int) -> None:
        """A table that had its last watermark until now, and has this one from now on."""
        self._count(name, target_ms, now_ms)
        self.watermarks[name] = watermark_ms

    def end(self) -> None:
        for one in self.fleet:
            self._count(one.path.name, one.target_ms, self.until_ms)

    def shares(self) -> list[float]:
        counted = self.until_ms - self.counted_from_ms
        return [1 - self.late_ms.get(one.path.name, 0) / counted for one in self.fleet]

    def _count(self, name: str, target_ms: int, now_ms: int) -> None:
        now_ms = min(now_ms, self.until_ms)
        since_ms = max(self.counted_from_ms, self.seen_at.get(name, 0))
        misses_at = self.watermarks.get(name, 0) + target_ms
        self.late_ms[name] = self.late_ms.get(name, 0) + max(0, now_ms - max(since_ms, misses_at))
        self.seen_at[name] = now_ms


@dataclass(frozen=True, slots=True)
class Outcome:
    """The share of the time within the target, of all tables; the tables that always were; the time that rounds took."""

    met: float
    always_met: float
    busy: float
    rounds: int
    troubles: int


def serve(fleet: Sequence[Member], seconds: int, policy: type[RoundRobin | Cron] | None) -> Outcome:
    """Serves a fleet while another process writes to it."""
    began_ms = time.time_ns() // 1_000_000
    options: dict[str, Any] = {str(DATA_LATENCY): str(_LATENCY_SECONDS)}
    tables = tuple(FleetTable(str(one.path), Target(one.path.name, one.target_ms), options) for one in fleet)
    service = FleetService(FleetSettings(tables))
    if policy is not None:
        simulated = [SimulatedTable(one.path.name, one.target_ms, 0.0, (), 0.0) for one in fleet]
        service.scheduler = ByPolicy(policy(simulated), fleet, began_ms)
    until_ms = began_ms + seconds * 1000
    writer = multiprocessing.get_context("spawn").Process(target=write, args=(fleet, until_ms / 1000))
    writer.start()
    lags = Lags(fleet, began_ms + int(_COUNTED_FROM * seconds * 1000), until_ms)
    ending = threading.Event()
    timer = threading.Timer(seconds, ending.set)
    timer.start()
    rounds, took_ms, troubles = 0, 0, 0
    for done in service.run(ending):
        lags.take(done)
        rounds, took_ms, troubles = rounds + 1, took_ms + done.took_ms, troubles + (done.error is not None)
    writer.join()
    lags.end()
    shares = lags.shares()
    always = sum(share == 1 for share in shares) / len(shares)
    return Outcome(sum(shares) / len(shares), always, took_ms / (seconds * 1000), rounds, troubles)


def outcomes(count: int, seconds: int) -> Iterator[tuple[str, Outcome]]:
    for name, policy in (("eventide", None), ("round-robin", RoundRobin), ("cron", Cron)):
        with tempfile.TemporaryDirectory() as directory:
            fleet = members(Path(directory), count)
            make(fleet)
            yield name, serve(fleet, seconds, policy)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet.real_tables", description=__doc__)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=300)
    chosen = parser.parse_args()
    print("| chosen by | time within the target | tables always within it | worker busy | rounds | with errors |")
    print("|---|---|---|---|---|---|")
    for name, found in outcomes(chosen.tables, chosen.seconds):
        print(
            f"| {name} | {found.met:.2%} | {found.always_met:.0%} | {found.busy:.0%} | {found.rounds:,} | "
            f"{found.troubles} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
