"""Spark's legacy calendar in base files: what Spark shows for a day that it stored as Julian."""

import io
from datetime import UTC, date, datetime
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.encoding.parquet.open_file import open_base
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import UnsupportedTableError

LEGACY = {"org.apache.spark.version": "3.5.5", "org.apache.spark.legacyDateTime": ""}
JULIAN_1500_06_01 = -171_503  # the day that its writer calls 1500-06-01; in today's calendar, 1500-06-11
MICROS = 86_400_000_000


def read(column: Any, footer: dict[str, str], *, int96: bool = False) -> list[Any]:
    storage, sink = MemoryStorage(f"calendar {uuid4()}"), io.BytesIO()
    table = pa.table({"c": column})
    with pq.ParquetWriter(sink, table.schema, store_schema=False, use_deprecated_int96_timestamps=int96) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(footer)
    storage.put("f.parquet", sink.getvalue())
    with open_base(storage, "f.parquet") as file:
        return [value for batch in file.batches(1000, ["c"]) for value in batch.column("c").to_pylist()]


@pytest.mark.parametrize(
    ("days", "shown"),
    [
        (JULIAN_1500_06_01, date(1500, 6, 1)),
        (-141_428, date(1582, 10, 4)),
        (-141_427, date(1582, 10, 15)),
        (-171_596, date(1500, 3, 1)),  # 1500-02-29, which today's calendar lacks
        (-171_597, date(1500, 2, 28)),
        (-719_164, date(1, 1, 1)),
        (0, date(1970, 1, 1)),
    ],
)
def test_a_legacy_day_keeps_its_name(days: int, shown: date) -> None:
    column = pa.array([None, days], pa.int32()).cast(pa.date32())
    assert read(column, LEGACY) == [None, shown]
    assert read(column, {"org.apache.spark.version": "2.4.8"}) == [None, shown]


def test_a_day_of_a_file_without_marks_is_unchanged() -> None:
    column = pa.array([JULIAN_1500_06_01], pa.int32()).cast(pa.date32())
    assert read(column, {}) == read(column, {"org.apache.spark.version": "3.5.5"}) == [date(1500, 6, 11)]


@pytest.mark.parametrize("int96", [False, True])
def test_a_legacy_timestamp_of_utc_is_moved_by_days(int96: bool) -> None:
    marks = {**LEGACY, "org.apache.spark.legacyINT96": "", "org.apache.spark.timeZone": "UTC"}
    kind = pa.timestamp("us") if int96 else pa.timestamp("us", "UTC")
    column = pa.array([JULIAN_1500_06_01 * MICROS + 1, None], pa.int64()).cast(kind)
    expected = datetime(1500, 6, 1, 0, 0, 0, 1, None if int96 else UTC)
    if int96:
        column = pa.array([-100_000 * MICROS], pa.int64()).cast(kind)  # Arrow writes no INT96 before 1677
        assert read(column, marks, int96=True) == column.to_pylist()
    else:
        assert read(column, marks) == [expected, None]


def test_ancient_legacy_timestamps_of_another_zone_are_refused_and_modern_ones_read() -> None:
    marks = {**LEGACY, "org.apache.spark.timeZone": "America/Los_Angeles"}
    kind = pa.timestamp("us", "UTC")
    modern = pa.array([0, -25_567 * MICROS], pa.int64()).cast(kind)
    assert read(modern, marks) == modern.to_pylist()
    with pytest.raises(UnsupportedTableError, match="America/Los_Angeles"):
        read(pa.array([-25_568 * MICROS], pa.int64()).cast(kind), marks)


def test_an_ancient_legacy_day_in_a_nested_column_is_refused() -> None:
    days = pa.array([JULIAN_1500_06_01], pa.int32()).cast(pa.date32())
    column = pa.StructArray.from_arrays([days], ["d"])
    with pytest.raises(UnsupportedTableError, match="nested column"):
        read(column, LEGACY)
    assert read(column, {}) == [{"d": date(1500, 6, 11)}]
