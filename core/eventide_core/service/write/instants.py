"""A write's instant on the timeline: requested, then completed or aborted.

Each step runs under the table lock. Between them, the lock is free, and the heartbeat shows that the writer is alive.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from eventide_core import config as keys
from eventide_core.access.block_headers import is_of_one_write
from eventide_core.access.files import discard
from eventide_core.action.compaction.trigger import check_trigger, check_undoing
from eventide_core.action.write.conflict import check_batch, check_plan, check_write
from eventide_core.action.write.pending_write import PendingWrite
from eventide_core.config import FailedWrites, Options
from eventide_core.cure import Cure
from eventide_core.errors import (
    BusyError,
    EventideError,
    LockError,
    RefusedError,
    StorageError,
    StorageFullError,
    WriteConflictError,
)
from eventide_core.ports import FileAnswers, FileChanges, Storage, TableLock
from eventide_core.service.common.facts.moments import local_instant_time
from eventide_core.service.common.facts.needed_files import ListedTable, still_needed
from eventide_core.service.common.facts.planned_groups import groups_of_plan
from eventide_core.service.common.facts.planning import instant_beyond
from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep
from eventide_core.service.common.state.liveness import Liveness
from eventide_core.service.common.state.markers_and_heartbeats import remove_markers_and_heartbeat
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.action import Put, Transaction
from eventide_core.service.common.transaction.outcome import Outcome, claim_outcome, instants_with_outcome, is_undone
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.service.rollback.instant import Rollback
from eventide_core.service.write.table_schema import following_schema, put_history
from eventide_core.service.write.written_rows import added_files, written_changes
from eventide_core.table.files.file_group_write import FileGroupWrite
from eventide_core.table.files.file_name import BaseFileName, LogFileName, path_in
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.outcome_file import record_of
from eventide_core.table.timeline.timeline import Timeline


class RequestedWrite(NamedTuple):
    """A new instant; and the settings, the timeline and the recorded ends right before it, under the lock."""

    instant: str
    config: TableConfig
    timeline: Timeline
    ended: frozenset[str]

    def state(self, files: TableFiles, known: TableState) -> TableState:
        """The table's state now, which is the known one if nothing has changed since."""
        return known if known.still_holds(self.config, self.timeline, self.ended) else TableState.load(files)


@dataclass(frozen=True, slots=True)
class WriteInstants:
    files: TableFiles
    metadata: MetadataTableUpkeep
    rollback: Rollback
    lock: TableLock
    liveness: Liveness
    options: Options

    def request(self, action: Action) -> RequestedWrite:
        """Requests a new instant, with a heartbeat. Raises BusyError."""
        instant = ""
        try:
            with self.lock.acquire() as lease:
                policy = self.options.get(keys.FAILED_WRITES)
                config, timeline = self.files.config_and_timeline()
                if policy is FailedWrites.EAGER and self.rollback.has_failed_writes(config, timeline):
                    self.rollback.undo_failed_writes(lease)
                    config, timeline = self.files.config_and_timeline()
                check_undoing(timeline)
                if self.rollback.end_undone_plans(config, timeline, lease):
                    config, timeline = self.files.config_and_timeline()
                if action is Action.REPLACE_COMMIT:
                    check_trigger(timeline)
                    self._check_no_unaware_writer(timeline)
                self._check_no_dead_single_writer(timeline, policy)
                self.files.sweep(config, timeline, lease)
                ended = instants_with_outcome(self.files.storage)
                instant = instant_beyond(timeline, ended, config, self.files.clock)
                self.liveness.heartbeats.start(instant)
                write = self._transaction(config, action, instant)
                begun = [(write.at(state), b"") for state in (State.REQUESTED, State.INFLIGHT)]
                if write.put_each(lease, *begun) is not Put.DONE:
                    raise BusyError(f"another writer uses the instant {instant}; try again")
        except BaseException:
            self.liveness.heartbeats.stop(instant)
            raise
        return RequestedWrite(instant, config, timeline, ended)

    def _transaction(self, config: TableConfig, action: Action, instant: str) -> Transaction:
        return self.files.transaction(config, Kind.WRITE, action, instant)

    def _check_no_dead_single_writer(self, timeline: Timeline, policy: FailedWrites) -> None:
        """Raises RefusedError beside a pending write without a heartbeat, whose writer expects to be the only one.

        This applies whether that writer is dead or alive: when it starts again, it rolls back what is pending, and
        fails if a later commit has completed.
        """
        if self.options.get(keys.CONCURRENCY_MODE).upper() != keys.SINGLE_WRITER:
            return
        if policy is FailedWrites.LAZY:
            return  # the setting of writers that share a table
        for other in timeline.pending_writes:
            if not self.liveness.has_heartbeat(other.requested_time):
                raise RefusedError(
                    f"the {other.action} at {other.requested_time} is pending without a heartbeat: its writer "
                    f"expects to be the only one ({keys.FAILED_WRITES}=EAGER). If it is dead, a commit after it "
                    "would keep that writer from starting again: let it roll its write back, or run "
                    f"{Cure.rollback(other.requested_time, force=True)}. If writers share the table lock, set "
                    f"{keys.CONCURRENCY_MODE}"
                )

    def _check_no_unaware_writer(self, timeline: Timeline) -> None:
        """Raises BusyError beside a pending write of another engine, which may append to a file group that is replaced.

        Writers of eventide find that out before they commit. Hudi's with optimistic concurrency control compare only the
        files that an overwrite wrote (0.15), and the others compare nothing.
        """
        for other in timeline.pending_writes:
            heartbeat = self.liveness.heartbeat(other.requested_time)
            if heartbeat is None or heartbeat.owner is None:
                raise BusyError(
                    f"a {other.action} of another engine is pending at {other.requested_time}, and what it writes into "
                    "a file group that the overwrite replaces would be lost; try again when it has completed, or roll it "
                    "back if its writer is dead"
                )

    def complete(self, pending: PendingWrite) -> tuple[str, tuple[str, ...]]:
        """Completes a write whose files exist, if it has not. Returns its completion time and the dropped indexes.

        Raises WriteConflictError if another writer was faster, RefusedError if the write was rolled back in the
        meantime, BusyError for an overwrite beside a write of another engine.
        """
        known = self._read_ahead(pending)
        with self.lock.acquire() as lease:
            config, timeline = self.files.config_and_timeline()
            # A process that considered this writer dead may have started a rollback of this write.
            if self.rollback.end_begun(config, timeline, lease):
                config, timeline = self.files.config_and_timeline()
            self.rollback.check_not_undone(config, timeline, pending.instant)
            write = timeline.find(pending.instant)
            if write is None or write.action is not pending.action:
                raise _rolled_back(pending.instant)
            if write.is_completed:
                return write.completion_time or pending.instant, ()
            if pending.written.overwrite is not None:
                self._check_no_unaware_writer(timeline)
            self._check_conflicts(pending, config, timeline)
            pending = following_schema(self.files, config, timeline, pending)
            update = self.metadata.prepare(config, lease, pending.instant, self._changes(pending, config), known)
            ended = instants_with_outcome(self.files.storage)
            completion = instant_beyond(timeline, ended, config, self.files.clock)
            recorded = config.layout.recorded_completion(completion)
            transaction = self._transaction(config, pending.action, pending.instant)
            data = self.files.codec.encode_commit(update.recorded_in(pending.metadata), config.version)
            update.write(lease, completion)
            put_history(self.files, config, timeline, pending, completion)
            with self.files.created(lease):
                put = transaction.put(lease, State.COMPLETED, data, completion=recorded)
            if put is Put.DONE:
                put_ms = self.files.clock.now_ms()
                try:
                    lease.check()
                except LockError:
                    put_at = local_instant_time(config, timeline, put_ms, self.files.clock)
                    self._check_fenced(pending, transaction.at(State.COMPLETED, recorded), put_at)
                    return recorded or pending.instant, update.dropped_indexes
            update.check_after_commit(lease)
            update.compact(lease, completion)
            return recorded or pending.instant, update.dropped_indexes

    def _check_fenced(self, pending: PendingWrite, completed: Instant, put_at: str) -> None:
        """Withdraws the completed file if it contradicts what others did before it was put.

        The lock was lost before the file was put, or after it: then others have seen the commit, and it stays. The times
        of the files show which. Where a storage has them in whole seconds and two are equal, the other's instant does: it
        had begun before `put_at`, the instant at which the file was there, or has seen it. A rollback may have begun, and
        be paused in turn: the first of the two to claim the outcome decides. Raises RefusedError if the write was rolled
        back, WriteConflictError if what had completed excludes it.
        """
        config = self.files.config()
        path = self.files.on_timeline(config).path(completed)
        entries = self.files.storage.list(config.timeline_path)
        made = {entry.path.rpartition("/")[2]: entry.modified_ms for entry in entries}
        put_ms = made.get(completed.file_name)
        if put_ms is None or Instant(pending.instant, pending.action, State.INFLIGHT).file_name not in made:
            if self.files.archive(config).find(pending.instant) is not None:
                return  # others have archived the commit
            discard(self.files.storage, path)
            raise _rolled_back(pending.instant)
        known = ((instant, ms) for name, ms in made.items() if (instant := Instant.parse(name)) is not None)
        others = ((instant, ms) for instant, ms in known if instant.requested_time != pending.instant)
        earlier = (
            instant for instant, ms in others if ms < put_ms or (ms == put_ms and instant.requested_time < put_at)
        )
        timeline = Timeline.of(earlier)
        try:
            self._check_conflicts(pending, config, timeline)
        except WriteConflictError:
            discard(self.files.storage, path)
            raise
        claim = Outcome(record_of(pending.instant, pending.action), completed.completion_time or pending.instant)
        if claim_outcome(self.files.storage, claim).is_undone:
            discard(self.files.storage, path)
            raise _rolled_back(pending.instant)

    def abort(self, instant: str, failure: BaseException, made: Callable[[], Iterable[str]]) -> None:
        """Handles a write that won't complete: rolls it back immediately if possible.

        That is impossible after a failure of the storage, whose last write may still arrive, and in some other cases.
        Then the next process rolls it back when this process has ended or its heartbeat has expired. A full storage has
        definitely refused the write. `made` returns the paths of the files that the write has made.
        """
        self.liveness.heartbeats.stop(instant)
        if not isinstance(failure, EventideError):
            return
        # The user should see the first failure.
        with suppress(EventideError):
            self._sweep_after_rollback(instant, made)
        if isinstance(failure, StorageFullError) or not isinstance(failure, StorageError | LockError):
            with suppress(EventideError):
                self.rollback.abort(instant)

    def _sweep_after_rollback(self, instant: str, made: Callable[[], Iterable[str]]) -> None:
        """Removes what this process made if others have rolled its write back meanwhile: no other process will.

        Readers would take the files for committed as soon as the timeline starts after the instant. What a savepoint, a
        plan or a link needs stays, and what the metadata table lists: on version 6 the rollback of a log file leaves it in
        the slice, and plans name it. The listing counts even where it lacks an action, as it does after a rebuild.
        """
        if not self._is_gone(instant):
            return
        with self.lock.acquire() as lease:
            # On version 6 a rollback that others began names log files, which then stay.
            self.rollback.end_begun(*self.files.config_and_timeline(), lease)
            # A file that this process put too late may belong to no file slice.
            table = ListedTable.load(self.files)
            if self._is_gone(instant):
                to_delete = set(made())
                to_delete -= still_needed(self.files, table, to_delete)
                listing = self.files.metadata_table.listing(()) if table.config.metadata_partitions else None
                to_delete -= {
                    path_in(partition, name) for partition, names in (listing or {}).items() for name in names
                }
                lease.check()
                self.files.delete_all(sorted(to_delete))
                remove_markers_and_heartbeat(self.files.storage, instant)

    def _is_gone(self, instant: str) -> bool:
        """Whether the write was rolled back: the archived timeline has those that have completed, and no other."""
        config, timeline = self.files.config_and_timeline()
        return timeline.find(instant) is None and self.files.archive(config).find(instant) is None

    def _read_ahead(self, pending: PendingWrite) -> FileAnswers:
        """What the metadata table needs of the write's files, before the lock is acquired. Nothing if that fails."""
        with suppress(EventideError):
            if self.metadata.reads_files(pending.config):
                changes = self._changes(pending, pending.config)
                return self.metadata.known_ahead(pending.config, pending.instant, changes)
        return {}

    def _changes(self, pending: PendingWrite, config: TableConfig) -> FileChanges:
        if self.metadata.follows_rows(config):
            return written_changes(TableState.load(self.files), pending.instant, pending.metadata)
        return FileChanges(RowChange.WRITTEN, added_files(pending.metadata))

    def _check_conflicts(self, pending: PendingWrite, config: TableConfig, timeline: Timeline) -> None:
        if pending.basis is not None:
            pending.basis.check_kept(
                pending.instant,
                timeline,
                lambda other: is_undone(self.files.storage, record_of(other, Action.DELTA_COMMIT)),
            )
        # A stream's own batch may have been written before this one looked: by a driver that was considered dead.
        check_batch(pending.instant, pending.metadata, [self.files.commit(config, i) for i in timeline.writes])
        for other in timeline.writes:
            if other.requested_time not in pending.seen:
                check_write(pending.written, other.requested_time, self.files.commit(config, other))
        for plan in timeline.pending_plans:
            if plan.requested_time not in pending.seen and not self.liveness.is_own_overwrite(plan):
                check_plan(pending.written, plan.requested_time, groups_of_plan(self.files, config, plan))


def _rolled_back(instant: str) -> RefusedError:
    return RefusedError(
        f"the write at {instant} was rolled back while it ran, and nothing of it was committed: write again"
    )


def made_files(storage: Storage, groups: Sequence[FileGroupWrite]) -> Iterable[str]:
    """The paths of the files that a write has made, of those that its file groups name. Lists each partition once."""
    for partition in sorted({group.partition for group in groups}):
        of_partition = [group for group in groups if group.partition == partition]
        for entry in storage.list(partition):
            file = DataFile(partition, entry.path, entry.size, entry.link_target)
            if any(_is_made(storage, file, group) for group in of_partition):
                yield file.path


def _is_made(storage: Storage, file: DataFile, group: FileGroupWrite) -> bool:
    match file.parsed:
        case BaseFileName():
            return file.name == group.base_name
        case LogFileName() as log if log.version >= group.first_log_version:
            if file.name != group.log_name(log.version - group.first_log_version):
                return False
            # On version 6 a write of another day may have the same token.
            return log.instant == group.instant or is_of_one_write(storage, file, group.instant)
        case _:
            return False
