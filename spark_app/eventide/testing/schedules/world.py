"""The files and the lock that actors share, as values: the result and the effect of a storage operation.

A world never changes: an operation leads from one world to another. Worlds with the same files and the same lock owner are
the same world. The in-memory storage itself computes each answer, once for each operation in each world.

If leases expire, a world also has a time, and notes: what a test has to know of the way that led there. Time passes only
where it matters: a millisecond with each change of a timeline file, and as long as an actor waits or is asleep.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from eventide.testing.crash_enumeration import Bench, Moment
from eventide.testing.inspection.observation import Files
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import EventideError, LockError, LockLostError
from eventide_core.ports import Storage
from eventide_core.table.timeline.instant import Instant

TAKE_LOCK = "take the lock"
GIVE_LOCK = "give the lock back"
CHECK_LOCK = "check the lock"
LOOK_AT_CLOCK = "look at the clock"
WAIT = "wait"
READS = frozenset({"list", "stat", "read", "read_range", "read_version"})

Notes = Callable[[Hashable, Files, Files], Hashable]
"""The notes after a change of the files, from those before it, and from the files before and after it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One storage operation with all its arguments, or an operation that takes or releases the table lock."""

    kind: str
    path: str = ""
    details: Hashable = None
    act: Callable[[Storage], Hashable] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.path}".rstrip()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is an error. Errors with the same text are the same answer."""

    text: str
    error: EventideError = field(compare=False)


@dataclass(frozen=True, slots=True)
class Lease:
    """A lock that was acquired: the number of its owner, and how many this owner had acquired before."""

    actor: int
    number: int
    is_expired: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """The files, who holds the lock, the time, and the notes of a test."""

    files: Files
    lease: Lease | None
    time_ms: int
    notes: Hashable = None

    @property
    def is_free(self) -> bool:
        """Whether the lock can be acquired."""
        return self.lease is None or self.lease.is_expired


class Worlds:
    """Every world that was reached, by number; 0 is the first one.

    `may_expire`: whether leases can be lost; otherwise no clock advances. `notes` keeps the notes up to date.
    """

    def __init__(
        self,
        bench: Bench,
        start: Moment,
        *,
        may_expire: bool = False,
        notes: Notes | None = None,
        first: Hashable = None,
    ) -> None:
        self._bench = bench
        self.time_ms = start.time_ms
        self.may_expire = may_expire
        self._notes = notes
        self._worlds: list[World] = []
        self._numbers: dict[Hashable, int] = {}
        self._after: dict[tuple[int, Step, int | None], tuple[int, Hashable]] = {}
        self._loaded: int | None = None
        bench.load(start)
        self.number(World(bench.storage.dump(), None, start.time_ms, first))

    def __getitem__(self, number: int) -> World:
        return self._worlds[number]

    def __len__(self) -> int:
        return len(self._worlds)

    @property
    def bench(self) -> Bench:
        return self._bench

    def moment(self, world: int) -> Moment:
        """The files of a world. Before the next step, the caller can load these or other files into the same storage."""
        self.forget_storage()
        return Moment(self._worlds[world].files, self._worlds[world].time_ms)

    def forget_storage(self) -> None:
        """Someone else has used the bench: the next step loads its world again."""
        self._loaded = None

    def can(self, world: int, step: Step) -> bool:
        """True if the step is possible now. Only taking a lock that is held isn't."""
        return step.kind != TAKE_LOCK or self._worlds[world].is_free

    def after(self, world: int, step: Step, actor: int) -> tuple[int, Hashable]:
        """The world after the step, and the step's answer."""
        key = world, step, actor if step.act is None else None
        outcome = self._after.get(key)
        if outcome is None:
            outcome = self._after[key] = self._done(world, step, actor)
        return outcome

    def asleep(self, world: int, actor: int, milliseconds: int) -> int:
        """The world after the actor slept: a lease that it held has expired, and so has each heartbeat."""
        here = self._worlds[world]
        lease = here.lease
        if lease is not None and lease.actor == actor:
            lease = replace(lease, is_expired=True)
        return self.number(replace(here, lease=lease, time_ms=here.time_ms + milliseconds))

    def _done(self, world: int, step: Step, actor: int) -> tuple[int, Hashable]:
        here = self._worlds[world]
        if step.act is not None:
            return self._stored(world, step, step.act)
        assert isinstance(step.details, int)
        if step.kind == LOOK_AT_CLOCK:
            return world, here.time_ms
        if step.kind == WAIT:
            return self.number(replace(here, time_ms=here.time_ms + step.details)), None
        lease = Lease(actor, step.details)
        if step.kind == TAKE_LOCK:
            assert here.is_free, f"{actor} takes a lock that {here.lease} is of"
            return self.number(replace(here, lease=lease)), None
        if step.kind == CHECK_LOCK:
            return world, None if here.lease == lease else _lost(is_free=here.lease == replace(lease, is_expired=True))
        is_held = here.lease is not None and replace(here.lease, is_expired=False) == lease
        assert is_held or self.may_expire, f"{actor} gives back a lock that {here.lease} is of"
        return self.number(replace(here, lease=None)) if is_held else world, None

    def _stored(self, world: int, step: Step, act: Callable[[Storage], Hashable]) -> tuple[int, Hashable]:
        here, storage = self._worlds[world], self._load(world)
        answer: Hashable
        try:
            answer = act(storage)
        except EventideError as error:
            answer = Refusal(repr(error), error)
        if step.kind in READS:
            return world, answer
        self._loaded = None
        files = storage.dump()
        ticks = is_ticking(step, here.files, files) if self.may_expire else 0
        notes = self._notes(here.notes, here.files, files) if self._notes and files != here.files else here.notes
        return self.number(World(files, here.lease, here.time_ms + ticks, notes)), answer

    def _load(self, world: int) -> MemoryStorage:
        if self._loaded != world:
            self._bench.load(self.moment(world))
            self._loaded = world
        return self._bench.storage

    def number(self, world: World) -> int:
        key = (frozenset(world.files.items()), world.lease, world.time_ms, world.notes)
        number = self._numbers.setdefault(key, len(self._worlds))
        if number == len(self._worlds):
            self._worlds.append(world)
        return number


def is_ticking(step: Step, before: Files, after: Files) -> int:
    """The milliseconds that pass with the step."""
    return int(before != after and Instant.parse(step.path.rpartition("/")[2]) is not None)


def _lost(*, is_free: bool) -> Refusal:
    error = LockError("the lock expired while it was held") if is_free else LockLostError("the lock was lost")
    return Refusal(repr(error), error)
