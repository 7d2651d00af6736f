"""Runs a compaction plan that another engine scheduled, and commits it as Hudi would.

Hudi rolls back a compaction that it finds inflight: it reads the markers, deletes the files that they name, deletes the
inflight file, and begins again. It does so according to the timeline that it has read, possibly before eventide's
commit. On version 6, this lost the base files of a completed compaction. Therefore, the plan stays requested while
eventide creates its files, and the inflight file appears last, when no marker names them any longer: no rollback of
Hudi ever names a file of eventide's commit.

Order of writes, and what a crash after each leaves:

1. Under the lock: if a run of eventide died in step 3, or the user states that Hudi did, the inflight file is removed.
2. One task per slice: marker, then base file. A crash leaves a requested plan. The next run of eventide removes these
   files: at its own commit, or after Hudi's, which leaves them (`pending`).
3. Under the lock: check that nothing has completed, that nobody has begun the plan, and that all files exist. Their
   markers are removed. Then the inflight file is put if absent: the process that creates it runs the plan. If the plan
   is gone by then, its engine has rolled it back, and everything is removed. The outcome is claimed, which fixes the
   completion time. Entries of an earlier attempt in the metadata table are removed, and its base files. The metadata
   table gets its commit, and the completed file is put. After a crash in between, eventide continues with the same
   names. Hudi begins again, and leaves these files beside its own: they contain the same rows, and readers use those
   that the commit names (`table/timeline/file_system_view`).

If Hudi has begun the plan in the meantime, it wins: eventide removes its own files, and returns Hudi's commit, or
raises BusyError while there is none. If Hudi began the plan again because it read the timeline before eventide's
commit, Hudi's commit fails, and its base files stay.

An inflight file of another engine doesn't show which process works on the plan, or whether it is alive. Such a plan is
taken over only if the user states that its engine is dead. From version 8 on, the inflight file of a plan that was
taken over is removed before the completed file is put: Hudi completes no instant without one, so a process that is
alive after all cannot complete it again.
"""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from eventide_core.access.files import remove_tree
from eventide_core.access.timeline_files import delete_each
from eventide_core.action.compaction.change_capture import with_change_logs, writes_change_logs
from eventide_core.action.compaction.trigger import check_pending_writes, check_undoing
from eventide_core.cure import Cure
from eventide_core.errors import (
    BusyError,
    CorruptTimelineError,
    EventideError,
    InstantNotFoundError,
    LockError,
    MissingFileError,
    PlanMismatchError,
    StorageError,
)
from eventide_core.ports import Engine, FileChanges, Lease, MergeResult, Progress, TableLock
from eventide_core.service.common.facts.arrival import mark_sources, to_repeat
from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep, PendingUpdate
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.action import Put
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.service.compaction.commit import added_files, whole_slices_metadata
from eventide_core.service.compaction.compact_slice import SliceCompactor
from eventide_core.service.compaction.completion import Completion
from eventide_core.service.compaction.foreign_plan import Attempt, as_executed, claim_attempt, other_bases
from eventide_core.service.compaction.merge_tasks import merge_tasks, run_tasks
from eventide_core.service.compaction.scheduling.planned_slices import is_as_planned
from eventide_core.service.compaction.scheduling.schedule import wait_until
from eventide_core.service.compaction.scheduling.settings import CompactionSettings
from eventide_core.service.rollback.compaction_files import made_files
from eventide_core.table.files.file_group_write import marker_directory
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan
from eventide_core.table.timeline.instant import Action, Instant, State


@dataclass(frozen=True, slots=True)
class ForeignCompactionRunner:
    files: TableFiles
    metadata: MetadataTableUpkeep
    compact_slice: SliceCompactor
    engine: Engine
    lock: TableLock
    settings: CompactionSettings

    def run(self, plan: ForeignPlan, progress: Progress, *, may_take_over: bool) -> None:
        """Runs the plan to its commit, or finds that another engine was faster.

        `may_take_over`: an engine that has begun the plan is known to be dead.

        Raises BusyError while another engine works on it; PlanMismatchError if the table no longer fits it; EngineError
        and StorageError with what is known about the commit.
        """
        self._wait_for_writes(plan)
        begun = self._begin(plan, may_take_over=may_take_over)
        if begun is None:
            return
        attempt, executed = begun
        tasks = merge_tasks(TableState.load(self.files), self.settings.codec, executed)
        try:
            results = run_tasks(self.engine, self.compact_slice, executed, tasks, progress, self.files.tracer)
        except EventideError:
            with self._locked(attempt, executed) as lease:
                if self.is_ended(executed, lease):
                    return
            raise
        try:
            self._complete(plan, attempt, executed, results)
        except StorageError as failure:
            cure = f"run it again: {Cure.execute(plan.instant)}"
            self.files.resolve_failed_commit("compaction", plan.instant, failure, cure)

    def _wait_for_writes(self, plan: ForeignPlan) -> None:
        """Version 6: waits, as long as configured, for writes that began before the plan, and so may not have seen it."""
        config = self.files.config()
        if not config.layout.writers_follow_plans:
            return

        def have_ended() -> bool:
            return all(write.requested_time >= plan.instant for write in self.files.timeline(config).pending_writes)

        if wait_until(have_ended, self.files.clock, self.settings.wait_ms) is not None:
            check_pending_writes(self.files.timeline(config), plan.instant)

    def _begin(self, plan: ForeignPlan, *, may_take_over: bool) -> tuple[Attempt, CompactionPlan] | None:
        """Step 1. None if the plan has completed in the meantime."""
        with self.lock.acquire() as lease:
            state = TableState.load(self.files)
            compaction = state.timeline.find(plan.instant)
            if compaction is None or compaction.is_completed:
                return None
            self.metadata.check(state.config, RowChange.NONE)
            captures = writes_change_logs(state.config, self.settings.index_type, state.view.latest_slices())
            self._check_neighbours(state, plan)
            attempt = self._attempt(state.config, plan.instant)
            if compaction.state is State.INFLIGHT and attempt is None and not may_take_over:
                raise BusyError(self._why_not_ours(state.config, plan.instant))
            if attempt is None:
                number = claim_attempt(self.files.storage, state.listing, plan)
                attempt = Attempt(number, compaction.state is State.INFLIGHT, is_unshared=True)
            executed = as_executed(state, plan, attempt.number)
            if captures:
                executed = with_change_logs(executed)
            _check_slices(state, executed)
            if compaction.state is State.INFLIGHT:
                self.files.on_timeline(state.config).delete(_inflight(plan.instant), lease)
            return attempt, executed

    def _complete(
        self, plan: ForeignPlan, attempt: Attempt, executed: CompactionPlan, results: Sequence[MergeResult]
    ) -> None:
        """Step 3."""
        storage = self.files.storage
        changes = FileChanges(RowChange.NONE, added_files(executed, results))
        known = self.metadata.known_ahead(self.files.config(), plan.instant, changes)
        with self._locked(attempt, executed) as lease:
            if self.is_ended(executed, lease):
                return
            state = TableState.load(self.files)
            self.files.sweep(state.config, state.timeline, lease)
            self._check_neighbours(state, plan)
            _check_slices(state, executed)
            self.remove_markers_of(executed, lease)
            timeline = self.files.on_timeline(state.config)
            transaction = self.files.transaction(state.config, Kind.PLAN_OF_HUDI, Action.COMPACTION, plan.instant)
            match transaction.put(lease, State.INFLIGHT, attempt.encode()):
                case Put.EXISTED:
                    self._remove(made_files(executed), executed, lease)
                    raise BusyError(_is_taken(plan.instant))
                case Put.LATE:  # this process was paused since the last check
                    if self.is_ended(executed, lease):
                        return
                case Put.DONE:
                    pass
            self.check_made(plan, results)
            self.metadata.revert(state.config, lease, plan.instant)
            update = self.metadata.prepare(state.config, lease, plan.instant, changes, known)
            lease.check()
            completion = Completion.claim(self.files, state, transaction)
            others = other_bases(state.listing, plan.instant, plan.file_groups, made_files(executed))
            delete_each(storage, others, lease)
            if attempt.is_taken_over and state.config.layout.needs_hudi_1:
                timeline.delete(_inflight(plan.instant), lease)
            carried, settings = state.carried_metadata(to_repeat(self.files, state)), state.config.recorded_settings
            mark_sources(self.files, carried)
            metadata = whole_slices_metadata(executed, results, carried, settings)
            is_put = completion.put(self.files, state, metadata, update, lease)
            if not is_put and self._named(state.config, executed.instant) != {
                op.new_base_path for op in executed.operations
            }:
                self._lose(executed, update, lease)
                return
            update.check_after_commit(lease)
            update.compact(lease, completion.time)
            remove_tree(storage, marker_directory(plan.instant))

    @contextmanager
    def _locked(self, attempt: Attempt, executed: CompactionPlan) -> Generator[Lease]:
        """The lock. If another process keeps it, the files of an attempt that nobody else can continue are removed."""
        with ExitStack() as held:
            try:
                lease = held.enter_context(self.lock.acquire())
            except LockError:
                if attempt.is_unshared:
                    self._remove(made_files(executed), executed, None)
                raise
            yield lease

    def _check_neighbours(self, state: TableState, plan: ForeignPlan) -> None:
        """Raises BusyError for pending actions that block this plan.

        Other plans don't: Hudi's plans never share a file group.
        """
        check_undoing(state.timeline)
        if state.config.layout.writers_follow_plans:
            check_pending_writes(state.timeline, plan.instant)

    def check_made(self, plan: ForeignPlan, results: Sequence[MergeResult]) -> None:
        for result in results:
            info = self.files.storage.stat(result.new_base_path)
            if info is None or info.size != result.base_size:
                raise BusyError(
                    f"{result.new_base_path} was removed since it was written: another engine is rolling back the "
                    f"compaction at {plan.instant}; try again when that has completed"
                )

    def is_ended(self, executed: CompactionPlan, lease: Lease) -> bool:
        """Whether the compaction has completed. Removes this attempt's files, unless the commit names them.

        Raises BusyError if another engine has begun the plan since, InstantNotFoundError if it has rolled the plan back.
        """
        config = self.files.config()
        instant = executed.instant
        compaction = self.files.timeline(config).find(instant)
        if compaction is not None and compaction.state is State.REQUESTED:
            return False
        named = self._named(config, instant)
        if named is not None:
            lost = [op for op in executed.operations if op.new_base_path not in named]
            self._remove([path for op in lost for path in op.made_paths], executed, lease)
            return True
        self._remove(made_files(executed), executed, lease)
        if compaction is not None:
            raise BusyError(_is_taken(instant))
        raise InstantNotFoundError(
            f"another engine rolled back its compaction plan at {instant} while eventide ran it, and nothing of eventide's "
            "is left"
        )

    def _named(self, config: TableConfig, instant: str) -> set[str] | None:
        """The files that the commit at the instant names, active or archived; None if there is no commit.

        Raises CorruptTimelineError if the archive has lost it.
        """
        active = self.files.timeline(config).find(instant)
        if active is not None:
            return {stat.path for stat in self.files.commit(config, active).stats} if active.is_completed else None
        archive = self.files.archive(config)
        if archive.find(instant) is None:
            return None
        commit = archive.commit(instant)
        if commit is None:
            raise CorruptTimelineError(
                f"{config.archive_path} has no metadata of the compaction at {instant}; restore it from a copy"
            )
        return {stat.path for stat in commit.stats}

    def _lose(self, executed: CompactionPlan, update: PendingUpdate, lease: Lease) -> None:
        """Another engine without the lock has committed between the last check and this commit: its commit counts."""
        if update.update is not None:
            update.drop(lease)  # it names the files of both
        self._remove(made_files(executed), executed, lease)

    def _remove(self, paths: Sequence[str], executed: CompactionPlan, lease: Lease | None) -> None:
        delete_each(self.files.storage, paths, lease)
        self.remove_markers_of(executed, lease)

    def remove_markers_of(self, executed: CompactionPlan, lease: Lease | None) -> None:
        """Removes only this attempt's files, because another engine's may be beside them."""
        if lease is not None:
            lease.check()
        for op in executed.operations:
            self.files.storage.delete(op.marker_path(executed.instant))

    def is_held_by_other(self, config: TableConfig, pending: Instant) -> bool:
        """Whether another engine has begun the pending compaction."""
        return pending.state is State.INFLIGHT and self._attempt(config, pending.requested_time) is None

    def check_not_begun(self, config: TableConfig, pending: Instant) -> None:
        """Raises BusyError, with what the user can do, if another engine has begun the pending compaction."""
        if self.is_held_by_other(config, pending):
            raise BusyError(self._why_not_ours(config, pending.requested_time))

    def _attempt(self, config: TableConfig, instant: str) -> Attempt | None:
        """The attempt that the inflight file states; None if there is no inflight file, or it is another engine's."""
        try:
            timeline = self.files.on_timeline(config)
            return Attempt.decode(timeline.read(_inflight(instant)), timeline.path(_inflight(instant)))
        except MissingFileError:
            return None

    def _why_not_ours(self, config: TableConfig, instant: str) -> str:
        info = self.files.storage.stat(self.files.on_timeline(config).path(_inflight(instant)))
        minutes = 0 if info is None else max(0, self.files.clock.now_ms() - info.modified_ms) // 60_000
        return (
            f"another engine started the compaction at {instant} {minutes} minutes ago, and writes no "
            "heartbeat; try again when it has completed. If you know that its process is dead, take over "
            f"the plan: {Cure.execute(instant, force=True)}"
        )


def _is_taken(instant: str) -> str:
    return (
        f"another engine took over the compaction at {instant} while eventide ran it, and nothing of "
        "eventide's is left; try again when it has completed"
    )


def _inflight(instant: str) -> Instant:
    return Instant(instant, Action.COMPACTION, State.INFLIGHT)


def _check_slices(state: TableState, executed: CompactionPlan) -> None:
    for op in executed.operations:
        if not is_as_planned(state, executed, op):
            raise PlanMismatchError(
                f"{op.partition}/{op.file_id} no longer matches the plan of another engine at "
                f"{executed.instant}; nothing was committed. Roll the plan back with that engine, and plan again"
            )
