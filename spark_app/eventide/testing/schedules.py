"""All interleavings of a few actors over one table in memory, storage operation by storage operation, without chance.

1. Each actor is a thread, and stops before every storage operation; one token is handed from one to the next.
2. An operation that touches nothing another actor ever writes (a write: or reads) commutes with all that they do, and is no
   place to switch. What they touch is learned by running: where a run finds more, all is gone through again.
3. Where all files are the same, and each actor has seen the same until there, the rest has been gone through. So each
   situation is continued once, while `Explored.interleavings` counts every way that leads through it.
4. The table lock is a port, and here a lock of the schedule's own: who waits for it is not handed the token. Each actor has
   its own clock, so that nobody's sleep is another one's time.

Not covered: a writer who shares no lock, and more operations at once than one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from eventide.bootstrap import Application, assemble
from eventide.testing.crash_enumeration import Bench, Moment, Protocol
from eventide.testing.histories import ManualClock
from eventide_adapters.storage.faulty import FaultyStorage, Operation
from eventide_core.errors import EventideError
from eventide_core.ports import Storage

T = TypeVar("T")
R = TypeVar("R")
_LOCK = "the table lock"
_READS = ("list", "stat", "read", "read_range", "open_input")


class _Over(BaseException):  # no error that a program could answer: the run is broken off
    """The rest of this run has been gone through."""


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended: the table, and each actor's error, if it ended in one."""

    moment: Moment
    failures: tuple[EventideError | None, ...]


@dataclass(slots=True)
class Explored:
    """How many runs it took, through how many situations, and how many interleavings those stand for."""

    runs: int = 0
    situations: int = 0
    interleavings: int = 0
    is_complete: bool = True


@dataclass(slots=True)
class _Footprint:
    """What the actors have ever read and written."""

    reads: dict[int, set[str]] = field(default_factory=dict[int, set[str]])
    writes: dict[int, set[str]] = field(default_factory=dict[int, set[str]])

    def note(self, actor: int, operation: Operation) -> None:
        (self.reads if operation.kind in _READS else self.writes).setdefault(actor, set()).add(operation.path)

    def copy(self) -> _Footprint:
        return deepcopy(self)

    def commutes(self, actor: int, operation: Operation) -> bool:
        if operation.kind in _READS:
            return not any(
                _meets(operation.path, path) for other, paths in self.writes.items() if other != actor for path in paths
            )
        touched = [path for other, paths in self.writes.items() if other != actor for path in paths]
        touched += [path for other, paths in self.reads.items() if other != actor for path in paths]
        return not any(_meets(path, operation.path) for path in touched)


def _meets(read: str, written: str) -> bool:
    """Whether a file's or folder's reader may notice that this file is written."""
    return written == read or written.startswith(f"{read}/") or read == ""


class _Stage:
    """Where the actors of one run wait for the token."""

    def __init__(self, count: int, footprint: _Footprint, learned: _Footprint) -> None:
        self.footprint = footprint
        self.learned = learned
        self.turns = [threading.Semaphore(0) for _ in range(count)]
        self.arrived = threading.Semaphore(0)
        self.waiting: dict[int, Operation] = {}
        self.histories: list[int] = [0] * count
        self.owner: int | None = None
        self.is_over = False

    def step(self, actor: int, operation: Operation) -> None:
        if self.is_over:
            raise _Over
        if operation.path != _LOCK:
            self.learned.note(actor, operation)
            if self.footprint.commutes(actor, operation):
                return
        self.waiting[actor] = operation
        self.arrived.release()
        self.turns[actor].acquire()
        if self.is_over:
            raise _Over

    def saw(self, actor: int, operation: Operation, answer: object) -> None:
        self.histories[actor] = hash((self.histories[actor], operation, answer))

    @property
    def enabled(self) -> list[int]:
        return [a for a, op in sorted(self.waiting.items()) if op.path != _LOCK or self.owner is None]

    def end(self) -> None:
        self.is_over = True
        for turn in self.turns:
            turn.release()


class _SteppedStorage(FaultyStorage):
    """The storage of one actor, who waits before each operation."""

    def __init__(self, inner: Storage, stage: _Stage, actor: int) -> None:
        super().__init__(inner)
        self._stage = stage
        self._actor = actor

    def list(self, directory: str) -> Any:
        return self._stepped("list", directory, lambda: super(_SteppedStorage, self).list(directory))

    def stat(self, path: str) -> Any:
        return self._stepped("stat", path, lambda: super(_SteppedStorage, self).stat(path))

    def _read(self, kind: str, path: str, read: Callable[[], bytes]) -> bytes:
        return self._stepped(kind, path, lambda: super(_SteppedStorage, self)._read(kind, path, read))

    def _write(self, kind: str, path: str, write: Callable[[], T]) -> T:
        return self._stepped(kind, path, lambda: super(_SteppedStorage, self)._write(kind, path, write))

    def _stepped(self, kind: str, path: str, action: Callable[[], T]) -> T:
        operation = Operation(kind, path)
        self._stage.step(self._actor, operation)
        try:
            answer = action()
        except EventideError as failure:
            self._stage.saw(self._actor, operation, repr(failure))
            raise
        self._stage.saw(self._actor, operation, answer)
        return answer


@dataclass(slots=True)
class _SteppedLock:
    """ports.TableLock, and its lease, of one actor."""

    stage: _Stage
    actor: int

    def acquire(self) -> _SteppedLock:
        self.stage.step(self.actor, Operation("acquire", _LOCK))
        assert self.stage.owner is None
        self.stage.owner = self.actor
        return self

    def check(self) -> None:
        assert self.stage.owner == self.actor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stage.owner = None


class _InlineEngine:
    """Runs tasks one after the other, in the actor's own thread."""

    def map(
        self, function: Callable[[T], R], items: Sequence[T], *, on_done: Callable[[], None] | None = None
    ) -> list[R]:
        results: list[R] = []
        for item in items:
            results.append(function(item))
            if on_done is not None:
                on_done()
        return results


class _Run:
    """One run of all actors, from the start."""

    def __init__(
        self, bench: Bench, start: Moment, actors: Sequence[Protocol], footprint: _Footprint, learned: _Footprint
    ) -> None:
        bench.load(start)
        self.bench = bench
        self.stage = _Stage(len(actors), footprint, learned)
        self.failures: list[EventideError | None] = [None] * len(actors)
        self.broken: list[BaseException] = []
        self.threads = [
            threading.Thread(target=self._act, args=(number, actor), daemon=True) for number, actor in enumerate(actors)
        ]
        for thread in self.threads:
            thread.start()
            self.stage.arrived.acquire()

    @property
    def situation(self) -> Hashable:
        """What the rest of the run depends on."""
        files = self.bench.storage.dump()
        content = frozenset((path, file.data, file.link_target) for path, file in files.items())
        return hash(content), tuple(self.stage.histories), tuple(self.stage.waiting.items()), self.stage.owner

    def advance(self, actor: int) -> None:
        del self.stage.waiting[actor]
        self.stage.turns[actor].release()
        self.stage.arrived.acquire()

    def stop(self) -> None:
        self.stage.end()
        for thread in self.threads:
            thread.join()
        if self.broken:
            raise self.broken[0]

    @property
    def end(self) -> End:
        return End(self.bench.moment(), tuple(self.failures))

    def _act(self, number: int, actor: Protocol) -> None:
        storage = _SteppedStorage(self.bench.storage, self.stage, number)
        try:
            actor(self._process(storage, number))
        except _Over:
            pass
        except EventideError as failure:
            self.failures[number] = failure
        except BaseException as broken:
            self.broken.append(broken)
        finally:
            self.stage.arrived.release()

    def _process(self, storage: Storage, number: int) -> Application:
        return assemble(
            storage.root,
            self.bench.options,
            engine=_InlineEngine(),
            storage=storage,
            lock=_SteppedLock(self.stage, number),
            clock=ManualClock(self.bench.clock.time_ms),
            new_uuid=lambda: f"00000000-0000-4000-8000-{number:012d}",
        )


def all_interleavings(
    bench: Bench,
    start: Moment,
    actors: Sequence[Protocol],
    explored: Explored,
    most_runs: int | None = None,
) -> Iterator[End]:
    """Every end that the actors can come to; each situation once. `most_runs` bounds the runs, and says so."""
    learned = _Footprint()
    while True:
        footprint = learned.copy()
        explored.runs, explored.is_complete = 0, True
        ends, graph = _explore(bench, start, actors, (footprint, learned), explored, most_runs)
        if footprint == learned:
            break
    explored.situations = len(graph)
    explored.interleavings = _ways(graph)
    yield from ends


def interleaving(bench: Bench, start: Moment, actors: Sequence[Protocol], choose: Callable[[list[int]], int]) -> End:
    """One run, in which `choose` says who goes on, at every single operation that anybody could notice."""
    run = _Run(bench, start, actors, _Everything(), _Footprint())
    while run.stage.waiting:
        assert run.stage.enabled, f"everybody waits for the lock: {run.stage.waiting}"
        run.advance(choose(run.stage.enabled))
    run.stop()
    return run.end


class _Everything(_Footprint):
    """The footprint of actors who may touch anything."""

    def commutes(self, actor: int, operation: Operation) -> bool:  # noqa: ARG002 - says the same of all
        return False


_Graph = dict[Hashable, dict[int, Hashable]]


def _explore(
    bench: Bench,
    start: Moment,
    actors: Sequence[Protocol],
    footprints: tuple[_Footprint, _Footprint],
    explored: Explored,
    most_runs: int | None,
) -> tuple[list[End], _Graph]:
    """Who has the token keeps it, unless told otherwise: so the runs with the fewest switches come first."""
    graph: _Graph = {}
    ends: list[End] = []
    waiting: deque[tuple[int, ...]] = deque([()])
    while waiting:
        if explored.runs == most_runs:
            explored.is_complete = False
            break
        explored.runs += 1
        choices = list(waiting.popleft())
        run = _Run(bench, start, actors, *footprints)
        done: list[int] = []
        before: Hashable = None
        while run.stage.waiting:
            enabled = run.stage.enabled
            assert enabled, f"everybody waits for the lock: {run.stage.waiting}"
            now = run.situation
            if before is not None:
                graph[before][done[-1]] = now
            if len(done) >= len(choices) and now in graph:
                break
            goes_on = done[-1] if done and done[-1] in enabled else enabled[0]
            if now not in graph:
                graph[now] = {}
                waiting += [(*done, other) for other in enabled if other != goes_on]
            done.append(choices[len(done)] if len(done) < len(choices) else goes_on)
            before = now
            run.advance(done[-1])
        else:
            last = run.situation
            if before is not None:
                graph[before][done[-1]] = last
            if last not in graph:
                graph[last] = {}
                ends.append(run.end)
        run.stop()
    return ends, graph


def _ways(graph: Mapping[Hashable, Mapping[int, Hashable]]) -> int:
    """How many paths lead from the first situation to an end."""
    ways: dict[Hashable, int] = {}
    for situation in reversed(_in_order(graph)):
        children = graph[situation].values()
        ways[situation] = sum(ways[child] for child in children) if children else 1
    return ways[next(iter(graph))]


def _in_order(graph: Mapping[Hashable, Mapping[int, Hashable]]) -> list[Hashable]:
    """The situations, each before those that follow it."""
    order: list[Hashable] = []
    seen: set[Hashable] = set()
    stack: list[tuple[Hashable, bool]] = [(next(iter(graph)), False)]
    while stack:
        situation, is_done = stack.pop()
        if is_done:
            order.append(situation)
        elif situation not in seen:
            seen.add(situation)
            stack.append((situation, True))
            stack += [(child, False) for child in graph[situation].values()]
    return order[::-1]
