"""Filters that Spark pushes leave out slices before tasks are made of them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.values.columns import schema_of

pytest.importorskip("pyspark.sql.datasource")
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual, In, IsNotNull, LessThan

from eventide import Table
from eventide.datasource.source import EventideSource
from eventide_core.config import BLOOM_ENTRIES, BUCKETS

EPOCH_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
SCHEMA = schema_of(id=pa.string(), part=pa.string(), ms=pa.int64())


@pytest.fixture(params=["snapshot", "read_optimized"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """A table of four partitions with an hour of event time and three buckets each."""
    path = str(tmp_path / "table")
    created: dict[str, str] = {BUCKETS: "3", BLOOM_ENTRIES: "100"}
    table = Table.create(path, schema=SCHEMA, record_key="id", partition="part", event_time="ms", options=created)
    rows = [(f"k{n}", f"p{n % 4}", EPOCH_MS + n % 4 * HOUR_MS + n) for n in range(80)]
    columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
    for first in (0, 40):
        table.upsert(pa.table([column[first : first + 40] for column in columns], schema=SCHEMA))
        if first == 0:
            table.compact(before=EPOCH_MS + 9 * HOUR_MS)
    return {"path": path, "hoodie.datasource.query.type": request.param}


def partitions(options: dict[str, str], *filters: Any) -> tuple[int, set[str]]:
    """The number of tasks, and the keys that they read."""
    source = EventideSource(options)
    reader: Any = source.reader(source.schema())
    reader.pushFilters(list(filters))
    found = reader.partitions()
    return len(found), {key for one in found for batch in reader.read(one) for key in batch.column("id").to_pylist()}


def test_a_key_leaves_a_bucket_of_each_partition(options: dict[str, str]) -> None:
    assert partitions(options)[0] == 12
    count, keys = partitions(options, IsNotNull(("id",)), EqualTo(("id",), "k7"))
    assert count <= 4
    assert keys == {"k7"}
    assert partitions(options, In(("id",), ("k7", "k8")), EqualTo(("part",), "p3")) <= (2, {"k7"})


def test_event_time_leaves_the_slices_that_have_it(options: dict[str, str]) -> None:
    begin = EPOCH_MS + 2 * HOUR_MS
    hour = (GreaterThanOrEqual(("ms",), begin), LessThan(("ms",), begin + HOUR_MS))
    count, keys = partitions(options, *hour)
    assert count == 3
    assert keys <= {f"k{n}" for n in range(2, 80, 4)}
    assert len(keys) >= 10


def test_nothing_is_left_where_no_row_can_be(options: dict[str, str]) -> None:
    before = (GreaterThanOrEqual(("ms",), EPOCH_MS - HOUR_MS), LessThan(("ms",), EPOCH_MS))
    assert partitions(options, *before) == (0, set())
