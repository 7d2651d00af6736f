"""Makes Hudi's metadata table from nothing, for a table that has none, or whose metadata table is broken.

All of it under the table lock, which every writer has to share:

1. Check: no write, rollback, restore or indexing is pending. As in Hudi, because a writer that began without a metadata
   table makes one itself.
2. Drop the old metadata table (upkeep.py): its name leaves the table's settings first.
3. Make the new one (initialization.py), after a mark that it is being made. It names the files of all completed actions,
   and those that nothing has removed yet.
4. Check that nothing has begun since step 1, by a writer that shares no lock. If so, remove it again, and then the mark
   (BusyError).
5. Write the names of its partitions into the table's settings. From then on, it is read. If the lock was lost by then,
   others may have written without it: the names are removed again (LockError). Then remove the mark.

A crash before step 5 leaves a table without a metadata table, for which Hudi, or a second run, makes a new one. If others
change files without it, they remove what was made, and the mark (drop.py): a process that is paused before step 5, and dies
right after it, names a metadata table that isn't there.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from eventide_core.access.files import discard, remove_tree
from eventide_core.access.timeline_files import delete_each
from eventide_core.action.metadata_table.initialization import first_instant
from eventide_core.action.query.planner import plan_slices
from eventide_core.cure import Cure
from eventide_core.errors import BusyError, UnsupportedTableError
from eventide_core.ports import Lease, NewMetadataTable, TableLock
from eventide_core.service.common.facts.planning import unused_instant
from eventide_core.service.common.metadata_table.drop import BEING_MADE, check_or_unname, drop_metadata_table
from eventide_core.service.common.metadata_table.initialization import make_metadata_table
from eventide_core.service.common.metadata_table.upkeep import rebuilt_indexes
from eventide_core.service.common.state.committed_files import require_files
from eventide_core.service.common.state.returned_groups import refuse_returned
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.settings_file import change_settings
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.slice_read import QueryPlan
from eventide_core.table.files.table_path import INDEX_DEFINITIONS, METADATA_DIRECTORY
from eventide_core.table.property_keys import INDEX_DEFINITIONS_PATH, METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from eventide_core.table.settings.metadata_table import (
    BESIDE_REBUILD,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    REBUILT_INDEXES,
)
from eventide_core.table.settings.properties import parse_properties
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import State


@dataclass(frozen=True, slots=True)
class RebuiltMetadataTable:
    """What the new metadata table has.

    `partitions` are its own, `dropped` the partitions of the old one that it lacks. `files` counts the base and log files
    of the table that it lists.
    """

    partitions: tuple[str, ...]
    dropped: tuple[str, ...]
    files: int


@dataclass(frozen=True, slots=True)
class MetadataRebuilder:
    files: TableFiles
    lock: TableLock

    def rebuild(self, indexes: Collection[str] | None = None) -> RebuiltMetadataTable:
        """Rebuilds the metadata table: `files`, and `indexes`; by default the indexes of the old one that can be made.

        Raises BusyError if a write is pending or begins meanwhile, UnsupportedTableError for an index that eventide cannot
        make, a table whose records have no keys in their files, or for a record index over a key of several rows,
        RefusedError if files of a replaced file group have come back; and what reading the table raises.
        """
        with self.lock.acquire() as lease:
            state = TableState.load(self.files, requires_files=False)
            require_files(state, None, self.files.unmarked)  # what only the old metadata table lists is given up
            old = state.config.metadata_partitions
            wanted = rebuilt_indexes(self.files.storage, state.config) if indexes is None else tuple(indexes)
            self._check(state, wanted)
            refuse_returned(state)
            partitions = (FILES, *_indexes(state, wanted))
            new, end = _new(state, partitions), unused_instant(state, self.files.clock)
            lease.check()
            drop_metadata_table(self.files.storage, lease)
            self.files.storage.put_if_absent(BEING_MADE, b"")
            make_metadata_table(self.files, new, lease, name=state.config.name, completion_time=end)
            self._check_undisturbed(state, lease)
            self._publish(partitions, lease)
        count = sum(map(len, new.files.values()))
        return RebuiltMetadataTable(partitions, tuple(name for name in old if name not in partitions), count)

    def _check(self, state: TableState, wanted: Collection[str]) -> None:
        root = self.files.storage.root
        for name in wanted:
            if name not in (FILES, *REBUILT_INDEXES):
                raise UnsupportedTableError(
                    f"{root}: eventide cannot make the index {name} of the metadata table, only "
                    f"{', '.join(REBUILT_INDEXES)}; the next write of Hudi adds the indexes that it is configured to have"
                )
        by_key = [name for name in wanted if name not in (FILES, COLUMN_STATS)]
        if by_key and state.config.virtual_key_fields:
            raise UnsupportedTableError(
                f"{root}: hoodie.populate.meta.fields=false, and the indexes {', '.join(by_key)} need the record keys in "
                "the files; rebuild the metadata table without them"
            )
        for pending in state.timeline.pending:
            if pending.action not in BESIDE_REBUILD:
                raise BusyError(
                    f"{root}: a {pending.action} is pending at {pending.requested_time}, and its writer may make a metadata "
                    "table itself; try again when it has completed, or run "
                    f"{Cure.rollback(pending.requested_time)} if its writer is dead"
                )

    def _check_undisturbed(self, state: TableState, lease: Lease) -> None:
        config = self.files.config()
        timeline = self.files.timeline(config)
        is_taken = bool(config.metadata_partitions or config.properties.get(METADATA_PARTITIONS_INFLIGHT, "").strip())
        if not is_taken and timeline.instants == state.timeline.instants:
            return
        lease.check()
        if not is_taken:
            remove_tree(self.files.storage, METADATA_DIRECTORY)
        delete_each(self.files.storage, [BEING_MADE], lease)
        raise BusyError(
            f"{self.files.storage.root}: a writer that does not share the table lock has begun while the metadata table was "
            "made, so it is not used; try again beside no writer, or let all writers share the lock"
        )

    def _publish(self, partitions: tuple[str, ...], lease: Lease) -> None:
        has_definitions = self.files.storage.stat(INDEX_DEFINITIONS) is not None

        def named(text: str) -> dict[str, str | None]:
            values: dict[str, str | None] = {METADATA_PARTITIONS: ",".join(sorted(partitions))}
            if has_definitions:
                values[INDEX_DEFINITIONS_PATH] = parse_properties(text).get(INDEX_DEFINITIONS_PATH, INDEX_DEFINITIONS)
            return values

        change_settings(self.files.storage, named, lease)
        check_or_unname(self.files.storage, lease)
        discard(self.files.storage, BEING_MADE)


def _indexes(state: TableState, wanted: Collection[str]) -> Iterator[str]:
    """The indexes to make. Hudi has statistics of partitions from version 8 on, of a table that is partitioned."""
    for name in REBUILT_INDEXES:
        if name in wanted:
            yield name
            if name == COLUMN_STATS and state.config.layout.needs_hudi_1 and state.config.partition_fields:
                yield PARTITION_STATS


def _new(state: TableState, partitions: tuple[str, ...]) -> NewMetadataTable:
    files: dict[str, dict[str, int]] = {}
    for file in state.listing:
        of_partition = files.setdefault(file.partition, {})
        if _counts(state, file):
            of_partition[file.name] = file.size
    completed = [i.requested_time for i in state.timeline.completed]
    return NewMetadataTable(
        version=state.config.version,
        instant=first_instant(state.config.version, completed),
        partitions=partitions,
        files=files,
        rows=QueryPlan(plan_slices(state.view.latest_slices(), state.blocks_of_slices()), state.shape(None)),
        has_utc_instants=state.config.has_utc_instants,
    )


def _counts(state: TableState, file: DataFile) -> bool:
    """Whether a file belongs into `files`: not if it is of a pending action, which names its files when it completes.

    On version 6, the name of a log file is of its slice, which may begin with a pending compaction.
    """
    match file.parsed:
        case None:
            return False
        case LogFileName() if not state.config.layout.names_logs_by_write:
            return True
        case parsed:
            write = state.timeline.find(parsed.instant)
            return write is None or write.state is State.COMPLETED
