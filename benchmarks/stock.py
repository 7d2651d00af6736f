"""Stock Hudi in one Spark session: builds the tables, and does beside eventide what eventide does.

Usage: `python -m benchmarks.stock JAR SCRATCH`, with PySpark 3.5: nothing but Spark and Hudi is there. Requests are as
in `processes.Server`.
"""

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.made_rows import changes, first_rows
from benchmarks.peer_spark import spark_with
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


SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": f"{HUDI}.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": f"{HUDI}.catalog.HoodieCatalog",
}


class Stock:
    """Each method is one request."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def build(self, path: str, workload: dict[str, Any]) -> None:
        options = TABLE | {
            "hoodie.write.table.version": str(workload["version"]),
            "hoodie.logfile.data.block.format": workload["blocks"],
        }
        if workload["version"] >= 8:
            options["hoodie.write.record.merge.mode"] = "EVENT_TIME_ORDERING"
        first_rows(self._spark, workload).write.format("hudi").options(**options).option(
            "hoodie.datasource.write.operation", "bulk_insert"
        ).mode("overwrite").save(path)
        for _, operation, rows in changes(self._spark, workload):
            rows.write.format("hudi").options(**options).option("hoodie.datasource.write.operation", operation).mode(
                "append"
            ).save(path)

    def compact(self, path: str, codec: str, version: int) -> None:
        self.schedule(path, version)
        self.run_plan(path, codec, version)

    def schedule(self, path: str, version: int) -> None:
        """Plans to compact everything."""
        self._call("schedule", path, version, {})

    def is_ready(self) -> bool:
        """Whether the process has started: True."""
        return True

    def schedule_all(self, path: str, version: int) -> int:
        """Plans to compact everything, however much that is. Returns the number of planned slices."""
        unbounded = {"hoodie.compaction.target.io": "1000000000"}
        (planned,) = self._call("schedule", path, version, unbounded)
        slices: int = planned["operation_size"]
        return slices

    def run_plan(self, path: str, codec: str, version: int) -> None:
        """Runs what is planned."""
        self._call("run", path, version, {"hoodie.parquet.compression.codec": codec})

    def _call(self, operation: str, path: str, version: int, more: dict[str, str]) -> list[Any]:
        options = COMPACTION | {"hoodie.write.table.version": str(version)} | more
        pairs = ",".join(f"{key}={value}" for key, value in options.items())
        call = f"call run_compaction(op => '{operation}', path => '{path}', options => '{pairs}')"
        return self._spark.sql(call).collect()

    def read(self, path: str, query: str) -> list[Any]:
        options = {"hoodie.datasource.query.type": query, "hoodie.metadata.enable": "false"}
        return sums_of(self._spark.read.format("hudi").options(**options).load(path))

    def read_parquet(self, path: str) -> list[Any]:
        """What Spark's own reader makes of the base files."""
        files = [str(file) for file in Path(path).glob("*/*.parquet")]
        return sums_of(self._spark.read.parquet(*files))


if __name__ == "__main__":
    jar, scratch = sys.argv[1:]
    serve(lambda: Stock(spark_with(jar, scratch, SETTINGS)))
