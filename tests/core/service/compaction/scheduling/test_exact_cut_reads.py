"""What an exact cut reads where the event time is a timestamp and orders the versions, and that it stays exact."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_adapters.format.slice.log_content.records import ArrowRecordContent
from eventide_core.config import BUCKETS, LOG_BLOCK_EVENT_TIME_BUCKET

COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string()),
    pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("_hoodie_is_deleted", pa.bool_(), nullable=False),
]
SCHEMA = pa.schema(COLUMNS)
Row = tuple[str, int, bool]


def hour(number: int) -> datetime:
    return datetime(2026, 1, 1, number, tzinfo=UTC)


def table_of(path: Path, *commits: list[Row]) -> Table:
    options: dict[str, object] = {BUCKETS: 1, LOG_BLOCK_EVENT_TIME_BUCKET: "1h"}
    table = Table.create(str(path), schema=SCHEMA, record_key="id", event_time="at", options=options)
    for rows in commits:
        named = [dict(zip(SCHEMA.names, (key, hour(at), is_delete), strict=True)) for key, at, is_delete in rows]
        table.upsert(pa.Table.from_pylist(named, schema=SCHEMA))
    return table


def shown(rows: Any) -> dict[str, int]:
    return {row["id"]: row["at"].hour for row in rows.to_arrow().to_pylist()}


@pytest.fixture
def histories_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the plan reads the histories of keys")

    monkeypatch.setattr(ArrowRecordContent, "key_histories", refuse)


@pytest.mark.usefixtures("histories_are_not_read")
def test_a_delete_that_a_late_record_of_a_left_over_contradicts_is_carried(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        [("a", 1, False), ("b", 1, False)],
        [("a", 5, True), ("b", 4, False)],
        [("a", 3, False), ("b", 8, False)],
    )
    before = shown(table.snapshot())
    assert before == {"b": 8}
    plan = table.plan_compaction(before=int(hour(6).timestamp() * 1000), cut="exact")
    (op,) = plan.operations
    assert (len(op.compacted), len(op.left_overs), op.fallback) == (1, 1, None)
    result = table.compact(plan)
    assert result.metrics["carried_tombstones"] == 1
    assert shown(table.read_optimized()) == {"b": 4}
    assert shown(table.snapshot()) == before
    table.compact(table.plan_compaction(before=int(hour(9).timestamp() * 1000), cut="exact"))
    assert shown(table.read_optimized()) == shown(table.snapshot()) == before
    assert table.verify(deep=True).ok


@pytest.mark.usefixtures("histories_are_not_read")
def test_a_delete_that_nothing_contradicts_leaves_no_log_behind(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        [("a", 1, False), ("b", 1, False)],
        [("a", 3, True), ("b", 4, False)],
        [("a", 7, False), ("b", 5, False)],
        [("b", 8, False)],
    )
    plan = table.plan_compaction(before=int(hour(6).timestamp() * 1000), cut="exact")
    result = table.compact(plan)
    assert result.metrics["carried_tombstones"] == 0
    assert [len(file_slice.log_files) for file_slice in table.state().view.latest_slices()] == [2]
    assert shown(table.read_optimized()) == {"b": 5}
    assert shown(table.snapshot()) == {"a": 7, "b": 8}
    assert table.verify(deep=True).ok
