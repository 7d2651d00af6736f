"""All interleavings of a few actors over one table in memory, operation by operation, deterministically.

1. A situation consists of a world (the files, and the actor that holds the lock) and of each actor's point: all answers
   that the actor has received. From a situation, each actor that isn't waiting for the lock can do its next operation. No
   operation is left out for being harmless.
2. This takes no runs of the actors. `Worlds` knows the effect of an operation on a world, and `ScheduledActor` knows the
   next operation of an actor after an answer. An actor runs only for an answer that it never received before.
3. The continuations of a situation depend on nothing else, because an actor is a function of its answers: it has its own
   clock, no randomness and no threads, which is checked. So each situation is explored once, however it is reached, and
   the ways to continue from it are counted. `Explored.interleavings` counts all orders of all operations, each one once.

The table lock is a port. Here it is the schedule's lock: to take it and to release it are operations, and an actor that
waits for it can't continue. If `most_switches` is given, it bounds the search to the orders with at most that many switches
away from an actor that could have continued.

Not covered: a writer that doesn't share the lock, and clocks that advance while an actor stands still (`pauses`).
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eventide.testing.crash_enumeration import Bench, Moment, Protocol
from eventide.testing.schedules.actor import Point, ScheduledActor
from eventide.testing.schedules.world import Step, Worlds
from eventide_core.errors import EventideError

_Situation = tuple[int, tuple[Point, ...]]
_Order = tuple[tuple[int, Step], ...]


@dataclass(frozen=True, slots=True)
class End:
    """How the actors ended: the table, the error of each actor that failed, and one of the orders that lead there."""

    moment: Moment
    failures: tuple[EventideError | None, ...]
    order: _Order


@dataclass(slots=True)
class Explored:
    """How many situations there are, and how many interleavings lead through them; `runs` counts the runs of each actor."""

    situations: int = 0
    interleavings: int = 0
    runs: tuple[int, ...] = ()


@dataclass(slots=True)
class _Visit:
    """A situation whose continuations are being explored."""

    situation: _Situation
    key: tuple[int, ...]
    last: int | None
    switches_left: int | None
    waiting: list[int]
    ways: int = 0
    done: tuple[int, Step] | None = None


class Schedules:
    """The orders in which actors can act from one moment on. All searches share what is known about each actor."""

    def __init__(self, bench: Bench, start: Moment, actors: Sequence[Protocol]) -> None:
        self._worlds = Worlds(bench, start)
        self._actors = [ScheduledActor(number, actor, self._worlds) for number, actor in enumerate(actors)]

    def all(self, explored: Explored, most_switches: int | None = None) -> Iterator[End]:
        """Every end that the actors can reach, each once. Ends with different answers are different ends."""
        ways: dict[tuple[int, ...], int] = {}
        visits = [self._visit(self._first, None, most_switches)]
        while visits:
            visit = visits[-1]
            if visit.waiting:
                actor = visit.waiting.pop()
                visit.done = actor, self._step(visit.situation, actor)
                try:
                    situation = self._after(visit.situation, actor)
                except BaseException as broken:
                    broken.add_note(in_words(_order(visits)) + f"\nand then {actor} alone")
                    raise
                following = self._visit(situation, actor, _switches_left(visit, actor, self._enabled(visit.situation)))
                known = ways.get(following.key)
                if known is None:
                    visits.append(following)
                else:
                    visit.ways += known
                continue
            visits.pop()
            if visit.done is None:
                assert all(point.step is None for point in visit.situation[1]), in_words(_order(visits)) + "\nall wait"
                visit.ways = 1
                yield self._end(visit.situation, _order(visits))
            ways[visit.key] = visit.ways
            if visits:
                visits[-1].ways += visit.ways
            else:
                explored.interleavings = visit.ways
        explored.situations = len(ways)
        explored.runs = tuple(actor.runs for actor in self._actors)

    def drawn(self, chance: random.Random, switches: int) -> End:
        """One random order.

        The actors form a random row, and the first actor in the row that can continue acts. At each of `switches` random
        operations, this actor moves to the end of the row.
        """
        row = [actor.number for actor in self._actors]
        chance.shuffle(row)
        switch_at = {chance.randrange(self._length) for _ in range(switches)}
        situation = self._first
        done: list[tuple[int, Step]] = []
        while enabled := self._enabled(situation):
            actor = next(number for number in row if number in enabled)
            if len(done) in switch_at:
                row.remove(actor)
                row.append(actor)
                actor = next(number for number in row if number in enabled)
            done.append((actor, self._step(situation, actor)))
            situation = self._after(situation, actor)
        assert all(point.step is None for point in situation[1]), in_words(tuple(done)) + "\nall wait"
        return self._end(situation, tuple(done))

    @property
    def _first(self) -> _Situation:
        return 0, tuple(actor.first for actor in self._actors)

    @property
    def _length(self) -> int:
        """How many operations it takes if each actor continues undisturbed."""
        return sum(actor.length for actor in self._actors)

    def _visit(self, situation: _Situation, last: int | None, switches_left: int | None) -> _Visit:
        world, points = situation
        key = (world, *(point.number for point in points))
        enabled = self._enabled(situation)
        if switches_left is not None:
            key = (*key, -1 if last is None else last, switches_left)
            if switches_left == 0 and last in enabled:
                enabled = [last]
        # The last actor continues first, so the first end has the fewest switches.
        return _Visit(situation, key, last, switches_left, sorted(enabled, key=lambda actor: (actor == last, -actor)))

    def _enabled(self, situation: _Situation) -> list[int]:
        world, points = situation
        return [
            number
            for number, point in enumerate(points)
            if point.step is not None and self._worlds.can(world, point.step)
        ]

    def _step(self, situation: _Situation, actor: int) -> Step:
        step = situation[1][actor].step
        assert step is not None
        return step

    def _after(self, situation: _Situation, actor: int) -> _Situation:
        world, points = situation
        left, answer = self._worlds.after(world, self._step(situation, actor), actor)
        point = self._actors[actor].after(points[actor], answer, left)
        return left, (*points[:actor], point, *points[actor + 1 :])

    def _end(self, situation: _Situation, order: _Order) -> End:
        world, points = situation
        return End(self._worlds.moment(world), tuple(point.failure for point in points), order)


def in_words(order: _Order) -> str:
    """The order of the operations in readable form."""
    return "\n".join(f"{actor}: {step}" for actor, step in order)


def _order(visits: Sequence[_Visit]) -> _Order:
    return tuple(visit.done for visit in visits if visit.done is not None)


def _switches_left(visit: _Visit, actor: int, enabled: Sequence[int]) -> int | None:
    if visit.switches_left is None or visit.last == actor or visit.last not in enabled:
        return visit.switches_left
    return visit.switches_left - 1
