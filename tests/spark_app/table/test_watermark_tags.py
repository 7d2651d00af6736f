"""Tags by watermark on a table: the view at a midnight is tagged once, stays readable, and old tags go."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import ConfigError, Table
from eventide.rows.given import CutName
from eventide_core.config import BUCKETS, CLOCK_SKEW_MS
from eventide_core.ports import NoProgress
from eventide_core.service.rollback.watermark_tags import TagChange

DAY_MS = 86_400_000
FIRST = 20_000  # days since the epoch: 2024-10-04
FIELDS: list[Any] = [pa.field("id", pa.string()), pa.field("ms", pa.int64())]
SCHEMA = pa.schema(FIELDS)
OPTIONS = {
    BUCKETS: "1",
    CLOCK_SKEW_MS: "1",
    "hoodie.eventide.tag.every": "1d",
    "hoodie.eventide.tag.name": "day/%Y-%m-%d",
    "hoodie.eventide.tag.retained": "2",
}


def day(table: Table, number: int, *, cut: CutName = "exact") -> TagChange:
    """A day's records, one of them past midnight, and a round whose T is that midnight."""
    times = [(FIRST + number) * DAY_MS + hour * 3_600_000 for hour in (1, 12, 23, 25)]
    rows = pa.table({"id": [f"{number}-{at}" for at in times], "ms": times}, schema=SCHEMA)
    table.upsert(rows)
    threshold = {"hoodie.compaction.event.time.threshold": str((FIRST + number + 1) * DAY_MS)}
    result = Table.open(table.uri, {**OPTIONS, **threshold}).service(cut=cut).round(NoProgress())
    assert not result.troubles
    return result.tagged


@pytest.mark.parametrize("version", [6, 9])
def test_the_view_at_each_midnight_is_tagged_once_and_the_latest_are_retained(version: int, tmp_path: Path) -> None:
    table = Table.create(
        str(tmp_path / "t"), schema=SCHEMA, record_key="id", event_time="ms", version=version, options=OPTIONS
    )
    table.savepoint(table.upsert(pa.table({"id": ["mine"], "ms": [1]}, schema=SCHEMA)).instant, tag="day/mine")
    assert day(table, 0) == TagChange("day/2024-10-05")
    assert day(table, 0) == TagChange()  # the same T again
    assert day(table, 1) == TagChange("day/2024-10-06")
    assert day(table, 2) == TagChange("day/2024-10-07", ("day/2024-10-05",))
    assert [tag.name for tag in table.tags()] == ["day/2024-10-06", "day/2024-10-07", "day/mine"]
    for number, name in ((2, "day/2024-10-06"), (3, "day/2024-10-07")):
        times = table.read_optimized(tag=name).to_arrow(["ms"]).column(0).to_pylist()
        midnight = (FIRST + number) * DAY_MS
        assert max(at for at in times if at is not None) < midnight
        assert len(times) == 1 + 4 * number - 1  # all before it, without the record past this midnight


def test_a_day_is_tagged_when_the_sources_had_come_to_its_end(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), schema=SCHEMA, record_key="id", event_time="ms", options=OPTIONS)
    table.sources.declare("orders")
    assert day(table, 0) == TagChange()
    late = pa.table({"id": ["late"], "ms": [FIRST * DAY_MS + 1]}, schema=SCHEMA)
    table.upsert(late, sources={"orders": (FIRST + 1) * DAY_MS})
    assert day(table, 0) == TagChange("day/2024-10-05")
    assert "late" in table.read_optimized(tag="day/2024-10-05").to_arrow(["id"]).column(0).to_pylist()


def test_a_state_that_a_savepoint_keeps_already_gets_no_second_one(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), schema=SCHEMA, record_key="id", event_time="ms", options=OPTIONS)
    table.upsert(pa.table({"id": ["a"], "ms": [FIRST * DAY_MS + 1]}, schema=SCHEMA))
    made = table.compact(before=(FIRST + 1) * DAY_MS)
    table.savepoint(made.instant, comments="by a person")
    reopened = Table.open(table.uri, {**OPTIONS, "hoodie.compaction.event.time.threshold": str((FIRST + 1) * DAY_MS)})
    assert reopened.service().round(NoProgress()).tagged == TagChange()


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("hoodie.eventide.tag.every", "7h", r"hoodie\.eventide\.tag\.every: 7h divides neither"),
        ("hoodie.eventide.tag.timezone", "Mars/Base", r"hoodie\.eventide\.tag\.timezone='Mars/Base' is not a known"),
        ("hoodie.eventide.tag.name", "today", "names several tags alike"),
        ("hoodie.eventide.tag.name", "%Y %m %d", "use up to 128 letters"),
        ("hoodie.eventide.tag.retained", "0", r"hoodie\.eventide\.tag\.retained"),
    ],
)
def test_a_wrong_option_is_named_before_anything_is_done(option: str, value: str, said: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    Table.create(uri, schema=SCHEMA, record_key="id", event_time="ms")
    with pytest.raises(ConfigError, match=said):
        Table.open(uri, {**OPTIONS, option: value})
