"""All code in README and in the guide runs, and prints what the page says: support/documentation/pages.py has the rules."""

import gzip
import re
import shutil
from collections.abc import Iterator
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_adapters.metrics import open_telemetry_spans
from support.documentation.commands import Commands
from support.documentation.pages import DocumentedPage
from support.documentation.schedules import Airflow
from support.servers.trace_collector import trace_collector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"^```(python|sh|console|cron|yaml)$", re.MULTILINE)
PAGES = [
    page
    # The storage page's is run in tests/adapters/storage/test_own_storage.py.
    for page in (ROOT / "README.md", *sorted({*(ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "storage.md"}))
    if CODE.search(page.read_text(encoding="utf-8"))
]
BY_DEFAULT = ("README", "quickstart", "python", "spark", "testing", "catalog")
# A story that begins with nothing. The blocks of each other page meet one table, as their reader does; the README's are
# samples.
STORY = "quickstart.md"
SAMPLES = "README.md"
AFTER_THE_STORY = ("windows.md",)
ON_SPARK = re.compile(r"^```python\n(?:(?!```).*\n)*?.*\b(spark|frame|stream)\b", re.MULTILINE)
S3 = "http://localhost:9000"
KAFKA = "localhost:9092"
TRACES = "localhost:4318"
COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("trip", pa.string(), nullable=False),
    pa.field("city", pa.string(), nullable=False),
    pa.field("fare", pa.float64()),
    pa.field("ended_at", pa.timestamp("us", "UTC")),
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    from eventide.spark.engine import spark_session

    # Workers in Python start where Spark has started; the directory of a test is gone by then.
    with chdir(tmp_path_factory.mktemp("spark")):
        session = spark_session("local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield session
    session.stop()


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=() if page.stem in BY_DEFAULT else pytest.mark.broad) for page in PAGES],
)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": page.stem, "rows": trips(("t8", "Oslo", "2026-03-03T09:00"))}
    (tmp_path / "var" / "lib" / "node_exporter").mkdir(parents=True)
    is_after = page.name in AFTER_THE_STORY
    if page.name != STORY:
        lay_files(tmp_path)
    if page.name not in (STORY, *AFTER_THE_STORY):
        lay_trips(tmp_path / "lake" / "trips")
    addresses = {S3: request.getfixturevalue("moto").endpoint} if is_after or S3 in text else {}
    if KAFKA in text:
        addresses[KAFKA] = request.getfixturevalue("kafka").address
    if TRACES in text:
        addresses[TRACES] = request.getfixturevalue("traces")
    commands, airflow = Commands(tmp_path, monkeypatch), Airflow()
    airflow.install(monkeypatch)
    spark_streams: list[SparkSession] = []

    def before() -> None:
        if page.name == SAMPLES:
            shutil.rmtree(tmp_path / "lake")
            lay_trips(tmp_path / "lake" / "trips")

    def after() -> None:
        for command in airflow.taken():
            commands.script(command, page.name)
        for session in spark_streams:
            end_streams(session)

    if is_after:
        DocumentedPage(page.with_name(STORY), tmp_path, commands, {"__name__": STORY}, addresses).run()
    if ON_SPARK.search(text):
        session: SparkSession = request.getfixturevalue("spark")
        names |= {"spark": session, "frame": session.createDataFrame(names["rows"].to_pandas())}
        names["stream"] = streamed(session, names["rows"], tmp_path)
        spark_streams.append(session)
    assert DocumentedPage(page, tmp_path, commands, names, addresses, before, after).run() > 0


@pytest.fixture
def traces() -> Iterator[str]:
    """The address of a receiver of traces. The page's traces reach it before it ends."""
    with trace_collector() as (port, taken):
        yield f"127.0.0.1:{port}"
        open_telemetry_spans._own_provider().shutdown()  # pyright: ignore[reportPrivateUsage]
        open_telemetry_spans._own_provider.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert taken


def trips(*rows: tuple[str, str, str]) -> pa.Table:
    """Trips by key, city and when they ended."""
    found = [(key, city, 10.0, datetime.fromisoformat(at).replace(tzinfo=UTC)) for key, city, at in rows]
    schema = pa.schema(COLUMNS)
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in found], schema=schema)


def lay_trips(path: Path) -> None:
    """The table that the pages are about: two cities, each with a base file, a log of Monday and one of Tuesday."""
    options = {"hoodie.bucket.index.num.buckets": 1, "hoodie.time.generator.max_expected_clock_skew_time_ms": 1}
    table = Table.create(
        str(path),
        schema=pa.schema(COLUMNS),
        record_key="trip",
        partition="city",
        event_time="ended_at",
        options=options,
    )
    table.upsert(trips(("t1", "Oslo", "2026-03-02T08:05"), ("t2", "Lima", "2026-03-02T09:10")))
    table.upsert(trips(("t3", "Oslo", "2026-03-02T17:20"), ("t4", "Lima", "2026-03-02T23:50")))
    table.upsert(trips(("t5", "Oslo", "2026-03-03T00:20"), ("t2", "Lima", "2026-03-03T07:35")))


def lay_files(directory: Path) -> None:
    """The files that the pages ingest; the quick start makes its own."""
    line = '{"trip": "t9", "city": "Lima", "fare": 8.0, "ended_at": "2026-03-03T11:00:00Z"}'
    (directory / "tuesday.jsonl.gz").write_bytes(gzip.compress(line.encode()))
    times = ("2026-03-02T08:05:00Z", "2026-03-02T09:10:00Z", "2026-03-02T17:20:00Z")
    rows = [f"t{number},Oslo,10.5,{time}" for number, time in enumerate(times, 10)]
    (directory / "monday.csv").write_text("\n".join(("trip,city,fare,ended_at", *rows, "")), encoding="utf-8")


def streamed(spark: "SparkSession", rows: pa.Table, directory: Path) -> Any:
    import pyarrow.parquet as pq

    (directory / "arriving").mkdir()
    pq.write_table(rows, directory / "arriving" / "1.parquet")
    schema = spark.read.parquet(str(directory / "arriving")).schema
    return spark.readStream.schema(schema).parquet(str(directory / "arriving"))


def end_streams(spark: "SparkSession") -> None:
    """What a block has started is let run through what has arrived, and ended."""
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()
