"""The pipeline of the examples runs end to end with late data, and can be killed anywhere: its reports are the oracle's."""

import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from eventide import Table
from support.documentation.trips_pipeline import BEGIN, DAY, HOUR, OPTIONS, Trip, oracle, run_pipeline, sums_of, write
from support.faults.killed import call_until_killed

NEVER = 1_000_000_000
STEP = timedelta(hours=5)


class World:
    """A lake whose raw table gets trips, on time and late, some of which move."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.lake = str(directory / "lake")
        self.random = random.Random(seed)
        self.trips: list[Trip] = []
        self.until = BEGIN

    def advance(self) -> None:
        """The next hours, with their trips and a few that are late or change."""
        begin, self.until = self.until, self.until + STEP
        trips = [
            self._trip(f"t{len(self.trips) + n}", begin, self.until + HOUR) for n in range(self.random.randint(1, 9))
        ]
        late = [self._trip(f"late{len(self.trips) + n}", BEGIN, self.until) for n in range(self.random.randint(0, 2))]
        moved = [
            (trip, max(ended_at, self._time(BEGIN, self.until)), cents + 1)
            for trip, ended_at, cents in self.random.sample(self.trips, min(1, len(self.trips)))
        ]
        self.trips += (written := [*trips, *late, *moved])
        write(self.lake, written)

    def run(self, at: int) -> bool:
        """Whether the pipeline completed: it is killed before its change number `at`."""
        return call_until_killed(at, run_pipeline, self.lake, self.until.isoformat()) is not None

    def check(self) -> None:
        assert sums_of(self.lake, "hourly_revenue") == oracle(self.trips, self.until, HOUR)
        assert sums_of(self.lake, "daily_report") == oracle(self.trips, self.until, DAY)

    def _trip(self, name: str, begin: datetime, end: datetime) -> Trip:
        return name, self._time(begin, end), self.random.randint(1, 5000)

    def _time(self, begin: datetime, end: datetime) -> datetime:
        return begin + timedelta(seconds=self.random.randrange(int((end - begin).total_seconds())))


def killed(directory: Path, kills: int, seed: int) -> World:
    world, killed_so_far = World(directory, seed), 0
    while killed_so_far < kills or world.until < BEGIN + DAY:
        world.advance()
        while killed_so_far < kills and not world.run(world.random.randint(1, 250)):
            killed_so_far += 1
            if world.random.random() < 0.3:
                break  # and more trips arrive before the next run
    assert world.run(NEVER)
    world.check()
    return world


@pytest.mark.slow
def test_the_pipeline_reports_what_the_oracle_does_and_ends_as_fresh_as_the_raw_data(tmp_path: Path) -> None:
    world = World(tmp_path, 1)
    for _ in range(6):
        world.advance()
    assert run_pipeline(world.lake, world.until.isoformat()) == (0, "")
    world.check()
    daily = Table.open(f"{world.lake}/daily_report", OPTIONS)
    assert daily.freshness().has_reached((BEGIN + DAY).isoformat())
    assert not daily.freshness().has_reached((BEGIN + 2 * DAY).isoformat())
    world.advance()
    assert run_pipeline(world.lake, world.until.isoformat()) == (0, "")
    assert run_pipeline(world.lake, world.until.isoformat()) == (0, ""), "and again, with nothing to do"
    world.check()


@pytest.mark.slow
def test_the_pipeline_is_killed_and_runs_again(tmp_path: Path) -> None:
    killed(tmp_path, 4, seed=2)


@pytest.mark.proof
def test_the_pipeline_is_killed_fifty_times(tmp_path: Path) -> None:
    killed(tmp_path, 50, seed=3)
