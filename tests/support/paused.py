"""A process that stands still before one of its writes, until its lock and heartbeat have expired and others have gone on.

The others undo what it left, write, compact, clean and archive beyond it. Then it wakes up and goes on as if nothing had
happened.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from eventide.bootstrap import Application
from eventide.rows.writer import arrow_records
from eventide.table.table_service import TableService
from eventide.testing.crash_enumeration import LOCK_EXPIRY_MS, Bench, Moment, Protocol, StandingStill, writes_of
from eventide.testing.histories import EPOCH_MS, Commit, delete, put, records
from eventide.testing.inspection.observation import LOCK_PREFIX
from eventide_adapters.storage.faulty import Operation, SimulatedCrash
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, EventideError
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.plans import CutMode
from support.service_cases import Shown, shown

ASLEEP_MS = 10 * 60_000
OWN: Commit = (put("k0", 70, "own"), put("k9", 71, "own"), delete("k3", 72))
"""What a process writes that is paused."""
Rows = dict[tuple[object, object], tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Woken:
    """A table after a process woke up and ended, and what others wrote meanwhile."""

    number: int
    operation: Operation
    moment: Moment
    failure: EventideError | None
    written: tuple[Commit, ...]


@dataclass(slots=True)
class Others:
    """Processes that go on: each undoes what the dead left, writes, compacts, cleans and archives."""

    bench: Bench
    next_ms: int = 200
    written: list[Commit] = field(default_factory=list[Commit])

    def go_on(self, rounds: int = 4) -> None:
        self.bench.clock.sleep(ASLEEP_MS)
        if self.bench.moment().has_stuck_lock:  # the process slept while it removed its lock: a user removes it by hand
            for path in [path for path in self.bench.storage.dump() if path.startswith(LOCK_PREFIX)]:
                self.bench.storage.delete(path)
        self._undo_what_the_dead_left()
        for _ in range(rounds):
            self.bench.clock.sleep(1_000)
            self.write()
            self.compact()
            for service in (clean, archive):
                service(self.bench.process())

    def _undo_what_the_dead_left(self) -> None:
        application = self.bench.process()
        application.rollback.undo_failed_writes()
        for pending in application.state().timeline.pending:
            if pending.is_pending_plan:
                try:
                    self.bench.process().rollback.undo(pending.requested_time)
                except BusyError:  # its outcome is decided
                    self.bench.process().runner.execute(pending.requested_time, NoProgress())

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
) -> Iterator[Woken]:
    """The table after each pause of the protocol, before each of its writes.

    `dies`: the process only does that one write when it wakes up. `at`: before which writes it is paused. `meanwhile`: what
    others do.
    """
    for number, operation in enumerate(writes_of(bench, start, protocol)):
        if not at(operation):
            continue
        bench.load(start)
        others = Others(bench)
        failure: EventideError | None = None
        try:
            protocol(bench.process(StandingStill(bench.storage, number, partial(meanwhile, others), dies=dies)))
        except EventideError as error:
            failure = error
        except SimulatedCrash:
            assert dies
        yield Woken(number, operation, bench.moment(), failure, tuple(others.written))


def wrong(bench: Bench, woken: Woken, before: Shown, own: Commit = ()) -> str | None:
    """What is wrong with the table, now and after others have gone on once more; None if nothing is.

    `own`: what the process had to write. If it reported success, the rows are there; else they may not be there at all.
    """
    others = Others(bench, 1_000)
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
