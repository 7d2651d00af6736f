"""Keeps Hudi's metadata table up to date when an action commits, as `eventide.metadata.table` specifies.

The steps of an action, all under the table lock:

1. `check`, before it writes anything.
2. `prepare`, when its files exist and before the point of no return: anything that can be refused is refused here.
3. `write`, before its commit. With `update`, the metadata table gets a commit of the same instant, which nobody sees
   before the table's own commit. With `drop`, the metadata table is removed.
4. `check_after_commit`. A compaction of the metadata table, by a writer that shares no lock, may have run between the
   two and skipped the update. Then the metadata table is dropped, because readers would miss files.
5. `compact`, for a write, a compaction, or a clean: compacts the metadata table if that is due, and removes its old
   slices.

A crash during step 5 leaves a pending compaction of the metadata table. The next action completes it in `prepare`.

A crash between step 3 and the commit leaves an update that nobody sees. A second run writes nothing twice. A rollback
of the action calls `revert` before its instant leaves the timeline.

`revert` deletes the delta commit first: without it, no log file of the instant counts. Then it deletes its log files,
and finally its inflight and requested files, by which a second run finds the rest. `service/common/metadata_table/drop.py`
has the order of a drop.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType

from eventide_core.access.timeline_files import TimelineFiles, delete_each
from eventide_core.action.metadata_table.indexes import check_indexes, check_pending, check_record_index
from eventide_core.config import METADATA_COMPACT_AFTER as COMPACT_AFTER
from eventide_core.config import METADATA_TABLE as OPTION
from eventide_core.config import MetadataTableChoice as Choice
from eventide_core.config import Options
from eventide_core.cure import Cure
from eventide_core.errors import (
    BusyError,
    CorruptBaseFileError,
    CorruptLogBlockError,
    EventideError,
    LockError,
    MissingFileError,
    RecordDecodeError,
    RefusedError,
    UnsupportedTableError,
)
from eventide_core.ports import (
    AddedFile,
    FileAnswers,
    FileChanges,
    KeyIndex,
    Lease,
    MetadataCodec,
    MetadataTable,
    MetadataUpdate,
    Storage,
)
from eventide_core.service.common.metadata_table.compaction import MetadataCompaction, MetadataCompactor
from eventide_core.service.common.metadata_table.drop import drop_indexes, drop_metadata_table, withdraw_unfinished
from eventide_core.service.common.metadata_table.update import write_update
from eventide_core.service.common.state.metadata_listing import actions_made_with
from eventide_core.service.common.transaction.action import Transaction
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.table.files.file_name import BaseFileName, LogFileName, is_data_file
from eventide_core.table.files.table_path import METADATA_DIRECTORY
from eventide_core.table.property_keys import METADATA_PARTITIONS_INFLIGHT
from eventide_core.table.settings import metadata_table
from eventide_core.table.settings.metadata_table import RowChange, is_of_whole_table
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.commit_metadata import DROPPED_INDEXES_KEY, CommitMetadata
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Action, State
from eventide_core.table.timeline.timeline import Timeline

_DAMAGE = (CorruptBaseFileError, CorruptLogBlockError, MissingFileError, RecordDecodeError)
_BY_FILE = frozenset((metadata_table.FILES, metadata_table.BLOOM_FILTERS))


@dataclass(frozen=True, slots=True)
class PendingUpdate:
    """The effect of one action on the metadata table. `update` is None if the metadata table is dropped or absent.

    `delta_commits_max` is the number of delta commits after which the metadata table is compacted.
    """

    compactor: MetadataCompactor
    changes: FileChanges
    update: MetadataUpdate | None
    is_dropped: bool
    delta_commits_max: int

    @property
    def dropped_indexes(self) -> tuple[str, ...]:
        return () if self.update is None else self.update.dropped

    def recorded_in(self, metadata: CommitMetadata) -> CommitMetadata:
        """The table's commit, which records the dropped indexes."""
        if not self.dropped_indexes:
            return metadata
        extra = {**metadata.extra_metadata, DROPPED_INDEXES_KEY: ",".join(self.dropped_indexes)}
        return replace(metadata, extra_metadata=extra)

    def write(self, lease: Lease, completion_time: str) -> None:
        """Before the commit. `completion_time`: the same for each run of one action (`write_update`)."""
        if self.is_dropped:
            lease.check()
            self.drop(lease)
        elif self.update is not None:
            lease.check()
            owner = self.compactor
            write_update(owner.storage, owner.table, owner.codec, self.update, completion_time)

    def check_after_commit(self, lease: Lease) -> None:
        """After the commit."""
        if self.update is not None and not self.compactor.table.reflects(self.changes):
            lease.check()
            self.drop(lease)

    def drop(self, lease: Lease) -> None:
        drop_metadata_table(self.compactor.storage, lease)

    def compact(self, lease: Lease, completion_time: str) -> None:
        """Compacts the metadata table if due. `completion_time` is the commit's.

        Neither a damaged metadata table nor a lost lock fails the action, which has completed. The next action finds the
        damage in `prepare`, and goes on with the compaction.
        """
        if self.update is None:
            return
        with suppress(*_DAMAGE, LockError):
            due = self.compactor.due(self.delta_commits_max, completion_time)
            if due is not None and _stays_after(due, self.compactor.storage, lease):
                self.compactor.remove_old_slices(lease)


@dataclass(frozen=True, slots=True)
class MetadataTableUpkeep:
    compactor: MetadataCompactor
    options: Options

    @property
    def storage(self) -> Storage:
        return self.compactor.storage

    @property
    def table(self) -> MetadataTable:
        return self.compactor.table

    def check(self, config: TableConfig, rows: RowChange) -> tuple[str, ...]:
        """Notes for the user on the effect on the metadata table; none if the table has none.

        Raises RefusedError if the options say so, UnsupportedTableError for an index that cannot follow the action, and
        BusyError while Hudi is building one or (version 6) has a compaction of it pending.
        """
        partitions = ", ".join(config.metadata_partitions)
        if not partitions:
            return ()
        match self._choice():
            case Choice.UPDATE:
                self._check_followed(config, rows)
                return (f"Hudi's metadata table ({partitions}) will be updated",)
            case Choice.DROP:
                return (f"Hudi's metadata table will be dropped; {Cure.rebuild_metadata_table()} makes it again",)
            case Choice.REFUSE:
                raise RefusedError(
                    f"{config.name} has Hudi's metadata table ({partitions}), which would go stale: {OPTION}=update keeps "
                    f"it up to date, {OPTION}=drop drops it, and {Cure.rebuild_metadata_table()} makes it again"
                )

    def _check_followed(self, config: TableConfig, rows: RowChange) -> None:
        """Raises UnsupportedTableError for an index that cannot follow, BusyError for what has to be waited for."""
        state, root = self.table.load(), self.storage.root
        facts = state.facts
        # An action that drops indexes on its way goes on with the settings that it has read before.
        dropped = set(config.metadata_partitions) - set(facts.partitions)
        if metadata_table.FILES in dropped or not set(facts.partitions) <= set(config.metadata_partitions):
            raise BusyError(f"{root}: the metadata table is being rebuilt or dropped, or has just been; try again")
        if facts.layout != config.layout:
            raise UnsupportedTableError(
                f"{root}: the metadata table has version {facts.version}, and the table version {config.version}, as after "
                f"procedures of Hudi 1.1: eventide reads it and doesn't write it; {metadata_table.REBUILD_CURE}"
            )
        check_indexes(facts, rows, root)
        if rows in (RowChange.WRITTEN, RowChange.WIDENED) and metadata_table.RECORD_INDEX in facts.partitions:
            check_record_index(state.view(metadata_table.RECORD_INDEX).latest_slices())
        if facts.layout.writers_follow_plans and self.compactor.begun_in(state) is None:
            check_pending(facts.timeline.pending_plans, root)

    def follows_rows(self, config: TableConfig) -> bool:
        """Whether it has indexes that every write has to follow by its rows, and is kept up to date."""
        return not _BY_FILE.issuperset(config.metadata_partitions) and self._choice() is Choice.UPDATE

    def reads_files(self, config: TableConfig) -> bool:
        """Whether a write makes it read data files, and it is kept up to date."""
        return bool(set(config.metadata_partitions) - {metadata_table.FILES}) and self._choice() is Choice.UPDATE

    def record_index(self, config: TableConfig, timeline: Timeline) -> KeyIndex | None:
        """The record index, if it is kept up to date and has followed each completed action of that timeline."""
        if self._choice() is not Choice.UPDATE:
            return None
        return complete_record_index(self.storage, self.table, self.compactor.codec, config, timeline)

    def known_ahead(self, config: TableConfig, instant: str, changes: FileChanges) -> FileAnswers:
        """What `prepare` has to know of the content of files, before the lock is acquired.

        Nothing if that fails. Then it is read under the lock, where the checks report first what is wrong.
        """
        with suppress(EventideError):
            if self.reads_files(config):
                return self.table.read_ahead(instant, changes)
        return {}

    def prepare(
        self,
        config: TableConfig,
        lease: Lease,
        instant: str,
        changes: FileChanges,
        known: FileAnswers = MappingProxyType({}),
    ) -> PendingUpdate:
        """The effect of `changes` at that instant, before anything is written. Raises what `check` raises.

        First completes a compaction of the metadata table that eventide began.
        """
        self.check(config, changes.rows)
        is_used = self._is_used(config, lease)
        is_updated = is_used and self._choice() is Choice.UPDATE
        if is_updated:
            state = self.table.load()
            TimelineFiles(self.storage, state.timeline_path).sweep(state.facts.timeline.strays, lease)
            if not _stays_after(self.compactor.begun_in(state), self.storage, lease):
                is_used = is_updated = False
            elif not state.facts.timeline.instants:  # it was withdrawn before its rebuild named it: it is dropped
                is_updated = False
        delta_commits_max = self.options.get(COMPACT_AFTER) if is_updated else 0
        update = self.table.prepare(instant, changes, known) if is_updated else None
        return PendingUpdate(self.compactor, changes, update, is_used and not is_updated, delta_commits_max)

    def differences(self, config: TableConfig, present: Iterable[DataFile]) -> FileChanges:
        """The changes after which it names exactly the existing data files; none if it is not kept up to date."""
        if not config.metadata_partitions or self._choice() is not Choice.UPDATE:
            return FileChanges(RowChange.NONE)
        listed = self.table.listing(()) or {}
        there = {(f.partition, f.name): f.size for f in present if is_data_file(f.name)}
        added = tuple(
            AddedFile(partition, name, size)
            for (partition, name), size in there.items()
            if listed.get(partition, {}).get(name) != size
        )
        removed = {
            partition: tuple(name for name in names if (partition, name) not in there)
            for partition, names in listed.items()
        }
        return FileChanges(RowChange.NONE, added, {partition: names for partition, names in removed.items() if names})

    def forget_rows(self, config: TableConfig, lease: Lease) -> None:
        """Drops what cannot follow a rollback of rows.

        Call it before the first row is rolled back: from then on, the rollback has to end, whatever indexes there are and
        whatever the options of its second run say.
        """
        self.check(config, RowChange.NONE)
        if self._is_used(config, lease):
            lease.check()
            if self._choice() is Choice.UPDATE:
                drop_indexes(self.storage, self.table, self.table.indexes_over_rows())
            else:
                drop_metadata_table(self.storage, lease)

    def revert(self, config: TableConfig, lease: Lease, instant: str) -> None:
        """Removes what an action that never committed, by whichever engine, had already made of it.

        Call it before that instant leaves the table's timeline: an instant that is no longer pending counts.
        """
        if self._is_used(config, lease):
            lease.check()
            if self._choice() is Choice.DROP:
                drop_metadata_table(self.storage, lease)
            elif _stays_after(
                self.compactor.begun(), self.storage, lease
            ):  # its plan may name log files of that instant
                revert_update(self.storage, self.table, instant)

    def _is_used(self, config: TableConfig, lease: Lease) -> bool:
        """Whether the table's settings name a metadata table. If not, what an unfinished rebuild made is withdrawn."""
        if not (config.metadata_partitions or config.properties.get(METADATA_PARTITIONS_INFLIGHT, "").strip()):
            withdraw_unfinished(self.storage, lease)
        return bool(config.metadata_partitions)

    def _choice(self) -> Choice:
        return self.options.get(OPTION)


def _stays_after(compaction: MetadataCompaction | None, storage: Storage, lease: Lease) -> bool:
    """Runs the compaction, if there is one. Whether the metadata table still exists then."""
    if compaction is None or compaction.run(lease):
        return True
    lease.check()
    drop_metadata_table(storage, lease)
    return False


def complete_record_index(
    storage: Storage, table: MetadataTable, codec: MetadataCodec, config: TableConfig, timeline: Timeline
) -> KeyIndex | None:
    """The record index, if it has followed each completed action of that timeline.

    An index is made from all files, so it needs no commit of the actions before the metadata table. On version 6, one
    that was pending then counts as before it: a clustering, which moves keys, must have a commit there.
    """
    if metadata_table.RECORD_INDEX not in config.metadata_partitions:
        return None
    state = table.load()
    own = {i.requested_time for i in state.facts.timeline.completed}
    missing = [i for i in timeline.completed if i.action is not Action.SAVEPOINT and i.requested_time not in own]
    missing = [i for i in missing if state.archive.find(i.requested_time) is None]
    if not config.layout.records_completion_times and any(i.action is Action.REPLACE_COMMIT for i in missing):
        return None
    if missing and not actions_made_with(storage, codec, state).issuperset(i.requested_time for i in missing):
        return None
    return state.record_index()


def revert_update(storage: Storage, table: MetadataTable, instant: str) -> None:
    """Removes what was written at an instant that the table never committed. Harmless if nothing was.

    Raises UnsupportedTableError, before anything is removed, if a log file holds that instant's records among
    others'.
    """
    state = table.load()
    latest = state.facts.timeline.find(instant)
    if latest is None:
        return
    timeline = TimelineFiles(storage, state.timeline_path)
    begun = Transaction(Kind.METADATA_UPDATE, Action.DELTA_COMMIT, instant, timeline)
    pending = (timeline.path(begun.at(State.INFLIGHT)), timeline.path(begun.at(State.REQUESTED)))
    completed = (timeline.path(latest),) if latest.is_completed else ()
    delete_each(storage, (*completed, *state.logs_of(instant), *pending), None)


def rebuilt_indexes(storage: Storage, config: TableConfig) -> tuple[str, ...]:
    """The indexes of the table's metadata table that a rebuild makes again.

    A record index with file groups of its own for each partition is not one of them: eventide makes one of the whole table.
    """
    known = [name for name in metadata_table.REBUILT_INDEXES if name in config.metadata_partitions]
    return tuple(name for name in known if name != metadata_table.RECORD_INDEX or _is_of_whole_table(storage))


def _is_of_whole_table(storage: Storage) -> bool:
    names = [
        entry.path.rpartition("/")[2] for entry in storage.list(f"{METADATA_DIRECTORY}/{metadata_table.RECORD_INDEX}")
    ]
    parsed = (BaseFileName.parse(name) or LogFileName.parse(name) for name in names)
    return all(is_of_whole_table(name.file_id) for name in parsed if name is not None)
