"""The Spark that peers written in Java run on: the same two cores and the same memory for each of them."""

from collections.abc import Mapping

from pyspark.sql import SparkSession


def spark_with(jars: str, scratch: str, settings: Mapping[str, str]) -> SparkSession:
    """A session with these jars (commas between) and what they want to be set."""
    common = {
        "spark.jars": jars,
        "spark.driver.memory": "4g",
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
    builder = SparkSession.builder.master("local[2]").appName("peer")
    for key, value in {**common, **settings}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
