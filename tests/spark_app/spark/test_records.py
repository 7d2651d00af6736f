"""Writing DataFrames makes the same tables as writing the same rows in Arrow."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from eventide import Table
from eventide.spark.types import arrow_schema_of
from eventide_adapters.format.metadata_table import group_records
from eventide_adapters.format.metadata_table.file_contents import Question
from eventide_adapters.format.metadata_table.group_records import GroupRecords, LogForm
from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_adapters.storage.local import LocalStorage
from eventide_core.config import (
    BLOOM_ENTRIES,
    BUCKETS,
    EVENT_TIME_FORMAT,
    EVENT_TIME_ZONE,
    INDEX_TYPE,
    PARQUET_MAX_FILE_SIZE,
    RECORD_SIZE_ESTIMATE,
)
from eventide_core.errors import EngineError, InvalidRecordError
from eventide_core.ports import Storage
from support.pasts.indexed import OPTIONS, indexed, own_rows, with_ids
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), part=pa.string(), ms=pa.int64(), word=pa.string())
START_MS = 1_700_000_000_000
SMALL_FILES: dict[str, object] = {BLOOM_ENTRIES: 100, PARQUET_MAX_FILE_SIZE: 1000, RECORD_SIZE_ESTIMATE: 50}


def rows(*values: tuple[str, str, int, str]) -> pa.Table:
    shifted = [(key, part, START_MS + ms, word) for key, part, ms, word in values]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in shifted], schema=SCHEMA)


def kept_by(spark: SparkSession) -> int:
    """The number of DataFrames that Spark keeps."""
    context: Any = spark.sparkContext
    size: int = context._jsc.getPersistentRDDs().size()
    return size


def seen(table: Table) -> list[tuple[object, ...]]:
    found = table.snapshot().to_arrow()
    own = ["_hoodie_record_key", "_hoodie_partition_path", *SCHEMA.names]
    return sorted(tuple(row.values()) for row in found.select(own).to_pylist())


@pytest.mark.parametrize(
    ("version", "index", "left"),
    [
        pytest.param(9, "BUCKET", 60, marks=pytest.mark.broad),
        pytest.param(6, "SIMPLE", 60, marks=pytest.mark.proof),
        pytest.param(9, "GLOBAL_SIMPLE", 59, marks=pytest.mark.proof),
    ],
)
def test_a_data_frame_makes_the_table_that_arrow_makes(
    version: int, index: str, left: int, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.spark.records._TASK_BYTES", 1000)  # so that several tasks write, after a shuffle
    base = rows(*((f"k{i}", "ab"[i % 2], i, "base") for i in range(60)))
    changes = rows(
        *((f"k{i}", "ab"[i % 2], 100 + i % 3, f"new {i}") for i in range(0, 30, 3)),
        ("k0", "a", 50, "an earlier version in the same write"),
        ("k1", "a", 1, "same key, other partition"),
        ("k99", "c", 1, "new partition"),
    )
    keys = pa.table({"id": ["k2", "k3", "k777"], "part": ["a", "b", "a"]})
    tables = {}
    for name in ("arrow", "spark"):
        options: dict[str, object] = {**SMALL_FILES, INDEX_TYPE: index, **({BUCKETS: 2} if index == "BUCKET" else {})}
        tables[name] = Table.create(
            str(tmp_path / name),
            schema=SCHEMA,
            record_key="id",
            partition="part",
            event_time="ms",
            version=version,
            options=options,
        )
    told = []
    for name, table in tables.items():
        given = [part if name == "arrow" else spark.createDataFrame(part) for part in (base, changes, keys)]
        results = table.bulk_insert(given[0]), table.upsert(given[1]), table.delete(given[2])
        told.append([(result.upserts, result.deletes, result.files) for result in results])
    assert told[0] == told[1]
    assert seen(tables["arrow"]) == seen(tables["spark"])
    assert len(seen(tables["spark"])) == left
    tables["spark"] = Table.open(tables["spark"].uri, engine=spark)
    deletes = [table.delete(where="ms >= 101 or part = 'c'").deletes for table in tables.values()]
    assert deletes[0] == deletes[1] > 0
    assert seen(tables["arrow"]) == seen(tables["spark"])


@pytest.mark.broad
@pytest.mark.parametrize("name", ["v9_mdt", pytest.param("v6_mdt", marks=pytest.mark.proof)])
def test_a_data_frame_is_placed_by_the_record_index_as_arrow_is(
    name: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*_: object, **__: object) -> None:
        raise AssertionError("the index has every key")

    options = {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"}
    told, shown = [], []
    for engine in ("arrow", "spark"):
        path = indexed(name, tmp_path / engine, record_index_groups=3)
        plain = Table.open(str(path), OPTIONS)
        rows = own_rows(plain)
        plain.upsert(rows)
        table = Table.open(str(path), {**OPTIONS, **options})
        parts: Any = pa.array(["a", "b", "a", "b", "new", "new"])
        late: Any = pa.array([2**52] * 3 + [1] * 3, pa.int64())  # the last three lose
        changed = rows.slice(0, 6).set_column(rows.schema.get_field_index("part"), "part", parts)
        changed = changed.set_column(rows.schema.get_field_index("event_ts"), "event_ts", late)
        changes = pa.concat_tables([changed, with_ids(changed, "new"), changed.slice(0, 2)])
        keys = pa.table({"id": ["k00007", "new1", "none"], "part": ["a", "new", "a"]})
        given = [changes, keys] if engine == "arrow" else [spark.createDataFrame(part) for part in (changes, keys)]
        monkeypatch.setattr("eventide.spark.records.placed_by_key", search)
        results = table.upsert(given[0]), table.delete(given[1])
        told.append([(result.upserts, result.deletes) for result in results])
        columns = ["_hoodie_record_key", "_hoodie_partition_path", "event_ts"]
        shown.append(sorted(tuple(row.values()) for row in table.snapshot().to_arrow().select(columns).to_pylist()))
    assert told[0] == told[1]
    assert shown[0] == shown[1]
    assert ("k00002", "part=a", 2**52) in shown[1]


@pytest.mark.parametrize("is_staged", [False, True])
def test_the_driver_reads_no_file_that_a_data_frame_was_written_to(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, is_staged: bool
) -> None:
    driver, answer, encode = os.getpid(), Question.answer, GroupRecords.encoded

    def answered(question: Question, storage: Storage) -> Any:
        assert os.getpid() != driver
        return answer(question, storage)

    def encoded(records: GroupRecords, form: LogForm) -> tuple[int, bytes]:
        assert os.getpid() != driver
        return encode(records, form)

    path = indexed("v9_mdt", tmp_path, record_index_groups=2)
    table = Table.open(path, OPTIONS)
    rows = with_ids(own_rows(table).slice(0, 4), "new")
    monkeypatch.setattr(Question, "answer", answered)
    monkeypatch.setattr(GroupRecords, "encoded", encoded)
    monkeypatch.setattr(group_records, "STAGED_ABOVE_BYTES" if is_staged else "ENCODED_HERE", 0)
    assert table.upsert(spark.createDataFrame(rows)).upserts == 4
    index = HudiMetadataTable(LocalStorage(path)).load().record_index()
    assert index is not None
    assert sum(len(index.locate(number, [f"new{at}" for at in range(4)])) for number in range(2)) == 4


@pytest.mark.parametrize("index", ["BUCKET", pytest.param("SIMPLE", marks=pytest.mark.broad)])
def test_a_bad_record_of_a_data_frame_is_a_typed_error_and_nothing_is_written(
    index: str, tmp_path: Path, spark: SparkSession
) -> None:
    words: Any = {"record_key": "id", "partition": "part", "event_time": "ms", "options": {INDEX_TYPE: index}}
    table = Table.create(str(tmp_path), schema=SCHEMA, **words)
    frame = spark.createDataFrame([("a", "p", None, "x")], "id string, part string, ms long, word string")
    with pytest.raises(InvalidRecordError, match="ordering field 'ms' is null"):
        table.upsert(frame)
    # The buckets of keys are known before a write begins. To look keys up, it has to begin, and is rolled back.
    left = [
        file.name for file in tmp_path.glob(".hoodie/timeline/*") if index == "BUCKET" or ".rollback" not in file.name
    ]
    assert not left
    assert not list(tmp_path.rglob("*.parquet")) + list(tmp_path.rglob(".*.log.*"))
    assert kept_by(spark) == 0


@pytest.mark.parametrize("task_bytes", [1, 1 << 30])
def test_the_last_of_equal_versions_in_a_data_frame_is_kept(
    task_bytes: int, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.spark.records._TASK_BYTES", task_bytes)
    words: Any = {"record_key": "id", "partition": "part", "event_time": "ms", "options": {BUCKETS: 2}}
    table = Table.create(str(tmp_path), schema=SCHEMA, **words)
    table.upsert(rows(*((f"k{key}", "ab"[key % 2], 0, "base") for key in range(8))))
    versions = [
        spark.createDataFrame(rows(*((f"k{key}", "ab"[key % 2], 1, word) for key in range(8)))).coalesce(1)
        for word in ("first", "second", "third")
    ]
    table.upsert(versions[0].union(versions[2]).union(versions[1]))
    assert [row[-1] for row in seen(table)] == ["second"] * 8


def test_timestamps_are_in_utc_by_every_pyspark(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    """From 4.3 on PySpark asserts that the caller names the zone; before, it has no such parameter."""

    def of_43(schema: StructType, *, timezone: str | None = None) -> pa.Schema:
        assert timezone is not None
        return pa.schema([pa.field(name, pa.timestamp("us", tz=timezone)) for name in schema.names])

    schema = spark.createDataFrame([], "at timestamp").schema
    expected = pa.schema([pa.field("at", pa.timestamp("us", tz="UTC"))])
    assert arrow_schema_of(schema) == expected
    monkeypatch.setattr("pyspark.sql.pandas.types.to_arrow_schema", of_43)
    assert arrow_schema_of(schema) == expected


def test_records_that_change_while_they_are_written_end_the_write(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when an executor dies whose rows Spark computes again, from a source that gives others now."""
    computed = tmp_path / "computed"
    computed.mkdir()

    def others_each_time(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            number = len(list(computed.iterdir()))
            (computed / str(number)).touch()
            yield pa.RecordBatch.from_pylist([{"id": "k", "part": f"p{number}", "ms": START_MS, "word": "w"}], SCHEMA)

    words: Any = {"record_key": "id", "partition": "part", "event_time": "ms", "options": {BUCKETS: 2}}
    table = Table.create(str(tmp_path / "table"), schema=SCHEMA, **words)
    frame = spark.range(0, 1, 1, 1).mapInArrow(others_each_time, "id string, part string, ms long, word string")
    monkeypatch.setattr(type(frame), "persist", lambda kept: kept)
    with pytest.raises(EngineError, match="key 'k' is new"):
        table.upsert(frame)
    assert seen(table) == []
    assert table.state().timeline.writes == ()


@pytest.mark.parametrize(
    "index",
    [pytest.param("BUCKET", marks=pytest.mark.broad), "SIMPLE", pytest.param("GLOBAL_SIMPLE", marks=pytest.mark.broad)],
)
def test_the_rows_of_a_data_frame_are_computed_once_and_not_kept(
    index: str, tmp_path: Path, spark: SparkSession
) -> None:
    computed = tmp_path / "computed"
    computed.mkdir()

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (computed / str(uuid4())).touch()
        yield from batches

    words: Any = {"record_key": "id", "partition": "part", "event_time": "ms", "options": {INDEX_TYPE: index}}
    table = Table.create(str(tmp_path / "table"), schema=SCHEMA, **words)
    table.upsert(rows(("k1", "a", 1, "old")))
    frame = spark.createDataFrame(rows(("k1", "a", 2, "new"), ("k2", "b", 2, "new"))).coalesce(1)
    table.upsert(frame.mapInArrow(counted, "id string, part string, ms long, word string"))
    assert len(list(computed.iterdir())) == 1
    assert kept_by(spark) == 0


def test_texts_of_event_times_are_read_on_executors_as_the_table_says(tmp_path: Path, spark: SparkSession) -> None:
    said: dict[str, Any] = {EVENT_TIME_ZONE: "America/New_York", EVENT_TIME_FORMAT: "MM/dd/yyyy HH:mm", BUCKETS: 1}
    table = Table.create(
        str(tmp_path / "t"),
        schema=schema_of(id=pa.string(), at=pa.string()),
        record_key="id",
        event_time="at",
        options=said,
    )
    for number in range(2):
        frame = spark.createDataFrame(
            [(str(key), f"11/2{number}/2026 03:00") for key in range(4)], "id string, at string"
        )
        table.upsert(frame)
    assert table.freshness().earliest_log_event_time_ms == 1_795_248_000_000
    assert table.freshness().unreadable_event_time_records == 0
    with pytest.raises(InvalidRecordError, match=r"'2026-11-20 03:00:00' in column 'at' cannot be read"):
        table.upsert(spark.createDataFrame([("k", "2026-11-20 03:00:00")], "id string, at string"))


@pytest.mark.broad
def test_sanitized_names_reach_the_fields_of_columns_from_spark(spark: "SparkSession", tmp_path: Path) -> None:
    """In structs, arrays and maps, as from Arrow; the values stay, nulls as well."""
    frame = spark.createDataFrame(
        [(1, (1, [("x",)]), {"m n": (2,)}), (2, None, None)],
        "k int, `s t` struct<`a b`: int, `c-d`: array<struct<`e f`: string>>>, m map<string, struct<`g.h`: int>>",
    )
    table = Table.create(
        str(tmp_path / "t"),
        schema=frame.schema,
        record_key="k",
        sanitize=True,
        options={"hoodie.bucket.index.num.buckets": 1},
    )
    table.upsert(frame)
    shown = sorted(table.snapshot().to_arrow(["k", "s__t", "m"]).to_pylist(), key=lambda row: row["k"])
    assert shown == [
        {"k": 1, "s__t": {"a__b": 1, "c__d": [{"e__f": "x"}]}, "m": [("m n", {"g__h": 2})]},
        {"k": 2, "s__t": None, "m": None},
    ]
