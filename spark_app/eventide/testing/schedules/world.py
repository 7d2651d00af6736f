"""The files and the lock that actors share, as values: the result and the effect of a storage operation.

A world never changes: an operation leads from one world to another. Worlds with the same files and the same lock owner are
the same world. The in-memory storage itself computes each answer, once for each operation in each world.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from eventide.testing.crash_enumeration import Bench, Moment
from eventide.testing.inspection.observation import Files
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import EventideError
from eventide_core.ports import Storage

TAKE_LOCK = "take the lock"
GIVE_LOCK = "give the lock back"
READS = frozenset({"list", "stat", "read", "read_range", "read_version"})


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


class Worlds:
    """Every world that was reached, by number; 0 is the first one. No clock advances: the time is that of `start`."""

    def __init__(self, bench: Bench, start: Moment) -> None:
        self._bench = bench
        self._start = start
        self._files: list[Files] = []
        self._owners: list[int | None] = []
        self._numbers: dict[Hashable, int] = {}
        self._after: dict[tuple[int, Step, int | None], tuple[int, Hashable]] = {}
        self._loaded: int | None = None
        bench.load(start)
        self._number(bench.storage.dump(), None)

    @property
    def bench(self) -> Bench:
        return self._bench

    @property
    def time_ms(self) -> int:
        return self._start.time_ms

    def moment(self, world: int) -> Moment:
        """The files of a world. Before the next step, the caller can load these or other files into the same storage."""
        self._loaded = None
        return Moment(self._files[world], self.time_ms)

    def can(self, world: int, step: Step) -> bool:
        """True if the step is possible now. Only taking a lock that is held isn't."""
        return step.kind != TAKE_LOCK or self._owners[world] is None

    def after(self, world: int, step: Step, actor: int) -> tuple[int, Hashable]:
        """The world after the step, and the step's answer."""
        key = world, step, actor if step.act is None else None
        outcome = self._after.get(key)
        if outcome is None:
            outcome = self._after[key] = self._done(world, step, actor)
        return outcome

    def _done(self, world: int, step: Step, actor: int) -> tuple[int, Hashable]:
        files, owner = self._files[world], self._owners[world]
        if step.kind == TAKE_LOCK:
            assert owner is None, f"{actor} takes a lock that {owner} has"
            return self._number(files, actor), None
        if step.kind == GIVE_LOCK:
            assert owner == actor, f"{actor} gives back a lock that {owner} has"
            return self._number(files, None), None
        assert step.act is not None
        storage = self._load(world)
        answer: Hashable
        try:
            answer = step.act(storage)
        except EventideError as error:
            answer = Refusal(repr(error), error)
        if step.kind in READS:
            return world, answer
        self._loaded = None
        return self._number(storage.dump(), owner), answer

    def _load(self, world: int) -> MemoryStorage:
        if self._loaded != world:
            self._bench.load(Moment(self._files[world], self.time_ms))
            self._loaded = world
        return self._bench.storage

    def _number(self, files: Files, owner: int | None) -> int:
        number = self._numbers.setdefault((frozenset(files.items()), owner), len(self._files))
        if number == len(self._files):
            self._files.append(files)
            self._owners.append(owner)
        return number
