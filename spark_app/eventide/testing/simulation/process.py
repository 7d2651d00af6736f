"""The processes of an actor, one after another: their clock, their requests, their deaths, and their heartbeats."""

import posixpath
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

from eventide.bootstrap import Application, assemble
from eventide.engine_local import LocalEngine
from eventide.testing.inspection.decode_cache import KnownCommits, standing_in
from eventide.testing.inspection.observation import LOCK_PREFIX, OUTCOMES_PREFIX
from eventide.testing.schedules.storage import StorageOfSteps
from eventide.testing.schedules.world import READS, Step
from eventide.testing.simulation.lot import DECIDING, DISTURBING, READING, WRITING, Mishap, Trouble
from eventide.testing.simulation.scheduler import Scheduler
from eventide_adapters.lock import heartbeats as heartbeats_module
from eventide_adapters.lock import storage_based as storage_lock_module
from eventide_adapters.lock.heartbeats import FileHeartbeats
from eventide_adapters.lock.open import open_lock
from eventide_adapters.storage.faulty import SimulatedCrash
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.access.requests import Requests
from eventide_core.config import LOCK_PROVIDER, Options
from eventide_core.errors import EventideError, StorageError
from eventide_core.ports import Lease, TableLock

LOCK_EXPIRY_MS: Final = 61_000
RESTARTS_MS: Final = (500, 20_000, 200_000)
_DECIDING: Final = re.compile(r"\.hoodie/(metadata/\.hoodie/)?(timeline/)?\d+[^/]*|\.hoodie/\.aux/eventide/.+")
"""Files of a timeline, outcomes of instants, and what consumers have done."""
_COMMITS = KnownCommits()


@dataclass(slots=True)
class Store:
    """The table's files, the simulated time, the trace, and what happened to requests."""

    scheduler: Scheduler
    storage: MemoryStorage
    options: Mapping[str, str]
    trace: list[str] = field(default_factory=list[str])
    mishaps: list[Mishap] = field(default_factory=list[Mishap])
    requests: int = 0
    is_disturbed: bool = False
    is_calm: bool = False
    """Nothing happens to requests."""
    arrived: set[str] = field(default_factory=set[str])
    """The files whose process was dead when they arrived, or didn't get the lock to remove them."""
    _uuids: Iterator[int] = field(default_factory=lambda: count(1))

    def say(self, who: str, what: object) -> None:
        self.trace.append(f"{self.scheduler.now_ms % 10**9:>9} {who:15} {what}")

    def new_uuid(self) -> str:
        return str(UUID(int=next(self._uuids), version=4))

    def apply(self, who: str, step: Step) -> Any:
        """The effect of a request, and its answer."""
        try:
            answer = step.act(self.storage) if step.act is not None else None
        except EventideError as error:
            self.say(who, f"{_masked(step)}: {type(error).__name__}")
            raise
        is_said = isinstance(answer, bool)
        self.say(who, f"{_masked(step)}: {answer}" if is_said else _masked(step))
        return answer

    def remove_stuck_lock(self, claim: str) -> None:
        """What a person does after a process has died while it removed a lock that expires."""
        for path in (LOCK_PREFIX, claim):
            self.say("person", f"removes {'lock.#' if path == claim else 'lock'}")
            self.storage.delete(path)


@dataclass(slots=True, eq=False)
class Actor:
    """Who acts: its processes come one after another. `skew_ms` is how far its clock is ahead."""

    name: str
    store: Store
    luck: Callable[[int, int], Mishap | None]
    dice: Random
    skew_ms: int
    requests: int = 0

    @property
    def is_stock(self) -> bool:
        return self.name.startswith("stock")


class Process:
    """A process of an actor, with its threads. `restart` is called when it was killed."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.store = actor.store
        self.scheduler = actor.store.scheduler
        self.is_over = False
        self._continues_ms = 0
        self._claim: str | None = None
        self.made: set[str] = set()
        self.made_late: set[str] = set()
        """The files that it has put since its verb began: at once, and after it had stood still."""
        self.has_failed_request = False

    def begin_verb(self) -> None:
        self.made.clear()
        self.made_late.clear()
        self.has_failed_request = False

    # ports.Clock
    def now_ms(self) -> int:
        return self.scheduler.now_ms + self.actor.skew_ms

    def local_offset_ms(self, _epoch_ms: int, /) -> int:
        return 0

    def sleep(self, milliseconds: int) -> None:
        self._require_alive()
        self.scheduler.sleep(milliseconds)
        while not self.is_over and self._continues_ms > self.scheduler.now_ms:
            self.scheduler.sleep(self._continues_ms - self.scheduler.now_ms)
        self._require_alive()

    def perform(self, step: Step) -> Any:
        """Sends a request. Returns its answer, unless something happens."""
        self._require_alive()
        actor, store = self.actor, self.store
        actor.requests += 1
        store.requests += 1
        is_write = step.kind not in READS and not step.path.startswith(LOCK_PREFIX)
        weight = READING if not is_write else DECIDING if _DECIDING.fullmatch(step.path) else WRITING
        mishap = None if store.is_calm else actor.luck(actor.requests, weight)
        if mishap is not None:
            store.mishaps.append(mishap)
            store.say(actor.name, f"{mishap.trouble} {mishap.ms} at request {mishap.number}, {_masked(step)}")
            self._suffer(mishap, step, is_write=is_write)
        self.sleep(actor.dice.randint(1, 20))
        trouble = None if mishap is None else mishap.trouble
        self.has_failed_request |= trouble in (Trouble.ERROR, Trouble.LOST)
        if trouble is Trouble.ERROR or (trouble is Trouble.LOST and not is_write):
            raise StorageError(f"simulated failure: {step} did not happen")
        answer = store.apply(actor.name, step)
        if step.kind == "put_if_absent" and answer:
            (self.made_late if trouble is Trouble.PAUSE else self.made).add(step.path)
        if step.path.startswith(f"{LOCK_PREFIX}."):
            self._claim = step.path if step.kind == "put_if_absent" and answer else None
        if trouble is Trouble.LOST:
            raise StorageError(f"simulated failure: the answer to {step} was lost")
        return answer

    def _suffer(self, mishap: Mishap, step: Step, *, is_write: bool) -> None:
        self.store.is_disturbed |= mishap.trouble in DISTURBING
        match mishap.trouble:
            case Trouble.PAUSE:
                self._continues_ms = self.scheduler.now_ms + mishap.ms
            case Trouble.SLOW:
                self.sleep(mishap.ms)
            case Trouble.JUMP:
                self.actor.skew_ms += mishap.ms
            case Trouble.KILL | Trouble.LATE:
                if mishap.trouble is Trouble.LATE and is_write:
                    self.scheduler.call(lambda: self._arrive(step), mishap.ms)
                self._die()
            case Trouble.ERROR | Trouble.LOST:
                pass

    def _arrive(self, step: Step) -> None:
        self.store.arrived.add(step.path)
        with suppress(EventideError):
            self.store.apply(f"({self.actor.name})", step)

    def _die(self) -> None:
        self.is_over = True
        if self._claim is not None:
            self.scheduler.call(partial(self.store.remove_stuck_lock, self._claim), LOCK_EXPIRY_MS)
        raise SimulatedCrash(f"{self.actor.name} was killed")

    def _require_alive(self) -> None:
        if self.is_over:
            raise SimulatedCrash(f"{self.actor.name} is gone")

    def application(self) -> Application:
        store, engine = self.store, LocalEngine(1)
        storage = StorageOfSteps(self._perform_as_stock if self.actor.is_stock else self.perform, store.storage)
        lock: TableLock | None = None
        if self.actor.is_stock:
            options = Options(dict(store.options))
            lock = _StockLock(open_lock(options.get(LOCK_PROVIDER), storage, options, self, self.actor.name))
        application = assemble(
            storage.root, store.options, engine=engine, storage=storage, lock=lock, clock=self, new_uuid=store.new_uuid
        )
        application.files.requests, application.files.codec = Requests(engine), _COMMITS
        if self.actor.is_stock:
            application.heartbeats = _StockHeartbeats(storage, application.options, owner="", host="", pid=0)
        return application

    def _perform_as_stock(self, step: Step) -> Any:
        """It knows nothing of eventide's own files: none is there, and it writes none."""
        if step.path.startswith(OUTCOMES_PREFIX.rstrip("/")):
            return step.act(MemoryStorage.from_dump("nothing", {})) if step.act is not None else None
        return self.perform(step)


class _StockHeartbeats(FileHeartbeats):
    """Empty files, as Hudi's are."""

    _content = b""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._content = b""


@dataclass(frozen=True, slots=True)
class _StockLock:
    """The table lock of an engine that never looks whether it still has it."""

    lock: TableLock

    def acquire(self) -> "_StockLease":
        return _StockLease(self.lock.acquire())


@dataclass(frozen=True, slots=True)
class _StockLease:
    lease: Lease

    def check(self) -> None:
        """Always succeeds."""

    def __enter__(self) -> Self:
        self.lease.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.lease.__exit__(kind, error, trace)


@contextmanager
def simulated(store: Store) -> Iterator[None]:
    """Leases and heartbeats are renewed by simulated time, and identifiers are numbers."""
    renewal = partial(_Renewal, store.scheduler)
    with (
        standing_in(heartbeats_module, "Renewal", renewal),
        standing_in(storage_lock_module, "Renewal", renewal),
        standing_in(uuid, "uuid4", lambda: UUID(store.new_uuid())),
    ):
        yield


class _Renewal:
    """Stands in for lock.renewal.Renewal: a thread of the scheduler renews, by simulated time."""

    def __init__(self, scheduler: Scheduler, renew: Callable[[], bool], interval_seconds: float) -> None:
        process = scheduler.owner
        assert isinstance(process, Process)
        self._renew, self._process, self._interval_ms = renew, process, int(interval_seconds * 1000)
        self._is_stopped = self._is_renewing = False
        scheduler.start(self._repeat, process)

    def stop(self) -> None:
        self._is_stopped = True
        while self._is_renewing:
            self._process.sleep(1)  # a killed process goes no further: its renewal may hold what comes next

    def _repeat(self) -> None:
        is_held = True
        while is_held:
            self._process.sleep(self._interval_ms)
            if self._is_stopped:
                return
            self._is_renewing = True
            try:
                with suppress(EventideError):
                    is_held = self._renew()
            finally:
                self._is_renewing = False


def _masked(step: Step) -> str:
    """The step without what differs between equal runs: the digest of a lock names the machine's process."""
    directory, name = posixpath.split(step.path)
    return f"{step.kind} {directory}/lock.#" if f"{directory}/{name}".startswith(f"{LOCK_PREFIX}.") else str(step)
