"""`python cluster_driver.py MASTER TABLE T DIRECTORY`: compacts a table on a cluster and prints one JSON document.

A task that has written its files creates a file in DIRECTORY, and ends as soon as a file `release` exists there.
"""

import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

from eventide import Table
from eventide.spark.engine import SparkEngine

T = TypeVar("T")
R = TypeVar("R")


class HeldEngine(SparkEngine):
    """The engine on Spark, whose tasks wait before they report that they are done."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        super().__init__(spark)
        self._directory = directory

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        sizes: Sequence[int] | None = None,
        on_done: Callable[[], None] | None = None,
    ) -> list[R]:
        directory = self._directory

        def held(item: T) -> R:
            result = function(item)
            (directory / f"done-{uuid.uuid4()}").touch()
            while not (directory / "release").exists():
                time.sleep(0.05)
            return result

        return super().map(held, items, sizes=sizes, on_done=on_done)


def main(master: str, path: str, threshold: str, directory: str) -> None:
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master(master).appName("eventide on a cluster")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    table = Table.open(path)
    result = table.compact(table.plan_compaction(before=threshold), engine=HeldEngine(spark, Path(directory)))
    table = Table.open(path, engine=spark)
    answer = {
        "compacted": result.metrics["log_files_compacted"],
        "rows": table.snapshot().to_spark(spark).count(),
        "sound": table.verify(deep=True).ok,
    }
    spark.stop()
    packages = list(Path(os.environ["SPARK_LOCAL_DIRS"]).glob("spark-*/userFiles-*/**/*.zip"))
    left = [str(found) for found in (*packages, *Path(tempfile.gettempdir()).iterdir())]
    sys.stdout.write("ANSWER" + json.dumps(answer | {"left": left}))


if __name__ == "__main__":
    main(*sys.argv[1:])
