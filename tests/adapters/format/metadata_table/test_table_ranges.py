"""Ranges of a base file by its footer: as wide as its values, and never narrower."""

import io
import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide_adapters.format.metadata_table.column_ranges import (
    ColumnRange,
    column_ranges,
    range_of_footer,
    table_ranges,
)
from eventide_adapters.format.metadata_table.value_forms import ValueForm
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from support.pasts import golden

ROWS = pa.table(
    {
        "n": pa.array([5, None, -8, 3], pa.int64()),
        "small": pa.array([1, 2, None, 0], pa.int32()),
        "word": ["b", "ä", None, ""],
        "raw": [b"\xff", b"\x00", b"", None],
        "is_paid": [True, False, None, True],
        "day": [date(1969, 12, 30), None, date(2030, 1, 1), date(2026, 1, 1)],
        "at": pa.array([datetime.fromtimestamp(s, UTC) for s in (7, -7, 0, 1)], pa.timestamp("us", "UTC")),
        "fare": pa.array([Decimal("-1.28"), Decimal("9.99"), None, Decimal(0)], pa.decimal128(10, 2)),
        "large": pa.array([Decimal("-" + "9" * 38), None, Decimal("9" * 37), Decimal(0)], pa.decimal128(38, 0)),
        "nothing": pa.array([None] * 4, pa.int64()),
    }
)


def footer_of(table: pa.Table, **options: Any) -> pq.FileMetaData:
    return pq.read_metadata(io.BytesIO(written(table, **options)))


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=2, **options)
    return sink.getvalue()


def ranges_of_values(table: pa.Table) -> Mapping[str, ColumnRange]:
    """Of a file without statistics."""
    storage = MemoryStorage(f"ranges {uuid4()}")
    storage.put("file.parquet", written(table, write_statistics=False))
    return column_ranges(storage, "file.parquet", table.column_names)


@pytest.mark.parametrize("store_decimal_as_integer", [False, True])
def test_a_footer_states_the_ranges_of_the_values(*, store_decimal_as_integer: bool) -> None:
    footer, values = footer_of(ROWS, store_decimal_as_integer=store_decimal_as_integer), ranges_of_values(ROWS)
    for field in ROWS.schema:
        found = range_of_footer(footer, field.name, field.type)
        assert found == values[field.name], field.name
        ends = values[field.name].least, values[field.name].greatest
        assert found is not None
        assert [type(end) for end in (found.least, found.greatest)] == [type(end) for end in ends]


def test_a_footer_without_statistics_states_no_range() -> None:
    assert range_of_footer(footer_of(ROWS, write_statistics=False), "n", pa.int64()) is None
    assert range_of_footer(footer_of(ROWS, write_statistics=["word"]), "n", pa.int64()) is None


def test_a_footer_of_arrow_states_no_range_of_floats_because_it_leaves_out_nan() -> None:
    table = pa.table({"x": [1.0, math.nan], "y": pa.array([1.0, 2.0], pa.float32())})
    assert range_of_footer(footer_of(table), "x", pa.float64()) is None
    assert range_of_footer(footer_of(table), "y", pa.float32()) is None


def avro(*fields: tuple[str, Any]) -> RecordShape:
    document = {"type": "record", "name": "r", "fields": [{"name": n, "type": ["null", t]} for n, t in fields]}
    return RecordShape(AvroSchema.of(json.dumps(document)), MergeRule.COMMIT_TIME_ORDERING, (), None)


def test_ranges_are_in_the_types_of_the_table() -> None:
    storage = MemoryStorage(f"ranges {uuid4()}")
    old = pa.table({"n": pa.array([3, 1], pa.int32()), "x": [2.0, math.nan], "word": ["a", "b"], "other": [1, 2]})
    storage.put("file.parquet", written(old))
    shape = avro(("n", "long"), ("x", "double"), ("word", "string"), ("added", "string"), ("other", "long"))
    found = table_ranges(storage, "file.parquet", shape, {"n", "x", "word", "added"})
    assert found.keys() == {"n", "x", "word"}
    assert found["n"] == ColumnRange(pa.int64(), 1, 3, 2, 0)
    assert found["word"] == ColumnRange(pa.string(), "a", "b", 2, 0)
    assert found["x"].least == 2.0
    assert math.isnan(found["x"].greatest)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["v6_avro_types", "v9_120_grown"])
def test_footers_of_hudi_state_the_ranges_of_the_values(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    schema = Table.open(str(path)).snapshot().to_arrow().schema
    columns = [f.name for f in schema if ValueForm.of(f.type, has_value_types=True) is not None]
    stated = 0
    for file in path.rglob("*.parquet"):
        if BaseFileName.parse(file.name) is None or ".hoodie" in file.parts:
            continue
        footer = pq.read_metadata(file)
        values = ranges_of_values(pq.ParquetFile(file).read())
        for column in (name for name in columns if name in values):
            known = values[column]
            found = range_of_footer(footer, column, known.arrow)
            assert found == known, (file.name, column)
            stated += 1
    assert stated > 20
