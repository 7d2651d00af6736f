"""`python connect_client.py URL DIRECTORY`: the life of a table through a Spark Connect client.

Prints one JSON document.

It runs in a separate process, because PySpark is either classic or a client for all sessions of a process.
"""

import json
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import eventide
import eventide.spark.hive_catalog
from eventide import Table
from eventide.options.streams import STREAM_IDENTIFIER, STREAM_WATERMARK_AS_THRESHOLD
from eventide.spark.engine import SparkEngine, parallelism
from eventide_core.config import BUCKETS, INDEX_TYPE
from eventide_core.errors import CorruptLogBlockError, EventideError, StorageError
from support.pasts import golden
from support.tables.thresholds import dividing_plan

DDL = "id string, city string, ended_at timestamp, fare double"
OPTIONS: dict[str, str] = {BUCKETS: "2"}


class Counted:
    """A progress that counts its calls."""

    def __init__(self) -> None:
        self.steps = 0

    def start(self, what: str, total: int) -> None: ...

    def advance(self) -> None:
        self.steps += 1


def caught(do: Callable[[], object]) -> list[str]:
    """The type and the message of the error."""
    try:
        do()
    except EventideError as error:
        return [type(error).__name__, str(error)]
    return []


def frame(spark: SparkSession, numbers: Iterable[int], fare: float) -> DataFrame:
    values = [(f"k{n}", "ab"[n % 2], datetime(2026, 3, 1, n % 24, tzinfo=UTC), float(fare)) for n in numbers]
    return spark.createDataFrame(values, DDL)


def rows(found: pa.Table) -> list[list[str]]:
    own = found.select(["id", "city", "ended_at", "fare"]).to_pylist()
    return sorted([row["id"], row["city"], row["ended_at"].isoformat(), str(row["fare"])] for row in own)


def counting(directory: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Creates a file for each task that computes the records."""

    def pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (directory / str(uuid.uuid4())).touch()
        yield from batches

    return pass_on


def life(spark: SparkSession, path: Path, index: str) -> dict[str, Any]:
    words: Any = {"record_key": "id", "partition": "city", "event_time": "ended_at"}
    schema = frame(spark, [0], 0).schema
    options = OPTIONS | {INDEX_TYPE: index}
    table = Table.create(str(path), schema=schema, options=options, engine=spark, **words)
    computed = path.parent / f"{index}.computed"
    computed.mkdir()
    records = frame(spark, range(40), 1.0).repartition(3).mapInArrow(counting(computed), DDL)
    table.upsert(records)
    table.upsert(frame(spark, range(40), 1.5))
    table.upsert(frame(spark, range(20, 60), 2.0))
    table.delete(frame(spark, [0, 59], 0).select("id", "city"))
    before = rows(table.snapshot().to_arrow())
    progress = Counted()
    result = table.compact(table.plan_compaction(before="2026-03-01T12:00Z"), engine=spark, progress=progress)
    return {
        "computed": len(list(computed.iterdir())),
        "before": before,
        "after": rows(table.snapshot().to_spark(spark).toArrow()),
        "read_optimized": [
            rows(table.read_optimized().to_arrow()),
            rows(table.read_optimized().to_spark(spark).toArrow()),
        ],
        "compacted": result.metrics["log_files_compacted"],
        "told": progress.steps,
        "sound": table.verify(deep=True, engine=spark).ok,
    }


def of_hudi(spark: SparkSession, directory: Path) -> dict[str, Any]:
    table = Table.open(str(golden.unpack("v9_avro_types", directory)))
    plan = dividing_plan(table, "event_ts", "copy")
    before = table.snapshot().to_arrow().num_rows
    metrics = table.compact(plan, engine=spark).metrics
    frame = table.snapshot().to_spark(spark)
    return {"linked": metrics["log_files_linked"], "rows": [before, frame.count()], "types": dict(frame.dtypes)}


def errors(spark: SparkSession, path: Path) -> dict[str, list[str]]:
    def torn(item: int) -> int:
        raise CorruptLogBlockError(f"torn at {item}")

    def lost(item: int) -> int:
        raise StorageError(f"no network at {item}")

    def unforeseen(item: int) -> int:
        raise ValueError(f"unforeseen {item}")

    engine, table = SparkEngine(spark), Table.open(str(path), engine=spark)
    bad = frame(spark, [1], 1.0).selectExpr("id", "city", "cast(null as timestamp) as ended_at", "fare")
    setattr(eventide.spark.hive_catalog, "has_hive_support", lambda _: True)  # noqa: B010  # a module, as far as types go
    sink = eventide.stream_sink(str(path))
    return {
        "typed": caught(lambda: engine.map(torn, [1])),
        "storage": caught(lambda: engine.map(lost, [2])),
        "other": caught(lambda: engine.map(unforeseen, [3])),
        "record": caught(lambda: table.upsert(bad)),
        "stream": caught(lambda: sink(frame(spark, [1], 1.0), 0)),
        "watermark": caught(lambda: eventide.stream_sink(str(path), {STREAM_WATERMARK_AS_THRESHOLD: "true"})),
        "sync": caught(lambda: table.sync(database="lake", engine=spark)),
    }


def local_times(spark: SparkSession, path: Path) -> dict[str, Any]:
    """A time without a zone, written and read in a session of another zone, and one with a zone that is refused."""
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    rows = spark.sql(
        "select 'a' id, timestamp_ntz'2026-03-03 08:05:00' at, array(timestamp_ntz'2026-03-03 08:05:00') many"
    )
    table = Table.create(str(path), schema=rows.schema, record_key="id", options=OPTIONS)
    table.upsert(rows)
    zoned = rows.selectExpr("id", "cast(at as timestamp) at", "many")
    refused = caught(lambda: table.upsert(zoned))
    found = [table.snapshot().to_spark(spark), spark.read.format("eventide").load(str(path))]
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return {
        "types": [dict(one.dtypes) for one in found],
        "found": [one.where("at = timestamp_ntz'2026-03-03 08:05:00' and many[0] = at").count() for one in found],
        "refused": refused,
    }


def streams(spark: SparkSession, path: Path) -> list[int]:
    """The number of writes for a batch that arrives twice, and the rows of the format."""
    schema = frame(spark, [0], 0).schema
    table = Table.create(str(path), schema=schema, record_key="id", event_time="ended_at", options=OPTIONS)
    sink = eventide.stream_sink(str(path), {STREAM_IDENTIFIER: "trips"})
    for _ in range(2):
        sink(frame(spark, range(5), 1.0), 0)
    eventide.register(spark)
    frame(spark, range(3, 9), 2.0).write.format("eventide").mode("append").save(str(path))
    return [len(table.state().timeline.writes), spark.read.format("eventide").load(str(path)).count()]


def main(url: str, directory: Path) -> None:
    spark = SparkSession.builder.remote(url).getOrCreate()
    big = SparkEngine(spark).map(lambda size: b"x" * size, [1, 40 << 20, 2])
    answer = {
        "parallelism": parallelism(spark),
        "big": [len(found) for found in big],
        "bucket": life(spark, directory / "bucket", "BUCKET"),
        "simple": life(spark, directory / "simple", "SIMPLE"),
        "global": life(spark, directory / "global", "GLOBAL_SIMPLE"),
        "hudi": of_hudi(spark, directory / "hudi"),
        "errors": errors(spark, directory / "bucket"),
        "streams": streams(spark, directory / "streams"),
        "local_times": local_times(spark, directory / "local_times"),
    }
    spark.stop()
    sys.stdout.write("ANSWER" + json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
