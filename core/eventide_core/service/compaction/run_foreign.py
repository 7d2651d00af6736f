"""Run a compaction plan that another engine of Hudi scheduled, and commit it as that engine would.

Order of writes, and what a crash after each leaves:

1. Inside the lock: what an earlier attempt left in the metadata table goes; then the inflight file, put if absent, with the
   number of this attempt (`foreign_plan`). A crash leaves a pending plan, for eventide to go on with, or for Hudi, which
   rolls the attempt back and begins anew.
2. One task a slice: marker, then base file. By the markers Hudi finds the files when it rolls the attempt back.
3. Inside the lock: the inflight file still names this attempt, its files are all there, no rollback is under way. Then the
   outcome is claimed, which fixes the completion time; base files of earlier attempts go; the metadata table gets its
   commit; the completed file is put; the markers go, so that a process of Hudi that still takes the plan for pending finds
   no file to delete.

Another engine that meets the plan meanwhile wins: it has rolled this attempt back, so the inflight file is gone or another.
Then this one removes what it has made since, and answers with the other's commit, or with BusyError while there is none.

An inflight file of another engine tells neither who works on the plan nor whether it is alive. Such a plan is taken over
only where a person says that its engine is dead. From version 8 on, the inflight file of a plan that was taken over goes
before the completed file is put: Hudi completes no instant that has none, and so a process that was alive after all cannot
complete it again.

An engine that has read the timeline before this one committed may still begin the plan anew. Its commit fails, and its base
files stay beside those that the commit names. They hold the same rows; `table/file_system_view` goes by the commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eventide_core import config as keys
from eventide_core.action.compaction_trigger import check_pending_writes, check_undoing
from eventide_core.config import Options
from eventide_core.errors import BusyError, EventideError, MissingFileError, PlanMismatchError, StorageError
from eventide_core.ports import (
    Clock,
    Engine,
    FileChanges,
    Lease,
    MergeResult,
    Progress,
    RecordMerger,
    RowChange,
    TableLock,
    remove_tree,
)
from eventide_core.service.compaction.commit import added_files, whole_slices_metadata
from eventide_core.service.compaction.foreign_plan import Attempt, as_executed, next_attempt, other_bases
from eventide_core.service.compaction.merge_tasks import merge_tasks
from eventide_core.service.compaction.planned_slices import is_as_planned
from eventide_core.service.compaction.schedule import PENDING_WRITE_WAIT_MS_DEFAULT
from eventide_core.service.facts.planning import unused_instant
from eventide_core.service.rollback.compaction_files import made_files, marker_path
from eventide_core.service.state.metadata_table import MetadataTableUpkeep, PendingUpdate
from eventide_core.service.state.outcome import Outcome, claim_outcome
from eventide_core.service.state.table import TableState
from eventide_core.service.state.table_files import TableFiles
from eventide_core.table.file_group_write import marker_folder
from eventide_core.table.instant import Action, Instant, State
from eventide_core.table.plans import CompactionPlan, ForeignPlan
from eventide_core.table.table_config import TableConfig

_POLL_MS = 500


@dataclass(frozen=True, slots=True)
class ForeignCompactionRunner:
    files: TableFiles
    metadata: MetadataTableUpkeep
    merger: RecordMerger
    engine: Engine
    lock: TableLock
    clock: Clock
    options: Options

    def run(self, plan: ForeignPlan, progress: Progress, *, may_take_over: bool) -> None:
        """Runs the plan to its commit, or finds that another engine was faster.

        `may_take_over`: an engine that has begun the plan is known to be dead.

        Raises BusyError while another engine works on it; PlanMismatchError where the table no longer fits it; EngineError
        and StorageError with what is known of the commit.
        """
        self._wait_for_writes(plan)
        begun = self._begin(plan, may_take_over=may_take_over)
        if begun is None:
            return
        attempt, executed = begun
        tasks = merge_tasks(self.files, self.options, executed)
        progress.start("compacting", len(tasks))
        try:
            sizes = [op.base_size + sum(log.size for log in op.compacted) for op in executed.operations]
            results = self.engine.map(self.merger, tasks, sizes=sizes, on_done=progress.advance)
        except EventideError:
            with self.lock.acquire() as lease:
                if self._is_ended(plan, attempt, executed, lease):
                    return
            raise
        try:
            self._complete(plan, attempt, executed, results)
        except StorageError as failure:
            self._resolve_failed_commit(plan.instant, failure)

    def _wait_for_writes(self, plan: ForeignPlan) -> None:
        """Version 6: waits, as long as configured, for writes that began before the plan, and so may not have seen it."""
        limit = self.options.integer(keys.PENDING_WRITE_WAIT_MS, PENDING_WRITE_WAIT_MS_DEFAULT)
        config = self.files.config()
        while not config.slices_by_completion_time:
            try:
                check_pending_writes(self.files.timeline(config), plan.instant)
            except BusyError:
                if limit <= 0:
                    raise
                self.clock.sleep(_POLL_MS)
                limit -= _POLL_MS
            else:
                return

    def _begin(self, plan: ForeignPlan, *, may_take_over: bool) -> tuple[Attempt, CompactionPlan] | None:
        """Step 1; None where the plan has completed meanwhile."""
        with self.lock.acquire() as lease:
            state = TableState.load(self.files)
            found = state.timeline.find(plan.instant)
            if found is None or found.is_completed:
                return None
            self.metadata.check(state.config, RowChange.NONE)
            self._check_neighbours(state, plan)
            attempt = self._attempt(state.config, plan.instant)
            if found.state is State.INFLIGHT and attempt is None and not may_take_over:
                raise BusyError(self._why_not_ours(state.config, plan.instant))
            is_new = attempt is None
            if attempt is None:
                attempt = Attempt(next_attempt(state.listing, plan), found.state is State.INFLIGHT)
            executed = as_executed(state, plan, attempt.number)
            _check_slices(state, executed)
            if is_new:
                self._put_inflight(state.config, plan.instant, attempt, lease)
            return attempt, executed

    def _put_inflight(self, config: TableConfig, instant: str, attempt: Attempt, lease: Lease) -> None:
        self.metadata.revert(config, lease, instant)
        lease.check()
        if attempt.is_taken_over:
            self.files.storage.delete(_inflight_path(config, instant))
        if not self.files.storage.put_if_absent(_inflight_path(config, instant), attempt.encode()):
            raise BusyError(f"another engine has just begun the compaction at {instant}; try again when it has ended")

    def _complete(
        self, plan: ForeignPlan, attempt: Attempt, executed: CompactionPlan, results: Sequence[MergeResult]
    ) -> None:
        """Step 3."""
        storage = self.files.storage
        with self.lock.acquire() as lease:
            if self._is_ended(plan, attempt, executed, lease):
                return
            state = TableState.load(self.files)
            self._check_neighbours(state, plan)
            _check_slices(state, executed)
            self._check_made(plan, results)
            changes = FileChanges(RowChange.NONE, added_files(executed, results))
            update = self.metadata.prepare(state.config, plan.instant, changes)
            lease.check()
            outcome = claim_outcome(storage, Outcome(plan.instant, unused_instant(state, self.clock)))
            if outcome.completion_time is None:
                raise PlanMismatchError(
                    f"the plan at {plan.instant} is being rolled back; run rollback again to end it"
                )
            for path in other_bases(state.listing, plan, made_files(executed)):
                lease.check()
                storage.delete(path)
            by_time = state.config.slices_by_completion_time
            if attempt.is_taken_over and by_time:
                lease.check()
                storage.delete(_inflight_path(state.config, plan.instant))
            completed = Instant(
                plan.instant, Action.COMMIT, State.COMPLETED, outcome.completion_time if by_time else None
            )
            metadata = whole_slices_metadata(executed, results, state.internal_schema)
            data = self.files.codec.encode_commit(metadata, state.config.version)
            update.write(lease, outcome.completion_time)
            lease.check()
            is_put = storage.put_if_absent(f"{state.config.timeline_path}/{completed.file_name}", data)
            if not is_put and not self._is_ours(state.config, completed, executed):
                self._lose(executed, update, lease)
                return
            update.check_after_commit(lease)
            remove_tree(storage, marker_folder(plan.instant))

    def _check_neighbours(self, state: TableState, plan: ForeignPlan) -> None:
        """Raises BusyError for what is under way and in the way. Other plans are not: Hudi's never share a file group."""
        check_undoing(state.timeline)
        if not state.config.slices_by_completion_time:
            check_pending_writes(state.timeline, plan.instant)

    def _check_made(self, plan: ForeignPlan, results: Sequence[MergeResult]) -> None:
        for result in results:
            found = self.files.storage.stat(result.new_base_path)
            if found is None or found.size != result.base_size:
                raise BusyError(
                    f"{result.new_base_path} was removed since it was written: another engine rolls the compaction at "
                    f"{plan.instant} back; try again when it has ended"
                )

    def _is_ended(self, plan: ForeignPlan, attempt: Attempt, executed: CompactionPlan, lease: Lease) -> bool:
        """Whether the compaction has completed. What this attempt made goes, unless the commit names it.

        Raises BusyError where another engine has taken the plan since.
        """
        config = self.files.config()
        found = self.files.timeline(config).find(plan.instant)
        if found is None or not found.is_completed:
            if self._attempt(config, plan.instant) == attempt:
                return False
            self._remove(made_files(executed), executed, lease)
            raise BusyError(
                f"another engine has taken the compaction at {plan.instant} over while eventide ran it; nothing of "
                "eventide's is left, try again when it has ended"
            )
        named = {stat.path for stat in self.files.commit(config, found).stats}
        self._remove([path for path in made_files(executed) if path not in named], executed, lease)
        return True

    def _lose(self, executed: CompactionPlan, update: PendingUpdate, lease: Lease) -> None:
        """Another engine, which shares no lock, has committed between the last look and this commit: its commit counts."""
        if update.update is not None:
            update.table.drop()  # it names files of both
        self._remove(made_files(executed), executed, lease)

    def _remove(self, paths: Sequence[str], executed: CompactionPlan, lease: Lease) -> None:
        for path in paths:
            lease.check()
            self.files.storage.delete(path)
        for op in executed.operations:
            self.files.storage.delete(marker_path(executed.instant, op))

    def _is_ours(self, config: TableConfig, completed: Instant, executed: CompactionPlan) -> bool:
        """Whether the commit that stands there names the files of this attempt: an earlier run of it has put it."""
        named = {stat.path for stat in self.files.commit(config, completed).stats}
        return named == set(made_files(executed))

    def is_held_by_other(self, config: TableConfig, pending: Instant) -> bool:
        """Whether another engine has begun the pending compaction."""
        return pending.state is State.INFLIGHT and self._attempt(config, pending.requested_time) is None

    def _attempt(self, config: TableConfig, instant: str) -> Attempt | None:
        """The attempt that the inflight file says; None where there is no inflight file, or it is another engine's."""
        try:
            return Attempt.decode(self.files.storage.read(_inflight_path(config, instant)))
        except MissingFileError:
            return None

    def _why_not_ours(self, config: TableConfig, instant: str) -> str:
        found = self.files.storage.stat(_inflight_path(config, instant))
        minutes = 0 if found is None else max(0, self.clock.now_ms() - found.modified_ms) // 60_000
        return (
            f"another engine began the compaction at {instant} {minutes} minutes ago, and leaves no sign of life; try again "
            "when it has ended. If you know that its process is dead, take the plan over: "
            f"compact --execute {instant} --force"
        )

    def _resolve_failed_commit(self, instant: str, failure: StorageError) -> None:
        found = self.files.timeline(self.files.config()).find(instant)
        if found is None or not found.is_completed:
            raise StorageError(
                f"the compaction at {instant} is not committed: {failure}; run it again with --execute {instant}"
            ) from failure


def _inflight_path(config: TableConfig, instant: str) -> str:
    return f"{config.timeline_path}/{Instant(instant, Action.COMPACTION, State.INFLIGHT).file_name}"


def _check_slices(state: TableState, executed: CompactionPlan) -> None:
    for op in executed.operations:
        if not is_as_planned(state, executed, op):
            raise PlanMismatchError(
                f"{op.partition}/{op.file_id} is no longer what another engine planned to compact at {executed.instant}; "
                "nothing was committed. Roll the plan back with that engine, and plan again"
            )
