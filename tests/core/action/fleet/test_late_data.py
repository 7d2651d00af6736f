"""A fleet beside tables that get very late records: these are late again and again, and take turns with the others."""

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide_core.action.fleet.scheduler import FleetScheduler, Measured, Target
from support.run.campaign import IS_REPEATED

pytestmark = pytest.mark.slow

SECOND = 1000
MINUTE = 60 * SECOND


@dataclass(frozen=True)
class Simulated:
    """A table. `late_ms` is how far its late records lie behind the clock, None if it gets none.

    They arrive during each compaction, so that its lag is seen, or just after it, so that the scheduler doesn't know.
    """

    cost_ms: int
    target_ms: int
    begin_lag_ms: int = 0
    late_ms: int | None = None
    is_seen: bool = True


@dataclass
class World:
    """Runs a fleet on a virtual clock. Takes how long each table waited, beyond its target, until its compaction began."""

    tables: Sequence[Simulated]
    workers: int = 1
    completed: Counter[int] = field(default_factory=Counter[int])
    waited_ms: list[int] = field(default_factory=list[int])
    rests_ms: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def run(self, until_ms: int) -> None:
        scheduler = FleetScheduler(self.workers)
        reached = [-table.begin_lag_ms for table in self.tables]
        ended: list[int | None] = [None] * len(self.tables)
        for at, table in enumerate(self.tables):
            scheduler.add(Target(str(at), table.target_ms), 0)
        now, running = 0, list[tuple[int, int, int]]()

        def waited(at: int) -> int:
            return now - max(reached[at] + self.tables[at].target_ms, ended[at] or 0)

        while now < until_ms:
            while len(running) < self.workers and (name := scheduler.start(now)) is not None:
                at = int(name)
                self.waited_ms.append(waited(at))
                last = ended[at]
                if last is not None:
                    self.rests_ms.append((at, now - last))
                scheduler.measured(name, Measured(now, now - reached[at], 0, 0))
                heapq.heappush(running, (now + self.tables[at].cost_ms, at, now))
            times = [running[0][0]] if running else []
            if len(running) < self.workers and (wakes := scheduler.wakes_at(now)) is not None:
                times.append(wakes)
            now = max(now + 1, min(times))
            while running and running[0][0] <= now:
                end, at, began = heapq.heappop(running)
                table = self.tables[at]
                late = began if table.late_ms is None else end - table.late_ms
                reached[at] = min(began, late) if table.is_seen else began
                scheduler.succeeded(str(at), end - began, Measured(end, end - reached[at], 0, 0))
                reached[at], ended[at] = min(began, late), end
                self.completed[at] += 1
        runs = {at for _, at, _ in running}
        self.waited_ms += [waited(at) for at in range(len(self.tables)) if at not in runs]


def test_a_table_with_very_late_records_leaves_the_worker_to_tables_that_are_late() -> None:
    disturbed = Simulated(1500, 30 * SECOND, late_ms=120 * MINUTE)
    late = Simulated(8 * SECOND, 5 * MINUTE, begin_lag_ms=9 * MINUTE)
    for is_seen in (True, False):
        world = World([Simulated(1500, 30 * SECOND, late_ms=120 * MINUTE, is_seen=is_seen), late, late, late])
        world.run(MINUTE)
        assert world.completed[0] <= 5
        assert all(world.completed[at] >= 1 for at in (1, 2, 3))
    alone = World([disturbed])
    alone.run(MINUTE)
    assert 3 <= alone.completed[0] <= 5, "it rests for half of its target"


def test_a_table_rests_as_long_as_its_compactions_take() -> None:
    world = World([Simulated(40 * SECOND, 30 * SECOND, late_ms=120 * MINUTE)])
    world.run(10 * MINUTE)
    assert {rest for _, rest in world.rests_ms} == {40 * SECOND}


@st.composite
def fleets(draw: st.DrawFn) -> World:
    """Fleets of tables with and without late records, also such that need many times the workers there are."""
    targets = st.sampled_from([30 * SECOND, 5 * MINUTE, 60 * MINUTE])
    table = st.builds(
        Simulated,
        cost_ms=st.integers(1, 2 * MINUTE),
        target_ms=targets,
        begin_lag_ms=st.integers(0, 60 * MINUTE),
        late_ms=st.none() | st.integers(0, 300 * MINUTE),
        is_seen=st.booleans(),
    )
    return World(draw(st.lists(table, min_size=1, max_size=12)), draw(st.integers(1, 3)))


@pytest.mark.broad
@settings(max_examples=60, derandomize=IS_REPEATED, database=None)
@given(fleets())
def test_no_table_beyond_its_target_waits_longer_than_the_bound(world: World) -> None:
    world.run(600 * MINUTE)
    cost = max(table.cost_ms for table in world.tables)
    turns = 8 * len(world.tables) * cost / world.workers + cost
    longest = max(table.target_ms for table in world.tables)
    assert max(world.waited_ms) <= 2 * longest + turns
    for at, rest in world.rests_ms:
        assert rest >= world.tables[at].cost_ms - 1, "a worker that is free does not shorten it"
