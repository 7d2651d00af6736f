"""Publishes a table and the freshness of its read-optimized view as a dataset in a data catalog such as DataHub.

The table itself is only read: a failed sync does not affect what was committed, and the next one completes it.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from eventide_core.action.sync.catalog_tables import published
from eventide_core.action.sync.dataset_changes import dataset_change, wanted_properties
from eventide_core.action.sync.options import DatasetOptions
from eventide_core.config import Options
from eventide_core.ports import DatasetCatalog
from eventide_core.service.facts.freshness import FreshnessReader
from eventide_core.service.facts.sources import freshness_with_sources
from eventide_core.service.maintenance.sync import SyncedTable, SyncResult, last_times
from eventide_core.service.state.table import TableState
from eventide_core.service.state.table_files import TableFiles
from eventide_core.table.catalog.catalog_table import hadoop_location


@dataclass(frozen=True, slots=True)
class DatasetSync:
    """`open_catalog` connects to the catalog in the options."""

    files: TableFiles
    freshness: FreshnessReader
    open_catalog: Callable[[], DatasetCatalog]
    options: Options

    def sync(self) -> SyncResult:
        """Updates the catalog to the table's current state. Writes only what has changed.

        Raises CatalogError if the catalog fails, ConfigError, and RefusedError if the dataset is another table's.
        """
        state = TableState.load(self.files)
        options = DatasetOptions.of(self.options, state.config)
        fresh = published(
            *last_times(state), freshness_with_sources(self.files, state, self.freshness.published(state))
        )
        location = hadoop_location(options.base_path or self.files.storage.root)
        properties = wanted_properties(state.config, options, location, fresh)
        with closing(self.open_catalog()) as catalog:
            dataset = catalog.dataset(options.database, options.table)
            change = dataset_change(dataset, state.schema, properties, options)
            if change:
                catalog.change(options.database, options.table, change)
        is_new = dataset is None
        done = SyncedTable(options.table, is_new, is_altered=bool(change) and not is_new, **_NO_PARTITIONS)
        return SyncResult(options.database, (done,), fresh)


_NO_PARTITIONS = {"partitions_added": 0, "partitions_moved": 0, "partitions_dropped": 0}
