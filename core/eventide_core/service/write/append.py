"""Writes records: upsert, insert, bulk insert, delete, insert overwrite.

Order of writes, and what a crash after each leaves:

1. Checks, keys, and schema: nothing is written yet, whatever is wrong with the records.
2. Under the lock: the heartbeat, `<instant>.deltacommit.requested` and `.inflight` (`replacecommit` for an overwrite).
   From then on, no compaction is planned that would treat the write's log files as its own input. A crash leaves a
   pending write, which nobody sees and whose heartbeat expires.
3. The table is read again if it has changed: the write builds on everything that has completed by now. Records get their
   places, and places their file groups.
4. Partition marks, then one task per file group on the engine: marker and file. They are not visible, because their
   instant has not completed.
5. Tasks read what the metadata table needs of the files. Under the lock: checks that the write is still pending and
   that nothing that completed since step 3 conflicts; then the completed file, once, last.
6. Markers and heartbeat are removed.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from eventide_core import config as keys
from eventide_core.action.compaction.log_version import LogNames
from eventide_core.action.query.planner import plan_slices
from eventide_core.action.write.basis import ReadBasis
from eventide_core.action.write.conflict import Overwrite, WrittenGroups, overwrite_of
from eventide_core.action.write.index import Index, IndexType, choose_index
from eventide_core.action.write.partition_forms import check_partition_forms, partition_mark
from eventide_core.action.write.pending_write import PendingWrite, WriteResult
from eventide_core.action.write.planner import WriteFacts, groups_of, plan_write
from eventide_core.action.write.refused_options import refuse_for_write
from eventide_core.config import InsertDuplicates, Option, Options
from eventide_core.errors import (
    BusyError,
    ConfigError,
    InstantNotFoundError,
    InvalidRecordError,
    MissingFileError,
    StorageError,
    UnsupportedTableError,
    counted,
)
from eventide_core.ports import IncomingRecords, Progress
from eventide_core.service.common.facts.arrival import mark_sources, said_of, to_repeat
from eventide_core.service.common.facts.planned_groups import planned_groups
from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep
from eventide_core.service.common.state.markers_and_heartbeats import remove_markers_and_heartbeat
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.write.instants import WriteInstants, made_files
from eventide_core.service.write.settings import base_file_sizes, combines, insert_duplicates, schema_rules, write_shape
from eventide_core.service.write.table_schema import internal_schema_after, refuse_revived
from eventide_core.table.files.bucket import BUCKET_INDEX_DIRECTORY
from eventide_core.table.files.file_group_write import FileGroupWrite, Placement
from eventide_core.table.schema.avro_schema import AvroSchema, SchemaChanges, schema_changes
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.settings.write_shape import SchemaRules, WriteOperation, WriteShape
from eventide_core.table.timeline.contents.checksums import with_checksums
from eventide_core.table.timeline.contents.commit_metadata import (
    ADDED_COLUMNS_KEY,
    EVENT_TIMES_KEY,
    SCHEMA_KEY,
    WIDENED_COLUMNS_KEY,
    WRITER,
    WRITER_KEY,
    CommitMetadata,
    WriteStat,
)
from eventide_core.table.timeline.file_system_view import FileGroup
from eventide_core.table.timeline.instant import Action
from eventide_core.table.timeline.source_notes import SourceNote, latest_notes, texts_of
from eventide_core.table.timeline.source_statements import stated, texts_of_statements
from eventide_core.table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Append:
    """`new_uuid` names new file groups. `sources` are the tables that records were made of, `stated` T of other sources.

    `known` is the table's state if it has been loaded for something else before: it is loaded again if others changed it.
    """

    files: TableFiles
    metadata: MetadataTableUpkeep
    instants: WriteInstants
    options: Options
    new_uuid: Callable[[], str]
    sources: tuple[SourceNote, ...] = ()
    stated: Mapping[str, str] = field(default_factory=dict[str, str])
    known: TableState | None = None

    def having(self, option: Option[Any], text: str) -> "Append":
        """Writes with another value of an option."""
        return replace(self, options=Options({**self.options.values, option: text}))

    def current_shape(self, state: TableState) -> tuple[WriteShape, SchemaRules]:
        """How rows of the table's own columns are written, and what they may leave out."""
        index = choose_index(state.config, self.options, (group[1] for group in state.view.slices))
        shape = write_shape(state, state.schema, self.options, self.files.storage.root)
        return replace(shape, has_global_keys=index.is_global), schema_rules(state.config, self.options)

    def write(
        self,
        operation: WriteOperation,
        records: IncomingRecords,
        progress: Progress,
        extra_metadata: Mapping[str, str] | None = None,
        basis: ReadBasis | None = None,
    ) -> WriteResult:
        """Writes records and completes the write. `extra_metadata` goes into the commit beside the schema.

        `basis`: the records were computed from rows of the table, which must not have changed since.

        Raises InvalidRecordError, ConfigError, UnsupportedTableError and RefusedError before anything is written;
        BusyError where something pending excludes a write; WriteConflictError if another writer was faster;
        StorageError and EngineError with what is known about the commit.
        """
        return self.complete(self.begin(operation, records, progress, extra_metadata, basis))

    def begin(
        self,
        operation: WriteOperation,
        records: IncomingRecords,
        progress: Progress,
        extra_metadata: Mapping[str, str] | None = None,
        basis: ReadBasis | None = None,
    ) -> PendingWrite:
        """Steps 1 to 4. Leaves the write pending, with a heartbeat."""
        try:
            return self._begin(operation, records, progress, extra_metadata, basis)
        except InstantNotFoundError:
            if self.known is None:
                raise
            # A plan that was pending in it has been rolled back since.
            return replace(self, known=None).begin(operation, records, progress, extra_metadata, basis)
        except MissingFileError as missing:
            TableState.load(self.files)  # raises the error if it is damage
            raise BusyError(
                f"{missing}: others removed it while the write began; nothing was written, try again"
            ) from missing

    def _begin(
        self,
        operation: WriteOperation,
        records: IncomingRecords,
        progress: Progress,
        extra_metadata: Mapping[str, str] | None,
        basis: ReadBasis | None,
    ) -> PendingWrite:
        before = self.known or TableState.load(self.files)
        index, prepared = self._checked(before, operation, records)
        self._overwrite(before, operation, prepared.placements or ())  # refuses one that replaces nothing
        requested = self.instants.request(operation.action)
        instant = requested.instant
        groups: Sequence[FileGroupWrite] = ()
        try:
            state = requested.state(self.files, before)
            if state.config != before.config:
                index, prepared = self._checked(state, operation, records)
            elif state.known_schema != before.known_schema:
                prepared = self._prepare(state, operation, index, records)
            placements = prepared.placements
            if placements is None:
                placements = self._look_up(state, index, records)
                placements = self._without_duplicates(placements, operation)
            internal = internal_schema_after(state, prepared.schema, instant)
            if basis is not None:
                basis.check_placed(instant, placements)
            check_partition_forms((p.partition for p in placements), {group[0] for group in state.view.slices})
            overwrite = self._overwrite(state, operation, placements)
            groups = plan_write(placements, self._facts(state, operation, index, instant), self.new_uuid)
            self._mark_partitions(state, groups, instant)
            progress.start("writing", len(groups))
            stats = records.write(groups, on_done=progress.advance)
        except BaseException as failure:
            self.instants.abort(instant, failure, partial(made_files, self.files.storage, groups))
            raise
        looks_up = operation is WriteOperation.UPSERT or prepared.placements is None
        return PendingWrite(
            instant,
            operation.action,
            CommitMetadata(
                _by_partition(groups, stats),
                with_checksums(
                    {
                        **self._noted(state, instant),
                        **(extra_metadata or {}),
                        **prepared.extra_metadata,
                        **internal,
                    },
                    itertools.chain(*stats),
                    state.config.recorded_settings,
                ),
                operation.operation_type,
                replaced_file_ids={} if overwrite is None else overwrite.file_ids,
            ),
            WrittenGroups(
                instant,
                index,
                groups_of(groups) if overwrite is None else groups_of(groups) | overwrite.groups,
                frozenset(p.partition for p in placements if looks_up and p.place == "" and p.upserts),
                overwrite,
            ),
            _seen(state.timeline, operation, basis),
            state.config,
            prepared.changes,
            basis,
            state.known_schema,
        )

    def _checked(
        self, state: TableState, operation: WriteOperation, records: IncomingRecords
    ) -> "tuple[Index, _Prepared]":
        """What the table's settings say of the write. Raises what it can't be."""
        if state.config.is_copy_on_write:
            raise UnsupportedTableError(
                f"{self.files.storage.root}: hoodie.table.type=COPY_ON_WRITE: eventide writes log files, which such a table "
                "cannot have; write to it with Hudi, or write to a MERGE_ON_READ table"
            )
        if state.config.captures_changes:
            raise UnsupportedTableError(
                f"{self.files.storage.root}: hoodie.table.cdc.enabled=true: eventide writes new file groups as log files "
                "alone, from which Hudi can read no changes; write to this table with Hudi"
            )
        refuse_for_write(self.options, state.config, self.files.storage.root)
        self._refuse_growing_buckets(state.config)
        self.metadata.check(state.config, RowChange.WRITTEN)
        self._planned(state)
        index = choose_index(state.config, self.options, (group[1] for group in state.view.slices))
        self._refuse_moving_merged_records(state.config, index)
        return index, self._prepare(state, operation, index, records)

    def _noted(self, state: TableState, instant: str) -> dict[str, str]:
        new = (replace(note, noted_at=note.noted_at or instant) for note in self.sources)
        said = said_of(self.files, state) if self.sources else to_repeat(self.files, state)
        known = texts_of(latest_notes((*said.notes, *new)))
        repeated = (one for one in said.statements if one.name not in self.stated)
        texts = known | texts_of_statements(repeated) | stated(self.stated)
        mark_sources(self.files, texts)
        return texts

    def _refuse_moving_merged_records(self, config: TableConfig, index: Index) -> None:
        if index.moves_keys and config.merger is not None:
            raise UnsupportedTableError(
                f"{self.files.storage.root}: the merger {config.merger.name}: a record that moves to another partition "
                "would not meet its older version; turn the index's update.partition.path off, or write with Hudi"
            )
        if index.moves_keys and config.partial_update is not None:
            raise UnsupportedTableError(
                f"{self.files.storage.root}: hoodie.table.partial.update.mode: a record that moves to another partition "
                "would lose the columns that it leaves out; turn the index's update.partition.path off, or write with Hudi"
            )

    def _refuse_growing_buckets(self, config: TableConfig) -> None:
        if config.properties.get(keys.INDEX_TYPE, IndexType.BUCKET) != IndexType.BUCKET:
            return  # eventide made it, without buckets
        kept = self.files.storage.list(BUCKET_INDEX_DIRECTORY)
        if kept:
            raise UnsupportedTableError(
                f"{self.files.storage.root}: {kept[0].path}: the table's buckets use consistent hashing "
                f"({keys.BUCKET_ENGINE}=CONSISTENT_HASHING), or their number differs by partition; Hudi would not find keys "
                "that eventide writes; write to this table with Hudi"
            )

    def complete(self, pending: PendingWrite) -> WriteResult:
        """Steps 5 and 6. Raises WriteConflictError, and RefusedError if the write was rolled back in the meantime."""
        heartbeats = self.instants.liveness.heartbeats
        completion: str | None = None
        dropped: tuple[str, ...] = ()

        def made() -> list[str]:
            return [stat.path for stat in pending.metadata.stats]

        try:
            completion, dropped = self.instants.complete(pending)
        except StorageError as failure:
            heartbeats.stop(pending.instant)
            try:
                committed = self.files.resolve_failed_commit("write", pending.instant, failure, "write again")
                completion = committed.completion_time or pending.instant
            except StorageError:
                self.instants.abort(pending.instant, failure, made)
                raise
        except BaseException as failure:
            self.instants.abort(pending.instant, failure, made)
            raise
        heartbeats.stop(pending.instant)
        # The write has completed. What happens to its markers does not matter: no process reads them now.
        with suppress(StorageError):
            remove_markers_and_heartbeat(self.files.storage, pending.instant)
        stats = pending.metadata.stats
        upserts, deletes = (
            sum(stat.num_inserts + stat.num_update_writes for stat in stats),
            sum(stat.num_deletes for stat in stats),
        )
        return WriteResult(
            pending.instant,
            rows=upserts + deletes,
            upserts=upserts,
            deletes=deletes,
            files=len(stats),
            bytes_written=sum(stat.file_size_bytes for stat in stats),
            dropped_indexes=dropped,
            completion_time=completion,
            added_columns=pending.schema_changes.added,
            widened_columns=pending.schema_changes.widened,
        )

    def _prepare(
        self, state: TableState, operation: WriteOperation, index: Index, records: IncomingRecords
    ) -> "_Prepared":
        schema = state.schema if operation is WriteOperation.DELETE else state.known_schema
        after = records.schema_after(schema, state.config.name, schema_rules(state.config, self.options))
        shape = write_shape(state, after, self.options, self.files.storage.root)
        if shape.records.schema != schema:
            self.metadata.check(state.config, RowChange.WIDENED)
        shape = replace(shape, has_global_keys=index.is_global)
        records.prepare(shape, combines=combines(operation, self.options))
        duplicates = insert_duplicates(operation, self.options)
        changes = schema_changes(schema, shape.records.schema)
        refuse_revived(state, changes.added)
        if index.type is IndexType.BUCKET and duplicates is not InsertDuplicates.NONE:
            raise ConfigError(
                f"option {keys.INSERT_DUPLICATES}={duplicates}: with a bucket index, an insert does not look up "
                "existing keys; use upsert, or a table with another index"
            )
        places = None
        if index.type is IndexType.BUCKET:
            places = records.place_by_bucket(index.buckets, index.hash_fields)
        elif operation not in (WriteOperation.UPSERT, WriteOperation.DELETE) and duplicates is InsertDuplicates.NONE:
            places = records.place_nowhere()
        return _Prepared(shape.records.schema, shape.stat_field, changes, places)

    def _facts(self, state: TableState, operation: WriteOperation, index: Index, instant: str) -> WriteFacts:
        adds = not operation.is_overwrite
        return WriteFacts(
            instant=instant,
            layout=state.config.layout,
            index=index,
            slices=state.view.latest_slices() if adds else (),
            log_names=LogNames.of(state.listing, self._planned(state)),
            sizes=base_file_sizes(
                operation,
                (
                    state.commits[i.requested_time]
                    for i in reversed(state.timeline.writes)
                    if i.action is not Action.REPLACE_COMMIT
                ),
                self.options,
            ),
        )

    def _planned(self, state: TableState) -> Mapping[FileGroup, str]:
        """The file groups of the pending plans. Raises BusyError for one that may use any."""
        others = (plan for plan in state.timeline.pending_plans if not self.instants.liveness.is_own_overwrite(plan))
        return planned_groups(self.files, state.config, others)

    def _overwrite(
        self, state: TableState, operation: WriteOperation, placements: Sequence[Placement]
    ) -> Overwrite | None:
        """What an overwrite replaces. Raises InvalidRecordError if it has no records, and so no partition."""
        if not operation.is_overwrite:
            return None
        existing = (file_slice.file_group for file_slice in state.view.latest_slices())
        overwrite = overwrite_of(operation, (p.partition for p in placements), existing)
        if not overwrite.file_ids:
            raise InvalidRecordError(
                f"an {operation} without records replaces no partition; delete the rows that are to go "
                "(`delete(where=...)`)"
            )
        return overwrite

    def _look_up(self, state: TableState, index: Index, records: IncomingRecords) -> tuple[Placement, ...]:
        slices = plan_slices(state.view.latest_slices(), state.blocks_of_slices())
        if index.is_global:
            located = self.metadata.record_index(state.config, state.timeline)
            return records.place_by_global_key(
                slices, by_bloom=index.is_by_bloom, moves=index.moves_keys, index=located
            )
        return records.place_by_key(slices, by_bloom=index.is_by_bloom)

    def _without_duplicates(
        self, placements: tuple[Placement, ...], operation: WriteOperation
    ) -> tuple[Placement, ...]:
        """The places of the records that an insert is to write, of records that were looked up."""
        match insert_duplicates(operation, self.options):
            case InsertDuplicates.NONE:
                return placements
            case InsertDuplicates.DROP:
                return tuple(p for p in placements if not p.place)
            case InsertDuplicates.FAIL:
                known = [p for p in placements if p.place]
                if known:
                    count = counted(sum(p.upserts for p in known), "record")
                    raise InvalidRecordError(
                        f"the table already has the keys of {count}, the first in partition {known[0].partition!r}; "
                        f"upsert them, or skip them with {keys.INSERT_DUPLICATES}={InsertDuplicates.DROP}"
                    )
                return placements

    def _mark_partitions(self, state: TableState, groups: Sequence[FileGroupWrite], instant: str) -> None:
        known = {partition for partition, _ in state.view.slices}
        for partition in sorted({group.partition for group in groups} - known):
            self.files.storage.put_if_absent(*partition_mark(partition, instant))


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The schema that the table will have, and the records' places where these do not depend on what the table holds.

    `stat_field`: see WriteShape.
    """

    schema: AvroSchema
    stat_field: str | None
    changes: SchemaChanges
    placements: tuple[Placement, ...] | None

    @property
    def extra_metadata(self) -> dict[str, str]:
        event_times = {} if self.stat_field is None else {EVENT_TIMES_KEY: self.stat_field}
        changes = {
            key: ",".join(names)
            for key, names in ((ADDED_COLUMNS_KEY, self.changes.added), (WIDENED_COLUMNS_KEY, self.changes.widened))
            if names
        }
        return {SCHEMA_KEY: self.schema.text, WRITER_KEY: WRITER, **event_times, **changes}


def _by_partition(
    groups: Sequence[FileGroupWrite], stats: Sequence[tuple[WriteStat, ...]]
) -> dict[str, tuple[WriteStat, ...]]:
    by_partition: dict[str, list[WriteStat]] = {}
    for group, of_group in zip(groups, stats, strict=True):
        by_partition.setdefault(group.partition, []).extend(of_group)
    return {partition: tuple(of_partition) for partition, of_partition in by_partition.items()}


def _seen(timeline: Timeline, operation: WriteOperation, basis: ReadBasis | None) -> frozenset[str]:
    """What the write has seen: the completed instants, and the pending plans.

    An overwrite begins without a plan, so each plan came later. A pending overwrite has replaced nothing yet. What
    completed after rows were read is not in what was computed from them.
    """
    plans = () if operation.is_overwrite else timeline.pending_plans
    planned = (plan.requested_time for plan in plans if plan.action is not Action.REPLACE_COMMIT)
    completed = frozenset(i.requested_time for i in timeline.completed)
    return (completed if basis is None else completed & basis.completed).union(planned)
