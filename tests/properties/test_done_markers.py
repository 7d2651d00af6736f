"""Markers of done windows, as files: each is put once, withdrawn once late data has come, and put again when it is in.

A service is killed before any of its writes, its writes fail, or it stands still while another one goes on. The next round
brings files and table to agreement; in between, a window's file is put and deleted in turn, never twice.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import pytest

from eventide.bootstrap import Application
from eventide.table.done_markers import mark_done
from eventide.testing.crash_enumeration import Bench, Moment, writes_of
from eventide.testing.histories import EPOCH_MS, Layout, Story, put
from eventide.testing.oracle import Order
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import MARKER_EVERY, MARKER_NAME, LinkChoice, Options
from eventide_core.errors import EventideError, WindowTakenError
from eventide_core.ports import NoProgress, Storage
from eventide_core.table.timeline.contents.plans import CutMode

pytestmark = pytest.mark.slow

T = TypeVar("T")
MARKS: dict[str, str] = {MARKER_EVERY: "1s", MARKER_NAME: "%Y-%m-%dT%H%M%S%z/_SUCCESS"}
DONE = ".hoodie/.aux/eventide/done/"
LEASE_MS = 61_000
Log = dict[str, list[str]]


class Watched(FaultyStorage):
    """The storage of one process, which notes what it changes of the markers."""

    def __init__(self, inner: Storage, log: Log, plan: FaultPlan | None = None) -> None:
        super().__init__(inner, plan)
        self._watched, self._log = inner, log

    def _write(self, kind: str, path: str, write: Callable[[], T]) -> T:
        if not path.startswith(DONE):
            return super()._write(kind, path, write)
        before = self._watched.stat(path) is not None
        try:
            return super()._write(kind, path, write)
        finally:
            after = self._watched.stat(path) is not None
            if before != after:
                self._log[path.removeprefix(DONE)].append("done" if after else "reopened")


@dataclass
class World:
    """A table of three windows of a second, of which the first two are closed."""

    version: int = 9
    bench: Bench = field(init=False)
    story: Story = field(init=False)
    log: Log = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.bench = Bench(f"markers {self.version}")
        self.bench.options = {**self.bench.options, **MARKS}
        self.story = Story.begin(Layout(self.version, Order.EVENT_TIME), self.bench.storage, self.bench.clock)
        self.story.commit((put("a", 10, "one"), put("b", 1200, "one"), put("c", 2100, "one")))
        self.compact(2000)

    def compact(self, ms: int) -> None:
        self.bench.clock.sleep(10)
        process = self.bench.process()
        request = CompactionRequest(EPOCH_MS + ms, None, LinkChoice.AUTO, cut=CutMode.EXACT)
        process.runner.execute(process.scheduler.schedule(request).plan.instant, NoProgress())
        self.bench.clock.sleep(10)

    def late(self) -> None:
        self.story.commit((put("late", 30, "late"),))
        self.bench.clock.sleep(10)

    def mark(self, storage: Storage | None = None) -> list[tuple[str, int]]:
        return told(self.bench.process(storage or Watched(self.bench.storage, self.log)))

    @property
    def markers(self) -> list[int]:
        return sorted(second_of(path) for path in self.bench.storage.dump() if path.startswith(DONE))


def told(process: Application) -> list[tuple[str, int]]:
    return [(event.kind, event.begin_ms - EPOCH_MS) for event in mark_done(process, Options(process.options.values))]


def second_of(path: str) -> int:
    name = path.removeprefix(DONE).removesuffix("/_SUCCESS")
    return int(datetime.strptime(name, "%Y-%m-%dT%H%M%S%z").timestamp() * 1000) - EPOCH_MS


@pytest.fixture(params=[6, 9])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


def test_a_marker_is_put_withdrawn_for_late_data_and_put_again(world: World) -> None:
    assert world.mark() == [("done", 0), ("done", 1000)]
    assert world.markers == [0, 1000]
    assert world.mark() == []
    world.late()
    assert world.mark() == [("reopened", 0)]
    assert world.markers == [1000]
    assert world.mark() == []
    world.compact(3000)
    assert world.mark() == [("done", 0), ("done", 2000)]
    assert world.markers == [0, 1000, 2000]
    assert all(events in (["done"], ["done", "reopened", "done"]) for events in world.log.values())


def test_late_data_that_is_in_before_anybody_looked_reopens_its_window(world: World) -> None:
    world.mark()
    world.late()
    world.compact(2000)
    assert world.mark() == [("reopened", 0), ("done", 0)]
    assert world.markers == [0, 1000]


def test_a_compaction_that_changes_no_done_window_moves_no_marker(world: World) -> None:
    world.mark()
    world.story.commit((put("d", 2200, "two"),))
    world.compact(3000)
    assert world.mark() == [("done", 2000)]


def begun() -> tuple[World, Moment]:
    """Two windows are done; late data of the first waits, the second's is in, and a third one is closed."""
    world = World()
    world.mark()
    world.story.commit((put("in", 1300, "late"),))
    world.compact(3000)
    world.late()
    return world, world.bench.moment()


ORDER = {0: ["done", "reopened"], 1000: ["done", "reopened", "done"], 2000: ["done"]}


def check(world: World, log: Log, place: object) -> None:
    """The next rounds end what was begun, and each window has had its events once, in order."""
    world.log = log
    world.bench.clock.sleep(LEASE_MS)
    world.mark()
    assert world.mark() == [], place
    assert world.markers == [1000, 2000], place
    assert {second_of(DONE + name): events for name, events in log.items()} == ORDER, place


def copied(log: Log) -> Log:
    return defaultdict(list, {name: list(events) for name, events in log.items()})


def test_a_kill_or_a_fault_at_any_write_leaves_each_event_once_and_in_order() -> None:
    world, start = begun()
    before = copied(world.log)
    count = len(writes_of(world.bench, start, lambda process: told(process)))
    assert count > 12
    for number in range(count):
        for fault in (Fault.CRASH_BEFORE, Fault.ERROR, Fault.REPLY_LOST, Fault.DUPLICATED):
            world.bench.load(start)
            log = copied(before)
            with suppress(SimulatedCrash, EventideError):
                world.mark(Watched(world.bench.storage, log, FaultPlan(writes={number: fault})))
            check(world, log, (number, fault))


def test_two_services_at_once_tell_each_event_once_and_in_order() -> None:
    """The second one runs at once, before any write of the first one."""
    for place in places(pause_ms=0):
        assert isinstance(place.failure, WindowTakenError | None), place.number
        check(place.world, place.log, place.number)


def test_a_service_paused_beyond_its_lease_leaves_no_marker_that_is_wrong() -> None:
    """Others tell what it had begun, late data is merged and comes again; then it goes on, and is killed at once, or not."""
    seen = 0
    for place in places(pause_ms=LEASE_MS, merges=True):
        seen += 1
        world = place.world
        world.bench.clock.sleep(LEASE_MS)
        world.log = place.log
        world.mark()
        assert world.mark() == [], place.number
        assert world.markers == [0, 1000, 2000], place.number
    assert seen > 12


@dataclass
class Place:
    number: int
    world: World
    log: Log
    failure: EventideError | None


class Pausing(Watched):
    """Another service goes on before one write. `dies`: the process dies right after that write."""

    def __init__(self, inner: Storage, log: Log, number: int, meanwhile: Callable[[], None], *, dies: bool) -> None:
        super().__init__(inner, log, FaultPlan(writes={number: Fault.CRASH_AFTER}) if dies else None)
        self._number, self._meanwhile = number, meanwhile

    def _write(self, kind: str, path: str, write: Callable[[], T]) -> T:
        if len(self.writes) == self._number:
            self._meanwhile()
        return super()._write(kind, path, write)


def places(*, pause_ms: int, merges: bool = False) -> Iterator[Place]:
    world, start = begun()
    before = copied(world.log)
    count = len(writes_of(world.bench, start, lambda process: told(process)))
    for number in range(count):
        for dies in (False, True) if merges else (False,):
            world.bench.load(start)
            log = copied(before)

            def meanwhile(log: Log = log) -> None:
                world.bench.clock.sleep(pause_ms)
                try:
                    world.mark(Watched(world.bench.storage, log))
                except WindowTakenError:
                    assert not pause_ms
                if merges:
                    world.compact(3000)
                    world.mark(Watched(world.bench.storage, log))

            failure: EventideError | None = None
            try:
                world.mark(Pausing(world.bench.storage, log, number, meanwhile, dies=dies))
            except EventideError as error:
                failure = error
            except SimulatedCrash:
                pass
            yield Place(number, world, log, failure)
