"""Delta Lake in one Spark session: what its user does to have the same changes in a table that reads fast.

Usage: `python -m benchmarks.delta JARS SCRATCH`, with PySpark 3.5. Requests are as in `processes.Server`.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from benchmarks.made_rows import changes, first_rows
from benchmarks.peer_spark import spark_with
from benchmarks.serving import serve

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
LATEST = (
    "select {columns} from (select *, row_number() over "
    "(partition by part, id order by deleted desc, event_ts desc, commit desc) as nth from changes) where nth = 1"
)
"""Of each key; as stock Hudi merges these tables: a delete without an event time of its own always wins."""


class Delta:
    """Each method is one request."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def write_changes(self, path: str, workload: dict[str, Any]) -> None:
        """The rows of all commits but the first, as Parquet: what log files hold, decoded."""
        for commit, operation, rows in changes(self._spark, workload):
            marked = rows.withColumns({"commit": f.lit(commit), "deleted": f.lit(operation == "delete")})
            marked.coalesce(1).write.parquet(f"{path}/{commit}")

    def build(self, path: str, workload: dict[str, Any]) -> None:
        """The first commit, in as many files as the Hudi table has slices."""
        first_rows(self._spark, workload).write.format("delta").partitionBy("part").save(path)

    def build_vectors(self, path: str, begun: str, changes: str) -> None:
        """Every other commit on top of the first, one MERGE each, which leaves deletion vectors and small files."""
        shutil.copytree(begun, path)
        self._spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.enableDeletionVectors' = true)")
        for commit in sorted(Path(changes).iterdir(), key=lambda directory: int(directory.name)):
            self._merge(path, str(commit))

    def merge(self, path: str, changes: str, codec: str) -> None:
        """All of the changes in one MERGE: the latest of each key."""
        self._spark.conf.set("spark.sql.parquet.compression.codec", codec)
        self._merge(path, f"{changes}/*")

    def optimize(self, path: str, codec: str) -> None:
        """One file of a partition in place of its files, deletion vectors applied."""
        self._spark.conf.set("spark.sql.parquet.compression.codec", codec)
        self._spark.sql(f"optimize delta.`{path}`").collect()

    def count(self, path: str) -> int:
        return self._spark.read.format("delta").load(path).count()

    def _merge(self, path: str, changes: str) -> None:
        self._spark.read.parquet(changes).createOrReplaceTempView("changes")
        columns = [name for name in self._spark.table("changes").columns if name not in ("commit", "deleted")]
        updates = ", ".join(f"t.{name} = s.{name}" for name in columns)
        self._spark.sql(
            f"merge into delta.`{path}` t using ({LATEST.format(columns=', '.join([*columns, 'deleted']))}) s "
            "on t.part = s.part and t.id = s.id "
            "when matched and s.deleted then delete "
            f"when matched and s.event_ts >= t.event_ts then update set {updates} "
            f"when not matched and not s.deleted then insert ({', '.join(columns)}) "
            f"values ({', '.join(f's.{name}' for name in columns)})"
        ).collect()


if __name__ == "__main__":
    jars, scratch = sys.argv[1:]
    serve(lambda: Delta(spark_with(jars, scratch, SETTINGS)))
