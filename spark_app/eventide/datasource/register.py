"""Registers eventide with a Spark session: `format("eventide")` and the SQL table functions."""

from typing import TYPE_CHECKING

from eventide_core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Registers `format("eventide")` with a session, for reads, writes and streams, and the table functions of SQL.

    See `datasource/source` and `datasource/table_functions`.

    Raises ConfigError before Spark 4.1, the first version whose Python data sources accept streams as Arrow.
    """
    given: object = spark
    if not hasattr(given, "createDataFrame"):
        raise ConfigError(f"{given!r} isn't a SparkSession: pass one")
    if tuple(int(part) for part in spark.version.split(".")[:2]) < (4, 1):
        raise ConfigError(
            f'format("eventide") needs Spark 4.1, and this is {spark.version}: read with Table.snapshot().to_spark(spark), '
            "write with Table.upsert(frame), and streams with foreachBatch(eventide.stream_sink(TABLE))"
        )
    # Imported here, because PySpark may not be installed.
    from eventide.datasource.source import register_source
    from eventide.datasource.table_functions import register_functions

    register_source(spark)
    register_functions(spark)
