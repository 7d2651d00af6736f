"""A table that the real services write, compact, clean and restore, with all invariants checked at each step.

A step can die before any of its writes. The table is inspected in the state that the step leaves. Then the lock and the
heartbeat of the dead process expire, and the next step finds the table in this state. A step can be refused only for a
reason that it expects: any other refusal is a failure.

A step can also be paused before a write, while its lock and heartbeat expire and other steps run. Then it continues,
and may fail; if it is a write and succeeds, its commit is on the table.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

from eventide.bootstrap import Application
from eventide.table.table_service import TableService
from eventide.testing.crash_enumeration import OPTIONS, Bench, Moment, Protocol, execute, schedule_request
from eventide.testing.histories import EPOCH_MS, Commit, Layout, ManualClock
from eventide.testing.inspection.observation import OUTCOMES_PREFIX, Files, Observer, is_immutable
from eventide.testing.invariants import Inspection, check_invariants
from eventide.testing.living_table.account import Account, completed_instants, pending_instants, savepointed_instants
from eventide.testing.living_table.interruptions import Interruption, Pause, interrupted, was_paused
from eventide.testing.living_table.other_writer import incoming
from eventide.testing.living_table.statements import Statements
from eventide.testing.living_table.stock_engine import run_plan_as_stock
from eventide_adapters.storage.faulty import FaultyStorage, Operation, SimulatedCrash
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.write.pending_write import PendingWrite
from eventide_core.config import EXCLUSIVE, LinkChoice
from eventide_core.errors import (
    BusyError,
    EventideError,
    InstantNotFoundError,
    NoExactCutError,
    PlanMismatchError,
    RefusedError,
    WriteConflictError,
)
from eventide_core.ports import NoProgress
from eventide_core.table.files.file_group_write import heartbeat_path
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.plans import CutMode

HEARTBEAT_EXPIRY_MS = 121_000
_BETWEEN_STEPS_MS = 10  # room for a back-dated instant
_RETAINED = 2
_EAGER_SERVICES: dict[str, str] = {
    EXCLUSIVE: "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": str(_RETAINED),
    "hoodie.compact.inline.max.delta.commits": "1",
}
_LOOKED_AT = 3  # how many of the last commits each step inspects by time travel
_ROUND_BEFORE_ARCHIVAL = 5  # steps: rollback, resume, compact, tag, clean


@dataclass(frozen=True, slots=True)
class _Effects:
    """What a step may do: commit, remove or archive files, act as another engine, clean all but so many commits."""

    changes: Commit = ()
    removes: bool = False
    archives: bool = False
    as_stock: bool = False
    retained: int | None = None


@dataclass(slots=True)
class LivingTable:
    """A table in memory. `link` is how its compactions keep left-overs; `reach` counts what the steps reached.

    Its writes state how far a source has come if it has `statements`.
    """

    layout: Layout
    link: LinkChoice
    name: str
    cut: CutMode = CutMode.FILE
    reach: Counter[str] = field(default_factory=Counter[str])
    observer: Observer = field(default_factory=Observer)
    statements: Statements | None = None
    bench: Bench = field(init=False)
    account: Account = field(init=False)
    open_writes: list[tuple[PendingWrite, Commit]] = field(default_factory=list[tuple[PendingWrite, Commit]])
    _stated: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    _retained_from: str = ""
    _is_for_eventide_alone: bool = False
    _file_groups: int = 0
    _before: Files = field(default_factory=dict)
    _operations: tuple[Operation, ...] = ()

    def __post_init__(self) -> None:
        self.bench = Bench(self.name, {**OPTIONS, **self.layout.write_options, **_EAGER_SERVICES})
        self.bench.load(Moment({}, ManualClock().time_ms))
        self.account = Account(self.layout)
        self.layout.create(self.bench.storage)

    @property
    def files(self) -> Files:
        return self.bench.storage.dump()

    def write(self, changes: Commit, crash_at: Interruption = None) -> None:
        """Makes a commit, unless the commit would make a pending compaction visible to readers."""
        changes = self.layout.kept(changes)
        if self.account.would_show(changes):
            self.reach["writes avoided"] += 1
            return
        stated = self._next_statement()

        def run(application: Application) -> None:
            records = incoming(application, changes, self.layout)
            append = replace(application.append, stated=stated)
            append.write(WriteOperation.UPSERT, records, NoProgress())

        if isinstance(crash_at, Pause):
            crash_at = replace(crash_at, meanwhile=partial(self._others_leave_no_plan, crash_at.meanwhile, changes))
        self._step("write", run, crash_at, (BusyError,), changes=changes, removes=bool(pending_instants(self.files)))

    def _others_leave_no_plan(self, meanwhile: Callable[[], None], changes: Commit) -> None:
        """That is, none that a write which continues after a pause would make visible to readers."""
        meanwhile()
        if self.account.would_show(changes):
            self.undo_what_is_left()

    def begin_write(self, changes: Commit, crash_at: Interruption = None) -> None:
        """Begins a commit and writes its files. The commit stays pending until `end_write`."""
        changes = self.layout.kept(changes)
        begun: list[PendingWrite] = []
        stated = self._next_statement()

        def run(application: Application) -> None:
            records = incoming(application, changes, self.layout)
            pending = replace(application.append, stated=stated).begin(WriteOperation.UPSERT, records, NoProgress())
            application.heartbeats.stop(pending.instant)  # heartbeats run in real time, the test doesn't
            begun.append(pending)

        self._step("begin write", run, crash_at, (BusyError,), removes=bool(pending_instants(self.files)))
        self.open_writes += [(pending, changes) for pending in begun]
        self._stated.update((pending.instant, stated) for pending in begun)

    def end_write(self, number: int = 0, crash_at: Interruption = None) -> None:
        """Completes an open write.

        Rolls the write back if it conflicts, or if it would make a pending compaction visible to readers.
        """
        if not self.open_writes:
            return
        pending, changes = self.open_writes.pop(number % len(self.open_writes))
        if self.account.would_show(changes):
            self.reach["writes avoided"] += 1
            self._undo("undo open write", pending.instant, crash_at, force=True)
            return
        failure = self._step(
            "end write",
            lambda a: replace(a.append, stated=self._stated.get(pending.instant, {})).complete(pending),
            crash_at,
            (BusyError, RefusedError),
            changes=changes,
            removes=True,
        )
        if isinstance(failure, WriteConflictError):
            compactions = {event.instant for event in self.account.completed if event.merged is not None}
            compactions |= {plan.instant for plan in (self.account.plan,) if plan is not None}
            met = {instant for instant in compactions if instant in str(failure)}
            assert not met, f"a writer met a conflict with the compaction at {met}: {failure}"
            self.reach["conflicts of writers"] += 1

    def expire_heartbeats(self) -> None:
        """Lets time pass while the writers of open writes are paused, so that other processes consider them dead."""
        self._pass_the_expiry()

    def schedule(self, cut_ms: int, crash_at: Interruption = None) -> None:
        """Schedules a compaction at T. If the link mode `prefix` is refused, it uses `auto` instead."""
        links = [self.link, LinkChoice.AUTO] if self.link is LinkChoice.PREFIX else [self.link]
        for link in links:
            request = CompactionRequest(EPOCH_MS + cut_ms, None, link, cut=self.cut)
            self._is_for_eventide_alone = self.layout.version < 8 and bool(self.open_writes)
            failure = self._step("schedule", schedule_request(request), crash_at, (BusyError, RefusedError))
            if not isinstance(failure, RefusedError) or isinstance(crash_at, Pause):
                break
            if isinstance(failure, NoExactCutError):  # the published cut is later; only that one can be repeated
                self.schedule((self.bench.process().state().cut_ms or 0) - EPOCH_MS, crash_at)
                break
            assert link is LinkChoice.PREFIX, repr(failure)
        if self.account.plan is not None:
            self.reach["plans beside open writes"] += bool(self.open_writes)
            self.reach["plans with left-overs"] += any(op.left_overs for op in self.account.plan.operations)
            self.reach["plans with carried deletes"] += any(op.carried_name for op in self.account.plan.operations)

    def execute(self, crash_at: Interruption = None) -> None:
        if self.account.plan is not None:
            instant = self.account.plan.instant
            refusals: tuple[type[EventideError], ...] = (BusyError,)
            if self.account.is_overtaken(instant):
                refusals = (BusyError, PlanMismatchError)
            if self._is_being_rolled_back(instant):
                refusals = (BusyError, PlanMismatchError)
                # Any process that finds a decided rollback can delete the files that the plan made.
                self._before = {path: file for path, file in self._before.items() if instant not in path}
            self._step("execute", execute(instant), crash_at, refusals)
            self.reach["executed beside open writes"] += self.account.plan is None and bool(self.open_writes)

    def execute_as_stock(self) -> None:
        """Another engine executes the plan, unless eventide has begun to execute it.

        It also doesn't on version 6 if the plan was made beside open writes: then the owner has declared that no other
        engine runs the plan.
        """
        plan = self.account.plan
        if plan is None or self._is_for_eventide_alone:
            return
        if not any(plan.instant in path for path in self.files if "requested" not in path):
            self._step("execute as stock", lambda a: run_plan_as_stock(a, plan.instant), None, as_stock=True)

    def serve(self, cut_ms: int, crash_at: Interruption = None) -> None:
        """A round of the table service, without the archival: instants must be seen before they are archived."""
        request = CompactionRequest(EPOCH_MS + cut_ms, None, LinkChoice.AUTO, cut=self.cut)

        def run(application: Application) -> None:
            begun = count()
            service = TableService(application, request)
            for trouble in service.round(
                NoProgress(), is_leaving=lambda: next(begun) >= _ROUND_BEFORE_ARCHIVAL
            ).troubles:
                raise trouble.error

        self._step("serve", run, crash_at, (BusyError, RefusedError), retained=_RETAINED)

    def undo_what_is_left(self) -> None:
        """Rolls back what dead processes left: writes, and the pending plan, or executes it if its outcome is decided."""
        self._step("undo what is left", lambda a: a.rollback.undo_failed_writes(), None, removes=True)
        self.roll_back_plan()
        self.execute()

    def roll_back_plan(self, crash_at: Interruption = None) -> None:
        if self.account.plan is not None:
            self._undo("roll back plan", self.account.plan.instant, crash_at)

    def undo_last(self, crash_at: Interruption = None) -> None:
        """Rolls back the action that completed last. The rollback is refused if later actions depend on it."""
        if self.account.completed:
            self._undo("undo", self.account.completed[-1].instant, crash_at)

    def clean(self, retained: int, crash_at: Interruption = None) -> None:
        reasons = (BusyError,)
        self._step("clean", lambda a: a.cleaner.clean(retained), crash_at, reasons, retained=retained)

    def save(self, crash_at: Interruption = None) -> None:
        """Makes a savepoint of the completed commit with the latest instant."""
        shown = sorted(completed_instants(self.files))
        if shown:
            self._step("save", lambda a: a.savepoints.save(shown[-1]), crash_at, (BusyError,))

    def delete_savepoint(self, crash_at: Interruption = None) -> None:
        saved = savepointed_instants(self.files)
        if saved:
            self._step(
                "delete savepoint", lambda a: a.savepoints.delete(min(saved)), crash_at, (BusyError,), removes=True
            )

    def restore(self, crash_at: Interruption = None) -> None:
        """Restores the newest savepoint.

        A restore that dies runs again before the inspection, because readers can see an interrupted restore.
        """
        saved = savepointed_instants(self.files)
        if saved:

            def run(application: Application) -> None:
                application.restorer.restore(max(saved))

            if isinstance(crash_at, int):
                self._die(run, crash_at)
            self._step("restore", run, None, (BusyError, RefusedError), removes=True)

    def archive(self, crash_at: Interruption = None) -> None:
        self._step("archive", lambda a: a.archiver.archive(), crash_at, (BusyError,), archives=True)

    def record_others(self, changes: Commit, retained: int | None = None) -> None:
        """Records what other processes did: they may have committed `changes`, and cleaned all but `retained` commits."""
        if retained is not None:
            self._abort(retained)
        self.account.last_plan = None
        self.account.keep(self.bench.process(), self.files, changes, archives=False, as_stock=False)
        self._before = {}
        self._operations = ()

    def inspect(self, *, whole: bool = False) -> None:
        """Checks every invariant on the table as it is. If `whole`, it goes back to every commit that the table had."""
        files, account = self.files, self.account
        shown = completed_instants(files)
        promised = [i for i in account.oracle.instants if i in shown and i >= self._retained_from]
        promised = promised if whole else promised[-_LOOKED_AT:]
        cuts = [event.cut_ms for event in account.completed if event.cut_ms is not None]
        seen = self.observer.look(self.bench.process(), account.oracle.instants, promised, tries_the_rest=whole)
        check_invariants(
            Inspection(
                files=files,
                state=seen.state,
                seen=seen,
                oracle=account.oracle,
                blocks=account.blocks,
                plan=account.plan or account.last_plan,
                is_completed=account.plan is None,
                reader_orders=self.layout.reader_orders,
                untouched={path: file for path, file in self._before.items() if is_immutable(path)},
                # An interrupted rollback leaves files until a process completes it.
                rolled_back=() if pending_instants(files, "rollback") else account.rolled_back,
                cut_ms=max(cuts, default=None),
                operations=self._operations,
            )
        )
        if self.statements is not None:
            self.statements.check(self.bench.process(), seen.state, files, account.instants)
        self._before = files

    def _next_statement(self) -> Mapping[str, str]:
        stated = {} if self.statements is None else self.statements.next()
        self.reach["statements"] += len(stated)
        return stated

    def _abort(self, retained: int) -> None:
        """Withdraws the promise of time travel for the commits that a clean is allowed to remove."""
        writes = sorted(completed_instants(self.files))
        if len(writes) > retained:
            self._retained_from = max(self._retained_from, writes[-retained])

    def _is_being_rolled_back(self, instant: str) -> bool:
        outcome = self.files.get(f"{OUTCOMES_PREFIX}{instant}.outcome")
        return outcome is not None and b"null" in outcome.data

    def _undo(self, what: str, instant: str, crash_at: Interruption, *, force: bool = False) -> None:
        reasons = (BusyError, RefusedError, InstantNotFoundError)
        self._step(what, lambda a: a.rollback.undo(instant, force=force), crash_at, reasons, removes=True)

    def _step(
        self,
        what: str,
        run: Protocol,
        crash_at: Interruption,
        refusals: tuple[type[EventideError], ...] = (),
        **effects: Any,
    ) -> EventideError | None:
        """Runs a protocol, updates the account, and inspects the table. Returns the refusal of the protocol, or None.

        A protocol can be refused as busy only if an action was pending. One that was paused may fail in any way that the
        user sees.
        """
        self.bench.clock.sleep(_BETWEEN_STEPS_MS)
        self.reach[what] += 1
        was_pending = bool(pending_instants(self.files))
        what_it_does, own = _Effects(**effects), set[str]()

        def falls_asleep() -> None:
            own.update(self._look(what_it_does))
            self.let_the_dead_expire()

        storage = interrupted(self.bench.storage, crash_at, falls_asleep)
        died, failure = self._run(run, storage)
        if was_paused(storage, crash_at):
            self.reach[f"{what}, woken and {'done' if failure is None else 'failed'}"] += 1
            self.reach["pauses"] += 1
            what_it_does = replace(what_it_does, removes=True)  # it takes back what it wrote
        else:
            assert failure is None or isinstance(failure, refusals), f"{what}: {failure!r}"
            assert was_pending or not isinstance(failure, BusyError), f"{what}: {failure!r}"
        own.update(self._look(what_it_does))
        if what_it_does.changes and not died and not own & self.account.rolled_back:
            assert bool(own) == (failure is None), f"{what}: {own} has completed, and the user sees {failure!r}"
        if died:
            self.reach["crashes"] += 1
            self.let_the_dead_expire()
        elif failure is None:
            self.reach[f"{what}, done"] += 1
        return failure

    def _look(self, step: _Effects) -> frozenset[str]:
        """Updates the account, and inspects the table. Returns what has completed since the last look."""
        files, known = self.files, self.account.instants
        if step.retained is not None:
            self._abort(step.retained)
        removes = step.removes or step.retained is not None
        if removes or step.archives:  # files can be gone, but the remaining ones must be unchanged
            self._before = {path: file for path, file in self._before.items() if path in files}
        if removes:
            self.account.last_plan = None
        gone = self.account.keep(
            self.bench.process(), files, step.changes, archives=step.archives, as_stock=step.as_stock
        )
        swept = self.account.archived  # any action ends an archival that was interrupted
        self._before = {p: f for p, f in self._before.items() if p in files or not any(i in p for i in swept)}
        self.reach["completed actions undone"] += len(gone)
        self.inspect()
        return self.account.instants - known

    def _die(self, run: Protocol, crash_at: int) -> None:
        died, _ = self._run(run, interrupted(self.bench.storage, crash_at, self.let_the_dead_expire))
        self.reach["crashes"] += died
        self.let_the_dead_expire()

    def _run(self, run: Protocol, storage: FaultyStorage) -> tuple[bool, EventideError | None]:
        try:
            run(self.bench.process(storage, self._next_uuid))
        except SimulatedCrash:
            return True, None
        except EventideError as failure:
            return False, failure
        finally:
            self._operations = storage.operations
        return False, None

    def let_the_dead_expire(self) -> None:
        """Lets the lock and the heartbeat of a dead process expire. The open writes are alive, and continue."""
        self._pass_the_expiry()
        for pending, _ in self.open_writes:
            path = heartbeat_path(pending.instant)
            if path in self.files:
                self.bench.storage.put(path, self.bench.storage.read(path))

    def _pass_the_expiry(self) -> None:
        """On the same storage, with which a paused process continues."""
        self.bench.clock.sleep(HEARTBEAT_EXPIRY_MS)

    def _next_uuid(self) -> str:
        self._file_groups += 1
        return f"00000000-0000-4000-8000-{self._file_groups:012d}"
