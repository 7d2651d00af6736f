"""Times without a zone in Spark, whose session has another zone than UTC: the values that stock Spark shows and writes.

Runs on Spark 3.5, too: `pytest tests/spark_app/spark/test_local_times.py` in an environment with it.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import eventide
from eventide import Table
from eventide.spark.engine import spark_session
from support.tables.backends import backend

pytestmark = pytest.mark.broad

AT = datetime(2026, 3, 3, 8, 5)  # noqa: DTZ001
SKIPPED = datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001 - a time that Berlin does not have
KIND = pa.timestamp("us")
FIELDS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string()),
    pa.field("city", pa.string()),
    pa.field("at", KIND),
    pa.field("ms", pa.timestamp("ms")),
    pa.field("many", pa.list_(KIND)),
    pa.field("named", pa.map_(pa.string(), KIND)),
    pa.field("inner_ms", pa.map_(pa.string(), pa.list_(pa.struct([pa.field("ms", pa.timestamp("ms"))])))),
    pa.field("zoned_ms", pa.timestamp("ms", "UTC")),
    pa.field("part", pa.struct([pa.field("at", KIND), pa.field("zoned", pa.timestamp("us", "UTC"))])),
]
SCHEMA = pa.schema(FIELDS)
STREAM = {"hoodie.datasource.write.streaming.checkpoint.identifier": "s"}
HAS_SOURCES = hasattr(SparkSession, "dataSource")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    if HAS_SOURCES:
        eventide.register(session)
    yield session
    session.stop()


def _row(key: str, at: datetime) -> dict[str, Any]:
    zoned = datetime.fromisoformat("2026-03-03T08:05Z")
    return {
        "id": key,
        "city": "a",
        "at": at,
        "ms": at,
        "many": [at],
        "named": {"k": at},
        "inner_ms": {"k": [{"ms": at}]},
        "zoned_ms": zoned,
        "part": {"at": at, "zoned": zoned},
    }


def _table(path: Path, **options: str) -> Table:
    options = {"hoodie.bucket.index.num.buckets": "1", **options}
    table = Table.create(str(path), schema=SCHEMA, record_key="id", partition="city", options=options)
    table.upsert(pa.Table.from_pylist([_row("a", AT), _row("b", SKIPPED)], schema=SCHEMA))
    return table


def _frames(table: Table, spark: SparkSession) -> Iterator[Any]:
    yield table.snapshot().to_spark(spark)
    yield table.snapshot().to_spark(spark, filter="id <> 'z'")
    if HAS_SOURCES:
        yield spark.read.format("eventide").load(table.uri)


@pytest.mark.parametrize("in_log", [False, True])
def test_they_are_read_as_timestamp_ntz_with_their_very_values(
    tmp_path: Path, spark: SparkSession, in_log: bool
) -> None:
    table = _table(tmp_path / "t")
    if in_log:
        table.upsert(pa.Table.from_pylist([_row("a", AT), _row("b", SKIPPED)], schema=SCHEMA))
    for frame in _frames(table, spark):
        types = dict(frame.dtypes)
        assert types["at"] == types["ms"] == "timestamp_ntz"
        assert types["many"] == "array<timestamp_ntz>"
        assert types["named"] == "map<string,timestamp_ntz>"
        assert types["part"] == "struct<at:timestamp_ntz,zoned:timestamp>"
        shown = frame.selectExpr(
            "id", "cast(at as string) at", "cast(ms as string) ms", "cast(many[0] as string) one",
            "cast(named['k'] as string) named", "cast(part.at as string) part", "cast(part.zoned as string) zoned",
            "cast(inner_ms['k'][0].ms as string) inner_ms", "cast(zoned_ms as string) zoned_ms",
        )  # fmt: skip
        found = {row["id"]: row.asDict() for row in shown.collect()}
        for key, text in (("a", "2026-03-03 08:05:00"), ("b", "2026-03-29 02:30:00")):
            assert [found[key][name] for name in ("at", "ms", "one", "named", "inner_ms", "part")] == [text] * 6
            assert found[key]["zoned"] == found[key]["zoned_ms"] == "2026-03-03 09:05:00"


def test_a_filter_on_the_value_finds_it(tmp_path: Path, spark: SparkSession) -> None:
    table = _table(tmp_path / "t")
    for frame in _frames(table, spark):
        for condition in (
            "at = timestamp_ntz'2026-03-03 08:05:00'",
            "at > timestamp_ntz'2026-03-03 08:04:00' and at <= timestamp_ntz'2026-03-03 08:05:00'",
            "part.at in (timestamp_ntz'2026-03-03 08:05:00')",
            "ms < timestamp_ntz'2026-03-03 08:06:00'",
        ):
            assert [row["id"] for row in frame.where(condition).collect()] == ["a"], condition
        assert frame.where("at = timestamp_ntz'2026-03-03 09:05:00'").count() == 0


@pytest.mark.parametrize("index", ["BUCKET", "GLOBAL_SIMPLE"])
def test_rows_of_spark_are_stored_with_their_very_values(tmp_path: Path, spark: SparkSession, index: str) -> None:
    table = _table(tmp_path / "t", **{"hoodie.index.type": index})
    frame = table.snapshot().to_spark(spark).where("id = 'b'").select(*SCHEMA.names)
    table.upsert(frame.selectExpr("'c' id", *SCHEMA.names[1:]))
    table.upsert(frame)
    found = table.snapshot().to_arrow(SCHEMA.names).to_pylist()
    assert {row["id"]: row["at"] for row in found} == {"a": AT, "b": SKIPPED, "c": SKIPPED}
    assert {row["id"]: row["part"]["at"] for row in found} == {"a": AT, "b": SKIPPED, "c": SKIPPED}


WAYS: dict[str, Callable[[Table, Any], object]] = {
    "upsert": lambda table, rows: table.upsert(rows),
    "source": lambda table, rows: rows.write.format("eventide").mode("append").save(table.uri),
    "sink": lambda table, rows: eventide.stream_sink(table.uri, STREAM)(rows, 0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("kind", "given"), [("timestamp", "timestamp_ntz"), ("timestamp_ntz", "timestamp")])
def test_a_write_that_would_cast_by_a_zone_is_refused(
    tmp_path: Path, spark: SparkSession, way: str, kind: str, given: str
) -> None:
    """Spark would cast by its session's zone; a cast in the query does that, and says so."""
    frame = spark.sql(f"select cast('2026-03-03 08:05:00' as {kind}) at, 'a' id")
    table = Table.create(
        str(tmp_path / "t"), schema=frame.schema, record_key="id", options={"hoodie.index.type": "SIMPLE"}
    )
    table.upsert(frame)
    other = spark.sql(f"select cast('2026-03-03 08:05:00' as {given}) at, 'b' id")
    if way == "source" and not HAS_SOURCES:
        pytest.skip("Spark 4 has sources in Python")
    with pytest.raises(Exception, match="nothing says in which zone; cast it before"):
        WAYS[way](table, other)
    assert table.snapshot().to_arrow(["id"]).column("id").to_pylist() == ["a"]
    table.upsert(other.selectExpr(f"cast(at as {kind}) at", "id"))
    assert table.snapshot().to_spark(spark).select("at").distinct().count() == 1


def test_a_stream_reads_them(tmp_path: Path, spark: SparkSession) -> None:
    if not HAS_SOURCES:
        pytest.skip("Spark 4 has sources in Python")
    table = _table(tmp_path / "t")
    stream = spark.readStream.format("eventide").load(table.uri)
    query = stream.selectExpr("id", "cast(at as string) at").writeStream.format("memory").queryName("local_times")
    query.trigger(availableNow=True).start().awaitTermination()
    found = {row["id"]: row["at"] for row in spark.table("local_times").collect()}
    assert found == {"a": "2026-03-03 08:05:00", "b": "2026-03-29 02:30:00"}


def test_a_table_on_s3_keeps_them(tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest) -> None:
    if not HAS_SOURCES:
        pytest.skip("Spark 4 has sources in Python")
    there, here = backend("moto", request, tmp_path), _table(tmp_path / "t")
    table = Table.create(there.uri, schema=SCHEMA, record_key="id", partition="city", options=there.options)
    rows = spark.read.format("eventide").load(here.uri).select(*SCHEMA.names)
    rows.write.format("eventide").options(**there.options).mode("append").save(there.uri)
    back = spark.read.format("eventide").options(**there.options).load(there.uri).select(*SCHEMA.names)
    table.upsert(back)
    assert back.where("at = timestamp_ntz'2026-03-03 08:05:00'").count() == 1
    found, left = (one.snapshot().to_arrow(SCHEMA.names).sort_by("id").to_pylist() for one in (table, here))
    assert found == left
