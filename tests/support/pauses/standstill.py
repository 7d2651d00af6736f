"""A process that stands still before one of its writes, until its lock and heartbeat have expired and others have gone on.

The others undo what it left, run its plan, or call the same verb again; then they write, compact, clean and archive beyond
it. Then it wakes up and goes on as if nothing had happened.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Event, Thread
from typing import TypeVar

from eventide.bootstrap import Application
from eventide.rows.writer import arrow_records
from eventide.table.table_service import TableService
from eventide.testing.crash_enumeration import LOCK_EXPIRY_MS, Bench, Moment, Protocol, StandingStill, writes_of
from eventide.testing.histories import EPOCH_MS, Commit, delete, put, records
from eventide.testing.inspection.observation import LOCK_PREFIX
from eventide_adapters.storage.faulty import FaultyStorage, Operation, SimulatedCrash
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import (
    BusyError,
    EmptyPlanError,
    EventideError,
    InstantNotFoundError,
    NothingToDoError,
    PlanMismatchError,
    RefusedError,
)
from eventide_core.ports import NoProgress, Storage
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.plans import CutMode
from eventide_core.table.timeline.instant import Action
from eventide_core.table.timeline.timeline import Timeline
from support.pauses.services import Shown, shown

ASLEEP_MS = 10 * 60_000
OWN: Commit = (put("k0", 70, "own"), put("k9", 71, "own"), delete("k3", 72))
"""What a process writes that is paused."""
Rows = dict[tuple[object, object], tuple[object, ...]]
Answer = TypeVar("Answer")


class Kind(StrEnum):
    """What others do with what a process left that stands still."""

    UNDO = "undo"
    """They roll it back."""
    EXECUTE = "execute"
    """They run its plan as it is."""
    FINISH = "finish"
    """They call the same verb again."""


@dataclass(frozen=True, slots=True)
class Woken:
    """A table after a process woke up and ended, and what others wrote meanwhile.

    `blocked` is the error that the others ended in. `completed` are plans that were pending when the process fell asleep,
    and that the others completed. `has_begun`: the process had done more than take the lock. `leaves_restores`: a restore is
    to be completed whose process lost its lock after it had begun, and whose error said so.
    """

    number: int
    operation: Operation
    moment: Moment
    failure: EventideError | None
    written: tuple[Commit, ...]
    blocked: Exception | None = None
    completed: frozenset[str] = frozenset()
    has_begun: bool = True
    leaves_restores: bool = False


@dataclass(slots=True)
class Others:
    """Processes that go on: each ends what the dead left, writes, compacts, cleans and archives.

    `again` is the verb of the process that stands still, and `rewritten` what it writes. `completes_restores`: also those
    that the dead left, as somebody has to.
    """

    bench: Bench
    next_ms: int = 200
    written: list[Commit] = field(default_factory=list[Commit])
    kind: Kind = Kind.UNDO
    again: Protocol | None = None
    rewritten: Commit = ()
    completes_restores: bool = True
    completed: frozenset[str] = frozenset()

    def go_on(self, rounds: int = 4) -> None:
        self.bench.clock.sleep(ASLEEP_MS)
        self._end_what_the_dead_left()
        for _ in range(rounds):
            self.bench.clock.sleep(1_000)
            self.write()
            self.compact()
            for service in (clean, archive):
                service(self.bench.process())

    def _end_what_the_dead_left(self) -> None:
        plans = {pending.requested_time for pending in self._timeline().pending_plans}
        if self.kind is Kind.FINISH:
            self._finish()
        self._complete_restores()
        application = self.bench.process()
        application.rollback.undo_failed_writes()
        for pending in application.state().timeline.pending:
            if pending.is_pending_plan:
                self._end_plan(pending.requested_time)
        timeline = self._timeline()
        found = {plan: timeline.find_compaction(plan) for plan in plans}
        self.completed = frozenset(plan for plan, instant in found.items() if instant and instant.is_completed)

    def _timeline(self) -> Timeline:
        files = self.bench.process().files
        return files.timeline(files.config())

    def _finish(self) -> None:
        assert self.again is not None
        try:
            self.again(self.bench.process())
        except (InstantNotFoundError, NothingToDoError, RefusedError):
            return  # it is done already
        if self.rewritten:
            self.written.append(self.rewritten)

    def _complete_restores(self) -> None:
        """Nobody can do anything else."""
        for pending in self._timeline().pending:
            if pending.action is Action.RESTORE and self.completes_restores:
                application = self.bench.process()
                plan = application.files.restore_plan(application.files.config(), pending.requested_time)
                assert plan.savepoint is not None
                application.restorer.restore(plan.savepoint)

    def _end_plan(self, instant: str) -> None:
        if self.kind is Kind.UNDO:
            # Its outcome is decided, or version 6: writers go by the plan of another engine.
            with suppress(BusyError, RefusedError):
                self.bench.process().rollback.undo(instant, force=True)
                return
        try:
            self.bench.process().runner.execute(instant, NoProgress())
        except (EmptyPlanError, PlanMismatchError):
            self.bench.process().rollback.undo(instant)

    def write_after_the_lock(self) -> None:
        """Its heartbeat has not expired: nobody undoes what the process left."""
        self.bench.clock.sleep(LOCK_EXPIRY_MS)
        self.write()
        self.bench.clock.sleep(1)

    def write(self) -> None:
        ms = self.next_ms
        self.next_ms += 10
        changes = (put("k0", ms, f"others {ms}"), put("k1", ms + 1, f"others {ms}"), put(f"n{ms}", ms + 2, "new"))
        ingest(changes)(self.bench.process())
        self.written.append(changes)

    def compact(self) -> None:
        application = self.bench.process()
        compact(self.next_ms - 9, CutMode.FILE)(application)


def ingest(changes: Commit, operation: WriteOperation = WriteOperation.UPSERT) -> Protocol:
    def run(application: Application) -> None:
        application.append.write(operation, arrow_records(application, *records(changes)), NoProgress())

    return run


def compact(before_ms: int, cut: CutMode) -> Protocol:
    def run(application: Application) -> None:
        draft = application.scheduler.schedule(CompactionRequest(EPOCH_MS + before_ms, None, LinkChoice.COPY, cut=cut))
        if draft.idle is None:
            application.runner.execute(draft.plan.instant, NoProgress())

    return run


def serve(application: Application) -> None:
    """One round of the table service."""
    request = CompactionRequest(EPOCH_MS + 16, None, LinkChoice.COPY)
    troubles = TableService(application, request).round(NoProgress()).troubles
    if troubles:
        raise troubles[0].error


def clean(application: Application) -> None:
    application.cleaner.clean(1)


def archive(application: Application) -> None:
    application.archiver.archive()


def wakings(
    bench: Bench,
    start: Moment,
    protocol: Protocol,
    *,
    dies: bool = False,
    at: Callable[[Operation], bool] = lambda _: True,
    meanwhile: Callable[[Others], None] = Others.go_on,
    others: Callable[[Bench], Others] = Others,
) -> Iterator[Woken]:
    """The table after each pause of the protocol, before each of its writes.

    `dies`: the process only does that one write when it wakes up. `at`: before which writes it is paused. `meanwhile`: what
    others do.
    """
    operations = writes_of(bench, start, protocol)
    first = next((n for n, operation in enumerate(operations) if not operation.path.startswith(LOCK_PREFIX)), 0)
    for number, operation in enumerate(operations):
        if not at(operation):
            continue
        bench.load(start)
        acting = others(bench)
        blocked: list[Exception] = []
        failure: EventideError | None = None

        def interlude(acting: Others = acting, blocked: list[Exception] = blocked) -> None:
            try:
                meanwhile(acting)
            except Exception as error:  # else the process takes it for an answer of its storage
                blocked.append(error)

        try:
            protocol(bench.process(StandingStill(bench.storage, number, interlude, dies=dies)))
        except EventideError as error:
            failure = error
        except SimulatedCrash:
            assert dies
        yield Woken(
            number,
            operation,
            bench.moment(),
            failure,
            tuple(acting.written),
            blocked[0] if blocked else None,
            acting.completed,
            number > first,
        )


class Asleep:
    """A process in a thread of its own that stands still before the first write that `at` names, until `wake`."""

    def __init__(self, bench: Bench, protocol: Protocol, at: Callable[[int, Operation], bool]) -> None:
        self.failure: EventideError | None = None
        self._fell_asleep, self._wakes = Event(), Event()
        self._is_abandoned = False
        application = bench.process(_SleepingStorage(bench.storage, at, self._sleep))
        self._thread = Thread(target=self._run, args=(protocol, application), daemon=True)
        self._thread.start()
        self._fell_asleep.wait()

    def wake(self) -> None:
        """Returns when the process has ended. It wakes up once."""
        self._wakes.set()
        self._thread.join()

    def abandon(self) -> None:
        """It never wakes up."""
        self._is_abandoned = True
        self.wake()

    def _sleep(self) -> None:
        self._fell_asleep.set()
        self._wakes.wait()
        if self._is_abandoned:
            raise SimulatedCrash

    def _run(self, protocol: Protocol, application: Application) -> None:
        try:
            protocol(application)
        except EventideError as error:
            self.failure = error
        except SimulatedCrash:
            assert self._is_abandoned
        finally:
            self._fell_asleep.set()


class _SleepingStorage(FaultyStorage):
    """Stands still before the first write that `at` names by its number and itself."""

    def __init__(self, inner: Storage, at: Callable[[int, Operation], bool], sleep: Callable[[], None]) -> None:
        super().__init__(inner)
        self._at, self._sleep, self._is_left = at, sleep, True

    def _write(self, kind: str, path: str, write: Callable[[], Answer]) -> Answer:
        if self._is_left and self._at(len(self.writes), Operation(kind, path)):
            self._is_left = False
            self._sleep()
        return super()._write(kind, path, write)


@dataclass(frozen=True, slots=True)
class Pair:
    """A table after two processes woke up and ended, one after the other; `operation` is where the second one stood."""

    number: int
    operation: Operation
    moment: Moment
    first: EventideError | None
    second: EventideError | None


def pairs(
    bench: Bench,
    start: Moment,
    first: Protocol,
    at: Callable[[int, Operation], bool],
    second: Protocol,
    slept_ms: int,
) -> Iterator[Pair]:
    """The first process sleeps where `at` says, the second one before each of its writes: then the first one wakes up.

    The second one slept for `slept_ms` by then.
    """
    bench.load(start)
    asleep = Asleep(bench, first, at)
    bench.clock.sleep(ASLEEP_MS)
    operations = writes_of(bench, bench.moment(), second)
    asleep.abandon()
    for number, operation in enumerate(operations):
        bench.load(start)
        asleep = Asleep(bench, first, at)
        bench.clock.sleep(ASLEEP_MS)

        def interlude(asleep: Asleep = asleep) -> None:
            bench.clock.sleep(slept_ms)
            asleep.wake()

        failure: EventideError | None = None
        try:
            second(bench.process(StandingStill(bench.storage, number, interlude)))
        except EventideError as error:
            failure = error
        asleep.wake()  # if the second one ended before
        yield Pair(number, operation, bench.moment(), asleep.failure, failure)


def wrong(bench: Bench, woken: Woken, before: Shown, own: Commit = ()) -> str | None:
    """What is wrong with the table, now and after others have gone on once more; None if nothing is.

    `own`: what the process had to write. If it reported success, the rows are there; else they may not be there at all.
    """
    others = Others(bench, 1_000)
    if woken.blocked is not None:
        return f"others were stopped: {woken.blocked!r}"
    try:
        for step in range(2):
            bench.load(woken.moment)
            if step:
                others.go_on()
            found = by_key(shown(bench.process()))
            written = (*woken.written, *others.written)
            if woken.failure is None:
                written = (own, *written)
            expected = merged(before, written)
            if found != expected:
                return f"rows, step {step}: {difference(found, expected)}"
            problems = verified(bench.process())
            if problems:
                return f"verify, step {step}: {problems}"
    except EventideError as error:
        return f"{type(error).__name__}: {error}"
    return None


def verified(application: Application) -> str:
    found = application.verifier.verify(is_deep=True, progress=NoProgress())
    return "; ".join(f"{check.name}: {check}" for check in found.failed)


def merged(before: Shown, written: Sequence[Commit]) -> Rows:
    rows = by_key(before)
    for change in (change for commit in written for change in commit):
        row = (change.partition, change.key, EPOCH_MS + (change.ms or 0), change.word)
        known = rows.get(row[:2])
        if known is None or known[2] <= row[2]:  # type: ignore[operator]
            rows[row[:2]] = row
    return {key: row for key, row in rows.items() if row[3] is not None}


def by_key(found: Shown) -> Rows:
    return {(row[0], row[1]): row for row in found}


def difference(found: Rows, expected: Rows) -> str:
    gone = sorted(map(str, set(expected.values()) - set(found.values())))
    more = sorted(map(str, set(found.values()) - set(expected.values())))
    return f"missing {gone}, too many {more}"
