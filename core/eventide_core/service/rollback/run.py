"""Runs a rollback: puts its plan on the timeline, carries it out, and completes it, all under the table lock.

Order of writes, as in Hudi, and what a crash after each leaves:

1. A heartbeat at `r`, which identifies the owner of the rollback. `<r>.rollback.requested` contains the plan: from here
   on, any process that finds it completes it, including Hudi.
2. `<r>.rollback.inflight`. If rows of a completed write are rolled back, the indexes of the metadata table that cannot
   follow are dropped.
3. The target's end is recorded, so that a process of it that is paused can't complete it, and its instant is never used
   again. Of a pending target, the outcome is claimed. If it has completed by then, or claims its own outcome first, the
   rollback is *void*: it removes itself, and the target stays. Of a completed one that a user undoes, it is recorded that it
   is undone. Then the completed file of the target, if there is one: now it is pending, and nobody reads it.
4. The data files of the plan, in its order; on version 6, the command blocks, each in a new log file of its slice.
5. The entries of the target's writer in Hudi's metadata table are removed, and the changes of the rollback are written.
6. The target's inflight and requested files. A crash leaves a rollback without its target, but with a complete plan.
7. The completed file. From version 8 on, its completion time is `r` plus one millisecond, so that a second run uses the
   same name.
8. Markers and heartbeat of the target, and the rollback's own. A crash before this leaves them; no process reads them.

For an attempt at a compaction plan of another engine, which Hudi rolls back before it runs the plan again, less is
removed: step 3 claims no outcome, and in step 6 the requested file stays.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eventide_core.access.block_headers import rolls_back
from eventide_core.access.timeline_files import delete_each
from eventide_core.action.maintenance.rollback_planner import plan_rollback
from eventide_core.errors import BusyError, InstantNotFoundError
from eventide_core.ports import AddedFile, FileChanges, Heartbeats, Lease
from eventide_core.service.common.facts.planning import unused_instant
from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep
from eventide_core.service.common.state.markers_and_heartbeats import remove_markers_and_heartbeat
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.action import Put, Transaction
from eventide_core.service.common.transaction.outcome import Outcome, claim_outcome, is_undone, record_undone
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.service.rollback.shared_logs import logs_of_write
from eventide_core.table.files.file_name import LogFileName, path_in
from eventide_core.table.files.log_block import ROLLBACK_COMMAND, BlockType, HeaderKey, encode_block
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.plans import ForeignPlan
from eventide_core.table.timeline.contents.rollback_metadata import (
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RollbackTarget,
    RolledBackPartition,
)
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Action, Instant, State, next_instant_time
from eventide_core.table.timeline.outcome_file import outcome_path, record_of

_COMMAND_TOKEN = "1-0-1"  # as Hudi's rollbacks name their log files
_NO_CHANGES = FileChanges(RowChange.NONE)


@dataclass(frozen=True, slots=True)
class RollbackRunner:
    files: TableFiles
    metadata: MetadataTableUpkeep
    heartbeats: Heartbeats

    def begin(self, state: TableState, target: Instant, lease: Lease) -> RollbackPlan:
        """Step 1.

        Raises BusyError if the instant was taken in the meantime, RefusedError for log files of others too, and the errors
        of the metadata table's upkeep.
        """
        shared, instant = logs_of_write(self.files.storage, state, target), unused_instant(state, self.files.clock)
        undone = state.commits.get(target.requested_time) if target.is_completed else None
        is_of_rows = undone is not None and _shows_rows(undone)
        self.metadata.check(state.config, RowChange.ROLLED_BACK if is_of_rows else RowChange.NONE)
        plan = plan_rollback(instant, RollbackTarget(target.requested_time, target.action), state.listing, shared)
        data = self.files.codec.encode_rollback_plan(plan, self.files.storage.root)
        try:
            self.heartbeats.start(instant)
            if self._transaction(state.config, instant).put(lease, State.REQUESTED, data) is not Put.DONE:
                raise BusyError(f"another rollback uses the instant {instant}; try again")
        except BaseException:
            self.heartbeats.stop(instant)
            raise
        return plan

    def end(
        self, config: TableConfig, plan: RollbackPlan, lease: Lease, *, of: Instant | None = None
    ) -> tuple[str, ...] | None:
        """Steps 2 to 8; the paths of the data and timeline files that were removed. None if the rollback was void.

        `of`: the target as it was when this process began the rollback, or was asked for it. None for a rollback of a dead
        process: it isn't void only if nothing of the target has completed, or its end is recorded.
        """
        self.heartbeats.start(plan.instant)
        try:
            if of is None and self._is_of_attempt(config, plan):
                removed: tuple[str, ...] | None = self._end_attempt(config, plan, lease)
            else:
                removed = self._end(config, plan, lease, undoes_completed=of is not None and of.is_completed)
        except BaseException:
            self.heartbeats.stop(plan.instant)
            raise
        self.heartbeats.end(plan.instant)
        return removed

    def _end(
        self, config: TableConfig, plan: RollbackPlan, lease: Lease, *, undoes_completed: bool
    ) -> tuple[str, ...] | None:
        target = plan.target.instant
        self._transaction(config, plan.instant).put(lease, State.INFLIGHT)
        if not self._decide(config, plan.target, lease, undoes_completed=undoes_completed):
            self._withdraw(config, plan.instant, lease)
            return None
        write = self.files.timeline(config).find(target)
        if write is not None and write.is_completed and _shows_rows(self.files.commit(config, write)):
            self.metadata.forget_rows(config, lease)
        removed, metadata = self.remove_files(config, plan, lease)
        self.metadata.revert(config, lease, target)
        changes = self._changes(metadata.partitions) if config.metadata_partitions else _NO_CHANGES
        return (*removed, *self._complete(config, metadata, changes, lease, forgets=True))

    def _decide(self, config: TableConfig, target: RollbackTarget, lease: Lease, *, undoes_completed: bool) -> bool:
        """The first part of step 3: whether the target is undone now; else the rollback is void."""
        storage, record = self.files.storage, record_of(target.instant, target.action)
        lease.check()
        if undoes_completed:
            record_undone(storage, record)
        if undoes_completed or is_undone(storage, record):
            return True
        completed = self._completed(config, target.instant)
        claimed = claim_outcome(storage, Outcome(record, completed))
        if completed is None and self._completed(config, target.instant) is None:
            if not claimed.is_undone:  # its process withdrew what it had completed, or died before it could
                record_undone(storage, record)
            return True
        if claimed.is_undone and completed is None:
            # A stock writer, which claims nothing, was faster.
            delete_each(storage, [outcome_path(record)], lease)
        return False

    def _completed(self, config: TableConfig, target: str) -> str | None:
        """The completion time of the target, or its requested time where none is recorded; None if it is pending."""
        instant = self.files.timeline(config).find(target)
        if instant is None:
            instant = self.files.archive(config).find(target)
        if instant is None or not instant.is_completed:
            return None
        return instant.completion_time or instant.requested_time

    def _withdraw(self, config: TableConfig, instant: str, lease: Lease) -> None:
        transaction = self._transaction(config, instant)
        begun = (transaction.timeline.path(transaction.at(state)) for state in (State.INFLIGHT, State.REQUESTED))
        delete_each(self.files.storage, begun, lease)

    def _transaction(self, config: TableConfig, instant: str) -> Transaction:
        return self.files.transaction(config, Kind.ROLLBACK, Action.ROLLBACK, instant)

    def _is_of_attempt(self, config: TableConfig, plan: RollbackPlan) -> bool:
        """Whether it rolls back an attempt at another engine's compaction plan, as Hudi does before it begins again."""
        if plan.target.action is not Action.COMPACTION:
            return False
        try:
            return isinstance(self.files.plan(config, plan.target.instant), ForeignPlan)
        except InstantNotFoundError:
            return False

    def _end_attempt(self, config: TableConfig, plan: RollbackPlan, lease: Lease) -> tuple[str, ...]:
        """Removes the files of such an attempt. The plan stays, because writers depend on it, and can run again.

        If another attempt has completed the compaction since, the files that its commit names also stay.
        """
        timeline, target = self.files.on_timeline(config), plan.target.instant
        compaction = self.files.timeline(config).find(target)
        is_completed = compaction is not None and compaction.is_completed
        stats = self.files.commit(config, compaction).stats if compaction and is_completed else ()
        named = {stat.path for stat in stats}
        self._transaction(config, plan.instant).put(lease, State.INFLIGHT)
        removed = delete_each(self.files.storage, [path for path in plan.deleted_paths if path not in named], lease)
        if not is_completed:
            self.metadata.revert(config, lease, target)
            inflight = timeline.path(Instant(target, Action.COMPACTION, State.INFLIGHT))
            removed += delete_each(self.files.storage, [inflight], lease)
        metadata = RollbackMetadata(plan.instant, (plan.target,), self._append_command_blocks(plan, lease))
        self._complete(config, metadata, _NO_CHANGES, lease, forgets=False)
        return tuple(removed)

    def _complete(
        self, config: TableConfig, metadata: RollbackMetadata, changes: FileChanges, lease: Lease, *, forgets: bool
    ) -> list[str]:
        """Steps 5 to 8 after the metadata table was reverted, step 6 if it `forgets` the target. The removed paths."""
        (target,) = metadata.targets
        completion = next_instant_time(metadata.instant)
        update = self.metadata.prepare(config, lease, metadata.instant, changes)
        update.write(lease, completion)
        removed = self.forget(config, target.instant, lease) if forgets else []
        data = self.files.codec.encode_rollback(metadata, self.files.storage.root)
        recorded = config.layout.recorded_completion(completion)
        self._transaction(config, metadata.instant).put(lease, State.COMPLETED, data, completion=recorded)
        update.check_after_commit(lease)
        remove_markers_and_heartbeat(self.files.storage, target.instant)
        return removed

    def remove_files(self, config: TableConfig, plan: RollbackPlan, lease: Lease) -> tuple[list[str], RollbackMetadata]:
        """Steps 3 and 4, when the target's end is recorded. Returns the removed paths, and the metadata, always the same."""
        states = self._states(config, plan.target.instant)
        removed = delete_each(self.files.storage, [path for path, instant in states if instant.is_completed], lease)
        removed += delete_each(self.files.storage, plan.deleted_paths, lease)
        return removed, RollbackMetadata(plan.instant, (plan.target,), self._append_command_blocks(plan, lease))

    def forget(self, config: TableConfig, target: str, lease: Lease) -> list[str]:
        """Step 6: the pending states, the latest first."""
        states = self._states(config, target)
        removed: list[str] = []
        for state in (State.INFLIGHT, State.REQUESTED):
            paths = [path for path, instant in states if instant.state is state]
            removed += delete_each(self.files.storage, paths, lease)
        return removed

    def _states(self, config: TableConfig, target: str) -> list[tuple[str, Instant]]:
        """The timeline's files of an instant. Its savepoint has the same time, but is a separate instant."""
        return [
            (entry.path, instant)
            for instant, entry in self.files.on_timeline(config).entries()
            if instant.requested_time == target and instant.action is not Action.SAVEPOINT
        ]

    def _append_command_blocks(self, plan: RollbackPlan, lease: Lease) -> dict[str, RolledBackPartition]:
        """Writes the command blocks. Returns the changes to each partition, the same in every run."""
        requests: dict[str, list[RollbackRequest]] = {}
        for request in plan.requests:
            requests.setdefault(request.partition, []).append(request)
        return {
            partition: RolledBackPartition(
                tuple(name for request in of_partition for name in request.deleted),
                self._command_logs(
                    plan, partition, [one for one in of_partition if one.log_blocks or one.rolls_back_blocks], lease
                ),
                {name: size for request in of_partition for name, size in request.log_blocks.items()},
            )
            for partition, of_partition in requests.items()
        }

    def _command_logs(
        self, plan: RollbackPlan, partition: str, requests: Sequence[RollbackRequest], lease: Lease
    ) -> dict[str, int]:
        """The sizes of the log files that roll the target's blocks back, by name. The partition is listed once."""
        logs: dict[tuple[str, str], list[DataFile]] = {}
        for entry in self.files.storage.list(partition) if requests else ():
            file = DataFile(partition, entry.path, entry.size)
            if isinstance(file.parsed, LogFileName):
                logs.setdefault((file.parsed.file_id, file.parsed.instant), []).append(file)
        written = (
            self._command_log(plan, request, logs.get((request.file_id, request.base_instant), ()), lease)
            for request in requests
        )
        return {file.name: file.size for file in written}

    def _command_log(
        self, plan: RollbackPlan, request: RollbackRequest, logs: Iterable[DataFile], lease: Lease
    ) -> DataFile:
        """The log file that rolls the target's blocks back: the one that an earlier run wrote, or a new one.

        `logs` are the slice's.
        """
        storage = self.files.storage
        last = 0
        for file in logs:
            log = file.parsed
            assert isinstance(log, LogFileName)
            if log.write_token == _COMMAND_TOKEN and rolls_back(storage, file, plan.target.instant):
                return file
            last = max(last, log.version)
        header = {
            HeaderKey.INSTANT_TIME: plan.instant,
            HeaderKey.TARGET_INSTANT_TIME: plan.target.instant,
            HeaderKey.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
        }
        data = encode_block(BlockType.COMMAND, header, b"")
        name = LogFileName(request.file_id, request.base_instant, last + 1, _COMMAND_TOKEN)
        path = request.path_of(str(name))
        lease.check()
        if not storage.put_if_absent(path, data):
            lease.check()
            raise BusyError(f"another writer put {path} at the same time; try again")
        return DataFile(request.partition, path, len(data))

    def _changes(self, partitions: Mapping[str, RolledBackPartition]) -> FileChanges:
        """The log files whose blocks are rolled back stay, committed or not. Hudi's plans don't contain their sizes."""
        added: list[AddedFile] = []
        removed: dict[str, tuple[str, ...]] = {}
        for partition, rolled_back in partitions.items():
            for name in rolled_back.failed_logs:
                info = self.files.storage.stat(path_in(partition, name))
                if info is not None:
                    added.append(AddedFile(partition, name, info.size))
            added += [AddedFile(partition, name, size) for name, size in rolled_back.rollback_logs.items()]
            if rolled_back.deleted:
                removed[partition] = rolled_back.deleted
        return FileChanges(RowChange.NONE, tuple(added), removed)


def _shows_rows(undone: CommitMetadata) -> bool:
    """Whether its rows go with a completed action. The rows of a compaction stay, each in its file group."""
    return not undone.is_compacted
