"""What leaves a table by Spark comes back as it left: each type with null, its least, greatest and empty values."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import eventide
from eventide import Table
from eventide.spark.engine import spark_session
from support.values.round_trips import BY_SPARK, VALUES, content, two_tables

pytestmark = [
    pytest.mark.broad,
    pytest.mark.skipif(not hasattr(SparkSession, "dataSource"), reason="Spark 3.5 has no sources in Python"),
]
NAMES = list(VALUES)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    eventide.register(session)
    yield session
    session.stop()


def _move(spark: SparkSession, way: str, left: Table, into: Table, checkpoint: Path) -> None:
    columns = ["id", *NAMES]
    match way:
        case "to_spark":
            into.upsert(left.snapshot().to_spark(spark, columns))
        case "eventide":
            rows = spark.read.format("eventide").load(left.uri).select(*columns)
            rows.write.format("eventide").mode("append").save(into.uri)
        case _:
            stream: Any = spark.readStream.format("eventide").load(left.uri).select(*columns).writeStream
            options = {
                "checkpointLocation": str(checkpoint),
                "hoodie.datasource.write.streaming.checkpoint.identifier": "s",
            }
            stream.format("eventide").options(**options).trigger(availableNow=True).start(into.uri).awaitTermination()


@pytest.mark.parametrize("way", BY_SPARK)
def test_every_value_comes_back_from_spark_as_it_left(spark: SparkSession, tmp_path: Path, way: str) -> None:
    left, into = two_tables(tmp_path, NAMES)
    _move(spark, way, left, into, tmp_path / "checkpoint")
    assert content(into, NAMES) == content(left, NAMES)
