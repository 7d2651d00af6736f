"""The table functions of SQL, in a session of Spark."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import eventide
from eventide import Table
from eventide.spark.engine import spark_session
from support.pasts import golden
from support.tables.thresholds import dividing_plan

EVENT_TIME = "hoodie.payload.event.time.field"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[2]")
    eventide.register(session)
    yield session
    session.stop()


def rows(spark: SparkSession, statement: str, **words: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in spark.sql(statement, words).collect()]


@pytest.mark.broad
def test_a_table_is_planned_compacted_and_verified_in_sql(spark: SparkSession, tmp_path: Path) -> None:
    path = str(golden.unpack("v9_event_bucket", tmp_path))
    table = Table.open(path, {EVENT_TIME: "event_ts"})
    threshold = dividing_plan(table, "event_ts", "copy").cut_ms
    assert threshold is not None
    before = datetime.fromtimestamp(threshold / 1000, UTC).isoformat(timespec="milliseconds")
    expected = table.plan_compaction(before=before)

    planned = rows(
        spark, "select * from eventide_plan(:path, before => :t, event_time => 'event_ts')", path=path, t=before
    )
    assert sorted((row["partition"], row["file_id"], row["compacted_logs"]) for row in planned) == sorted(
        (op.partition, op.file_id, len(op.compacted)) for op in expected.operations
    )
    assert rows(spark, "select watermark_ms, partition from eventide_freshness(:path)", path=path) == [
        {"watermark_ms": None, "partition": None}
    ]

    options = f"map('{EVENT_TIME}', 'event_ts')"
    compact = f"select * from eventide_compact(:path, before => :t, options => {options})"
    (made,) = rows(spark, compact, path=path, t=before)
    assert made["watermark_ms"] == table.freshness().watermark_ms == threshold
    assert not made["already_reached"]
    (again,) = rows(spark, compact, path=path, t=before)
    assert again["already_reached"]
    assert again["instant"] == made["instant"]

    found = rows(spark, "select * from eventide_freshness(:path, by_partition => true)", path=path)
    assert [row["partition"] for row in found] == [None, *table.freshness_by_partition()]
    # Spark hands a timestamp over in the local time of this process.
    assert int(found[0]["watermark"].timestamp() * 1000) == threshold
    checks = rows(spark, "select check, status from eventide_verify(:path, deep => true)", path=path)
    assert "failed" not in {row["status"] for row in checks}
    assert [row["check"] for row in checks] == [check.name for check in table.verify(deep=True).checks]


def test_an_error_names_what_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="NotAHudiTableError"):
        rows(spark, "select * from eventide_freshness(:path)", path=str(tmp_path))


@pytest.mark.parametrize(
    ("function", "t"),
    [
        ("eventide_plan", "-5"),
        ("eventide_compact", "1795143600"),
        ("eventide_compact", "'2026-11-20 03:00'"),
        ("eventide_compact", "timestamp '9999-01-01 00:00:00'"),
    ],
)
def test_a_t_that_cannot_be_meant_is_refused(spark: SparkSession, function: str, t: str, tmp_path: Path) -> None:
    path = str(golden.unpack("v9_event_bucket", tmp_path))
    with pytest.raises(PySparkException, match="InvalidThresholdError: T "):
        rows(spark, f"select * from {function}(:path, before => {t}, event_time => 'event_ts')", path=path)
    assert Table.open(path).freshness().cut_ms is None
