"""The event times of a base file by its footer, wherever a column's ends are its event times' ends."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.encoding.avro.from_arrow import avro_schema_of
from eventide_adapters.format.slice.base_file.event_times import ParquetBaseContent
from eventide_adapters.storage.local import LocalStorage
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.event_time_texts import EventTimeTexts
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape

MS = 1_700_000_000_123
TIMES = [datetime(2023, 11, 14, 22), None, datetime(2023, 11, 14, 21), datetime(2023, 11, 15)]  # noqa: DTZ001


def _shape(kind: pa.DataType, zone: str | None = None) -> RecordShape:
    schema = avro_schema_of("t", pa.schema({"at": kind}))
    return RecordShape(
        schema, MergeRule.COMMIT_TIME_ORDERING, (), event_time_field="at", event_time_texts=EventTimeTexts(zone)
    )


def _told(directory: Path, values: list[Any], kind: pa.DataType, **how: Any) -> EventTimeRange | None:
    pq.write_table(pa.table({"at": pa.array(values, kind)}), directory / "base.parquet", row_group_size=2, **how)
    return ParquetBaseContent(LocalStorage(str(directory))).event_times("base.parquet", _shape(kind))


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([MS, MS - 5, MS + 7], pa.int64(), EventTimeRange(MS - 5, MS + 7)),
        (
            [MS // 1000, None, MS // 1000 + 1],
            pa.int64(),
            EventTimeRange(MS // 1000 * 1000, MS // 1000 * 1000 + 1000, 1),
        ),
        (TIMES, pa.timestamp("us"), EventTimeRange(1_699_995_600_000, 1_700_006_400_000, 1)),
        ([1, -1_001], pa.timestamp("us", "UTC"), EventTimeRange(-2, 0)),
        ([date(1970, 1, 3), date(1970, 1, 2)], pa.date32(), EventTimeRange(86_400_000, 172_800_000)),
        ([None, None, None], pa.int64(), EventTimeRange(None, None, 3)),
        ([], pa.int64(), EventTimeRange(None, None)),
    ],
)
def test_the_footer_has_the_minimum_and_maximum(
    values: list[Any], kind: pa.DataType, expected: EventTimeRange, tmp_path: Path
) -> None:
    assert _told(tmp_path, values, kind) == expected


def test_bounds_that_may_differ_from_those_of_the_event_times_are_not_returned(tmp_path: Path) -> None:
    # 5_000_000_000 counts as seconds, and lies far after 1_700_000_000_123 milliseconds.
    assert _told(tmp_path, [5_000_000_000, MS], pa.int64()) is None
    assert _told(tmp_path, [-(10**15), 10**15], pa.int64()) is None  # 999_999_999_999_999 would be greater than either
    assert _told(tmp_path, ["2023-11-14T00:00Z", "2023-11-14T01:00+02:00"], pa.string()) is None
    assert _told(tmp_path, TIMES, pa.timestamp("us"), use_deprecated_int96_timestamps=True) is None
    assert _told(tmp_path, [MS], pa.int64(), write_statistics=False) is None


def test_a_file_without_the_column_has_no_range(tmp_path: Path) -> None:
    pq.write_table(pa.table({"other": [1]}), tmp_path / "base.parquet")
    assert ParquetBaseContent(LocalStorage(str(tmp_path))).event_times("base.parquet", _shape(pa.int64())) is None


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.int64()], ids=["as Hudi 1.1", "as plain numbers, before"])
def test_times_without_a_zone_are_those_of_the_zone_that_the_table_states(kind: pa.DataType, tmp_path: Path) -> None:
    """00:30 and 12:00 of a day in March in Berlin, an hour ahead of UTC."""
    times = pa.array([datetime(2026, 3, 3, 0, 30), datetime(2026, 3, 3, 12)], pa.timestamp("us"))  # noqa: DTZ001
    pq.write_table(pa.table({"at": times.view(kind)}), tmp_path / "base.parquet")
    shape = _shape(pa.timestamp("us"), "Europe/Berlin")
    found = ParquetBaseContent(LocalStorage(str(tmp_path))).event_times("base.parquet", shape)
    assert found == EventTimeRange(1_772_494_200_000, 1_772_535_600_000)
