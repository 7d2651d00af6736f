"""Runs a scheduled compaction to its end. Re-runnable at any point: the same instant makes the same names.

The steps of the protocol, and what a crash after each leaves:

2. Wait out the clock skew, and read the table again. Version 8 and later: if the plan's instant is not quiet after all,
   the plan is rolled back and replaced by another one (as in step 6; action/compaction/quiet_moment.py). Version 6: wait
   for the writes that may not have seen the plan; changed old slices are planned again in place (nothing else exists yet).
3. `<instant>.compaction.inflight`: a pending plan.
4. and 5. One task per slice on the engine: left-overs in reverse order, carried tombstones, marker, base file. Not
   visible, or (version 6) visible and idempotent: readers merge a pending slice with the one below it.
6. and 7. Under the lock: check that merged log files and left-overs are unchanged, and that what was made is there
   whole; claim the outcome, which fixes the completion time; then the metadata table's commit at that time, which
   nobody sees yet; then the completed file, once, last.
8. Remove the markers. A crash before that leaves an empty directory under `.hoodie/.temp`.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from eventide_core.access.timeline_files import delete_each
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.compaction.trigger import check_undoing, cure_of
from eventide_core.action.freshness.freshness import NO_CUT
from eventide_core.config import LinkChoice
from eventide_core.cure import Cure
from eventide_core.errors import (
    BusyError,
    EventideError,
    InstantNotFoundError,
    LockError,
    LockLostError,
    MissingFileError,
    PlanMismatchError,
    StorageError,
)
from eventide_core.ports import Engine, FileChanges, Lease, MergeResult, MergeTask, Progress, TableLock
from eventide_core.service.common.facts.arrival import mark_sources, to_repeat
from eventide_core.service.common.facts.freshness import FreshnessReader
from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep
from eventide_core.service.common.state.metadata_listing import committed_files
from eventide_core.service.common.state.ownership import Ownership
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.action import Fate, Transaction
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.service.compaction.commit import added_files, commit_metadata
from eventide_core.service.compaction.compact_slice import SliceCompactor
from eventide_core.service.compaction.completion import (
    Completion,
    check_made,
    check_pending,
    commit_lock,
    passed_groups,
    why_late,
    why_overtaken,
)
from eventide_core.service.compaction.merge_tasks import MergesAhead, merge_tasks, merges_ahead, run_tasks
from eventide_core.service.compaction.result import CompactionResult, metrics_of
from eventide_core.service.compaction.run_foreign import ForeignCompactionRunner
from eventide_core.service.compaction.scheduling.draft_plan import PutPlan
from eventide_core.service.compaction.scheduling.planned_slices import is_as_planned
from eventide_core.service.compaction.scheduling.replan import Replanner
from eventide_core.service.compaction.scheduling.schedule import (
    CompactionScheduler,
    once_metadata_table_is_free,
    wait_until,
)
from eventide_core.service.compaction.scheduling.settings import CompactionSettings
from eventide_core.service.rollback.compaction import CompactionRollback
from eventide_core.service.rollback.compaction_files import made_files, remove_markers
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.commit_metadata import DROPPED_INDEXES_KEY
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan, LinkMode, require_ours
from eventide_core.table.timeline.file_system_view import FileGroup
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.timeline import Timeline

PLANS_AT_MOST = 5  # the number of plans that one run makes, each in place of one that it rolled back


@dataclass(frozen=True, slots=True)
class CompactionRunner:
    files: TableFiles
    scheduler: CompactionScheduler
    replanner: Replanner
    freshness: FreshnessReader
    metadata: MetadataTableUpkeep
    compact_slice: SliceCompactor
    foreign: ForeignCompactionRunner
    engine: Engine
    ownership: Ownership
    lock: TableLock
    settings: CompactionSettings

    def execute(
        self, instant: str, progress: Progress, *, may_take_over: bool = False, put: PutPlan | None = None
    ) -> CompactionResult:
        """Runs the plan at `instant`, or continues it. For a completed one, returns the result from its commit.

        `may_take_over`: also runs a plan that another engine has begun, whose process is known to be dead
        (`run_foreign`), and one whose rollback was interrupted (`rollback/compaction`). `put` is the plan, if this process
        has just put it: then nothing has to be read.

        One process at a time (service/common/state/ownership.py): raises BusyError while another one runs it. Raises
        InstantNotFoundError, PlanMismatchError, BusyError; EngineError and StorageError with what is known about the
        commit.
        """
        tracer = self.files.tracer
        for attempt in range(1, PLANS_AT_MOST + 1):
            read, put = self._read(instant, put), None
            if read is None:
                break
            config, pending, plan, tasks = read
            try:
                begun = merges_ahead(self.engine, self.compact_slice, tasks, progress)
                with tracer.span("execute", instant=instant), begun as ahead, ExitStack() as held:
                    self._own(pending, plan, config, held)
                    if isinstance(plan, ForeignPlan):
                        self.foreign.run(plan, progress, may_take_over=may_take_over)
                        break
                    ended = once_metadata_table_is_free(
                        partial(self._run, plan, config, held, progress, ahead, is_alone=may_take_over),
                        self.files.clock,
                        self.settings.wait_ms,
                    )
            except LockLostError:
                # A stock writer that closes removes the lock file of any holder. Every step can be repeated.
                if attempt == PLANS_AT_MOST:
                    raise
                continue
            except EventideError as failure:
                # The plan's files may be gone because others have executed it meanwhile.
                if isinstance(failure, LockError) or not self._has_completed(config, instant):
                    if isinstance(failure, MissingFileError):
                        check_undoing(self.files.timeline(config))
                    raise
                if isinstance(plan, CompactionPlan):
                    self._remove_late(plan)
                break
            if isinstance(ended, CompactionResult):
                return ended
            if ended is None:
                self._remove_late(plan)
                break
            put = self._plan_again(ended)
            if put is None:
                return self.reached()
            instant = put[0].instant
        return self._completed(instant)

    def reached(self) -> CompactionResult:
        """The result if the published cut already meets the request: nothing was done."""
        state = TableState.load(self.files)
        instant = state.published_cut.instant
        return CompactionResult(instant, self.freshness.now(state), metrics_of(()), is_already_reached=True)

    def _read(
        self, instant: str, put: PutPlan | None
    ) -> tuple[TableConfig, Instant, CompactionPlan | ForeignPlan, tuple[MergeTask, ...]] | None:
        """The settings, the pending instant, the plan, and the tasks to begin at once. None if it has completed.

        A plan that was just put is checked again before it is begun.
        """
        if put is not None:
            requested = Instant(instant, Action.COMPACTION, State.REQUESTED)
            plan, state = put
            return state.config, requested, plan, merge_tasks(state, self.settings.codec, plan)
        config, timeline = self.files.config_and_timeline()
        pending = self._pending(config, timeline, instant)
        if pending is None:
            return None
        try:
            return config, pending, self.files.plan(config, instant), ()
        except InstantNotFoundError:
            if self._has_completed(config, instant):  # and was archived since the timeline was read
                return None
            raise

    def _has_completed(self, config: TableConfig, instant: str) -> bool:
        return self.files.transaction(config, Kind.COMPACTION, Action.COMPACTION, instant).fate().has_completed

    def _remove_late(self, plan: CompactionPlan) -> None:
        """Removes what this process made after others had completed the compaction and cleaned its slices.

        The metadata table shows what that is. Without one, the next clean finds it in slices that are old.
        """
        with self.lock.acquire() as lease:
            named = committed_files(self.files, *self.files.config_and_timeline())
            if named is not None:
                there = {file.path for file in named}
                delete_each(self.files.storage, [path for path in made_files(plan) if path not in there], lease)
        remove_markers(self.files, plan)

    def _pending(self, config: TableConfig, timeline: Timeline, instant: str) -> Instant | None:
        """The pending compaction at an instant; None once it has completed. Raises InstantNotFoundError."""
        compaction = timeline.find_compaction(instant)
        if compaction is None and timeline.find(instant) is None:
            compaction = self.files.archive(config).find(instant)
        if compaction is not None and compaction.action is Action.COMMIT and compaction.is_completed:
            return None
        other = timeline.find(instant)
        if other is not None and other.is_pending_plan and other.action is not Action.COMPACTION:
            raise BusyError(f"a {other.action} is pending at {instant}; {cure_of(other)}")
        if compaction is None or compaction.action is not Action.COMPACTION:
            raise InstantNotFoundError(
                f"{self.files.storage.root}: no compaction is pending at {instant}; {Cure.history()} lists the pending ones"
            )
        return compaction

    def _own(self, pending: Instant, plan: CompactionPlan | ForeignPlan, config: TableConfig, held: ExitStack) -> None:
        """Makes this process the owner of the instant until `held` ends. Meanwhile, the clock skew of step 2 passes."""
        is_to_wait = isinstance(plan, CompactionPlan) and (
            pending.state is State.REQUESTED or config.layout.writers_follow_plans
        )
        skew_ms = self.settings.skew_ms if is_to_wait else 0
        with self.files.tracer.span("own"):
            self.files.requests.both(
                lambda: held.enter_context(self.ownership.held(pending)), lambda: self.files.clock.sleep(skew_ms)
            )

    def _run(
        self,
        plan: CompactionPlan,
        config: TableConfig,
        held: ExitStack,
        progress: Progress,
        ahead: MergesAhead | None,
        *,
        is_alone: bool,
    ) -> "CompactionResult | _RolledBack | None":
        """Steps 2 to 8. None if the compaction has completed, but only the timeline states how."""
        tracer = self.files.tracer
        with tracer.span("begin"):
            started = self._start(plan, config, is_alone=is_alone)
        if not isinstance(started, tuple):
            return started
        state, plan = started
        # The slices were checked in this state; later files are in none of them.
        tasks = merge_tasks(state, self.settings.codec, plan)
        try:
            self.freshness.after(state, plan)  # warms the facts before the lock is held
            results = run_tasks(self.engine, self.compact_slice, plan, tasks, progress, tracer, ahead)
        except EventideError as failure:
            if self._sweep_after_rollback(plan):
                raise PlanMismatchError(
                    f"the plan at {plan.instant} was rolled back while it ran, and nothing of it is left: plan again"
                ) from failure
            raise
        try:
            with tracer.span("commit"):
                return self._complete(state, plan, results, held)
        except StorageError as failure:
            self.files.resolve_failed_commit(
                "compaction", plan.instant, failure, f"run it again: {Cure.execute(plan.instant)}"
            )
        except (InstantNotFoundError, PlanMismatchError):
            self._sweep_after_rollback(plan)
            raise
        return None

    def _plan_again(self, rolled_back: "_RolledBack") -> PutPlan | None:
        """A new plan that replaces the rolled-back one; None if others have reached its T since. Raises BusyError."""
        plan = rolled_back.plan
        if plan.cut_ms is None:
            raise BusyError(f"{rolled_back.why}: the plan was rolled back, and nothing of it is left; plan again")
        link = LinkChoice.AUTO if plan.link_mode is LinkMode.PREFIX else LinkChoice(plan.link_mode)
        draft = self.scheduler.schedule(CompactionRequest(plan.cut_ms, None, link, cut=plan.cut))
        if draft.is_reached:
            return None
        if draft.idle is not None:
            raise BusyError(f"{rolled_back.why}: the plan was rolled back, and now {draft.idle}")
        assert draft.put is not None  # of a request to be run at once
        return draft.put

    def _sweep_after_rollback(self, plan: CompactionPlan) -> bool:
        """Whether another process rolled back the plan. If so, removes what this process made since: no other will."""
        transaction = self._transaction(self.files.config(), plan)
        if transaction.fate() is not Fate.UNDONE:
            return False
        requested = transaction.at(State.REQUESTED)
        if transaction.timeline.exists(requested):
            with self.lock.acquire():  # until that process has ended or died
                if transaction.timeline.exists(requested):
                    return True  # whoever ends its rollback removes all of this, or the plan is run after all
        for path in made_files(plan):
            self.files.storage.delete(path)
        remove_markers(self.files, plan)
        return True

    def _start(
        self, plan: CompactionPlan, config: TableConfig, *, is_alone: bool
    ) -> "tuple[TableState, CompactionPlan] | _RolledBack | None":
        """Steps 2 and 3. Returns the table's state, and the valid plan, which may be a new one.

        Returns None if another process was faster.
        """
        self.wait_for_unaware_writes(plan, config)
        with self.lock.acquire() as lease:
            state, stored = self.files.requests.both(
                partial(TableState.load, self.files), partial(self.files.plan, config, plan.instant)
            )
            self.files.sweep(state.config, state.timeline, lease)
            pending = self._pending(state.config, state.timeline, plan.instant)
            if pending is None:
                return None
            plan = require_ours(stored)
            self.metadata.check(state.config, RowChange.NONE)
            check_pending(state, plan)
            rollback = CompactionRollback(self.files, self.metadata)
            rollback.resume(state, plan, lease, self.files.clock.now_ms(), is_alone=is_alone)
            is_followed = bool(state.logs_on_top_of(plan))
            others = passed_groups(self.files, state, plan) if is_followed else frozenset[FileGroup]()
            plan = plan.without(others)
            passed = why_late(state, plan) or why_overtaken(state, plan)
            if passed is not None:
                return self._roll_back(state, plan, passed, lease)
            changed = [op for op in plan.operations if not is_as_planned(state, plan, op)]
            transaction = self._transaction(state.config, plan)
            may_be_rolled_back = not state.config.layout.writers_follow_plans and not is_followed
            if changed or others:
                names = ", ".join(f"{op.partition}/{op.file_id}" for op in changed)
                if pending.state is State.INFLIGHT:
                    raise PlanMismatchError(
                        f"the plan at {plan.instant} no longer fits the table: {names} changed since; roll it back"
                    )
                if may_be_rolled_back:
                    return self._roll_back(state, plan, f"{names} changed since the plan at {plan.instant}", lease)
                plan = self.replanner.replan(state, plan) if changed else plan
                transaction.replace_request(lease, self.files.codec.encode_plan(plan))
            transaction.put(lease, State.INFLIGHT)
        return state, plan

    def _transaction(self, config: TableConfig, plan: CompactionPlan) -> Transaction:
        return self.files.transaction(config, Kind.COMPACTION, Action.COMPACTION, plan.instant)

    def _roll_back(self, state: TableState, plan: CompactionPlan, why: str, lease: Lease) -> "_RolledBack":
        """Rolls back the plan: no log file depends on it."""
        CompactionRollback(self.files, self.metadata).undo(state, plan.instant, lease)
        return _RolledBack(plan, why)

    def wait_for_unaware_writes(self, plan: CompactionPlan, config: TableConfig) -> None:
        """Version 6: waits, as long as configured, for the writes that are pending now to end.

        They may have loaded the timeline without the plan, and then append to the old slices. A write that begins later
        sees the plan and appends to the new slices, so it isn't waited for.
        """
        if not config.layout.writers_follow_plans:
            return
        unaware = {write.requested_time for write in self.files.timeline(config).pending_writes}

        def have_ended() -> bool:
            unaware.intersection_update(write.requested_time for write in self.files.timeline(config).pending_writes)
            return not unaware

        waited_ms = wait_until(have_ended, self.files.clock, self.settings.wait_ms)
        if waited_ms is not None:
            raise BusyError(
                f"the plan at {plan.instant} waits for writes that may not have seen it: "
                f"{', '.join(sorted(unaware))} did not complete within {waited_ms} ms; run it again with "
                f"{Cure.execute(plan.instant)}, or roll a write back whose writer is dead"
            )

    def _complete(
        self, begun: TableState, plan: CompactionPlan, results: Sequence[MergeResult], held: ExitStack
    ) -> "CompactionResult | _RolledBack | None":
        """Steps 6 to 8, and the end of the ownership. `begun` is the table's state of step 3.

        None if another process completed the compaction, or has rolled it back since.
        """
        if self.files.timeline(begun.config).completed != begun.timeline.completed:
            self.freshness.after(TableState.load(self.files), plan)  # warms the facts before the lock is held
        added = added_files(plan, results)
        changes = FileChanges(RowChange.NONE, added)
        known = self.metadata.known_ahead(begun.config, plan.instant, changes)
        with ExitStack() as locked:
            lease, state = locked.enter_context(commit_lock(self.files, self.lock, begun.config))
            if self._pending(state.config, state.timeline, plan.instant) is None:
                remove_markers(self.files, plan)  # this process's own markers; another process was faster
                return None
            check_pending(state, plan)
            passed = why_late(state, plan) or why_overtaken(state, plan)
            if passed is not None:
                return self._roll_back(state, plan, passed, lease)
            for op in plan.operations:
                if not is_as_planned(state, plan, op):
                    raise PlanMismatchError(
                        f"{op.partition}/{op.file_id} changed while the plan at {plan.instant} ran; nothing was committed"
                    )
            check_made(state, added)
            fresh = self.freshness.after(state, plan)
            with self.files.tracer.span("metadata table: prepare"):
                update = self.metadata.prepare(state.config, lease, plan.instant, changes, known)
            lease.check()
            completion = Completion.claim(self.files, state, self._transaction(state.config, plan))
            settings = state.config.recorded_settings
            field, said = plan.event_time_field, to_repeat(self.files, state)
            carried = state.carried_metadata(said, schema_of=plan.instant)
            mark_sources(self.files, carried)
            metadata = commit_metadata(
                plan,
                results,
                fresh,
                carried,
                state.checksums,
                settings=settings,
                event_times=field and state.shape(field).event_time_source,
            )
            is_ours = completion.put(self.files, state, metadata, update, lease)
            update.check_after_commit(lease)
            with self.files.tracer.span("metadata table: compact"):
                update.compact(lease, completion.time)
            # All of these follow the commit, and none of them depends on another one.
            _, _, _, timeline = self.files.requests.all_of(
                locked.close,
                partial(remove_markers, self.files, plan),
                held.close,
                lambda: self.files.timeline(begun.config),
            )
        committed = timeline.find_compaction(plan.instant)
        if not is_ours or committed is None or not committed.is_completed:
            return None
        # The state inside the lock is the commit's, so the result needs no other load of the table.
        metrics = metrics_of(tuple(metadata.stats))
        return CompactionResult(plan.instant, fresh, metrics, dropped_indexes=update.dropped_indexes)

    def _completed(self, instant: str) -> CompactionResult:
        state = TableState.load(self.files)
        write = state.find_write(instant)
        if write is None or not write.is_completed:
            raise InstantNotFoundError(f"the compaction at {instant} is no longer on the timeline: it was rolled back")
        commit = state.commit(write)
        fresh = NO_CUT if state.cut_ms is None else self.freshness.now(state)
        dropped = commit.extra_metadata.get(DROPPED_INDEXES_KEY, "").split(",")
        return CompactionResult(instant, fresh, metrics_of(commit.stats), dropped_indexes=tuple(filter(None, dropped)))


@dataclass(frozen=True, slots=True)
class _RolledBack:
    """A plan that this run rolled back, and the reason: it was put late, its instant isn't quiet, or a slice changed."""

    plan: CompactionPlan
    why: str
