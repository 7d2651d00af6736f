"""Column statistics for the metadata table: ranges of a base file's columns, and what the files of a commit get."""

import io
import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.metadata_table.column_ranges import ColumnRange, base_columns, column_ranges
from eventide_adapters.format.metadata_table.file_contents import FileContents
from eventide_adapters.format.metadata_table.records.hfile_writer import HFileStyle, encode_hfile
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.records.records import (
    column_stats_key,
    column_stats_value,
    encode_value,
    file_group_number,
)
from eventide_adapters.format.metadata_table.stats import Statistics
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import UnsupportedTableError
from eventide_core.ports import AddedFile, FileChanges
from eventide_core.table.files.log_block import BlockType, HeaderKey, encode_block
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.metadata_table import RowChange

BASE = "new_0-0-1_20261122000000000.parquet"
OLD_BASE = "old_0-0-1_20261121000000000.parquet"
LOG, LINK = ".old_20261121000000001.log.1_0-1-0", ".old_20261122000000000.log.1_0-1-0"
CENT = (10**13).to_bytes(6, "big")  # 0.01 with 15 places
INSTANTS = ("20261121000000002", "20261121000000003")


def storage_with(table: pa.Table) -> MemoryStorage:
    storage = MemoryStorage(f"stats {uuid4()}")
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=2)
    storage.put(f"part=a/{BASE}", sink.getvalue())
    return storage


def ranges_of(table: pa.Table) -> dict[str, ColumnRange]:
    storage = storage_with(table)
    return column_ranges(storage, f"part=a/{BASE}", base_columns(storage, f"part=a/{BASE}"))


@pytest.mark.parametrize(
    ("values", "arrow", "wrapper", "least", "greatest", "nulls"),
    [
        ([3, None, 1, 2], pa.int64(), "LongWrapper", 1, 3, 1),
        ([True, False, True], pa.bool_(), "BooleanWrapper", False, True, 0),
        (["b", "ab", None], pa.string(), "StringWrapper", "ab", "b", 1),
        ([b"\xff", b"\x00"], pa.binary(), "BytesWrapper", b"\x00", b"\xff", 0),
        ([1.5, math.inf, -2.0], pa.float64(), "DoubleWrapper", -2.0, math.inf, 0),
        ([date(1970, 1, 3), date(1969, 12, 31)], pa.date32(), "DateWrapper", -1, 2, 0),
        ([datetime.fromtimestamp(7, UTC)], pa.timestamp("ms", "UTC"), "LongWrapper", 7000, 7000, 0),
        ([datetime.fromtimestamp(7, UTC)], pa.timestamp("ms", "UTC"), "TimestampMicrosWrapper", 7_000_000, 7_000_000, 0),
        ([Decimal("-1.28"), Decimal("1.28")], pa.decimal128(10, 2), "BytesWrapper", b"\x80", b"\x00\x80", 0),
        ([Decimal("0.01")], pa.decimal128(10, 2), "DecimalWrapper", CENT, CENT, 0),
        ([None, None], pa.int32(), "IntWrapper", None, None, 2),
    ],
)  # fmt: skip
def test_a_range_is_in_the_form_that_hudi_keeps(
    values: list[Any], arrow: Any, wrapper: str, least: Any, greatest: Any, nulls: int
) -> None:
    found = ranges_of(pa.table({"c": pa.array(values, arrow)}))["c"]
    assert (found.value_count, found.null_count) == (len(values), nulls)
    expected = tuple(
        None if end is None else (f"org.apache.hudi.avro.model.{wrapper}", {"value": end}) for end in (least, greatest)
    )
    assert found.wrapped(wrapper, "c") == expected


def test_no_number_is_greater_than_nan() -> None:
    found = ranges_of(pa.table({"c": [1.0, math.nan, math.inf, 2.0, -math.inf]}))["c"]
    assert found.least == -math.inf
    assert math.isnan(found.greatest)


@pytest.mark.parametrize("values", [[math.nan, -0.0, 0.0], [math.nan, math.nan], [None, math.nan, math.inf]])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_a_range_with_nan_is_stored_as_that_of_all_numbers(values: list[float | None], kind: pa.DataType) -> None:
    found = ranges_of(pa.table({"c": pa.array(values, kind)}))["c"]
    ends = found.wrapped("DoubleWrapper" if kind == pa.float64() else "FloatWrapper", "c")
    assert [end[1]["value"] for end in ends] == [-math.inf, math.inf]


def test_fields_of_a_struct_are_columns_and_what_has_no_order_has_counts_alone() -> None:
    places = [{"name": "x", "lat": 2.0}, None, {"name": "a", "lat": None}]
    table = pa.table({"place": places, "tags": [["t"], None, []], "id": ["1", "2", "3"]})
    found = ranges_of(table)
    assert {name: (r.least, r.greatest, r.value_count, r.null_count) for name, r in found.items()} == {
        "place": (None, None, 3, 1),
        "place.name": ("a", "x", 3, 1),
        "place.lat": (2.0, 2.0, 3, 2),
        "tags": (None, None, 3, 1),
        "id": ("1", "3", 3, 0),
    }


def test_a_form_that_does_not_fit_the_column_is_refused() -> None:
    found = ranges_of(pa.table({"c": [1]}))["c"]
    with pytest.raises(UnsupportedTableError, match="column c of type int64 has statistics of kind StringWrapper"):
        found.wrapped("StringWrapper", "c")


WRAPPERS = [
    "null",
    *(
        {
            "type": "record",
            "name": name,
            "namespace": "org.apache.hudi.avro.model",
            "fields": [{"name": "value", "type": kind}],
        }
        for name, kind in (("LongWrapper", "long"), ("StringWrapper", "string"))
    ),
]
STATS_FIELDS = [
    {"name": "fileName", "type": ["null", "string"]},
    {"name": "columnName", "type": ["null", "string"]},
    {"name": "minValue", "type": WRAPPERS},
    {
        "name": "maxValue",
        "type": ["null", *(f"org.apache.hudi.avro.model.{name}" for name in ("LongWrapper", "StringWrapper"))],
    },
    *(
        {"name": name, "type": ["null", "long"]}
        for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
    ),
    {"name": "isDeleted", "type": "boolean"},
    {"name": "isTightBound", "type": "boolean"},
]
SCHEMA = AvroSchema.of(
    json.dumps(
        {
            "type": "record",
            "name": "HoodieMetadataRecord",
            "fields": [
                {"name": "key", "type": "string"},
                {"name": "type", "type": "int"},
                {
                    "name": "ColumnStatsMetadata",
                    "type": ["null", {"type": "record", "name": "Stats", "fields": STATS_FIELDS}],
                },
            ],
        }
    )
)


def long_stats(
    file_name: str, column: str, least: int | None, greatest: int | None, count: int, **changes: object
) -> dict[str, Any]:
    def wrapped(value: int | None) -> Any:
        return None if value is None else ("org.apache.hudi.avro.model.LongWrapper", {"value": value})

    return {
        "fileName": file_name,
        "columnName": column,
        "minValue": wrapped(least),
        "maxValue": wrapped(greatest),
        "valueCount": count,
        "nullCount": 1,
        "totalSize": 9,
        "totalUncompressedSize": 9,
        "isDeleted": False,
        "isTightBound": False,
        **changes,
    }


def put_stats(storage: MemoryStorage, instant: str, stats: list[dict[str, Any]], groups: int = 2) -> None:
    """Lays the records as Hudi does: one log a file group, at one delta commit."""
    directory = ".hoodie/metadata"
    settings = b"hoodie.table.name=t\nhoodie.table.version=9\nhoodie.table.checksum=498511606\n"
    storage.put(".hoodie/hoodie.properties", settings + b"hoodie.table.metadata.partitions=column_stats,files\n")
    storage.put(f"{directory}/.hoodie/timeline/{instant}_{instant}.deltacommit", b"")
    for group in range(groups):
        entries = sorted(
            (key.encode(), encode_value(column_stats_value(one), SCHEMA))
            for one in stats
            for key in [column_stats_key(one["columnName"], "part=a", one["fileName"])]
            if file_group_number(key, groups) == group
        )
        if entries:
            hfile = encode_hfile(entries, SCHEMA, HFileStyle.NATIVE)
            block = encode_block(
                BlockType.HFILE_DATA, {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: SCHEMA.text}, hfile
            )
            storage.put(f"{directory}/column_stats/.col-stats-{group:04d}-0_{instant}.log.1_0-1-2", block)
        else:
            header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.TARGET_INSTANT_TIME: instant}
            block = encode_block(BlockType.COMMAND, header | {HeaderKey.COMMAND_BLOCK_TYPE: "0"}, b"")
            storage.put(f"{directory}/column_stats/.col-stats-{group:04d}-0_{instant}.log.1_0-1-2", block)


def records(storage: MemoryStorage, *added: AddedFile) -> Mapping[tuple[str, str], dict[str, Any]]:
    """Of each file and column, after each key has been seen to fit."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    changes = FileChanges(RowChange.NONE, added)
    for key, value in Statistics(MetadataTableReader.load(storage), changes, FileContents(storage)).column_stats():
        stats = value["ColumnStatsMetadata"]
        assert key == column_stats_key(stats["columnName"], "part=a", stats["fileName"])
        encode_value(value, SCHEMA)
        found[stats["fileName"], stats["columnName"]] = stats
    return found


TABLE = pa.table({"id": ["k1", "k2"], "n": pa.array([5, 8], pa.int64()), "unindexed": [1, 2]})
ADDED_BASE = AddedFile("part=a", BASE, 1, (OLD_BASE, ".merged.log"))
ADDED_LINK = AddedFile("part=a", LINK, 1, (LOG,))


def test_a_base_gets_its_own_ranges_and_a_left_over_those_it_has() -> None:
    storage = storage_with(TABLE)
    put_stats(storage, INSTANTS[0], [long_stats(OLD_BASE, "n", 1, 99, 7), long_stats(LOG, "n", -3, 3, 4)])
    found = records(storage, ADDED_BASE, ADDED_LINK)
    assert found.keys() == {(BASE, "n"), (LINK, "n")}
    assert found[BASE, "n"] == long_stats(BASE, "n", 5, 8, 2, nullCount=0, totalSize=0, totalUncompressedSize=0)
    assert found[LINK, "n"] == long_stats(LINK, "n", -3, 3, 4)


def test_a_file_that_carries_tombstones_gets_none() -> None:
    storage = storage_with(TABLE)
    put_stats(storage, INSTANTS[0], [long_stats(OLD_BASE, "n", 1, 99, 7)])
    carried = AddedFile("part=a", LINK, 1, ())
    assert records(storage, ADDED_BASE, carried).keys() == {(BASE, "n")}


def test_versions_of_one_file_span_all_of_them() -> None:
    """A log that was appended to has a record for each append."""
    storage = storage_with(TABLE)
    old = long_stats(OLD_BASE, "n", 1, 99, 7)
    put_stats(storage, INSTANTS[0], [old, long_stats(LOG, "n", 4, 6, 2)])
    put_stats(storage, INSTANTS[1], [long_stats(LOG, "n", 2, 5, 3)])
    assert records(storage, ADDED_BASE, ADDED_LINK)[LINK, "n"] == long_stats(
        LINK, "n", 2, 6, 5, nullCount=2, totalSize=18, totalUncompressedSize=18
    )


def test_a_record_that_was_deleted_is_none() -> None:
    storage = storage_with(TABLE)
    put_stats(storage, INSTANTS[0], [long_stats(OLD_BASE, "n", 1, 99, 7), long_stats(LOG, "n", 4, 6, 2)])
    put_stats(storage, INSTANTS[1], [long_stats(LOG, "n", None, None, 0, isDeleted=True)])
    assert records(storage, ADDED_BASE, ADDED_LINK).keys() == {(BASE, "n")}


def test_the_first_values_of_a_column_have_the_form_of_its_type() -> None:
    storage = storage_with(TABLE)
    put_stats(storage, INSTANTS[0], [long_stats(OLD_BASE, "n", None, None, 7)])
    assert records(storage, ADDED_BASE)[BASE, "n"] == long_stats(
        BASE, "n", 5, 8, 2, nullCount=0, totalSize=0, totalUncompressedSize=0
    )


def test_a_widened_column_has_the_form_of_its_type_of_today() -> None:
    storage = storage_with(pa.table({"n": ["b", "a"]}))
    put_stats(storage, INSTANTS[0], [long_stats(OLD_BASE, "n", 1, 99, 7)])
    found = records(storage, ADDED_BASE)[BASE, "n"]
    wrapper = "org.apache.hudi.avro.model.StringWrapper"
    assert (found["minValue"], found["maxValue"]) == ((wrapper, {"value": "a"}), (wrapper, {"value": "b"}))


def test_a_column_of_nulls_needs_no_form() -> None:
    storage = storage_with(pa.table({"n": pa.array([None, None], pa.int64())}))
    put_stats(storage, INSTANTS[0], [long_stats(OLD_BASE, "n", None, None, 7)])
    assert records(storage, ADDED_BASE)[BASE, "n"]["nullCount"] == 2
