"""Data blocks that eventide writes: what is read back, what the header has, and what is refused."""

import io
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

import fastavro
import pyarrow as pa
import pytest

from eventide_adapters.format.encoding.avro.event_time_properties import event_times_of_schema
from eventide_adapters.format.encoding.avro.from_arrow import avro_schema_of
from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.slice.log_file.records import DataBlock
from eventide_adapters.format.slice.log_file.writer import encode_data_block
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.files.log_block import BlockType, HeaderKey, LogBlock, read_blocks
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import META_FIELDS, AvroSchema

INSTANT = "20261121060121321"
COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("ts", pa.int64()),
    pa.field("small", pa.int32()),
    pa.field("share", pa.float64()),
    pa.field("flag", pa.bool_()),
    pa.field("day", pa.date32()),
    pa.field("at", pa.timestamp("us", tz="UTC")),
    pa.field("local", pa.timestamp("ms")),
    pa.field("price", pa.decimal128(10, 2)),
    pa.field("tags", pa.list_(pa.field("element", pa.string()))),
    pa.field("raw", pa.binary()),
]
FULL = {
    "id": "k1",
    "ts": 7,
    "small": -1,
    "share": 0.5,
    "flag": True,
    "day": date(2026, 11, 21),
    "at": datetime(2026, 11, 21, 6, 1, 2, 345678, tzinfo=UTC),
    "local": datetime(2026, 11, 21, 6, 1, 2, 345000),  # noqa: DTZ001 - a local time has no zone
    "price": Decimal("-12.34"),
    "tags": ["a", None],
    "raw": b"\x00\xff",
}
EMPTY = dict.fromkeys(FULL) | {"id": "k2"}
SCHEMA = avro_schema_of("t", pa.schema(COLUMNS))
SHAPE = RecordShape(SCHEMA, MergeRule.COMMIT_TIME_ORDERING, ("ts",), None)


def _records(*rows: dict[str, Any]) -> pa.Table:
    meta = {name: f"{name} of a record" for name in META_FIELDS}
    return pa.Table.from_pylist([meta | row for row in rows], schema=arrow_schema(SCHEMA.with_meta_fields()))


def _block(data: bytes) -> LogBlock:
    (block,) = read_blocks(lambda at, size: data[at : at + size], len(data), "log", is_strict=True)
    return block


def test_our_reader_gives_back_every_type_and_every_null() -> None:
    records = _records(FULL, EMPTY)
    data = encode_data_block(INSTANT, SCHEMA, records)
    storage = MemoryStorage.from_dump("log-writer", {})
    storage.put("log", data)
    accepted = BlockFilter(frozenset({INSTANT}), None)
    (block,) = LogCursor(storage, [("log", len(data))], accepted, is_strict=True).parts(SHAPE, None)
    assert isinstance(block, DataBlock)
    assert pa.Table.from_batches([block.records]).select(records.column_names).to_pylist() == records.to_pylist()


def test_another_avro_reader_finds_the_records_one_after_the_other() -> None:
    data = encode_data_block(INSTANT, SCHEMA, _records(FULL, EMPTY))
    block = _block(data)
    content = io.BytesIO(data[block.content_offset : block.content_offset + block.content_length])
    assert struct.unpack(">ii", content.read(8)) == (3, 2)
    schema = fastavro.parse_schema(json.loads(block.header[HeaderKey.SCHEMA]))
    records: list[Any] = []
    for _ in range(2):
        (length,) = struct.unpack(">i", content.read(4))
        records.append(fastavro.schemaless_reader(io.BytesIO(content.read(length)), schema, None))
    assert not content.read()
    assert [(row["id"], row["ts"], row["price"], row["tags"]) for row in records] == [
        ("k1", 7, Decimal("-12.34"), ["a", None]),
        ("k2", None, None, None),
    ]


def test_the_header_has_instant_and_schema_and_event_times_only_on_request() -> None:
    plain = _block(encode_data_block(INSTANT, SCHEMA, _records(FULL)))
    assert plain.block_type is BlockType.AVRO_DATA
    assert plain.instant_time == INSTANT
    assert plain.header[HeaderKey.SCHEMA] == SCHEMA.with_meta_fields().text

    times = EventTimeRange(7, 9, 1)
    told = _block(encode_data_block(INSTANT, SCHEMA, _records(FULL), ("ts", times)))
    assert event_times_of_schema(AvroSchema.of(told.header[HeaderKey.SCHEMA]), "ts") == times
    fields = json.loads(told.header[HeaderKey.SCHEMA])["fields"]
    assert fields == SCHEMA.with_meta_fields().parsed["fields"]


def test_a_value_that_its_field_cannot_hold_is_refused() -> None:
    records = _records(FULL).set_column(5, "id", pa.array([None], pa.string()))
    with pytest.raises(UnsupportedTableError, match="does not fit the table's schema"):
        encode_data_block(INSTANT, SCHEMA, records)


def test_the_schema_of_a_table_names_record_and_fields_as_hudi_does() -> None:
    parsed = avro_schema_of("trips", pa.schema([COLUMNS[0], COLUMNS[1], COLUMNS[8]])).parsed
    assert (parsed["name"], parsed["namespace"]) == ("trips_record", "hoodie.trips")
    decimal = {
        "type": "fixed",
        "name": "fixed",
        "namespace": "hoodie.trips.trips_record.price",
        "size": 5,
        "logicalType": "decimal",
        "precision": 10,
        "scale": 2,
    }
    assert parsed["fields"] == [
        {"name": "id", "type": "string"},
        {"name": "ts", "type": ["null", "long"], "default": None},
        {"name": "price", "type": ["null", decimal], "default": None},
    ]


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_times_are_in_microseconds_as_spark_has_them(unit: Literal["s", "us", "ns"]) -> None:
    (field,) = avro_schema_of("t", pa.schema([pa.field("at", pa.timestamp(unit, "UTC"))])).parsed["fields"]
    assert field["type"] == ["null", {"type": "long", "logicalType": "timestamp-micros"}]


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.time64("us"), pa.null()])
def test_a_column_that_has_no_place_in_a_hudi_table_is_refused_by_its_name(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedTableError, match=r"column 'odd' (is|has no type)"):
        avro_schema_of("t", pa.schema([pa.field("odd", kind)]))
