"""Upserts of a DataFrame into a table with a record index: eventide beside stock Hudi 1.1.1, in one Spark session.

    PYTHONPATH=tests python -m benchmarks.record_index --rows 200000

Stock Hudi builds a table of that many rows, with a record index in its metadata table, and the table is copied. Each engine
makes the same upserts into its own: the rows divided by `--stride`, of which four in five are changed and one is new, spread
over all keys. The first upsert is cold, the others are warm. Both read the rows from the same Parquet files. Afterwards,
stock Hudi reads the same rows from both tables.

Wall time, CPU of the whole process tree, the peak memory of the Python driver, and how long eventide held the table lock are
printed as JSON. eventide's driver and workers are Python, Hudi's are the JVM, which both share.
"""

import argparse
import json
import os
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.beside_hudi import run_beside_hudi, versions_of
from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_adapters.storage.local import LocalStorage
from eventide_core.config.option import Options
from eventide_core.ports import Lease, TableLock

PARTITIONS = 8
OPTIONS = {
    "hoodie.table.name": "indexed",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.table.ordering.fields": "event_ts",
    "hoodie.datasource.write.precombine.field": "event_ts",
    "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.write.table.version": "9",
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.upsert.shuffle.parallelism": "4",
    "hoodie.bulkinsert.shuffle.parallelism": "4",
    "hoodie.embed.timeline.server": "false",
}


@dataclass
class TimedLock:
    """A table lock that notes for how many seconds it was held, each time."""

    lock: TableLock
    held_s: list[float] = field(default_factory=list[float])

    def acquire(self) -> Lease:
        return TimedLease(self.lock.acquire(), self)


@dataclass
class TimedLease:
    lease: Lease
    timed: TimedLock
    began: float = 0.0

    def check(self) -> None:
        self.lease.check()

    def __enter__(self) -> Self:
        self.lease.__enter__()
        self.began = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.lease.__exit__(kind, error, trace)
        self.timed.held_s.append(round(time.monotonic() - self.began, 3))


def measured(jar: str, scratch: str, rows: int, stride: int, rounds: int, memory: str) -> dict[str, Any]:
    """Runs in the environment of PySpark 3.5."""
    from pyspark.sql import functions

    from benchmarks.peer_spark import spark_with
    from benchmarks.processes import CpuMeter
    from benchmarks.stock import SETTINGS
    from eventide import Table
    from eventide.bootstrap import SystemClock, assemble
    from eventide.spark.engine import SparkEngine

    meter = CpuMeter(os.getpid())
    spark = spark_with(jar, scratch, SETTINGS | {"spark.driver.memory": memory})

    place = Path(scratch) / "tables"
    shutil.rmtree(place, ignore_errors=True)
    paths = {name: str(place / name) for name in ("stock", "eventide")}
    bulk = OPTIONS | {"hoodie.datasource.write.operation": "bulk_insert"}
    versions_of(spark.range(rows), 1, PARTITIONS).write.format("hudi").options(**bulk).mode("overwrite").save(
        paths["stock"]
    )
    shutil.copytree(paths["stock"], paths["eventide"])
    options = {key: value for key, value in OPTIONS.items() if key.startswith("hoodie.index")}
    storage, own = LocalStorage(paths["eventide"]), Options(options)
    lock = TimedLock(FileSystemBasedLock(storage, own, SystemClock(), "benchmark"))
    engine = SparkEngine(spark)
    table = Table(paths["eventide"], options, assemble(paths["eventide"], options, engine=engine, lock=lock))
    samples: list[dict[str, Any]] = []
    for number in range(1, rounds + 1):
        changed = spark.range(rows // stride).select((functions.col("id") * stride + functions.lit(number)) % rows)
        new = rows // stride // 5
        numbers = changed.toDF("id").limit(rows // stride - new)
        first = rows + (number - 1) * new
        source = str(place / f"source-{number}")
        versions_of(numbers.union(spark.range(first, first + new).toDF("id")), number + 1, PARTITIONS).write.parquet(
            source
        )
        frame = spark.read.parquet(source)
        upsert = OPTIONS | {"hoodie.datasource.write.operation": "upsert"}
        for name in sorted(paths, reverse=bool(number % 2)):
            count = frame.count()
            began, cpu = time.monotonic(), meter.seconds()
            if name == "stock":
                frame.write.format("hudi").options(**upsert).mode("append").save(paths["stock"])
            else:
                table.upsert(frame)
            held, lock.held_s = lock.held_s, []
            wall_s, cpu_s = time.monotonic() - began, meter.seconds() - cpu
            samples.append(
                {
                    "engine": name,
                    "round": number,
                    "rows": count,
                    "wall_s": round(wall_s, 2),
                    "cpu_s": round(cpu_s, 2),
                    "python_driver_peak_mib": _peak_mib(),
                    "lock_held_s": held,
                }
            )
    sums = [
        spark.read.format("hudi")
        .load(path)
        .agg(functions.count("*"), functions.count_distinct("id"), functions.sum("event_ts"), functions.sum("amount"))
        .first()
        for path in paths.values()
    ]
    assert sums[0] == sums[1], sums
    return {"rows": rows, "samples": samples}


def _peak_mib() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument(
        "--stride", type=int, default=5, help="one row in so many; 1 for upserts of as many rows as the table has"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--memory", default="4g", help="of the JVM that both engines run in; stock Hudi needs more for 10 million rows"
    )
    parser.add_argument("--place", default="build/benchmarks/record_index")
    parser.add_argument("--jar", help=argparse.SUPPRESS)
    said = parser.parse_args()
    place = Path(said.place).absolute()
    if said.jar is not None:
        print(json.dumps(measured(said.jar, str(place), said.rows, said.stride, said.rounds, said.memory)))
        return
    arguments = ["--rows", said.rows, "--stride", said.stride, "--rounds", said.rounds, "--memory", said.memory]
    sys.exit(run_beside_hudi("benchmarks.record_index", place, [*map(str, arguments)]))


if __name__ == "__main__":
    main()
