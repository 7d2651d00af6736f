"""eventide and its peers in Python, measured in a process of their own: requests as in `processes.Server`.

Usage: `python -m benchmarks.contestant`. What a peer needs is imported when it is first asked, so that nobody pays for
the others.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.serving import serve
from benchmarks.spark_sums import COLUMNS, sums_of

LEVELS = {"gzip": 6, "zstd": 1}
"""Of the plain write that is the limit: the levels that eventide writes with."""


class Contestant:
    """Each method is one request."""

    def __init__(self) -> None:
        self._merged: list[tuple[str, Any]] = []
        self._spark: Any = None
        self._engine: Any = None

    def compact_by_slice(self, cores: int) -> None:
        """Compactions run on so many cores, one slice at a time."""
        from eventide.engine_local import LocalEngine

        os.sched_setaffinity(0, range(cores))
        self._engine = LocalEngine(1)

    def start_spark(self, cores: int) -> None:
        """Compactions and queries run on so many cores, on Spark."""
        os.sched_setaffinity(0, range(cores))
        from eventide.spark.engine import spark_session

        self._engine = self._spark = spark_session(f"local[{cores}]")

    def compact(self, path: str, codec: str, before_ms: int | None = None) -> dict[str, int]:
        """eventide's compaction, on Spark where that was started: of everything, or of what lies before a T."""
        from eventide import Table

        options = {"hoodie.parquet.compression.codec": codec}
        if before_ms is None:
            options["hoodie.compaction.strategy"] = "LogFileSizeBasedCompactionStrategy"
            options["hoodie.compact.inline.max.delta.commits"] = "1"
            options["hoodie.compaction.target.io"] = str(1 << 30)
        table = Table.open(path, options)
        plan = table.plan_compaction() if before_ms is None else table.plan_compaction(before=before_ms)
        return dict(table.compact(plan, engine=self._engine).metrics)

    def run_plan(self, path: str, codec: str) -> list[str]:
        """The compaction that stock Hudi has planned; its instant."""
        from eventide import Table

        table = Table.open(path, {"hoodie.parquet.compression.codec": codec})
        return list(table.resume(engine=self._engine).resumed)

    def snapshot(self, path: str) -> int:
        from eventide import Table

        return Table.open(path).snapshot().to_arrow().num_rows

    def read_optimized(self, path: str) -> int:
        from eventide import Table

        return Table.open(path).read_optimized().to_arrow().num_rows

    def snapshot_in_spark(self, path: str) -> list[str]:
        """The columns are named, for Spark does not tell Python tasks which ones it needs."""
        from eventide import Table

        return sums_of(Table.open(path).snapshot().to_spark(self._spark, COLUMNS))

    def read_optimized_in_spark(self, path: str) -> list[str]:
        from eventide import Table

        return sums_of(Table.open(path).read_optimized().to_spark(self._spark))

    def parquet_in_spark(self, path: str) -> list[str]:
        """The base files by Spark's own reader."""
        return sums_of(self._spark.read.parquet(*map(str, Path(path).glob("*/*.parquet"))))

    def hudi_rs(self, path: str) -> int:
        from hudi import HudiReadOptions, HudiTable

        return sum(batch.num_rows for batch in HudiTable(path).read(HudiReadOptions()))

    def duckdb(self, path: str, changes: str, codec: str) -> int:
        from benchmarks.duckdb_merge import merge

        return merge(path, changes, codec)

    def hold_merged(self, path: str) -> int:
        """What a compacted table holds, in memory, slice by slice: not measured. Its old base files are kept."""
        import pyarrow.parquet as pq

        files = sorted(Path(path).glob("*/*.parquet"), key=lambda file: file.name.rpartition("_")[2])
        latest = {file.name.partition("_")[0]: file for file in files}
        first = {file.name.partition("_")[0]: file for file in reversed(files)}
        self._merged = [(str(first[group]), pq.read_table(file, partitioning=None)) for group, file in latest.items()]
        return sum(len(table) for _, table in self._merged)

    def limit(self, path: str, codec: str) -> None:
        """What nobody can do without: the base files read, and the merged ones written."""
        import pyarrow.parquet as pq

        def once(numbered: tuple[int, tuple[str, Any]]) -> None:
            number, (base, merged) = numbered
            pq.read_table(base, partitioning=None)
            compression: Any = codec
            pq.write_table(merged, f"{path}/{number}", compression=compression, compression_level=LEVELS[codec])

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(once, enumerate(self._merged)))


if __name__ == "__main__":
    serve(Contestant)
