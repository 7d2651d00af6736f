"""Inserts and upserts by a bucket index: eventide beside stock Hudi 1.1.1, in one Spark session.

    PYTHONPATH=tests python -m benchmarks.bucket_index --rows 1000000

Stock Hudi makes a small table of version 9, without a metadata table, and the table is copied twice. In each round, each
contestant inserts that many new rows into its own table, and then upserts a fifth as many, of which four in five are changed
and one is new. The first round is cold, the others are warm. Stock Hudi and `eventide on Spark` get a DataFrame of the same
Parquet files, `eventide` the same rows as an Arrow table, which is read before the clock starts. Afterwards, stock Hudi
reads the same rows from all three tables.

Wall time and CPU of the whole process tree are printed as JSON.
"""

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.beside_hudi import run_beside_hudi, versions_of

PARTITIONS = 4
OPTIONS = {
    "hoodie.table.name": "bucketed",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.table.ordering.fields": "event_ts",
    "hoodie.datasource.write.precombine.field": "event_ts",
    "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.write.table.version": "9",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.insert.shuffle.parallelism": "4",
    "hoodie.upsert.shuffle.parallelism": "4",
    "hoodie.embed.timeline.server": "false",
}
CONTESTANTS = ("stock Hudi", "eventide on Spark", "eventide")


def measured(jar: str, scratch: str, rows: int, rounds: int) -> dict[str, Any]:
    """Runs in the environment of PySpark 3.5."""
    from pyspark.sql import DataFrame, functions

    from benchmarks.peer_spark import spark_with
    from benchmarks.processes import CpuMeter
    from benchmarks.stock import SETTINGS
    from eventide import Table
    from eventide.bootstrap import assemble
    from eventide.spark.engine import SparkEngine

    meter = CpuMeter(os.getpid())
    spark = spark_with(jar, scratch, SETTINGS)

    def write_as_hudi(frame: DataFrame, operation: str, path: str, mode: str = "append") -> None:
        said = OPTIONS | {"hoodie.datasource.write.operation": operation}
        frame.write.format("hudi").options(**said).mode(mode).save(path)

    place = Path(scratch) / "tables"
    shutil.rmtree(place, ignore_errors=True)
    paths = {name: str(place / name.replace(" ", "_")) for name in CONTESTANTS}
    write_as_hudi(versions_of(spark.range(1000), 0, PARTITIONS), "insert", paths["stock Hudi"], "overwrite")
    options = {key: value for key, value in OPTIONS.items() if key.startswith(("hoodie.index", "hoodie.bucket"))}
    tables: dict[str, Table] = {}
    for name, engine in (("eventide on Spark", SparkEngine(spark)), ("eventide", None)):
        shutil.copytree(paths["stock Hudi"], paths[name])
        tables[name] = Table(paths[name], options, assemble(paths[name], options, engine=engine))

    samples: list[dict[str, Any]] = []
    first = 1000
    for number in range(1, rounds + 1):
        inserted = versions_of(spark.range(first, first + rows), 2 * number, PARTITIONS)
        changed = (functions.col("id") * 5 + number) % (first + rows)
        fresh = spark.range(first + rows, first + rows + rows // 25).toDF("id")
        numbers = spark.range(rows * 4 // 25).select(changed.alias("id")).union(fresh)
        first += rows + rows // 25
        for operation, made_rows in (
            ("insert", inserted),
            ("upsert", versions_of(numbers, 2 * number + 1, PARTITIONS)),
        ):
            source = str(place / f"{operation}-{number}")
            made_rows.write.parquet(source)
            frame = spark.read.parquet(source)
            arrow: pa.Table = pq.read_table(source)
            for name in CONTESTANTS if number % 2 else reversed(CONTESTANTS):
                began, cpu = time.monotonic(), meter.seconds()
                if name == "stock Hudi":
                    write_as_hudi(frame, operation, paths[name])
                else:
                    write = tables[name].insert if operation == "insert" else tables[name].upsert
                    write(arrow if name == "eventide" else frame)
                costs = {"wall_s": round(time.monotonic() - began, 2), "cpu_s": round(meter.seconds() - cpu, 2)}
                samples.append(
                    {"contestant": name, "round": number, "operation": operation, "rows": len(arrow)} | costs
                )
                print(json.dumps(samples[-1]), file=sys.stderr, flush=True)
    sums = [
        spark.read.format("hudi")
        .load(path)
        .agg(functions.count("*"), functions.count_distinct("id"), functions.sum("event_ts"), functions.sum("amount"))
        .first()
        for path in paths.values()
    ]
    assert sums[0] == sums[1] == sums[2], sums
    return {"rows": rows, "samples": samples}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--place", default="build/benchmarks/bucket_index")
    parser.add_argument("--jar", help=argparse.SUPPRESS)
    said = parser.parse_args()
    place = Path(said.place).absolute()
    if said.jar is not None:
        print(json.dumps(measured(said.jar, str(place), said.rows, said.rounds)))
        return
    arguments = ["--rows", str(said.rows), "--rounds", str(said.rounds)]
    sys.exit(run_beside_hudi("benchmarks.bucket_index", place, arguments))


if __name__ == "__main__":
    main()
