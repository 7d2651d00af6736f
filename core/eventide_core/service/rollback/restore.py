"""Restores a table to a savepoint: undoes every write after it, newest first, except those whose files it keeps.

Order of writes, all under the table lock, and what a crash after each leaves:

1. `<r>.restore.requested` lists the writes to undo, newest first; then `<r>.restore.inflight`. From here on, no other
   action starts, and another run of the restore completes it. The indexes of the metadata table that cannot follow are
   dropped.
2. For each write: the record that it is undone, its completed file, the data files that have its instant (on version 6
   also command blocks in log files that it shares), its entries in Hudi's metadata table, and its inflight and requested
   files. A write without timeline files has been undone.
3. Hudi's metadata table gets the existing files that it lacks.
4. The completed file. From version 8 on, its completion time is `r` plus one millisecond, so that a second run uses the
   same name.
5. Markers and heartbeats of the writes.

As a consequence, the published cut falls, because the commits that published it no longer exist.
"""

from dataclasses import dataclass, replace

from eventide_core.action.maintenance.rollback_planner import check_cleaning, plan_rollback
from eventide_core.cure import Cure
from eventide_core.errors import BusyError, InstantNotFoundError, LockError, MissingFileError, RefusedError
from eventide_core.ports import Lease, TableLock
from eventide_core.service.common.facts.needed_files import savepoints_of
from eventide_core.service.common.facts.planning import unused_instant
from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep
from eventide_core.service.common.state.begun_cleans import begun_cleans
from eventide_core.service.common.state.liveness import Liveness
from eventide_core.service.common.state.markers_and_heartbeats import remove_markers_and_heartbeat
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.action import Put, Transaction
from eventide_core.service.common.transaction.outcome import record_undone
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.service.rollback.run import RollbackRunner
from eventide_core.service.rollback.savepoint import settled_state
from eventide_core.service.rollback.shared_logs import logs_of_completed_write, logs_of_write
from eventide_core.table.files.file_name import instant_in
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.rollback_metadata import (
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackTarget,
)
from eventide_core.table.timeline.instant import (
    COMPLETED_ACTION,
    WRITE_ACTIONS,
    Action,
    Instant,
    State,
    next_instant_time,
)
from eventide_core.table.timeline.outcome_file import record_of

_WRITES = WRITE_ACTIONS | COMPLETED_ACTION.keys()


@dataclass(frozen=True, slots=True)
class Restorer:
    files: TableFiles
    metadata: MetadataTableUpkeep
    lock: TableLock
    liveness: Liveness

    def restore(self, savepoint: str) -> tuple[str, ...]:
        """Undoes all writes after the savepoint; returns their instants, newest first.

        Raises InstantNotFoundError if there is no such savepoint; RefusedError if a later savepoint keeps what would
        be undone, or later writes have been archived; MissingFileError if a file of the savepoint is gone; BusyError
        while a writer is alive, or a clean or another restore is pending.
        """
        with self.lock.acquire() as lease:
            # Some files of a write to undo may be missing.
            state = settled_state(self.files, lease, requires_files=False)
            plan = self._begun(state, savepoint, lease) or self._begin(state, savepoint, lease)
            try:
                return self._end(state, plan, lease)
            except LockError as lost:
                raise type(lost)(
                    f"{lost}; the restore at {plan.instant} has begun: run it again to complete it"
                ) from lost

    def _begun(self, state: TableState, savepoint: str, lease: Lease) -> RestorePlan | None:
        """The plan of a restore to that savepoint that was interrupted."""
        for pending in state.timeline.pending:
            if pending.action is Action.RESTORE:
                requested = replace(pending, state=State.REQUESTED)
                timeline = self.files.on_timeline(state.config)
                if not (timeline.exists(requested) and timeline.read(requested)):
                    # Never written, or lost: a new plan undoes what is left.
                    self.liveness.check_abandoned(pending, state.config.timeline_path)
                    for step in dict.fromkeys((pending, requested)):
                        timeline.delete(step, lease)
                    continue
                plan = self.files.restore_plan(state.config, pending.requested_time)
                if plan.savepoint != savepoint:
                    raise BusyError(
                        f"a restore to {plan.savepoint} is in progress at {pending.requested_time}; run it again to "
                        "complete it"
                    )
                return plan
        return None

    def _begin(self, state: TableState, savepoint: str, lease: Lease) -> RestorePlan:
        """Step 1."""
        targets = self._targets(state, savepoint)
        for target in targets:
            if target.instant in state.commits:
                logs_of_completed_write(self.files.storage, state, target.instant)  # refuses what cannot be undone
        self.metadata.check(state.config, RowChange.ROLLED_BACK)
        plan = RestorePlan(unused_instant(state, self.files.clock), savepoint, targets)
        data = self.files.codec.encode_restore_plan(plan)
        if self._transaction(state.config, plan).put(lease, State.REQUESTED, data) is not Put.DONE:
            raise BusyError(f"another action uses the instant {plan.instant}; try again")
        return plan

    def _targets(self, state: TableState, savepoint: str) -> tuple[RollbackTarget, ...]:
        """The writes to undo, newest first."""
        saved = savepoints_of(self.files, state)
        commit = state.timeline.find(savepoint)
        if savepoint not in saved or commit is None:
            known = ", ".join(sorted(saved)) or "none"
            raise InstantNotFoundError(f"{self.files.storage.root}: no savepoint at {savepoint}; there is {known}")
        later = [time for time in saved if time > savepoint]
        if later:
            raise RefusedError(f"the savepoint at {max(later)} keeps what would be undone; delete it first")
        if _has_archived_writes_after(savepoint, state):
            raise RefusedError(f"writes after {savepoint} were archived, and cannot be undone")
        missing = sorted(saved[savepoint].paths - {file.path for file in state.listing})
        if missing:
            raise MissingFileError(f"{missing[0]} is missing: the savepoint at {savepoint} needs it; restore the file")
        check_cleaning(begun_cleans(self.files, state.config, state.timeline))
        end = commit.completion_time or savepoint
        # A write requested before the savepoint's commit and completed after it may be part of what the savepoint
        # keeps.
        kept = {instant_in(path.rpartition("/")[2]) for path in saved[savepoint].paths}
        writes: list[tuple[str, Instant]] = []
        for instant in state.timeline.instants:
            if instant.requested_time == savepoint or (instant.is_completed and instant.requested_time in kept):
                continue
            if not instant.is_completed and instant.action is Action.ROLLBACK:
                raise BusyError(
                    f"a rollback is pending at {instant.requested_time}; complete it with {Cure.clean()} first"
                )
            if instant.action in _WRITES and (time := _end(state, instant)) > end:
                if not instant.is_completed:
                    self.liveness.check_not_alive(instant, "stop all writers before a restore")
                writes.append((time, instant))
        ordered = sorted(writes, key=lambda pair: (pair[0], pair[1].requested_time), reverse=True)
        return tuple(RollbackTarget(instant.requested_time, instant.action) for _, instant in ordered)

    def _end(self, state: TableState, plan: RestorePlan, lease: Lease) -> tuple[str, ...]:
        """Steps 2 to 5."""
        storage, config = self.files.storage, state.config
        transaction = self._transaction(config, plan)
        transaction.put(lease, State.INFLIGHT)
        if any(write.is_completed for target in plan.targets if (write := state.timeline.find(target.instant))):
            self.metadata.forget_rows(config, lease)
        rollbacks = tuple(self._undo(state, plan.instant, target, lease) for target in plan.targets)
        completion = next_instant_time(plan.instant)
        changes = self.metadata.differences(config, state.own(self.files.data_files()))
        update = self.metadata.prepare(config, lease, plan.instant, changes)
        update.write(lease, completion)
        data = self.files.codec.encode_restore(RestoreMetadata(plan.instant, rollbacks), storage.root)
        transaction.put(lease, State.COMPLETED, data, completion=config.layout.recorded_completion(completion))
        update.check_after_commit(lease)
        for target in plan.targets:
            remove_markers_and_heartbeat(storage, target.instant)
        return tuple(target.instant for target in plan.targets)

    def _transaction(self, config: TableConfig, plan: RestorePlan) -> Transaction:
        return self.files.transaction(config, Kind.RESTORE, Action.RESTORE, plan.instant)

    def _undo(self, state: TableState, instant: str, target: RollbackTarget, lease: Lease) -> RollbackMetadata:
        write = state.timeline.find(target.instant)
        if write is None:
            return RollbackMetadata(instant, (target,), {})
        now = replace(state, listing=state.own(self.files.data_files()))
        plan = plan_rollback(instant, target, now.listing, logs_of_write(self.files.storage, now, write))
        lease.check()
        record_undone(self.files.storage, record_of(target.instant, target.action))
        runner = RollbackRunner(self.files, self.metadata, self.liveness.heartbeats)
        _, metadata = runner.remove_files(state.config, plan, lease)
        self.metadata.revert(state.config, lease, target.instant)
        runner.forget(state.config, target.instant, lease)
        return metadata


def _end(state: TableState, instant: Instant) -> str:
    """When a write became part of the table.

    From version 8 on a pending one is later than all; on version 6 times are the requests'.
    """
    if not instant.is_completed and state.config.layout.records_completion_times:
        return "9"
    return instant.completion_time or instant.requested_time


def _has_archived_writes_after(savepoint: str, state: TableState) -> bool:
    """Whether archival went past the savepoint; reads the archive only if the timeline leaves that open."""
    start = state.timeline.start
    if start is None or start <= savepoint:
        return False
    return any(instant.requested_time > savepoint for instant in state.archive.writes(savepoint, start))
