"""The scheduler of a fleet: by cases, beside all subsets of small fleets, and simulated on a virtual clock."""

import heapq
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide_core.action.fleet.daily_window import DailyWindow
from eventide_core.action.fleet.scheduler import (
    FleetScheduler,
    Forecast,
    Measured,
    TableLoad,
    Target,
    largest_on_time_set,
)
from eventide_core.action.fleet.scheduler import _Job as Job  # pyright: ignore[reportPrivateUsage]
from support.run.campaign import IS_REPEATED

MINUTE = 60_000
HOUR = 60 * MINUTE


def seen(at_ms: int, lag_ms: int | None = 0, log_bytes: int = 0) -> Measured:
    return Measured(at_ms, lag_ms, 0, log_bytes)


def run_once(scheduler: FleetScheduler, now_ms: int, took_ms: int) -> str:
    """Starts a table and completes its compaction. Returns its name."""
    name = scheduler.start(now_ms)
    assert name is not None
    scheduler.succeeded(name, took_ms, seen(now_ms + took_ms, took_ms))
    return name


def fleet(workers: int = 1, **targets: int) -> FleetScheduler:
    scheduler = FleetScheduler(workers)
    for name, target_ms in targets.items():
        scheduler.add(Target(name, target_ms), 0)
    return scheduler


def test_the_table_with_the_least_laxity_is_next() -> None:
    scheduler = fleet(slow=2 * HOUR, soon=HOUR)
    assert scheduler.start(0) == "soon"
    assert scheduler.start(0) == "slow", "the other one runs"
    assert scheduler.start(0) is None


def test_a_table_rests_until_half_of_the_time_to_its_target_is_over() -> None:
    scheduler = fleet(a=HOUR)
    run_once(scheduler, 0, 1000)
    assert scheduler.start(10 * MINUTE) is None
    wakes = scheduler.wakes_at(10 * MINUTE)
    assert wakes is not None
    assert 29 * MINUTE < wakes < 31 * MINUTE
    assert scheduler.start(wakes) == "a"


def test_a_table_that_fails_backs_off_up_to_a_bound_and_the_first_success_ends_that() -> None:
    scheduler = fleet(a=MINUTE)
    now, waits = 0, list[int]()
    for _ in range(12):
        assert scheduler.start(now) == "a"
        retry = scheduler.failed("a", MINUTE, now)
        waits.append(retry - now)
        assert scheduler.start(retry - 1) is None
        now = retry
    assert waits[:4] == [30_000, 60_000, 120_000, 240_000]
    assert waits[-1] == waits[-2] == HOUR
    run_once(scheduler, now, 1)
    assert scheduler.start(now + HOUR) == "a"
    assert scheduler.failed("a", MINUTE, now + HOUR) == now + HOUR + 30_000


def test_a_table_is_chosen_only_in_its_window() -> None:
    scheduler = FleetScheduler()
    scheduler.add(Target("a", HOUR, DailyWindow(120, 180)), 0)
    assert scheduler.start(0) is None
    assert scheduler.wakes_at(0) == 2 * HOUR
    assert scheduler.start(2 * HOUR) == "a"


def test_a_table_whose_window_closes_before_its_target_is_missed_goes_first() -> None:
    scheduler = FleetScheduler()
    scheduler.add(Target("day", 5 * HOUR), 0)
    scheduler.add(Target("night", 20 * HOUR, DailyWindow(0, 60)), 0)
    assert scheduler.start(30 * MINUTE) == "night"


@pytest.mark.parametrize(
    ("workers", "more", "unmet"), [(1, 2, ("never", "b", "a")), (2, 1, ("never", "b")), (3, 0, ("never",))]
)
def test_a_forecast_names_the_tables_to_leave_out_and_the_workers_that_all_need(
    workers: int, more: int, unmet: tuple[str, ...]
) -> None:
    loads = (
        TableLoad("a", 0.8, True),
        TableLoad("b", 0.9, True),
        TableLoad("c", 0.5, True),
        TableLoad("never", float("inf"), False),
    )
    forecast = Forecast(loads, workers)
    assert (forecast.more_workers, forecast.unmet) == (more, unmet)


def test_a_forecast_has_what_was_measured() -> None:
    scheduler = fleet(a=HOUR, b=HOUR, unknown=HOUR)
    for name in ("a", "b"):
        assert run_once(scheduler, 0, 20 * MINUTE) == name
    forecast = scheduler.forecast()
    assert {load.name for load in forecast.loads} == {"a", "b"}
    assert forecast.unmet == ("a",)
    assert forecast.more_workers == 1


@given(
    jobs=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 20)), max_size=7),
    workers=st.integers(1, 2),
)
def test_no_set_of_tables_on_time_is_larger(jobs: list[tuple[int, int]], workers: int) -> None:
    made = [Job(str(number), deadline, cost) for number, (deadline, cost) in enumerate(jobs)]

    def is_on_time(chosen: Sequence[Job]) -> bool:
        end = 0.0
        for job in sorted(chosen, key=lambda job: job.deadline_ms):
            end += job.cost_ms / workers
            if end > job.deadline_ms or job.cost_ms > job.deadline_ms:
                return False
        return True

    on_time = largest_on_time_set(made, 0, workers)
    assert is_on_time(on_time)
    assert len(on_time) == max(
        size for size in range(len(made) + 1) for chosen in combinations(made, size) if is_on_time(chosen)
    )


class World:
    """Tables whose compaction takes a fixed time; some always fail. The scheduler sees them as the service does."""

    def __init__(
        self, costs_ms: Sequence[int], targets_ms: Sequence[int], failing: frozenset[int], workers: int
    ) -> None:
        self.costs, self.failing, self.workers = costs_ms, failing, workers
        self.targets = targets_ms
        self.scheduler = FleetScheduler(workers)
        for position, target_ms in enumerate(targets_ms):
            self.scheduler.add(Target(str(position), target_ms), 0)
        self.compacted_to = [0] * len(costs_ms)
        self.greatest_lag = [0] * len(costs_ms)
        self.completed: Counter[int] = Counter()
        self.attempts: Counter[int] = Counter()

    def run(self, until_ms: int) -> None:
        now, running = 0, list[tuple[int, int, int]]()
        while now < until_ms:
            while len(running) < self.workers and (name := self.scheduler.start(now)) is not None:
                at = int(name)
                self.attempts[at] += 1
                self.scheduler.measured(name, seen(now, now - self.compacted_to[at]))
                heapq.heappush(running, (now + self.costs[at], at, now))
            times: list[Any] = [running[0][0]] if running else []
            if len(running) < self.workers and (wakes := self.scheduler.wakes_at(now)) is not None:
                times.append(wakes)
            now = max(now + 1, min(times))
            while running and running[0][0] <= now:
                end, at, began = heapq.heappop(running)
                if at in self.failing:
                    self.scheduler.failed(str(at), end - began, end)
                    continue
                self.greatest_lag[at] = max(self.greatest_lag[at], end - self.compacted_to[at])
                self.compacted_to[at] = began
                self.completed[at] += 1
                self.scheduler.succeeded(str(at), end - began, seen(end, end - began))


@st.composite
def worlds(draw: st.DrawFn, load: float) -> World:
    """Fleets whose compactions need at most `load` of the workers, if each runs once in its target."""
    count, workers = draw(st.integers(2, 12)), draw(st.integers(1, 3))
    targets = draw(st.lists(st.sampled_from([10 * MINUTE, HOUR, 4 * HOUR]), min_size=count, max_size=count))
    weights = draw(st.lists(st.integers(1, 20), min_size=count, max_size=count))
    # A compaction runs to its end, so each may delay another by its whole cost.
    bound = min(targets) // 8
    costs = [
        max(1, min(bound, int(load * workers * target * weight / sum(weights))))
        for target, weight in zip(targets, weights, strict=True)
    ]
    failing = draw(st.frozensets(st.integers(0, count - 1), max_size=count - 1))
    return World(costs, targets, failing, workers)


@settings(max_examples=60, derandomize=IS_REPEATED, database=None)
@given(worlds(0.3))
def test_a_fleet_whose_work_fits_is_late_by_at_most_two_compactions_beside_failures(
    world: World,
) -> None:
    world.run(12 * HOUR)
    for at, target in enumerate(world.targets):
        if at in world.failing:
            assert 0 < world.attempts[at] <= 12 + 12, "it is tried again, at bounded cost"
        else:
            assert world.completed[at] >= 12 * HOUR // target - 1
            # A compaction runs to its end, so a table may have to wait for others that began before its turn came: of
            # 13,000 drawn tables, one was late, by a fifth of a compaction.
            assert world.greatest_lag[at] <= target + 2 * max(world.costs)


@settings(max_examples=40, derandomize=IS_REPEATED, database=None)
@given(worlds(3.0))
def test_no_overload_starves_a_table(world: World) -> None:
    world.run(48 * HOUR)
    assert all(world.completed[at] > 1 for at in range(len(world.targets)) if at not in world.failing)
