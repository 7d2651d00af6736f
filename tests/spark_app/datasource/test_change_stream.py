"""A table's changes as a stream: the rows of each batch and of its replay, whatever happens to the table meanwhile."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from pyspark.sql.types import LongType, StringType, StructField, StructType

from eventide import Table
from eventide.bootstrap import assemble
from eventide.datasource.change_stream import ChangeStream
from eventide.datasource.source import EventideSource
from eventide.options.queries import QUERY_TYPE
from eventide.options.streams import STREAM_START
from eventide.rows.writer import incoming_records
from eventide.spark.pushed_filters import pushed_filter
from eventide_core.config import HEARTBEAT_INTERVAL_MS
from eventide_core.errors import CleanedHistoryError, ConfigError
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from support.pasts import golden
from support.tables.small import LATER_MS, make, rows

ASKED = StructType([StructField("id", StringType()), StructField("word", StringType())])
Offset = dict[str, str]
Batch = list[tuple[str, str]]


def stream(table: Table, start: str | None = None) -> ChangeStream:
    return ChangeStream(table.uri, {**table.options, **({} if start is None else {STREAM_START: start})}, ASKED)


def batch(source: ChangeStream, start: Offset, end: Offset) -> Batch:
    """The rows of a micro-batch, each slice read as an executor does."""
    found: Batch = []
    for part in source.partitions(start, end):
        for one in source.read(part):
            found += [(row["id"], row["word"]) for row in one.to_pylist()]
    return sorted(found)


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_that_ends_after_a_later_one_is_in_one_batch(version: int, tmp_path: Path) -> None:
    made = make(tmp_path / "t", version)
    table = Table.open(made.uri, {**made.options, HEARTBEAT_INTERVAL_MS: "60000"})
    slow = assemble(table.uri, table.options)
    table.upsert(rows(("k0", 0, "first")))
    pending = slow.append.begin(
        WriteOperation.UPSERT, incoming_records(slow, WriteOperation.UPSERT, rows(("k1", 0, "slow"))), NoProgress()
    )
    table.upsert(rows(("k2", 0, "fast")))
    source = stream(table)
    start, first = source.initialOffset(), source.latestOffset()
    slow.append.complete(pending)
    table.upsert(rows(("k0", 1, "last")))
    second = source.latestOffset()
    batches = [batch(source, start, first), batch(source, first, second)]
    fast, slow_row = ("k2", "fast"), ("k1", "slow")
    # Version 6 orders writes by when they were requested, so the fast one waits for the slow one.
    assert batches == (
        [[("k0", "first")], sorted([slow_row, fast, ("k0", "last")])]
        if version == 6
        else [sorted([("k0", "first"), fast]), sorted([slow_row, ("k0", "last")])]
    )
    assert batch(source, second, source.latestOffset()) == []


@pytest.mark.parametrize("version", [6, 9])
def test_a_batch_brings_the_same_again_until_what_it_needs_is_cleaned(version: int, tmp_path: Path) -> None:
    table = make(tmp_path / "t", version)
    table.upsert(rows(("k0", -9, "base"), ("k2", -9, "base"), ("k1", -9, "base")))
    table.upsert(rows(("k0", -3, "second")))
    source = stream(table)
    start, end = source.initialOffset(), source.latestOffset()
    told = batch(source, start, end)
    assert told == [("k0", "second"), ("k1", "base"), ("k2", "base")]
    table.compact(table.plan_compaction(before=LATER_MS))
    table.upsert(rows(("k0", 0, "changed again"), ("k2", 0, "too")))
    assert batch(stream(table), start, end) == told
    table.clean(1)
    later = source.latestOffset()
    assert batch(source, end, later) == [("k0", "changed again"), ("k2", "too")]
    assert batch(source, start, later) == [("k0", "changed again"), ("k1", "base"), ("k2", "too")]
    with pytest.raises(CleanedHistoryError):
        batch(stream(table), start, end)


@pytest.mark.parametrize("version", [6, 9])
def test_a_batch_from_the_beginning_is_returned_after_cleans_and_changes(version: int, tmp_path: Path) -> None:
    """A query that begins on an old table, dies in its first batch, and begins again after the next write."""
    table = make(tmp_path / "t", version)
    table.upsert(rows(("k0", -9, "base"), ("k2", -9, "base")))
    table.upsert(rows(("k0", -3, "second")))
    table.compact(table.plan_compaction(before=LATER_MS))
    table.upsert(rows(("k2", 0, "third")))
    table.clean(1)
    source = stream(table)
    start, end = source.initialOffset(), source.latestOffset()
    told = batch(source, start, end)
    assert told == [("k0", "second"), ("k2", "third")]
    table.upsert(rows(("k0", 1, "changed"), ("k2", 1, "changed")))
    table.compact(table.plan_compaction(before=LATER_MS))
    assert batch(stream(table), start, end) == told


def test_latest_begins_at_the_first_batch_however_often_it_is_run(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", 0, "before")))
    source = stream(table, "latest")
    start, end = source.initialOffset(), source.latestOffset()
    table.upsert(rows(("k1", 0, "after")))
    again = stream(table, "LATEST")
    assert again.initialOffset() == start
    assert (batch(source, start, end), batch(again, start, end)) == ([], [])
    assert batch(again, end, again.latestOffset()) == [("k1", "after")]


def test_a_stream_begins_after_an_instant_and_never_goes_back(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    first = table.upsert(rows(("k0", 0, "first"))).instant
    table.savepoint(first)
    table.upsert(rows(("k1", 0, "undone")))
    completed = table.state().timeline.completion_time(first)
    source = stream(table, completed)
    start, end = source.initialOffset(), source.latestOffset()
    assert start == {"instant": completed}
    assert batch(source, start, end) == [("k1", "undone")]
    table.restore(first)
    assert source.latestOffset() == end
    resumed = stream(table, completed)
    assert resumed.partitions(end, end) == []
    assert resumed.latestOffset() == end
    table.upsert(rows(("k2", 0, "new")))
    assert batch(resumed, end, resumed.latestOffset()) == [("k2", "new")]


def test_a_stream_reports_unavailable_changes_when_it_starts(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    with pytest.raises(ConfigError, match="omit"):
        EventideSource({"path": table.uri, QUERY_TYPE: "read_optimized"}).streamReader(ASKED)
    table.upsert(rows(("k0", 0, "first")))
    for field, told in ((StructField("no", StringType()), "not one of"), (StructField("word", LongType()), "bigint")):
        source = ChangeStream(table.uri, table.options, StructType([field]))
        with pytest.raises(ConfigError, match=told):
            source.partitions(source.initialOffset(), source.latestOffset())


CONTENT = pa.table(
    {
        "i": pa.array([1, 2, None, 4], pa.int32()),
        "s": ["ab", "b", None, "ba%"],
        "d": pa.array([date(2026, 1, 1), None, date(2026, 1, 3), date(2026, 1, 4)]),
        "m": pa.array([Decimal("1.50"), Decimal("2.00"), None, Decimal("4.00")], pa.decimal128(10, 2)),
        "f": [1.0, float("nan"), None, 4.0],
    }
)
# What SQL keeps of the rows, by the position; None: left to Spark.
CONDITIONS: Mapping[Filter, set[int] | None] = {
    EqualTo(("i",), 2): {1},
    GreaterThan(("i",), 1): {1, 3},
    GreaterThanOrEqual(("d",), date(2026, 1, 3)): {2, 3},
    LessThan(("m",), Decimal("2.00")): {0},
    LessThanOrEqual(("s",), "b"): {0, 1},
    In(("i",), (1, None, 4)): {0, 3},
    IsNull(("s",)): {2},
    IsNotNull(("f",)): {0, 1, 3},
    Not(EqualTo(("i",), 2)): {0, 3},
    StringStartsWith(("s",), "b"): {1, 3},
    StringEndsWith(("s",), "b"): {0, 1},
    StringContains(("s",), "a%"): {3},
    GreaterThan(("f",), 2.0): None,  # NaN is the greatest in Spark
    EqualTo(("i",), "no number"): None,
    EqualTo(("i", "inside"), 2): None,
    EqualTo(("nowhere",), 2): None,
}


def kept_by(*conditions: Filter) -> set[int] | None:
    """The positions of the rows; None if nothing is pushed."""
    expression = pushed_filter(conditions, CONTENT.schema)
    if expression is None:
        return None
    kept = CONTENT.append_column("at", pa.array(range(4))).filter(expression)
    return {row["at"] for row in kept.to_pylist()}


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_conditions_of_spark_keep_the_rows_that_sql_does(condition: Filter) -> None:
    assert kept_by(condition) == CONDITIONS[condition]


def test_conditions_hold_together_and_not_in_keeps_no_row_too_few() -> None:
    assert kept_by(GreaterThan(("i",), 1), GreaterThan(("f",), 0.0), IsNotNull(("s",))) == {1, 3}
    assert kept_by(Not(In(("i",), (1,)))) in ({1, 3}, {1, 2, 3})


@pytest.mark.parametrize("name", ["v6_replaced", "v9_replaced"])
def test_changes_stay_available_when_a_later_write_replaces_their_file_groups(name: str, tmp_path: Path) -> None:
    table = Table.open(str(golden.unpack(name, tmp_path)))
    state = table.state()
    first = next(i for i in state.timeline.writes if state.commit(i).replaced_file_ids)
    before = [i for i in state.timeline.writes if i.requested_time < first.requested_time][-1]
    then = {row["_hoodie_record_key"] for row in table.as_of(before.requested_time).to_arrow().to_pylist()}
    changed = table.incremental("earliest", before.completion_time or before.requested_time).to_arrow().to_pylist()
    assert {row["_hoodie_record_key"] for row in changed} >= then
