"""Streams into tables: each batch once, whatever is replayed, and compactions beside it."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import eventide
from eventide import Table
from eventide.bootstrap import Application, assemble
from eventide.options.streams import (
    COMPACT_ASYNC,
    COMPACT_INLINE,
    COMPACT_SCHEDULE_INLINE,
    STREAM_IDENTIFIER,
    STREAM_WATERMARK_AS_SOURCE,
    STREAM_WATERMARK_AS_THRESHOLD,
)
from eventide.rows.writer import incoming_records
from eventide_core.config import (
    BLOOM_ENTRIES,
    BUCKETS,
    CLOCK_SKEW_MS,
    THRESHOLD,
)
from eventide_core.errors import ConfigError, WriteConflictError
from eventide_core.ports import NoProgress
from eventide_core.service.write.batch import BatchWriter
from eventide_core.table.settings.stream_batch import BATCH_KEY, StreamBatch
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.instant import Action
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), part=pa.string(), at=pa.timestamp("us", tz="UTC"), word=pa.string())
START = datetime(2026, 11, 21, tzinfo=UTC)
T_MS = int(START.timestamp() * 1000) + 3 * 60_000
SMALL: dict[str, str] = {BLOOM_ENTRIES: "100", CLOCK_SKEW_MS: "1"}
EARLY = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}


def batches_of(application: Application) -> BatchWriter:
    return BatchWriter(application.files, application.append)


def rows(*values: tuple[str, int, str]) -> pa.Table:
    """Rows of one partition; event times in minutes from the start."""
    found = [(key, "p", START.replace(minute=minute), word) for key, minute, word in values]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found], schema=SCHEMA)


BATCHES = (
    rows(("a", 1, "a1"), ("b", 2, "b2")),
    rows(("a", 3, "a3"), ("c", 1, "c1")),
    rows(("b", 1, "late"), ("d", 9, "d9")),
    rows(("e", 10, "e10")),
)
TRUTH = {"a": "a3", "b": "b2", "c": "c1", "d": "d9", "e": "e10"}


def make(path: Path, version: int = 9, **options: Any) -> Table:
    return Table.create(
        str(path),
        schema=SCHEMA,
        record_key="id",
        partition="part",
        event_time="at",
        version=version,
        options={BUCKETS: 1, **SMALL, **options},
    )


def seen(found: pa.Table) -> dict[str, str]:
    assert found.num_rows == len(set(found["id"].to_pylist()))
    return {row["id"]: row["word"] for row in found.to_pylist()}


def arrive(directory: Path, number: int) -> None:
    """A batch arrives as a file, whole; Spark takes them by their times."""
    directory.mkdir(exist_ok=True)
    pq.write_table(BATCHES[number], directory / f".{number}")
    os.utime(directory / f".{number}", (1_700_000_000 + number, 1_700_000_000 + number))
    (directory / f".{number}").rename(directory / f"{number}.parquet")


def stream(spark: SparkSession, directory: Path) -> DataFrame:
    ddl = "id string, part string, at timestamp, word string"
    return spark.readStream.schema(ddl).option("maxFilesPerTrigger", 1).parquet(str(directory))


def run(frame: DataFrame, sink: Any, checkpoint: Path) -> StreamingQuery:
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


@pytest.mark.broad
@pytest.mark.parametrize("version", [pytest.param(6, marks=pytest.mark.proof), 9])
def test_a_batch_that_is_replayed_is_written_once(version: int, tmp_path: Path, spark: SparkSession) -> None:
    """Also where its commit has been archived."""
    table = make(tmp_path / "t", version, **EARLY)
    sink = eventide.stream_sink(table.uri, table.options)
    written: list[bool] = []

    def fail_once(frame: DataFrame, number: int) -> None:
        """The driver dies after the commit, and before Spark knows of it."""
        written.append(sink.write(frame, number) is not None)
        if number == 1 and len(written) == 2:
            raise RuntimeError("died")

    for number in range(3):
        arrive(tmp_path / "in", number)
    with pytest.raises(Exception, match="died"):
        run(stream(spark, tmp_path / "in"), fail_once, tmp_path / "checkpoint")
    for word in range(4):  # other writers', so that the batch leaves the active timeline
        table.upsert(rows(("z", 1 + word, "z")))
    table.compact(table.plan_compaction(before=T_MS))
    table.clean()
    assert table.archive()
    assert not any(BATCH_KEY in m.extra_metadata for m in table.state().commits.values())
    query = run(stream(spark, tmp_path / "in"), fail_once, tmp_path / "checkpoint")
    assert written == [True, True, False, True]
    assert seen(table.snapshot().to_arrow()) == {"a": "a3", "b": "b2", "c": "c1", "d": "d9", "z": "z"}
    assert batches_of(assemble(table.uri, {})).last_written(str(query.id)) == 2


def test_a_batch_that_another_driver_writes_at_the_same_time_is_written_once(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    batch = StreamBatch("s", 0)
    slow = assemble(table.uri, table.options)
    insert = WriteOperation.INSERT
    pending = slow.append.begin(insert, incoming_records(slow, insert, BATCHES[0]), NoProgress(), batch.extra_metadata)
    fast = assemble(table.uri, table.options)
    assert batches_of(fast).write(batch, insert, incoming_records(fast, insert, BATCHES[0]), NoProgress()) is not None
    with pytest.raises(WriteConflictError, match="batch 0 of the stream s"):
        slow.append.complete(pending)
    other = StreamBatch("another stream", 0)
    assert batches_of(slow).write(other, insert, incoming_records(slow, insert, rows(("x", 1, "x"))), NoProgress())
    assert batches_of(slow).write(batch, insert, incoming_records(slow, insert, BATCHES[0]), NoProgress()) is None
    assert seen(table.snapshot().to_arrow()) == {"a": "a1", "b": "b2", "x": "x"}


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(COMPACT_INLINE, marks=pytest.mark.proof),
        pytest.param(COMPACT_ASYNC, marks=pytest.mark.broad),
        pytest.param(COMPACT_SCHEDULE_INLINE, marks=pytest.mark.proof),
    ],
)
def test_compactions_beside_a_stream_fill_the_read_optimized_table(
    how: str, tmp_path: Path, spark: SparkSession
) -> None:
    table = make(tmp_path / "t")
    sink = eventide.stream_sink(table.uri, {**table.options, how: "true", THRESHOLD: str(T_MS)})
    for number in range(len(BATCHES)):
        arrive(tmp_path / "in", number)
    run(stream(spark, tmp_path / "in"), sink, tmp_path / "checkpoint")
    sink.wait()
    if how == COMPACT_SCHEDULE_INLINE:
        assert table.freshness().cut_ms is None
        (pending,) = table.state().timeline.pending
        assert pending.action is Action.COMPACTION
        Table.open(table.uri, {**table.options, THRESHOLD: str(T_MS)}).service().round(NoProgress())
    found = table.freshness()
    assert found.cut_ms == T_MS
    assert seen(table.snapshot().to_arrow()) == TRUTH
    optimized = seen(table.read_optimized().to_arrow())
    if how == COMPACT_INLINE:
        assert {"b": "b2", "c": "c1"}.items() <= optimized.items()
    assert table.state().timeline.pending == ()


@pytest.mark.broad
def test_the_watermark_of_the_stream_is_the_threshold(tmp_path: Path, spark: SparkSession) -> None:
    table = make(tmp_path / "t")
    options: dict[str, str] = {**table.options, COMPACT_INLINE: "true", STREAM_WATERMARK_AS_THRESHOLD: "true"}
    sink = eventide.stream_sink(table.uri, options)
    for number in range(len(BATCHES)):
        arrive(tmp_path / "in", number)
    marked = stream(spark, tmp_path / "in").withWatermark("at", "1 minute")
    run(marked, sink, tmp_path / "checkpoint")
    cut_ms = table.freshness().cut_ms
    assert cut_ms is not None
    minutes = (cut_ms - int(START.timestamp() * 1000)) / 60_000
    # Of the last batch but one, which is a minute before the latest event time of the batches before that.
    assert minutes == 2
    assert seen(table.snapshot().to_arrow()) == TRUTH
    assert {"c": "c1"}.items() <= seen(table.read_optimized().to_arrow()).items()


@pytest.mark.broad
def test_the_watermark_of_the_stream_is_what_its_batches_state(tmp_path: Path, spark: SparkSession) -> None:
    table = make(tmp_path / "t")
    sink = eventide.stream_sink(table.uri, {**table.options, STREAM_WATERMARK_AS_SOURCE: "clicks"})
    for number in range(len(BATCHES)):
        arrive(tmp_path / "in", number)
    run(stream(spark, tmp_path / "in").withWatermark("at", "1 minute"), sink, tmp_path / "checkpoint")
    table.compact(before=T_MS + 3_600_000)
    fresh = table.freshness()
    assert fresh.held_back_by == "clicks"
    assert fresh.watermark_ms is not None
    assert (fresh.watermark_ms - int(START.timestamp() * 1000)) / 60_000 == 2, "of the last batch but one"


def test_unsupported_settings_of_a_sink_are_refused_before_the_first_batch(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    with pytest.raises(ConfigError, match="exclude each other"):
        eventide.stream_sink(table.uri, {COMPACT_INLINE: True, COMPACT_ASYNC: True})
    with pytest.raises(ConfigError, match="excludes another T"):
        eventide.stream_sink(table.uri, {STREAM_WATERMARK_AS_THRESHOLD: True, THRESHOLD: "1"})


def test_the_format_writes_reads_and_streams(tmp_path: Path, spark: SparkSession) -> None:
    eventide.register(spark)
    path = str(tmp_path / "t")
    create: dict[str, str] = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.payload.event.time.field": "at",
        BUCKETS: "1",
        **SMALL,
    }
    for batch in BATCHES[:3]:
        spark.createDataFrame(batch).write.format("eventide").mode("append").options(**create).save(path)
    table = Table.open(path)
    assert len(table.state().timeline.writes) == 3
    table.compact(table.plan_compaction(before=T_MS))
    read = spark.read.format("eventide")
    assert seen(read.load(path).toArrow()) == seen(table.snapshot().to_arrow()) == {k: TRUTH[k] for k in "abcd"}
    optimized = read.option("hoodie.datasource.query.type", "read_optimized").load(path)
    assert seen(optimized.toArrow()) == seen(table.read_optimized().to_arrow())
    assert optimized.schema == table.read_optimized().to_spark(spark).schema
    begin = table.state().timeline.writes[1]
    since = read.options(
        **{
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": begin.completion_time or "",
        }
    ).load(path)
    assert seen(since.toArrow()) == seen(table.incremental(begin.completion_time or "").to_arrow())

    arrive(tmp_path / "in", 2)
    arrive(tmp_path / "in", 3)
    streamed = stream(spark, tmp_path / "in").writeStream.format("eventide").option("checkpointLocation", path + ".c")
    streamed = streamed.option(STREAM_IDENTIFIER, "s").options(**SMALL)
    streamed.trigger(availableNow=True).start(path).awaitTermination()
    assert seen(table.snapshot().to_arrow()) == TRUTH
    assert batches_of(assemble(path, {})).last_written("s") == 1

    kept = seen(table.read_optimized().to_arrow())
    table.tag("then", as_of_watermark=T_MS)
    table.compact(table.plan_compaction(before=T_MS + 10**7))
    for option in ({"as.of.watermark": str(T_MS)}, {"as.of.tag": "then"}):
        reader = spark.read.format("eventide").options(**{"hoodie.datasource.query.type": "read_optimized", **option})
        assert seen(reader.load(path).toArrow()) == kept != seen(table.read_optimized().to_arrow())


@pytest.mark.broad
def test_changes_stream_out_of_a_table_each_once(tmp_path: Path, spark: SparkSession) -> None:
    """Also where a batch fails when its rows have been taken, and is run again from the checkpoint after more commits."""
    eventide.register(spark)
    table = make(tmp_path / "t")
    frame = spark.readStream.format("eventide").schema("id string, word string").load(table.uri)
    batches: list[tuple[int, dict[str, str]]] = []

    def take(rows: DataFrame, number: int) -> None:
        batches.append((number, seen(rows.toArrow())))
        if len(batches) == 2:
            raise RuntimeError("died")

    table.upsert(BATCHES[0])
    run(frame, take, tmp_path / "checkpoint")
    table.upsert(BATCHES[1])
    with pytest.raises(Exception, match="died"):
        run(frame, take, tmp_path / "checkpoint")
    table.upsert(BATCHES[2])
    table.compact(table.plan_compaction(before=T_MS))
    for _ in range(2):  # one batch each: the one that failed, and the rest
        run(frame, take, tmp_path / "checkpoint")
    told = [one for _, one in batches if one]
    assert told[:3] == [{"a": "a1", "b": "b2"}, {"a": "a3", "c": "c1"}, {"a": "a3", "c": "c1"}]
    assert [number for number, one in batches if one == told[1]] == [1, 1]
    # The late row had lost already, and a compaction in the same span may have taken it away.
    assert told[3:] in ([{"d": "d9"}], [{"b": "late", "d": "d9"}])


@pytest.mark.broad
def test_each_batch_is_a_window_also_of_a_query_that_dies(tmp_path: Path, spark: SparkSession) -> None:
    """A driver dies after its sink's work, and a stream of another checkpoint waits while a window is held."""
    eventide.register(spark)
    table = make(tmp_path / "t")
    table.upsert(BATCHES[0])
    table.upsert(rows(("late", 2, "late"), ("z", 10, "not closed")))
    table.compact(before=T_MS, cut="exact")
    options = {"windows": "1m", "consumer": "c", "windows.since": "2026-11-21T00:01Z"}
    frame = spark.readStream.format("eventide").options(**options).load(table.uri)
    batches: list[tuple[str, dict[str, str], set[Any]]] = []

    def take(found: DataFrame, number: int) -> None:
        told = found.toArrow()
        batches.append((f"{number}", seen(told), set(told["_window_begin"].to_pylist())))
        if len(batches) == 1:
            raise RuntimeError("died")

    def run_all(checkpoint: str) -> None:
        writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / checkpoint))
        query = writer.trigger(processingTime="0 seconds").start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    with pytest.raises(Exception, match="died"):
        run_all("checkpoint")
    held = table.windows("1m", "c").open_window()
    assert held is not None
    assert seen(held.to_spark(spark).toArrow()) == seen(held.rows().to_arrow()) == {"a": "a1"}
    run_all("another")
    assert batches.pop() == ("0", {}, set())  # Spark's first batch, which it makes without new data
    run_all("checkpoint")
    first = ({"a": "a1"}, {START.replace(minute=1)})
    second = ({"b": "b2", "late": "late"}, {START.replace(minute=2)})
    assert batches == [("0", *first), ("0", *first), ("1", *second)]
    assert table.windows("1m", "c").progress().open is None


def test_sql_reads_a_table_and_hands_conditions_to_its_slices(tmp_path: Path, spark: SparkSession) -> None:
    eventide.register(spark)
    table = make(tmp_path / "t")
    table.upsert(BATCHES[0])
    table.compact(table.plan_compaction(before=T_MS))
    table.upsert(BATCHES[1])
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW trips USING eventide OPTIONS (path '{table.uri}')")
    found = spark.sql("SELECT part, count(*) AS n FROM trips WHERE at > timestamp'2026-11-21T00:01:30Z' GROUP BY part")
    assert [tuple(row) for row in found.collect()] == [("p", 2)]
    word = "(id STRING, word STRING)"
    options = f"(path '{table.uri}', hoodie.datasource.query.type 'read_optimized')"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW optimized {word} USING eventide OPTIONS {options}")
    narrow = spark.sql("SELECT * FROM optimized WHERE id = 'a'")
    assert (narrow.columns, [tuple(row) for row in narrow.collect()]) == (["id", "word"], [("a", "a1")])
