"""Writes into a table with Hudi's metadata table: what its indexes say afterwards is what the table shows."""

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.records.records import (
    column_stats_key,
    file_group_number,
    partition_stats_key,
)
from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_adapters.format.slice.log_file.delete_block import encode_delete_block
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import CorruptLogBlockError, UnsupportedTableError
from support.files.metadata_updates import set_property
from support.pasts import golden

pytestmark = pytest.mark.slow

INDEXED = ("_hoodie_record_key", "id", "part", "event_ts", "val", "amount")
FIRST = "00000000000000000"  # the instant at which Hudi made the metadata table
FILE_GROUPS = {
    "column_stats": ("col-stats-0000-0", "col-stats-0001-0"),
    "partition_stats": ("partition-stats-0000-0",),
    "record_index": ("record-index-0000-0", "record-index-0001-0"),
}
OPTIONS = {"hoodie.index.type": "SIMPLE", "hoodie.index.bloom.num_entries": "100"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table of Hudi whose metadata table has these indexes too, as empty as Hudi begins them."""
    made = golden.unpack("v9_mdt", tmp_path)
    for partition, file_ids in FILE_GROUPS.items():
        directory = made / ".hoodie/metadata" / partition
        directory.mkdir()
        for file_id in file_ids:
            empty = encode_delete_block(FIRST, partition, [], pa.nulls(0))
            (directory / f".{file_id}_{FIRST}.log.1_0-0-0").write_bytes(empty)
    definition = {"sourceFields": INDEXED, "version": "V2"}
    (made / ".hoodie/.index_defs").mkdir()
    (made / ".hoodie/.index_defs/index.json").write_text(json.dumps({"indexDefinitions": {"column_stats": definition}}))
    set_property(made, "hoodie.table.metadata.partitions", ",".join(["files", *FILE_GROUPS]))
    return made


def records(path: Path, partition: str) -> dict[str, list[dict[str, Any]]]:
    reader = MetadataTableReader.load(LocalStorage(path))
    return {key: [*v] for part in reader.slices(partition) for key, v in reader.records(part).items()}


def homes(path: Path) -> dict[str, tuple[str, str]]:
    places: dict[str, tuple[str, str]] = {}
    for key, versions in records(path, "record_index").items():
        told = versions[-1]["recordIndexMetadata"]
        uuid = UUID(bytes=struct.pack(">qq", told["fileIdHighBits"], told["fileIdLowBits"]))
        places[key] = (told["partitionName"], f"{uuid}-{told['fileIndex']}" if told["fileIndex"] >= 0 else str(uuid))
    return places


def shown_homes(table: Table) -> dict[str, tuple[str, str]]:
    rows = table.snapshot().to_arrow().to_pylist()
    return {
        row["_hoodie_record_key"]: (row["_hoodie_partition_path"], row["_hoodie_file_name"].split("_")[0])
        for row in rows
    }


def ends(stats: dict[str, Any]) -> tuple[Any, Any]:
    low, high = stats["minValue"], stats["maxValue"]
    return (low and low[1]["value"], high and high[1]["value"])


def changed(row: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**row, **changes}


def written(table: Table) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Writes, and which keys they were about."""
    everything = table.snapshot().to_arrow()
    schema = pa.schema([field for field in everything.schema if not field.name.startswith("_hoodie_")])
    old = sorted(everything.select(schema.names).to_pylist(), key=lambda row: row["id"])
    new = [changed(old[0], id="new1", amount=1e9), changed(old[1], id="new2", part="z", amount=None)]
    late = [changed(old[2], event_ts=0, amount=-1e9), changed(old[3], event_ts=2 * 10**12, val="zzz")]
    table.upsert(pa.Table.from_pylist([*new, *late], schema=schema))
    yield "upsert", [*new, *late]
    gone = [changed(old[4], event_ts=2 * 10**12), changed(old[5], event_ts=0), new[0]]
    table.delete(pa.Table.from_pylist(gone, schema=schema).select(["id", "part", "event_ts"]))
    yield "delete", gone
    back = [changed(new[0], event_ts=3 * 10**12), changed(old[4], event_ts=3 * 10**12)]
    table.upsert(pa.Table.from_pylist(back, schema=schema))
    yield "upsert", back


def test_the_record_index_has_the_location_of_each_key(path: Path) -> None:
    table = Table.open(str(path), OPTIONS)
    asked: set[str] = set()
    for _, rows in written(table):
        asked |= {row["id"] for row in rows}
        indexed, shown = homes(path), shown_homes(table)
        assert indexed.keys() <= asked
        for key in asked:
            assert indexed.get(key) == shown.get(key), key
    assert len(asked) == 6
    assert HudiMetadataTable(LocalStorage(path)).load().facts.partitions == tuple(sorted(["files", *FILE_GROUPS]))


def test_every_new_file_has_the_ranges_of_its_rows_and_partitions_hold_them_all(path: Path) -> None:
    table = Table.open(str(path), OPTIONS)
    for operation, rows in written(table):
        state = table.state()
        statistics = records(path, "column_stats")
        stats = state.commits[state.timeline.writes[-1].requested_time].stats
        for stat in stats:
            name = stat.path.rpartition("/")[2]
            told = {c: statistics[column_stats_key(c, stat.partition, name)] for c in INDEXED}
            of_file = {c: ends(versions[-1]["ColumnStatsMetadata"]) for c, versions in told.items()}
            if stat.log_version is None:
                base = pq.read_table(path / stat.path).to_pylist()
                assert of_file["amount"] == least_and_greatest(row["amount"] for row in base)
                assert of_file["id"] == least_and_greatest(row["id"] for row in base)
            elif operation == "delete":
                assert of_file == dict.fromkeys(INDEXED, (None, None))
            else:
                ids = [row for row in rows if row["id"] in of_file["id"]]
                assert of_file["event_ts"] == least_and_greatest(row["event_ts"] for row in ids)
        ranges = records(path, "partition_stats")
        for row in rows if operation == "upsert" else ():
            key = partition_stats_key("amount", f"part={row['part']}")
            merged = [ends(version["ColumnStatsMetadata"]) for version in ranges[key]]
            assert row["amount"] is None or any(low <= row["amount"] <= high for low, high in merged if low is not None)
            assert not any(version["ColumnStatsMetadata"]["isTightBound"] for version in ranges[key])


def test_a_torn_base_of_an_index_fails_no_write_that_has_completed(path: Path) -> None:
    """The compaction of the metadata table stops at it; the next write is refused before it begins to commit."""
    table = Table.open(str(path), OPTIONS | {"hoodie.metadata.compact.max.delta.commits": "12"})
    writes = written(table)
    next(writes)
    (log,) = path.glob(".hoodie/metadata/record_index/.record-index-0000-0_2*.log.1_*")
    data = bytearray(log.read_bytes())
    at = data.index(b"DATABLK*") + 40  # within the compressed entries
    data[at : at + 8] = bytes(8)
    log.write_bytes(data)
    commits = len(table.state().timeline.writes)
    next(writes)
    assert len(table.state().timeline.writes) == commits + 1
    with pytest.raises(CorruptLogBlockError, match="rebuild the metadata table"):
        next(writes)
    assert len(table.state().timeline.writes) == commits + 1


def least_and_greatest(values: Iterator[Any]) -> tuple[Any, Any]:
    present = [value for value in values if value is not None]
    return (min(present), max(present)) if present else (None, None)


def test_records_with_new_columns_are_refused_before_anything_is_written(path: Path) -> None:
    table = Table.open(str(path), OPTIONS)
    before = sorted(path.rglob("*"))
    rows = table.snapshot().to_arrow().slice(0, 1)
    rows = rows.select([n for n in rows.column_names if not n.startswith("_hoodie_")])
    with pytest.raises(UnsupportedTableError, match=r"column_stats, partition_stats.*new columns"):
        table.upsert(rows.append_column("more", pa.array([1])), schema_mode="merge")
    assert sorted(path.rglob("*")) == before


def has_index(path: Path, name: str, kind: str, column: str, version: str = "V2") -> None:
    """An index over a column, as empty as Hudi begins it, in seven file groups."""
    directory = path / ".hoodie/metadata" / name
    directory.mkdir()
    empty = encode_delete_block(FIRST, name, [], pa.nulls(0))
    for number in range(7):
        (directory / f".{name.replace('_', '-')}-{number:04}-0_{FIRST}.log.1_0-0-0").write_bytes(empty)
    definitions = path / ".hoodie/.index_defs/index.json"
    document = json.loads(definitions.read_text())
    document["indexDefinitions"][name] = {"indexType": kind, "sourceFields": [column], "version": version}
    definitions.write_text(json.dumps(document))
    set_property(path, "hoodie.table.metadata.partitions", ",".join(sorted(["files", *FILE_GROUPS, name])))


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_a_secondary_index_has_the_value_of_each_key_that_was_written(version: str, path: Path) -> None:
    has_index(path, "secondary_index_by_val", "secondary_index", "val", version)
    table = Table.open(str(path), OPTIONS | {"hoodie.metadata.compact.max.delta.commits": "4"})
    schema = pa.schema([f for f in table.snapshot().to_arrow().schema if not f.name.startswith("_hoodie_")])
    first = {row["id"]: row for row in table.snapshot().to_arrow().select(schema.names).to_pylist()}
    asked: set[str] = set()
    rows: list[dict[str, Any]] = []
    shown: dict[str, Any] = {}
    reader = MetadataTableReader.load(LocalStorage(path))
    for number, (_, rows) in enumerate(written(table)):
        asked |= {row["id"] for row in rows}
        if number == 2:  # from here on values have to be escaped, and are nulls
            odd = [
                changed(rows[0], val="a$b\\c\0", event_ts=4 * 10**12),
                changed(rows[1], val=None, event_ts=4 * 10**12),
            ]
            table.upsert(pa.Table.from_pylist(odd, schema=schema))
        shown = {row["id"]: row["val"] for row in table.snapshot().to_arrow().to_pylist() if row["id"] in asked}
        reader = MetadataTableReader.load(LocalStorage(path))
        pairs: dict[str, Any] = {}
        for group, part in enumerate(reader.slices("secondary_index_by_val")):
            for key, versions in reader.records(part).items():
                value, record_key = split_pair(key)
                hashed = key if version == "V1" else key[: len(key) - len(record_key)]
                assert file_group_number(hashed, 7) == group
                if not versions[-1]["SecondaryIndexMetadata"]["isDeleted"]:
                    pairs[record_key] = value
        # A key that has gone, or has another value now, may have been in Hudi's part of the index, which is empty here.
        in_index = {key: val for key, val in shown.items() if val != first.get(key, {}).get("val", "")}
        if version == "V1":
            in_index = {key: val for key, val in in_index.items() if val is not None}
        assert pairs.items() >= in_index.items()
        assert pairs.items() <= shown.items()
    assert shown[rows[0]["id"]] == "a$b\\c\0"
    assert shown[rows[1]["id"]] is None
    assert not any(
        file_slice.log_files and file_slice.base_file is None for file_slice in reader.slices("record_index")
    )


def split_pair(key: str) -> tuple[str | None, str]:
    """A value and a record key of the fixture, which needs no escapes."""
    value, _, record_key = key.rpartition("$")
    return (None if value == "\0" else re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)), record_key


def test_an_index_whose_values_spark_computes_is_dropped_by_a_write(path: Path) -> None:
    has_index(path, "expr_index_by_day", "column_stats", "event_ts")
    table = Table.open(str(path), OPTIONS)
    result = table.delete(pa.table({"id": ["k00000"], "part": ["a"]}))
    assert result.dropped_indexes == ("expr_index_by_day",)
    assert "expr_index_by_day" not in HudiMetadataTable(LocalStorage(path)).load().facts.partitions
    assert list(json.loads((path / ".hoodie/.index_defs/index.json").read_text())["indexDefinitions"]) == [
        "column_stats"
    ]
    assert not (path / ".hoodie/metadata/expr_index_by_day").exists()
    state = table.state()
    commit = state.commits[state.timeline.writes[-1].requested_time]
    assert commit.extra_metadata["eventide.dropped.indexes"] == "expr_index_by_day"
    assert table.delete(pa.table({"id": ["k00001"], "part": ["b"]})).dropped_indexes == ()


def test_an_index_of_bloom_filters_stays_since_hudi_reads_what_it_does_not_know(path: Path) -> None:
    has_index(path, "expr_index_by_word", "bloom_filters", "val")
    result = Table.open(str(path), OPTIONS).delete(pa.table({"id": ["k00000"], "part": ["a"]}))
    assert result.dropped_indexes == ()
    assert "expr_index_by_word" in HudiMetadataTable(LocalStorage(path)).load().facts.partitions


def test_an_index_over_floating_numbers_is_dropped_by_a_write(path: Path) -> None:
    has_index(path, "secondary_index_by_amount", "secondary_index", "amount")
    result = Table.open(str(path), OPTIONS).delete(pa.table({"id": ["k00000"], "part": ["a"]}))
    assert result.dropped_indexes == ("secondary_index_by_amount",)


def test_a_record_index_of_each_partition_is_not_written(path: Path) -> None:
    directory = path / ".hoodie/metadata/record_index"
    for log in sorted(directory.iterdir()):
        log.rename(directory / log.name.replace("record-index-", "part=a-record-index-"))
    with pytest.raises(UnsupportedTableError, match="record index by partition"):
        Table.open(str(path), OPTIONS).delete(pa.table({"id": ["k00000"], "part": ["a"]}))
