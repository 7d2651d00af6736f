"""Interrupts a protocol at every one of its writes, and checks the invariants on what is left.

A protocol (schedule, execute, roll back) is run once to count its writes, on a table in memory, with the real services and
codecs. Then, for each write:

1. `crash_states`: the process dies before the write. A crash after a write leaves the same state as a crash before the
   next write, and a crash between reads leaves the state after the previous write. So the states after 0, 1, ... n writes
   are all possible states.
2. `faults`: the write fails without effect, or takes effect but its reply is lost, or is sent twice. The process survives
   and handles the fault.
3. `interludes`: the process stands still before the write while another process acts, and continues afterwards.

Each resulting state is checked, recovered from in every possible way, and checked again. `Tally` counts what was reached,
to distinguish a run that reaches nothing from a run that finds nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import TypeVar
from uuid import uuid4

from eventide.bootstrap import Application, assemble
from eventide.engine_local import LocalEngine
from eventide.testing.histories import History, ManualClock, WrittenTable
from eventide.testing.inspection.decode_cache import KnownCommits
from eventide.testing.inspection.observation import (
    HEARTBEATS_PREFIX,
    LOCK_PREFIX,
    MARKERS_PREFIX,
    OUTCOMES_PREFIX,
    Files,
)
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, Operation, SimulatedCrash
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.access.requests import Requests
from eventide_core.access.threads import Future
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import (
    EVENT_TIME_FIELD,
    HEARTBEAT_INTERVAL_MS,
    LOCK_EXPIRE_MINUTES,
    LOCK_WAIT_MS,
    PARQUET_CODEC,
    PENDING_WRITE_WAIT_MS,
    LinkChoice,
)
from eventide_core.errors import EventideError
from eventide_core.ports import NoProgress, Storage
from eventide_core.table.timeline.contents.plans import CompactionPlan, require_ours

OPTIONS: dict[str, str] = {
    EVENT_TIME_FIELD: "ms",
    PARQUET_CODEC: "uncompressed",
    LOCK_EXPIRE_MINUTES: "1",
    HEARTBEAT_INTERVAL_MS: "30000",  # so that a heartbeat has expired when the lock has
    LOCK_WAIT_MS: "1000",
    PENDING_WRITE_WAIT_MS: "1000",
}
LOCK_EXPIRY_MS = 61_000


Protocol = Callable[[Application], object]
_Answer = TypeVar("_Answer")
_Item = TypeVar("_Item")


@dataclass(slots=True)
class Tally:
    """What a campaign reached."""

    counts: Counter[str] = field(default_factory=Counter[str])

    def add(self, what: str, number: int = 1) -> None:
        self.counts[what] += number

    def __str__(self) -> str:
        return "\n".join(f"{what:32} {number}" for what, number in sorted(self.counts.items()))


@dataclass(frozen=True, slots=True)
class Moment:
    """A table's files, and the time."""

    files: Files
    time_ms: int

    def later(self, milliseconds: int) -> "Moment":
        return Moment(self.files, self.time_ms + milliseconds)

    def after_the_lock_expired(self) -> "Moment":
        """The moment at which other processes can take the lock of the process that died."""
        return self.later(LOCK_EXPIRY_MS)

    @property
    def visible(self) -> frozenset[tuple[str, bytes, str | None]]:
        """The files that a query can depend on."""
        hidden = (LOCK_PREFIX, MARKERS_PREFIX, OUTCOMES_PREFIX, HEARTBEATS_PREFIX)
        return frozenset((p, f.data, f.link_target) for p, f in self.files.items() if not p.startswith(hidden))


@dataclass(slots=True)
class Bench:
    """One storage in memory on which every run of a campaign takes place, one after the other.

    Its files have times in multiples of `tick_ms`.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=lambda: OPTIONS)
    tick_ms: int = 1
    storage: MemoryStorage = field(init=False)
    clock: ManualClock = field(init=False)
    codec: KnownCommits = field(default_factory=KnownCommits)

    def __post_init__(self) -> None:
        self.load(Moment({}, ManualClock().time_ms))

    def load(self, moment: Moment) -> None:
        clock = self.clock = ManualClock(moment.time_ms)
        tick_ms = self.tick_ms
        self.storage = MemoryStorage.from_dump(
            self.name, moment.files, now_ms=lambda: clock.now_ms() // tick_ms * tick_ms
        )

    def moment(self) -> Moment:
        return Moment(self.storage.dump(), self.clock.time_ms)

    def process(
        self, storage: Storage | None = None, new_uuid: Callable[[], str] = lambda: str(uuid4())
    ) -> Application:
        """A process that works on the table as it is, in one thread."""
        used, engine = storage or self.storage, LocalEngine(1)
        application = assemble(
            used.root, self.options, engine=engine, storage=used, clock=self.clock, new_uuid=new_uuid
        )
        application.files.requests, application.files.codec = Requests(engine), self.codec
        return application

    def run(self, moment: Moment, protocol: Protocol) -> Moment:
        """Runs the protocol on the table as of `moment`, and returns the moment afterwards."""
        self.load(moment)
        protocol(self.process())
        return self.moment()

    def attempt(self, moment: Moment, protocol: Protocol) -> tuple[Moment, EventideError | None]:
        """Like `run`, but also returns the eventide error that the protocol ended in. Other exceptions propagate."""
        self.load(moment)
        failure = _failure_of(protocol, self.process())
        return self.moment(), failure


def _failure_of(protocol: Protocol, application: Application) -> EventideError | None:
    try:
        protocol(application)
    except EventideError as failure:
        return failure
    return None


def writes_of(bench: Bench, start: Moment, protocol: Protocol) -> tuple[Operation, ...]:
    """The writes that the protocol makes when nothing goes wrong."""
    bench.load(start)
    storage = FaultyStorage(bench.storage)
    protocol(bench.process(storage))
    return storage.writes


def crash_states(bench: Bench, start: Moment, protocol: Protocol) -> Iterator[tuple[int, Moment]]:
    """The state after a crash before each write of the protocol, with the number of the write."""
    for number, _ in enumerate(writes_of(bench, start, protocol)):
        bench.load(start)
        storage = FaultyStorage(bench.storage, FaultPlan(writes={number: Fault.CRASH_BEFORE}))
        try:
            protocol(bench.process(storage))
        except SimulatedCrash:
            yield number, bench.moment()
        else:
            raise AssertionError(f"the protocol survived its crash before write {number}")


def faults(
    bench: Bench, start: Moment, protocol: Protocol
) -> Iterator[tuple[Fault, Operation, Moment, EventideError | None]]:
    """The state after each fault at each write, and the error that the protocol ended in, if any."""
    for number, operation in enumerate(writes_of(bench, start, protocol)):
        for fault in (Fault.ERROR, Fault.REPLY_LOST, Fault.DUPLICATED):
            bench.load(start)
            storage = FaultyStorage(bench.storage, FaultPlan(writes={number: fault}))
            failure = _failure_of(protocol, bench.process(storage))
            yield fault, operation, bench.moment(), failure


def failing_reads(bench: Bench, start: Moment, protocol: Protocol) -> Iterator[tuple[Operation, Moment]]:
    """The state after each failure of a read."""
    bench.load(start)
    counted = FaultyStorage(bench.storage)
    protocol(bench.process(counted))
    for number, operation in enumerate(counted.reads):
        bench.load(start)
        storage = FaultyStorage(bench.storage, FaultPlan(reads={number: Fault.ERROR}))
        # Some failed reads cause no error: nothing depends on the read of a lock that is being released.
        with suppress(EventideError):
            protocol(bench.process(storage))
        yield operation, bench.moment()


class StandingStill(FaultyStorage):
    """The storage of a process that stands still before one write, while another process acts.

    `dies`: the process dies right after that write.
    """

    def __init__(self, inner: Storage, number: int, interlude: Callable[[], None], *, dies: bool = False) -> None:
        super().__init__(inner, FaultPlan(writes={number: Fault.CRASH_AFTER}) if dies else None)
        self._number = number
        self._interlude = interlude

    def _write(self, kind: str, path: str, write: Callable[[], _Answer]) -> _Answer:
        if len(self.writes) == self._number:
            self._interlude()
        return super()._write(kind, path, write)


def interludes(
    bench: Bench, start: Moment, protocol: Protocol, other: Protocol
) -> Iterator[tuple[Operation, Moment, EventideError | None, EventideError | None]]:
    """The state if the whole of `other` runs before each write of the protocol, and the errors of the two."""
    for number, operation in enumerate(writes_of(bench, start, protocol)):
        bench.load(start)
        others_failures: list[EventideError | None] = []

        def interlude(failures: list[EventideError | None] = others_failures) -> None:
            failures.append(_failure_of(other, bench.process()))

        failure = _failure_of(protocol, bench.process(StandingStill(bench.storage, number, interlude)))
        yield operation, bench.moment(), failure, next(iter(others_failures), None)


def schedule(history: History, link: LinkChoice) -> Protocol:
    return schedule_request(CompactionRequest(history.cut_epoch_ms, None, link, cut=history.cut))


def schedule_request(request: CompactionRequest) -> Protocol:
    return lambda application: application.scheduler.schedule(request)


def execute(instant: str) -> Protocol:
    return lambda application: application.runner.execute(instant, NoProgress())


def execute_at_once(instant: str) -> Protocol:
    """The execution by the process that has just put the plan: its merges wait to write when the plan gets its owner."""

    def run(application: Application) -> None:
        files = application.files
        plan = require_ours(files.plan(files.config(), instant))
        put = (plan, application.state())
        replace(application.runner, engine=_AheadEngine(1)).execute(instant, NoProgress(), put=put)

    return run


class _AheadEngine(LocalEngine):
    """Begins tasks, and returns when the first of them waits to write, or has failed."""

    def begin(
        self, function: Callable[..., _Answer], items: Sequence[_Item], *, on_done: Callable[[], None] | None = None
    ) -> list[Future[_Answer]]:
        waits = Event()
        assert isinstance(function, partial)
        allow = function.keywords["may_write"]

        def run(item: _Item) -> _Answer:
            def may_write() -> None:
                waits.set()
                allow()

            try:
                answer: _Answer = function(item, may_write=may_write)
            finally:
                waits.set()
            return answer

        begun = self._begun(run, items, on_done)
        waits.wait()
        return begun


def roll_back(instant: str) -> Protocol:
    return lambda application: application.rollback.undo(instant)


def pending_plan(application: Application) -> CompactionPlan:
    """The pending plan, as the timeline has it."""
    config = application.files.config()
    (pending,) = application.files.timeline(config).pending_plans
    return require_ours(application.files.plan(config, pending.requested_time))


def start_of(table: WrittenTable) -> Moment:
    return Moment(table.files, table.time_ms)
