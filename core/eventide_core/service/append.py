"""Write records: upsert, insert, bulk insert, delete.

Order of writes, and what a crash after each leaves:

1. Checks, keys and schema: nothing is written yet, whatever is wrong with the records.
2. Inside the lock: the heartbeat, `<instant>.deltacommit.requested` and `.inflight`. From then on no compaction is planned
   that would take the write's logs for its own. A pending write, which nobody sees and whose heartbeat grows old.
3. The table is looked at again: what completed until now, the write builds on. Records get their places, places their
   file groups.
4. Partition marks, then a task a file group on the engine: marker and file. Not visible: their instant has not completed.
5. Inside the lock: still pending, no conflict with what completed since 3; then the completed file, once, last.
6. Markers and heartbeat removed.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from eventide_core import config as keys
from eventide_core.action.compaction_trigger import check_undoing
from eventide_core.action.index import Index, IndexType, choose_index
from eventide_core.action.log_version import LogNames
from eventide_core.action.pending_write import PendingWrite, WriteResult
from eventide_core.action.write_conflict import WrittenGroups, check_batch, check_plan, check_write
from eventide_core.action.write_planner import WriteFacts, groups_of, plan_write
from eventide_core.config import FailedWrites, Options
from eventide_core.errors import BusyError, EventideError, LockError, RefusedError, StorageError
from eventide_core.ports import (
    AddedFile,
    Clock,
    FileChanges,
    Heartbeats,
    IncomingRecords,
    Progress,
    RowChange,
    TableLock,
)
from eventide_core.service.metadata_table import MetadataTableUpkeep
from eventide_core.service.outcome import instants_with_outcome
from eventide_core.service.planning_facts import instant_beyond
from eventide_core.service.rollback import Rollback
from eventide_core.service.table import PARTITION_MARK, TableFiles, TableState
from eventide_core.service.write_leavings import remove_leavings
from eventide_core.service.write_settings import combines, rows_per_base_file, write_shape
from eventide_core.table.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.file_group_write import FileGroupWrite, Placement
from eventide_core.table.file_name import path_in
from eventide_core.table.file_system_view import FileGroup
from eventide_core.table.instant import Action, Instant, State
from eventide_core.table.slice_read import SliceRead
from eventide_core.table.table_config import TableConfig
from eventide_core.table.timeline import Timeline
from eventide_core.table.write_shape import WriteOperation


@dataclass(frozen=True, slots=True)
class Append:
    """`new_uuid` names new file groups."""

    files: TableFiles
    metadata: MetadataTableUpkeep
    rollback: Rollback
    lock: TableLock
    heartbeats: Heartbeats
    clock: Clock
    options: Options
    new_uuid: Callable[[], str]

    def write(
        self,
        operation: WriteOperation,
        records: IncomingRecords,
        progress: Progress,
        extra_metadata: Mapping[str, str] | None = None,
    ) -> WriteResult:
        """Writes and completes. `extra_metadata` goes into the commit beside the schema.

        Raises InvalidRecordError, ConfigError, UnsupportedTableError and RefusedError before anything is written; BusyError
        where something pending excludes a write; WriteConflictError where another writer was faster; StorageError and
        EngineError with what is known of the commit.
        """
        return self.complete(self.begin(operation, records, progress, extra_metadata))

    def begin(
        self,
        operation: WriteOperation,
        records: IncomingRecords,
        progress: Progress,
        extra_metadata: Mapping[str, str] | None = None,
    ) -> PendingWrite:
        """Steps 1 to 4: the write is left pending, its heart beating."""
        before = TableState.load(self.files)
        self.metadata.check(before.config, RowChange.WRITTEN)
        self._planned_groups(before)
        index = choose_index(before.config, self.options, (group[1] for group in before.view.slices))
        prepared = self._prepare(before, operation, index, records)
        instant = self._request()
        try:
            state = TableState.load(self.files)
            if state.schema != before.schema:
                prepared = self._prepare(state, operation, index, records)
            placements = prepared.placements
            if placements is None:
                placements = self._look_up(state, index, records)
            planned = self._planned_groups(state)
            facts = WriteFacts(
                instant=instant,
                table_version=state.config.version,
                index=index,
                slices=state.view.latest_slices(),
                log_names=LogNames.of(state.listing, planned),
                rows_per_file=rows_per_base_file(
                    (state.commits[i.requested_time] for i in reversed(state.timeline.writes)), self.options
                ),
            )
            groups = plan_write(placements, facts, self.new_uuid)
            self._mark_partitions(state, groups, instant)
            progress.start("writing", len(groups))
            stats = records.write(groups, on_done=progress.advance)
        except BaseException as failure:
            self._give_up(instant, failure)
            raise
        by_partition: dict[str, tuple[WriteStat, ...]] = {}
        for group, of_group in zip(groups, stats, strict=True):
            by_partition[group.partition] = (*by_partition.get(group.partition, ()), *of_group)
        extra = {**(extra_metadata or {}), "schema": prepared.schema}
        looks_up = operation is WriteOperation.UPSERT
        return PendingWrite(
            instant,
            CommitMetadata(by_partition, extra, operation.operation_type),
            WrittenGroups(
                instant,
                index.type,
                groups_of(groups),
                frozenset(p.partition for p in placements if looks_up and p.place == "" and p.upserts),
            ),
            _ended(state.timeline),
        )

    def complete(self, pending: PendingWrite) -> WriteResult:
        """Steps 5 and 6. Raises WriteConflictError, and RefusedError where the write was rolled back meanwhile."""
        try:
            self._commit(pending)
        except StorageError as failure:
            self.heartbeats.stop(pending.instant)
            self._settle(pending.instant, failure)
        except BaseException as failure:
            self._give_up(pending.instant, failure)
            raise
        self.heartbeats.stop(pending.instant)
        # The write has completed, whatever becomes of its markers, which nobody heeds any more.
        with suppress(StorageError):
            remove_leavings(self.files.storage, pending.instant)
        stats = pending.metadata.stats
        upserts, deletes = sum(stat.num_writes for stat in stats), sum(stat.num_deletes for stat in stats)
        return WriteResult(
            pending.instant,
            rows=upserts + deletes,
            upserts=upserts,
            deletes=deletes,
            files=len(stats),
            bytes_written=sum(stat.file_size_bytes for stat in stats),
        )

    def _commit(self, pending: PendingWrite) -> None:
        storage = self.files.storage
        with self.lock.acquire() as lease:
            # A rollback of this very write may have been begun by one who took its writer for dead.
            self.rollback.end_begun(lease)
            config = self.files.config()
            timeline = self.files.timeline(config)
            found = timeline.find(pending.instant)
            if found is None:
                raise RefusedError(
                    f"the write at {pending.instant} was rolled back while it ran; nothing of it was committed: write again"
                )
            if found.is_completed:
                return
            self._check_conflicts(pending, timeline)
            added = tuple(
                AddedFile(stat.partition, stat.path.rpartition("/")[2], stat.file_size_bytes)
                for stat in pending.metadata.stats
            )
            update = self.metadata.prepare(config, pending.instant, FileChanges(RowChange.WRITTEN, added))
            completion = self._unused_instant(config, timeline)
            recorded = completion if config.slices_by_completion_time else None
            completed = Instant(pending.instant, Action.DELTA_COMMIT, State.COMPLETED, recorded)
            data = self.files.codec.encode_commit(pending.metadata, config.version)
            update.write(lease, completion)
            lease.check()
            storage.put_if_absent(f"{config.timeline_path}/{completed.file_name}", data)
            update.settle(lease)

    def _check_conflicts(self, pending: PendingWrite, timeline: Timeline) -> None:
        config = self.files.config()
        # A stream's own batch may have been written before this one looked: by a driver that was taken for dead.
        check_batch(pending.instant, pending.metadata, [self.files.commit(config, i) for i in timeline.writes])
        for other in timeline.writes:
            if other.requested_time not in pending.seen:
                check_write(pending.written, other.requested_time, self.files.commit(config, other))
        for plan in timeline.pending_plans:
            if plan.requested_time not in pending.seen:
                check_plan(pending.written, plan.requested_time, self._groups_of_plan(plan))

    def _give_up(self, instant: str, failure: BaseException) -> None:
        """What happens to a write that won't complete: it is rolled back at once where that can be done.

        After a failure of the storage, whose last write may still arrive, and wherever else it cannot: by whoever comes
        when its heartbeat has expired.
        """
        self.heartbeats.stop(instant)
        if isinstance(failure, EventideError) and not isinstance(failure, StorageError | LockError):
            # The user is to hear of the failure that came first.
            with suppress(EventideError):
                self.rollback.give_up(instant)

    def _settle(self, instant: str, failure: StorageError) -> None:
        """Whether a commit that failed has happened all the same is read from the timeline; nothing is written again."""
        found = self.files.timeline(self.files.config()).find(instant)
        if found is None or not found.is_completed:
            raise StorageError(f"the write at {instant} is not committed: {failure}; write again") from failure

    def _prepare(
        self, state: TableState, operation: WriteOperation, index: Index, records: IncomingRecords
    ) -> "_Prepared":
        shape = write_shape(state, records.schema_after(state.schema), self.options, self.files.storage.root)
        records.prepare(shape, combines=combines(operation, self.options))
        if index.type is IndexType.BUCKET:
            return _Prepared(shape.records.schema, records.place_by_bucket(index.buckets, index.hash_fields))
        if operation in (WriteOperation.INSERT, WriteOperation.BULK_INSERT):
            return _Prepared(shape.records.schema, records.place_nowhere())
        return _Prepared(shape.records.schema, None)

    def _request(self) -> str:
        """Step 2; the write's instant."""
        instant = ""
        try:
            with self.lock.acquire() as lease:
                if self.options.choice(keys.FAILED_WRITES, FailedWrites.EAGER) is FailedWrites.EAGER:
                    self.rollback.undo_failed_writes(lease)
                config = self.files.config()
                timeline = self.files.timeline(config)
                check_undoing(timeline)
                instant = self._unused_instant(config, timeline)
                self.heartbeats.start(instant)
                for step in (State.REQUESTED, State.INFLIGHT):
                    name = Instant(instant, Action.DELTA_COMMIT, step).file_name
                    lease.check()
                    if not self.files.storage.put_if_absent(f"{config.timeline_path}/{name}", b""):
                        raise BusyError(f"another writer took the instant {instant}; try again")
        except BaseException:
            self.heartbeats.stop(instant)
            raise
        return instant

    def _unused_instant(self, config: TableConfig, timeline: Timeline) -> str:
        return instant_beyond(timeline, instants_with_outcome(self.files.storage), config, self.clock)

    def _look_up(self, state: TableState, index: Index, records: IncomingRecords) -> tuple[Placement, ...]:
        blocks = state.blocks()
        slices = [
            SliceRead(
                found.partition,
                found.file_id,
                None if found.base_file is None else found.base_file.path,
                tuple((log.path, log.size) for log in found.log_files),
                blocks,
            )
            for found in state.view.latest_slices()
        ]
        return records.place_by_key(slices, by_bloom=index.type is IndexType.BLOOM)

    def _planned_groups(self, state: TableState) -> dict[FileGroup, str]:
        """The pending compactions by the file groups that they take."""
        planned: dict[FileGroup, str] = {}
        for pending in state.timeline.pending_plans:
            planned.update(dict.fromkeys(self._groups_of_plan(pending), pending.requested_time))
        return planned

    def _groups_of_plan(self, pending: Instant) -> Sequence[FileGroup]:
        """Raises BusyError for a pending plan that does not say which file groups it takes."""
        if pending.action is not Action.COMPACTION:
            raise BusyError(
                f"a {pending.action} is pending at {pending.requested_time}, and may take any file group; write again when "
                "it has ended"
            )
        return self.files.plan(self.files.config(), pending.requested_time).file_groups

    def _mark_partitions(self, state: TableState, groups: Sequence[FileGroupWrite], instant: str) -> None:
        known = {partition for partition, _ in state.view.slices}
        for partition in sorted({group.partition for group in groups} - known):
            depth = len(partition.split("/")) if partition else 0
            text = f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n"
            self.files.storage.put_if_absent(path_in(partition, PARTITION_MARK), text.encode())


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The schema that the table will have, and the records' places where these do not depend on what the table holds."""

    schema: str
    placements: tuple[Placement, ...] | None


def _ended(timeline: Timeline) -> frozenset[str]:
    """What the write has seen: what had completed, and the plans that were pending."""
    return frozenset(i.requested_time for i in (*timeline.completed, *timeline.pending_plans))
