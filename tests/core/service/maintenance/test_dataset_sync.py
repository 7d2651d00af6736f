"""A table as a dataset of a data catalog: one in memory that keeps what is written to it."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import RefusedError, Table
from eventide.bootstrap import assemble
from eventide_core.config import DATAHUB_DATABASE, SYNC_CONDITIONAL, SYNC_DATABASE, SYNC_TABLE_PROPERTIES, Options
from eventide_core.service.maintenance.sync import DatasetSync, SyncResult
from eventide_core.table.catalog.catalog_dataset import CatalogDataset, DatasetChange
from eventide_core.table.schema.avro_schema import AvroSchema
from support.tables.small import make, rows

FRESHNESS = {"hoodie.ro.event.time.cut", "hoodie.ro.event.time.watermark", "hoodie.ro.late.records", "hoodie.ro.basis"}


@dataclass
class MemoryDatasets:
    datasets: dict[tuple[str, str], CatalogDataset] = field(default_factory=dict)
    changes: list[DatasetChange] = field(default_factory=list)

    def dataset(self, database: str, name: str) -> CatalogDataset | None:
        return self.datasets.get((database, name))

    def change(self, database: str, name: str, change: DatasetChange) -> None:
        self.changes.append(change)
        dataset = self.datasets.get((database, name), CatalogDataset(None, {}, is_removed=False))
        kept = {key: value for key, value in dataset.properties.items() if key not in change.removed_properties}
        schema = dataset.schema if change.schema is None else change.schema
        self.datasets[database, name] = CatalogDataset(schema, {**kept, **change.properties}, is_removed=False)

    def close(self) -> None:
        pass


def table_of(path: Path, options: dict[str, str] | None = None) -> Table:
    table = make(path, 9)
    table.upsert(rows(("k0", -9, "base"), ("k1", -9, "base")))
    return Table.open(table.uri, {**table.options, **(options or {})})


def synced(table: Table, catalog: MemoryDatasets) -> SyncResult:
    application = assemble(table.uri, table.options)
    return DatasetSync(
        application.files, application.freshness, application.arrival, lambda: catalog, Options(table.options)
    ).sync()


def test_a_dataset_has_schema_and_freshness_and_is_written_only_if_something_changed(tmp_path: Path) -> None:
    table, catalog = table_of(tmp_path / "t"), MemoryDatasets()
    (done,) = synced(table, catalog).tables
    assert (done.name, done.is_created, done.is_altered) == ("t", True, False)
    first = catalog.datasets["default", "t"]
    assert first.schema is not None
    assert first.schema.field_names == ("id", "part", "ms", "word")
    assert {key: value for key, value in first.properties.items() if key.startswith("hudi.")} == {
        "hudi.table.type": "MERGE_ON_READ",
        "hudi.table.version": "NINE",
        "hudi.base.path": f"file:{tmp_path / 't'}",
        "hudi.partition.fields": "part",
    }
    assert not FRESHNESS & first.properties.keys()

    assert not any(one.is_changed for one in synced(table, catalog).tables)
    assert len(catalog.changes) == 1

    compacted = table.compact(data_latency_seconds=1800)
    assert [one.is_altered for one in synced(table, catalog).tables] == [True]
    assert catalog.changes[-1].schema is None
    properties = catalog.datasets["default", "t"].properties
    assert properties["hoodie.ro.event.time.watermark"] == str(compacted.freshness.watermark_ms)
    assert properties["last_commit_time_sync"] == compacted.instant


def test_what_others_wrote_stays_and_freshness_that_a_restore_undid_goes(tmp_path: Path) -> None:
    table, catalog = table_of(tmp_path / "t"), MemoryDatasets()
    saved = table.history()[0].instant
    table.savepoint(saved)
    table.upsert(rows(("k0", -8, "log")))
    table.compact(data_latency_seconds=1800)
    synced(table, catalog)
    dataset = catalog.datasets["default", "t"]
    assert dataset.properties.keys() >= FRESHNESS
    catalog.datasets["default", "t"] = replace(dataset, properties={**dataset.properties, "team": "trips"})

    table.restore(saved)
    synced(table, catalog)
    properties = catalog.datasets["default", "t"].properties
    assert properties["team"] == "trips"
    assert not FRESHNESS & properties.keys()


def test_a_schema_in_another_layout_is_the_same_and_a_wider_one_is_written(tmp_path: Path) -> None:
    table, catalog = table_of(tmp_path / "t"), MemoryDatasets()
    synced(table, catalog)
    dataset = catalog.datasets["default", "t"]
    assert dataset.schema is not None
    indented = AvroSchema.of(json.dumps(dataset.schema.parsed, indent=4))
    catalog.datasets["default", "t"] = replace(dataset, schema=indented)
    synced(table, catalog)
    assert len(catalog.changes) == 1

    table.upsert(rows(("k0", -8, "wider")).append_column("more", pa.array([1])), schema_mode="merge")
    synced(table, catalog)
    wider = catalog.changes[-1].schema
    assert wider is not None
    assert wider.field_names[-1] == "more"


def test_a_dataset_that_was_marked_as_deleted_is_shown_again(tmp_path: Path) -> None:
    table, catalog = table_of(tmp_path / "t"), MemoryDatasets()
    synced(table, catalog)
    catalog.datasets["default", "t"] = replace(catalog.datasets["default", "t"], is_removed=True)
    synced(table, catalog)
    assert catalog.changes[-1] == DatasetChange(None, {}, (), is_revived=True)


def test_another_tables_dataset_is_refused_and_left(tmp_path: Path) -> None:
    catalog = MemoryDatasets()
    synced(table_of(tmp_path / "one" / "t"), catalog)
    with pytest.raises(
        RefusedError, match=r"dataset default\.t .* is the table at .*one/t, not .*other/t; .*table\.name"
    ):
        synced(table_of(tmp_path / "other" / "t"), catalog)
    assert len(catalog.changes) == 1


def test_options_name_the_dataset_its_properties_and_when_to_leave_it_alone(tmp_path: Path) -> None:
    options: dict[str, str] = {SYNC_DATABASE: "Lake", SYNC_TABLE_PROPERTIES: "team=trips", SYNC_CONDITIONAL: "true"}
    table, catalog = table_of(tmp_path / "t", options), MemoryDatasets()
    assert synced(table, catalog).database == "Lake"
    assert catalog.datasets["Lake", "t"].properties["team"] == "trips"
    table.upsert(rows(("k0", -8, "log")))
    synced(table, catalog)
    assert len(catalog.changes) == 1, "nothing but the time of the last commit has changed"

    table = Table.open(table.uri, {**table.options, DATAHUB_DATABASE: "hub"})
    assert synced(table, catalog).database == "hub"
