"""Stock Hudi in one Spark session: builds the tables, and does beside eventide what eventide does.

Usage: `python -m benchmarks.stock JAR SCRATCH`, with PySpark 3.5: nothing but Spark and Hudi is there. Requests are those
of `processes.Server`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.serving import serve
from benchmarks.spark_sums import sums_of

HUDI = "org.apache.spark.sql.hudi"
TABLE = {
    "hoodie.table.name": "measured",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "event_ts",
    "hoodie.payload.event.time.field": "event_ts",
    "hoodie.payload.ordering.field": "event_ts",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.write.track.event.time.watermark": "true",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.index.type": "SIMPLE",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.bulkinsert.sort.mode": "NONE",
    "hoodie.upsert.shuffle.parallelism": "4",
    "hoodie.simple.index.parallelism": "4",
    "hoodie.embed.timeline.server": "false",
}
COMPACTION = {
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.embed.timeline.server": "false",
}


def spark_session(jar: str, scratch: str) -> SparkSession:
    settings = {
        "spark.jars": jar,
        "spark.driver.memory": "4g",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": f"{HUDI}.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": f"{HUDI}.catalog.HoodieCatalog",
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.local.dir": f"{scratch}/spark",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("stock-hudi")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


class Stock:
    """Each method is one request."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def build(self, path: str, workload: dict[str, Any]) -> None:
        records, upserts = workload["records"], workload["upserts"]
        options = TABLE | {
            "hoodie.write.table.version": str(workload["version"]),
            "hoodie.logfile.data.block.format": workload["blocks"],
        }
        if workload["version"] >= 8:
            options["hoodie.write.record.merge.mode"] = "EVENT_TIME_ORDERING"
        numbers = self._spark.range(0, records, 1, workload["slices"]).withColumnRenamed("id", "n")
        first = _rows(numbers, workload, 0).sortWithinPartitions("id")
        first.write.format("hudi").options(**options).option("hoodie.datasource.write.operation", "bulk_insert").mode(
            "overwrite"
        ).save(path)
        shares = [*[(workload["share"], "upsert")] * upserts, (workload["deleted"], "delete")]
        for commit, (share, operation) in enumerate(shares, start=1):
            # A number of its own for each key and commit, uniform below a million.
            drawn = f.pmod(f.xxhash64("n", f.lit(7000 + commit)), f.lit(1_000_000))
            touched = self._spark.range(0, records, 1, 2).withColumnRenamed("id", "n").where(drawn < share * 1_000_000)
            if share:
                _rows(touched, workload, commit).write.format("hudi").options(**options).option(
                    "hoodie.datasource.write.operation", operation
                ).mode("append").save(path)

    def compact(self, path: str, codec: str, version: int) -> None:
        options = COMPACTION | {"hoodie.write.table.version": str(version), "hoodie.parquet.compression.codec": codec}
        pairs = ",".join(f"{key}={value}" for key, value in options.items())
        for operation in ("schedule", "run"):
            self._spark.sql(
                f"call run_compaction(op => '{operation}', path => '{path}', options => '{pairs}')"
            ).collect()

    def read(self, path: str, query: str) -> list[Any]:
        options = {"hoodie.datasource.query.type": query, "hoodie.metadata.enable": "false"}
        return sums_of(self._spark.read.format("hudi").options(**options).load(path))

    def read_parquet(self, path: str) -> list[Any]:
        """What Spark's own reader makes of the base files."""
        files = [str(file) for file in Path(path).glob("*/*.parquet")]
        return sums_of(self._spark.read.parquet(*files))


def _rows(numbers: DataFrame, workload: dict[str, Any], commit: int) -> DataFrame:
    def drawn(stream: int) -> Column:
        return f.xxhash64(f.col("n"), f.lit(commit * 1000 + stream))

    def uniform(stream: int) -> Column:
        return f.pmod(drawn(stream), f.lit(1_000_000)) / 1_000_000.0

    first_ms, commit_ms = workload["first_event_ms"], workload["commit_ms"]
    lateness = f.when(uniform(2) < 0.05, f.pmod(drawn(3), f.lit(3 * commit_ms))).otherwise(f.lit(0))
    event = f.lit(first_ms + commit * commit_ms) + f.pmod(drawn(1), f.lit(commit_ms)) - lateness
    statuses = f.array(*(f.lit(status) for status in ("new", "open", "done", "void")))
    columns = [
        f.md5(f.col("n").cast("string")).alias("id"),
        f.when(f.col("n") < workload["records"] // 2, "a").otherwise("b").alias("part"),
        event.cast("long").alias("event_ts"),
        f.timestamp_millis(event).alias("ts"),
        f.concat(f.lit("city-"), f.pmod(drawn(4), f.lit(500)).cast("string")).alias("city"),
        f.concat(f.lit("note "), f.hex(drawn(5)), f.lit(" "), f.hex(drawn(6))).alias("note"),
        f.element_at(statuses, (f.pmod(drawn(7), f.lit(4)) + 1).cast("int")).alias("status"),
        (uniform(8) * 1000).alias("x"),
        (uniform(9) * 90).alias("y"),
        f.when(uniform(10) < 0.1, None).otherwise(uniform(11)).alias("z"),
        f.pmod(drawn(12), f.lit(10_000)).cast("int").alias("qty"),
    ]
    if workload["columns"] == "wide":
        kinds = (
            lambda s: f.pmod(drawn(s), f.lit(100_000)),
            uniform,
            lambda s: f.concat(f.lit("v"), f.pmod(drawn(s), f.lit(5000)).cast("string")),
        )
        columns += [kinds[place % 3](100 + place).alias(f"c{place:02}") for place in range(89)]
    if workload["columns"] == "nested":
        item = f.struct(f.pmod(drawn(20), f.lit(900)).alias("sku"), uniform(21).alias("price"))
        other = f.struct(f.pmod(drawn(22), f.lit(900)).alias("sku"), uniform(23).alias("price"))
        columns += [
            f.struct(uniform(24).alias("lat"), uniform(25).alias("lon"), f.hex(drawn(26)).alias("code")).alias("place"),
            f.when(uniform(27) < 0.5, f.array(item)).otherwise(f.array(item, other)).alias("items"),
            f.create_map(f.lit("a"), f.hex(drawn(28)), f.lit("b"), f.hex(drawn(29))).alias("tags"),
        ]
    if workload["columns"] == "decimals":
        columns += [
            (uniform(30) * 100_000).cast("decimal(18,4)").alias("price"),
            (uniform(31) * 1_000_000_000).cast("decimal(38,10)").alias("total"),
            f.date_add(f.lit("2026-01-01").cast("date"), f.pmod(drawn(32), f.lit(300)).cast("int")).alias("day"),
        ]
    return numbers.select(*columns)


if __name__ == "__main__":
    jar, scratch = sys.argv[1:]
    serve(lambda: Stock(spark_session(jar, scratch)))
