"""A table that a field of a record orders, in which eventide finds the event times too. What Hudi makes of such tables,
test_ordering_fields says.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.rows.given import CutName
from eventide_core.config import BUCKETS, CLOCK_SKEW_MS, INDEX_TYPE
from eventide_core.errors import InvalidRecordError
from support.run.command_line import content_of
from support.values.columns import schema_of

NOON_MS = 1_700_000_000_000
SCHEMA = schema_of(
    id=pa.string(),
    at=pa.int64(),
    a=pa.struct([pa.field("b", pa.int64()), pa.field("name", pa.string())]),
    seq=pa.int64(),
)
LONG, TEXT = ["null", "long"], ["null", "string"]
AVRO = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": TEXT, "default": None},
        {"name": "at", "type": LONG, "default": None},
        {
            "name": "a",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "a",
                    "fields": [{"name": "b", "type": LONG}, {"name": "name", "type": TEXT}],
                },
            ],
            "default": None,
        },
        {"name": "seq", "type": LONG, "default": None},
    ],
}


def rows(commit: int, **times: int) -> pa.Table:
    """The column `at` rises from commit to commit, so that it would let the last one win."""
    found = [
        {"id": key, "at": NOON_MS + commit, "a": {"b": NOON_MS + at, "name": key}, "seq": commit}
        for key, at in times.items()
    ]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def seen(table: Table) -> dict[str, int]:
    found = table.snapshot().to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a key is there twice"
    return {row["id"]: row["seq"] for row in found}


@pytest.fixture(params=[8, 9])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Its last log, and no other, lies at and after 300 ms."""
    path = tmp_path / "t"
    options = {BUCKETS: 1, CLOCK_SKEW_MS: "1", "eventide.log.event.times": "false"}
    options["hoodie.write.track.event.time.watermark"] = "false"  # else the ranges would be the other field's
    table = Table.create(
        str(path), schema=json.dumps(AVRO), record_key="id", event_time="at", version=request.param, options=options
    )
    properties = path / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    for key in ("hoodie.table.ordering.fields", "hoodie.table.precombine.field", "hoodie.payload.event.time.field"):
        text = text.replace(f"{key}=at\n", f"{key}=a.b\n")
    assert "=at\n" not in text
    properties.write_text(text)
    table.upsert(rows(0, late=100, newer=100, equal=100))
    table.upsert(rows(1, late=50, newer=200, equal=100, log=200))
    table.upsert(rows(2, log=150, only=250))
    table.upsert(rows(3, newer=300, new=350))
    return path


EXPECTED = {"late": 0, "newer": 3, "equal": 1, "log": 1, "only": 2, "new": 3}


@pytest.mark.parametrize("cut", ["file", "exact"])
@pytest.mark.parametrize("before_ms", [120, 300])
def test_it_is_read_compacted_and_sound(cut: CutName, before_ms: int, path: Path) -> None:
    table = Table.open(str(path), {CLOCK_SKEW_MS: "1"})
    assert seen(table) == EXPECTED
    assert table.verify(deep=True).ok
    result = table.compact(before=NOON_MS + before_ms, cut=cut)
    assert result.freshness.watermark_ms == NOON_MS + before_ms
    assert seen(table) == EXPECTED
    assert table.verify(deep=True).ok
    early = {row["id"] for row in table.read_optimized().to_arrow().to_pylist() if row["a"]["b"] < NOON_MS + before_ms}
    shown = {row["id"] for row in table.snapshot().to_arrow().to_pylist() if row["a"]["b"] < NOON_MS + before_ms}
    assert shown <= early


def test_writes_are_ordered_by_it(path: Path) -> None:
    table = Table.open(str(path), {CLOCK_SKEW_MS: "1"})
    table.upsert(pa.concat_tables([rows(5, new=500, both=420, log=180), rows(4, new=340, both=410, late=120)]))
    table.delete(rows(6, only=240, newer=310))
    table.delete(pa.table({"id": ["equal"]}))
    expected = {"late": 4, "log": 1, "only": 2, "new": 5, "both": 5}
    assert seen(table) == expected, (
        "the greatest a.b of a key wins, in a write and between writes; a bare key is deleted"
    )
    result = table.compact(before=NOON_MS + 330)
    assert result.freshness.watermark_ms == NOON_MS + 330
    assert seen(table) == expected
    assert table.verify(deep=True).ok


def test_a_record_without_it_is_refused_before_anything_is_written(path: Path) -> None:
    table, before = Table.open(str(path)), content_of(path)
    records = rows(4, new=400, lost=500).to_pylist()
    for lost in (None, {"b": None, "name": "lost"}):
        records[1]["a"] = lost
        with pytest.raises(InvalidRecordError, match=r"row 1: ordering field 'a\.b' is null"):
            table.upsert(pa.Table.from_pylist(records, schema=SCHEMA))
    assert content_of(path) == before


def test_a_key_that_moves_is_ordered_by_it(tmp_path: Path) -> None:
    """With a global index, the row at home is compared with the one that comes."""
    options: dict[str, Any] = {
        INDEX_TYPE: "GLOBAL_SIMPLE",
        CLOCK_SKEW_MS: "1",
        "hoodie.simple.index.update.partition.path": "true",
    }
    table = Table.create(
        str(tmp_path / "t"),
        schema=json.dumps(AVRO),
        record_key="id",
        partition="seq",
        event_time="at",
        options=options,
    )
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("=at\n", "=a.b\n"))
    table = Table.open(str(tmp_path / "t"), options)
    table.upsert(rows(1, earlier=100, later=100))
    table.upsert(rows(2, earlier=50, later=150))
    assert seen(table) == {"earlier": 1, "later": 2}
