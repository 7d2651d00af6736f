"""The main job in small, with columns of all kinds: what `./run compat` runs on other versions of what eventide needs.

It needs the installed package and pytest alone, and nothing of the judges.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import eventide
from eventide import Table
from eventide.spark.engine import spark_session
from support.pasts import golden

COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string()),
    pa.field("city", pa.string()),
    pa.field("ended_at", pa.timestamp("us", tz="UTC")),
    pa.field("day", pa.date32()),
    pa.field("fare", pa.decimal128(10, 2)),
    pa.field("parts", pa.list_(pa.float64())),
]
SCHEMA = pa.schema(COLUMNS)
DDL = "id string, city string, ended_at timestamp, day date, fare decimal(10,2), parts array<double>"
T = "2026-03-01T12:00:00Z"
OPTIONS = {"hoodie.bucket.index.num.buckets": "2"}
FIRST = [(number, 8) for number in range(15)]
EARLY, LATE = [(number, 9) for number in range(20)], [(number, 14) for number in range(10, 30)]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()


def rows(numbers: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """A record for each number, which ended at that hour."""
    return [
        {
            "id": f"k{number}",
            "city": "ab"[number % 2],
            "ended_at": datetime(2026, 3, 1, hour, 30, number, 1, tzinfo=UTC),
            "day": date(2026, 3, 1),
            "fare": Decimal(f"{number}.50"),
            "parts": [number / 4],
        }
        for number, hour in numbers
    ]


def arrow_rows(numbers: list[tuple[int, int]]) -> pa.Table:
    return pa.Table.from_pylist(rows(numbers), schema=SCHEMA)


def create(path: Path, index: str = "BUCKET") -> Table:
    options = OPTIONS | {"hoodie.index.type": index}
    words: Any = {"record_key": "id", "partition": "city", "event_time": "ended_at", "options": options}
    return Table.create(str(path), schema=SCHEMA, **words)


def own(found: pa.Table) -> list[dict[str, Any]]:
    return sorted(found.select(SCHEMA.names).to_pylist(), key=lambda row: row["id"])


def expected(*batches: list[tuple[int, int]]) -> list[dict[str, Any]]:
    latest = {row["id"]: row for numbers in batches for row in rows(numbers)}
    return [latest[key] for key in sorted(latest)]


def test_arrow_rows_are_written_compacted_and_read(tmp_path: Path) -> None:
    table = create(tmp_path)
    for numbers in (FIRST, EARLY, LATE):
        table.upsert(arrow_rows(numbers))
    plan = table.plan_compaction(before=T)
    assert plan.merged_log_files
    assert table.compact(plan).metrics["log_files_compacted"] == len(plan.merged_log_files)
    assert own(table.read_optimized().to_arrow()) == expected(EARLY)
    assert own(table.snapshot().to_arrow()) == expected(EARLY, LATE)
    assert table.verify(deep=True).ok
    table.delete(pa.table({"id": ["k0"], "city": ["a"]}))
    assert len(own(table.snapshot().to_arrow())) == 29


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE", "GLOBAL_SIMPLE"])
def test_data_frames_are_written_compacted_and_read(index: str, tmp_path: Path, spark: SparkSession) -> None:
    table = create(tmp_path, index)
    for numbers in (FIRST, EARLY, LATE):
        table.upsert(spark.createDataFrame([tuple(row.values()) for row in rows(numbers)], DDL))
    for query in (table.snapshot(), table.as_of(table.state().timeline.writes[-1].requested_time)):
        assert own(query.to_arrow()) == expected(EARLY, LATE)
    plan = table.plan_compaction(before=T)
    table.compact(plan, engine=spark)
    frame = table.snapshot().to_spark(spark)
    assert dict(frame.dtypes)["ended_at"] == "timestamp"
    found = frame.where("ended_at >= timestamp'2026-03-01 12:00:00'").select("id", "ended_at", "parts").collect()
    after = sorted((row["id"], row["ended_at"].astimezone(UTC), row["parts"]) for row in found)
    late = [row for row in expected(EARLY, LATE) if row["ended_at"].hour > 12]
    assert after == [(row["id"], row["ended_at"], row["parts"]) for row in late]
    assert table.verify(deep=True, engine=spark).ok


def test_a_schema_of_spark_makes_the_table_that_one_of_arrow_makes(tmp_path: Path, spark: SparkSession) -> None:
    frame = spark.createDataFrame([], DDL)
    table = Table.create(str(tmp_path), schema=frame.schema, record_key="id", event_time="ended_at", options=OPTIONS)
    table.upsert(arrow_rows(EARLY))
    assert table.snapshot().to_arrow().select(SCHEMA.names).schema.types == SCHEMA.types


def test_a_table_is_a_format_of_spark(tmp_path: Path, spark: SparkSession) -> None:
    if tuple(int(part) for part in spark.version.split(".")[:2]) < (4, 1):
        pytest.skip("Spark has Python data sources with Arrow since 4.1")
    eventide.register(spark)
    table = create(tmp_path)
    frame = spark.createDataFrame([tuple(row.values()) for row in rows(EARLY)], DDL)
    frame.write.format("eventide").mode("append").save(str(tmp_path))
    assert own(table.snapshot().to_arrow()) == expected(EARLY)
    read = spark.read.format("eventide").load(str(tmp_path))
    assert read.where("ended_at = timestamp'2026-03-01 09:30:07.000001'").select("id").collect()[0]["id"] == "k7"


def test_a_stream_is_written_once(tmp_path: Path, spark: SparkSession) -> None:
    table = create(tmp_path / "table")
    spark.createDataFrame([tuple(row.values()) for row in rows(EARLY)], DDL).write.parquet(str(tmp_path / "in"))
    sink = eventide.stream_sink(table.uri, OPTIONS)
    writer = spark.readStream.schema(DDL).parquet(str(tmp_path / "in")).writeStream.foreachBatch(sink)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    for _ in range(2):
        writer.trigger(availableNow=True).start().awaitTermination()
    assert own(table.snapshot().to_arrow()) == expected(EARLY)
    assert len(table.state().timeline.writes) == 1


@pytest.mark.parametrize("name", ["v6_avro_types", "v9_avro_types"])
def test_a_table_of_hudi_is_compacted(name: str, tmp_path: Path) -> None:
    table = Table.open(str(golden.unpack(name, tmp_path)), {"hoodie.payload.event.time.field": "event_ts"})
    before = table.snapshot().to_arrow().num_rows
    table.compact(table.plan_compaction(before=1_700_002_200_000))
    assert table.snapshot().to_arrow().num_rows == before > 0


def command(*words: object) -> Any:
    line = [sys.executable, "-W", "error", "-m", "eventide", *map(str, words), "--output", "json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_command_line_does_the_main_job(tmp_path: Path) -> None:
    table = create(tmp_path / "table")
    for numbers in (FIRST, EARLY, LATE):
        table.upsert(arrow_rows(numbers))
    assert command("plan", table.uri, "--before", T)["operations"]
    command("compact", table.uri, "--before", T)  # on Spark
    command("freshness", table.uri, "--require", T)
    command("verify", table.uri, "--deep")
    assert own(table.snapshot().to_arrow()) == expected(EARLY, LATE)
