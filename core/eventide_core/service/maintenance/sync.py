"""Syncs a table to a catalog: tables, partitions, schema, and the freshness of the read-optimized view.

The order of writes, for each of the catalog's tables:

1. The database, if it is missing and may be created; the table, if it is missing.
2. Partitions: added, moved, and dropped, according to the file slices.
3. Last, in one request, all changes of the table itself, with the commit that the catalog now follows.

A crash between any two leaves a table that follows no commit, or an earlier one; the next sync completes it. Nothing is
written if nothing has changed. The table itself is only read: a failed sync does not affect what was committed.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Protocol

from eventide_core.action.sync.catalog_changes import (
    PartitionChanges,
    new_table,
    partition_changes,
    require_ours,
    table_change,
)
from eventide_core.action.sync.catalog_tables import SyncFacts, published, wanted_tables
from eventide_core.action.sync.dataset_changes import dataset_change, wanted_properties
from eventide_core.action.sync.options import DatasetOptions, SyncOptions
from eventide_core.config import SYNC_AUTO_CREATE_DATABASE, Options
from eventide_core.errors import DatabaseNotFoundError, EventideError
from eventide_core.ports import Catalog, DatasetCatalog
from eventide_core.service.common.facts.arrival import ArrivalReader
from eventide_core.service.common.facts.freshness import FreshnessReader
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.table.catalog.catalog_columns import TableColumns
from eventide_core.table.catalog.catalog_table import CatalogPartition, CatalogTable, hadoop_location
from eventide_core.table.records.partition_values import partition_values

_NO_CHANGES = PartitionChanges((), (), ())


@dataclass(frozen=True, slots=True)
class SyncedTable:
    """The changes to one of the catalog's tables.

    `name` is without the database. `is_created`: it was missing there. `is_altered`: its entry was updated, if only to state
    which commit it follows. `partitions_added`, `partitions_moved` (to another directory) and `partitions_dropped` are
    counts.
    """

    name: str
    is_created: bool
    is_altered: bool
    partitions_added: int = 0
    partitions_moved: int = 0
    partitions_dropped: int = 0

    @property
    def is_changed(self) -> bool:
        partitions = self.partitions_added + self.partitions_moved + self.partitions_dropped
        return self.is_created or self.is_altered or partitions > 0


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a sync did. `tables` are all that the table is to have in the catalogs, changed or not.

    `properties` are those that change from commit to commit, including the freshness, as they are published now. `database`
    is the first catalog's, if there are several.
    """

    database: str
    tables: tuple[SyncedTable, ...]
    properties: Mapping[str, str]


class Sync(Protocol):
    """Publishes a table in a catalog."""

    def sync(self) -> SyncResult: ...


@dataclass(frozen=True, slots=True)
class SyncOfEach:
    """Publishes a table in several catalogs: `syncs` has one for each, in the order in which the user names them."""

    syncs: tuple[Sync, ...]

    def sync(self) -> SyncResult:
        """Updates each of them, also where one before it fails; then raises the first failure."""
        done: list[SyncResult] = []
        failed: list[EventideError] = []
        for one in self.syncs:
            try:
                done.append(one.sync())
            except EventideError as error:
                failed.append(error)
        if failed:
            raise failed[0]
        return replace(done[0], tables=tuple(table for result in done for table in result.tables))


@dataclass(frozen=True, slots=True)
class CatalogSync:
    """`open_catalog` connects to the catalog in the options."""

    files: TableFiles
    freshness: FreshnessReader
    arrival: ArrivalReader
    open_catalog: Callable[[], Catalog]
    options: Options

    def sync(self) -> SyncResult:
        """Updates the catalog to the table's current state.

        Raises CatalogError if the catalog fails, DatabaseNotFoundError, RefusedError if another table has the name,
        before anything is written, ConfigError, and UnsupportedTableError for a column that no catalog can have.
        """
        state = TableState.load(self.files)
        options = SyncOptions.of(self.options, state.config)
        facts = self._facts(state, options)
        partitions = _partitions(state, facts.location, options)
        tables = wanted_tables(facts, options)
        with closing(self.open_catalog()) as catalog:
            _require_database(catalog, options)
            existing = [catalog.table(table.database, table.name) for table in tables]
            for table, there in zip(tables, existing, strict=True):
                if there is not None:
                    require_ours(table, there)
            done = tuple(
                _bring(catalog, table, there, partitions, is_conditional=options.is_conditional)
                for table, there in zip(tables, existing, strict=True)
            )
        return SyncResult(options.database, done, published(facts.last_commit, facts.last_completion, facts.freshness))

    def _facts(self, state: TableState, options: SyncOptions) -> SyncFacts:
        last_commit, last_completion = last_times(state)
        return SyncFacts(
            location=hadoop_location(options.base_path or self.files.storage.root),
            columns=TableColumns.of(
                state.schema,
                has_meta_fields=not (options.omits_meta_fields or state.config.virtual_key_fields),
                supports_timestamp=options.supports_timestamp,
            ),
            last_commit=last_commit,
            last_completion=last_completion,
            freshness=self.arrival.freshness(state, self.freshness.published(state)),
            is_copy_on_write=state.config.is_copy_on_write,
        )


def last_times(state: TableState) -> tuple[str | None, str | None]:
    """The latest instant time and the latest completion time; None if there is no commit, or no completion time."""
    completions = [i.completion_time for i in state.timeline.writes if i.completion_time is not None]
    return max((i.requested_time for i in state.timeline.writes), default=None), max(completions, default=None)


def _partitions(state: TableState, location: str, options: SyncOptions) -> tuple[CatalogPartition, ...]:
    """The partitions that have a live file slice."""
    if not options.partition_fields:
        return ()
    paths = sorted({file_slice.partition for file_slice in state.view.latest_slices()})
    return tuple(
        CatalogPartition(
            partition_values(path, options.extractor, options.partition_fields, decodes=options.decodes_partitions),
            f"{location}/{path}",
        )
        for path in paths
    )


def _require_database(catalog: Catalog, options: SyncOptions) -> None:
    if catalog.has_database(options.database):
        return
    if not options.creates_database:
        raise DatabaseNotFoundError(
            f"the catalog has no database {options.database}: create it there, or set {SYNC_AUTO_CREATE_DATABASE}=true"
        )
    catalog.create_database(options.database)


def _bring(
    catalog: Catalog,
    wanted: CatalogTable,
    existing: CatalogTable | None,
    partitions: tuple[CatalogPartition, ...],
    *,
    is_conditional: bool,
) -> SyncedTable:
    is_new = existing is None
    if existing is None:
        existing = new_table(wanted)
        catalog.create_table(existing)
    change = table_change(wanted, existing)
    changes = _NO_CHANGES
    if wanted.partition_columns and not change.follows:
        changes = partition_changes(partitions, () if is_new else catalog.partitions(wanted))
    if changes.added:
        catalog.add_partitions(change.table, changes.added)
    if changes.moved:
        catalog.move_partitions(change.table, changes.moved)
    if changes.dropped:
        catalog.drop_partitions(change.table, changes.dropped)
    is_altered = change.is_due and (change.is_more_than_time or bool(changes) or is_new or not is_conditional)
    if is_altered:
        catalog.alter_table(change.table)
    return SyncedTable(wanted.name, is_new, is_altered, len(changes.added), len(changes.moved), len(changes.dropped))


@dataclass(frozen=True, slots=True)
class DatasetSync:
    """`open_catalog` connects to the catalog in the options."""

    files: TableFiles
    freshness: FreshnessReader
    arrival: ArrivalReader
    open_catalog: Callable[[], DatasetCatalog]
    options: Options

    def sync(self) -> SyncResult:
        """Updates the catalog to the table's current state. Writes only what has changed.

        Raises CatalogError if the catalog fails, ConfigError, and RefusedError if the dataset is another table's.
        """
        state = TableState.load(self.files)
        options = DatasetOptions.of(self.options, state.config)
        fresh = published(*last_times(state), self.arrival.freshness(state, self.freshness.published(state)))
        location = hadoop_location(options.base_path or self.files.storage.root)
        properties = wanted_properties(state.config, options, location, fresh)
        with closing(self.open_catalog()) as catalog:
            dataset = catalog.dataset(options.database, options.table)
            change = dataset_change(dataset, state.schema, properties, options)
            if change:
                catalog.change(options.database, options.table, change)
        is_new = dataset is None
        done = SyncedTable(options.table, is_new, is_altered=bool(change) and not is_new)
        return SyncResult(options.database, (done,), fresh)
