"""All pauses of a few actors over one table in memory: each falls asleep before any of its operations, past its lease.

1. One actor acts at a time. It goes on until it has ended, waits for the lock, or falls asleep. It may fall asleep before
   each of its operations, storage requests and checks of the lease alike, at most `naps` times. Then its lease and all
   heartbeats have expired.
2. While everybody sleeps, `others` act: whole actions of other processes, which nothing interrupts, at most `most_others`
   in all, in each order. An action that changes nothing isn't a move.
3. Then any actor wakes up and goes on with the operation that it had decided on, or begins.
4. A process that sleeps may never wake up, and a process may die at any time: `Dying` says which situations are ends.

A situation consists of a world and of each actor's point, as in `exploration`. It is explored once, however it is reached.
`Counted.schedules` counts the ways that lead from the start to the end of all actors, each one once.

Not covered: an actor that is interrupted for less than its lease lasts (`exploration` does that), and others that are
interrupted.
"""

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from itertools import groupby
from typing import NamedTuple, TypeVar

from eventide.bootstrap import Application, assemble
from eventide.engine_local import LocalEngine
from eventide.testing.crash_enumeration import Bench, Moment, Protocol
from eventide.testing.histories import NoLock
from eventide.testing.schedules.actor import Beats, Point, ScheduledActor
from eventide.testing.schedules.world import LOOK_AT_CLOCK, READS, Notes, Step, World, Worlds
from eventide_core.access.requests import Requests
from eventide_core.errors import EventideError
from eventide_core.ports import TableLock

_T = TypeVar("_T")
ASLEEP_MS = 10 * 60_000
"""Longer than a lock and a heartbeat of a bench last."""
OTHERS_TAKE_MS = 1_000
Other = Callable[[Application, Hashable], Hashable]
"""An action of another process; returns the notes after it. It handles the errors of eventide that are allowed."""


At = Callable[[Step], bool]


def anywhere(_: Step) -> bool:
    """Before every operation."""
    return True


def at_changes(step: Step) -> bool:
    """Before every operation that changes a file, and every check of the lease: right before and after each change."""
    return step.kind not in READS


class Dying(Enum):
    """Which situations are ends, beside those in which nobody is asleep who could wake up."""

    NOBODY = auto()
    ASLEEP = auto()
    """Situations in which everybody sleeps."""
    ANYWHERE = auto()
    """All situations."""


class Move(NamedTuple):
    """What happened: a step of an actor, its pause (None), or the name of an action of others."""

    actor: int | None
    step: Step | None = None
    other: str = ""


class Situation(NamedTuple):
    """A world, the points of the actors, how often each may still fall asleep, who acts, and how many actions others have.

    `acting` is None while everybody sleeps. `has_changed`: the last move was a change by the actor that acts.
    """

    world: int
    points: tuple[Point, ...]
    naps: tuple[int, ...]
    acting: int | None
    others: int

    @property
    def key(self) -> tuple[Hashable, ...]:
        return (self.world, tuple(point.number for point in self.points), *self[2:])

    @property
    def is_anybody_asleep(self) -> bool:
        return any(point.step is not None and point.before is not None for point in self.points)

    def is_end(self, dying: Dying) -> bool:
        match dying:
            case Dying.NOBODY:
                return self.acting is None and not self.is_anybody_asleep
            case Dying.ASLEEP:
                return self.acting is None
            case Dying.ANYWHERE:
                return True


@dataclass(frozen=True, slots=True)
class Found:
    """A situation in which all processes may be dead: its world, the actors' points, and how it was reached."""

    number: int
    world: World
    points: tuple[Point, ...]
    schedule: tuple[Move, ...] = field(repr=False)


@dataclass(slots=True)
class Counted:
    """How many situations and worlds there are, and schedules through them; how many runs that took, and were judged."""

    situations: int = 0
    worlds: int = 0
    schedules: int = 0
    runs: int = 0
    judged: int = 0


@dataclass(slots=True)
class _Visit:
    situation: Situation
    moves: Iterator[tuple[Move, Situation]]
    move: Move | None = None
    ways: int = 0


class Pauses:
    """The schedules from one moment on. All searches share what is known about the actors and the others."""

    def __init__(
        self,
        bench: Bench,
        start: Moment,
        actors: Sequence[Protocol],
        others: Mapping[str, Sequence[Other]],
        *,
        notes: Notes | None = None,
        first: Hashable = None,
    ) -> None:
        self.worlds = Worlds(bench, start, may_expire=True, notes=notes, first=first)
        self.actors = [ScheduledActor(number, actor, self.worlds) for number, actor in enumerate(actors)]
        self._others, self._notes = others, notes
        self._after_others: dict[tuple[int, str], int] = {}
        self._at: At = anywhere

    def all(
        self, counted: Counted, *, naps: int = 1, most_others: int = 3, dying: Dying = Dying.ASLEEP, at: At = anywhere
    ) -> Generator[Found, None, None]:
        """Every end, each once: see the module. `at`: before which operations an actor falls asleep."""
        self._at = at
        ways: dict[Hashable, int] = {}
        seen: set[Hashable] = set()
        visits = [self._visit(self._first(naps, most_others))]
        while visits:
            visit = visits[-1]
            here = visit.situation
            if visit.move is None and not visit.ways and here.is_end(dying):
                found = (here.world, *(point.number if point.step is None else -1 for point in here.points))
                if found not in seen:
                    seen.add(found)
                    yield Found(here.world, self.worlds[here.world], here.points, _schedule(visits))
                    self.worlds.forget_storage()  # whoever judges the end has loaded other files
            following = next(visit.moves, None)
            if following is not None:
                visit.move, after = following
                known = ways.get(after.key)
                if known is None:
                    visits.append(self._visit(after))
                else:
                    visit.ways += known
                continue
            visits.pop()
            visit.ways = ways[here.key] = visit.ways or int(all(point.step is None for point in here.points))
            if visits:
                visits[-1].ways += visit.ways
            counted.situations, counted.worlds, counted.schedules = len(ways), len(self.worlds), visit.ways
            counted.runs = sum(actor.runs for actor in self.actors) + len(self._after_others)

    def follow(self, schedule: Sequence[Move]) -> Found:
        """Runs one schedule again, such as a printed one."""
        naps = sum(move.step is None and move.actor is not None for move in schedule)
        here = self._first(naps, len(schedule))
        for wanted in schedule:
            here = next(after for move, after in self._moves(here) if move == wanted)
        return Found(here.world, self.worlds[here.world], here.points, tuple(schedule))

    def _first(self, naps: int, most_others: int) -> Situation:
        points = tuple(self._settled(actor.number, actor.first, 0) for actor in self.actors)
        return Situation(0, points, (naps,) * len(points), None, most_others)

    def _visit(self, situation: Situation) -> _Visit:
        return _Visit(situation, self._moves(situation))

    def _moves(self, here: Situation) -> Iterator[tuple[Move, Situation]]:
        if here.acting is not None:
            yield from self._moves_of(here, here.acting)
            return
        for actor, point in enumerate(here.points):
            if point.step is not None:
                yield from self._moves_of(here, actor)
        if here.others and here.is_anybody_asleep and self.worlds[here.world].is_free:
            for name in self._others:
                world = self._after_other(here.world, name)
                if world != here.world:
                    yield Move(None, other=name), here._replace(world=world, others=here.others - 1)

    def _moves_of(self, here: Situation, actor: int) -> Iterator[tuple[Move, Situation]]:
        point = here.points[actor]
        assert point.step is not None
        if self.worlds.can(here.world, point.step):
            world, answer = self.worlds.after(here.world, point.step, actor)
            after = self._settled(actor, self.actors[actor].after(point, answer, world), world)
            goes_on = after.step is not None and self.worlds.can(world, after.step)
            yield (
                Move(actor, point.step),
                here._replace(world=world, points=_with(here.points, actor, after), acting=actor if goes_on else None),
            )
        if here.acting == actor and here.naps[actor] and self._at(point.step):
            world = self.worlds.asleep(here.world, actor, ASLEEP_MS)
            naps = _with(here.naps, actor, here.naps[actor] - 1)
            yield Move(actor), here._replace(world=world, naps=naps, acting=None)

    def _settled(self, actor: int, point: Point, world: int) -> Point:
        """The point at which the actor has looked at the clock: it does so together with the operation before."""
        while point.step is not None and point.step.kind == LOOK_AT_CLOCK:
            _, time_ms = self.worlds.after(world, point.step, actor)
            point = self.actors[actor].after(point, time_ms, world)
        return point

    def _after_other(self, world: int, name: str) -> int:
        key = world, name
        if key not in self._after_others:
            here = self.worlds[world]
            self.worlds.bench.load(self.worlds.moment(world))
            notes = acted(self.worlds.bench, self._others[name], here.notes, self._notes)
            files = self.worlds.bench.storage.dump()
            if files == here.files:
                self._after_others[key] = world
            else:
                self._after_others[key] = self.worlds.number(World(files, None, self.worlds.bench.clock.time_ms, notes))
        return self._after_others[key]


def acted(
    bench: Bench,
    others: Sequence[Other],
    notes: Hashable,
    note: Notes | None = None,
    lock: Callable[[Bench], TableLock] = lambda _: NoLock(),
) -> Hashable:
    """Other processes act on the bench as it is, one after the other; returns the notes after it. The lock is free."""
    for other in others:
        storage, engine, clock = bench.storage, LocalEngine(1), bench.clock
        before = storage.dump()
        clock.sleep(OTHERS_TAKE_MS)
        application = assemble(
            storage.root,
            bench.options,
            engine=engine,
            storage=storage,
            lock=lock(bench),
            clock=clock,
            new_uuid=partial("00000000-0000-4000-9000-{:012d}".format, clock.time_ms % 10**12),
        )
        application.heartbeats = Beats.of(application)
        application.files.requests, application.files.codec = Requests(engine), bench.codec
        notes = other(application, notes)
        if note is not None:
            notes = note(notes, before, storage.dump())
    return notes


def attempted(protocol: Protocol) -> Other:
    """The action as one of others. If it ends in an error of eventide, that is its end."""

    def act(application: Application, notes: Hashable) -> Hashable:
        try:
            protocol(application)
        except EventideError:
            return notes
        return notes

    return act


def in_words(schedule: Sequence[Move]) -> str:
    """The schedule in readable form: how many operations an actor does at a time, and those that change a file."""
    lines: list[str] = []
    for (actor, is_step, other), moves in groupby(
        schedule, lambda move: (move.actor, move.step is not None, move.other)
    ):
        steps = [move.step for move in moves]
        if actor is None:
            lines += [f"others: {other}"] * len(steps)
        elif not is_step:
            lines.append(f"{actor}: falls asleep")
        else:
            lines.append(f"{actor}: {len(steps)} operations")
            lines += [
                f"    {step}" for step in steps if step is not None and step.act is not None and step.kind not in READS
            ]
    return "\n".join(lines)


def _schedule(visits: Sequence[_Visit]) -> tuple[Move, ...]:
    return tuple(visit.move for visit in visits if visit.move is not None)


def _with(values: tuple[_T, ...], index: int, value: _T) -> tuple[_T, ...]:
    return (*values[:index], value, *values[index + 1 :])
