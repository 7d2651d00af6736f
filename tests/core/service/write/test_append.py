"""Writing to tables through the public face, on the local engine."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.writer import incoming_records
from eventide_adapters.storage.local import LocalStorage
from eventide_core.config import BUCKETS, INDEX_TYPE
from eventide_core.errors import (
    ConfigError,
    EventideError,
    InvalidColumnNameError,
    InvalidRecordError,
    UnsupportedTableError,
    WriteConflictError,
)
from eventide_core.ports import FileInfo, NoProgress
from eventide_core.table.files.bucket import BUCKET_INDEX_DIRECTORY
from eventide_core.table.settings.write_shape import WriteOperation
from support.tables.append import SCHEMA, START_MS, make, rows, seen
from support.values.columns import schema_of

LAYOUTS = [(6, "BUCKET"), (9, "BUCKET"), (6, "SIMPLE"), (9, "SIMPLE"), (9, "BLOOM")]


def files_of(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize(("version", "index"), LAYOUTS)
def test_upserts_and_deletes_reach_their_keys_wherever_they_live(version: int, index: str, tmp_path: Path) -> None:
    table = make(tmp_path / "t", version, index)
    table.bulk_insert(rows(*((f"k{i}", "ab"[i % 2], i, "base") for i in range(20))))
    table.upsert(rows(("k0", "a", 100, "new"), ("k1", "b", -5, "late"), ("k2", "b", 1, "same key, other partition")))
    table.upsert(rows(("k0", "a", 200, "newer"), ("k20", "a", 1, "twentieth")))
    result = table.delete(pa.table({"id": ["k4", "k0"], "part": ["a", "a"]}))
    table.delete(pa.table({"id": ["k6", "k8"], "part": ["a", "a"], "ms": [START_MS - 1, START_MS + 50]}))

    untouched = {(f"k{i}", "ab"[i % 2], i, "base") for i in range(20) if i not in (0, 1, 4, 6, 8)}
    expected = untouched | {
        ("k1", "b", 1, "base"),
        ("k2", "b", 1, "same key, other partition"),
        ("k6", "a", 6, "base"),
        ("k20", "a", 1, "twentieth"),
    }
    assert seen(table) == sorted(expected)
    assert (result.rows, result.deletes) == (2, 2)
    assert not [f for f in files_of(tmp_path) if "/.temp/" in f or "/.heartbeat/" in f or f.endswith("/lock")]


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE"])
def test_of_several_versions_of_a_key_in_one_upsert_the_latest_is_written(index: str, tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9, index)
    result = table.upsert(
        rows(("a", "p", 5, "late"), ("a", "p", 9, "wins"), ("b", "p", 1, "first"), ("b", "p", 1, "tie"))
    )
    assert result.upserts == 2
    assert seen(table) == [("a", "p", 9, "wins"), ("b", "p", 1, "tie")]


def test_an_insert_keeps_every_record_unless_combining_is_requested(tmp_path: Path) -> None:
    twice = rows(("a", "p", 1, "one"), ("a", "p", 2, "two"))
    kept = make(tmp_path / "kept", 9, "SIMPLE")
    kept.insert(twice)
    assert len(seen(kept)) == 2
    combined = make(tmp_path / "combined", 9, "SIMPLE", combine_before_insert="true")
    combined.insert(twice)
    assert seen(combined) == [("a", "p", 2, "two")]


def test_a_record_marked_as_deleted_deletes_in_its_order(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = Table.create(
        str(tmp_path / "t"), schema=schema, record_key="id", partition="part", event_time="ms", options={BUCKETS: 1}
    )
    plain = rows(("a", "p", 5, "a"), ("b", "p", 5, "b")).append_column(schema.field(4), pa.array([False, None]))
    table.upsert(plain)
    marked = rows(("a", "p", 3, "too early"), ("b", "p", 7, "")).append_column(schema.field(4), pa.array([True, True]))
    assert table.upsert(marked).deletes == 2
    assert seen(table) == [("a", "p", 5, "a")]


def test_the_schema_grows_with_what_is_written(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("a", "p", 1, "old"), ("b", "p", 1, "old")))
    nulled = Table.open(tmp_path / "t", {"hoodie.write.set.null.for.missing.columns": "true"})
    more = pa.table({"id": ["a"], "part": ["p"], "ms": [START_MS + 2], "more": [7]})
    result = nulled.upsert(more, schema_mode="merge")
    assert (result.added_columns, result.widened_columns) == (("more",), ())
    values = {row["id"]: (row["word"], row["more"]) for row in table.snapshot().to_arrow().to_pylist()}
    assert values == {"a": (None, 7), "b": ("old", None)}


def test_a_table_ordered_by_commit_takes_null_event_times_and_compacts_them(tmp_path: Path) -> None:
    table = make(tmp_path / "t", write_record_merge_mode="COMMIT_TIME_ORDERING")
    table.upsert(rows(("a", "p", 1, "base")))
    table.upsert(rows(("a", "p", 1, "no time")).set_column(2, SCHEMA.field("ms"), pa.nulls(1, pa.int64())))
    table.upsert(rows(("a", "p", 9, "left over")))
    assert table.freshness().unknown_event_time_records == 1
    table.compact(table.plan_compaction(START_MS + 5))
    (row,) = table.read_optimized().to_arrow().to_pylist()
    assert (row["word"], row["ms"]) == ("no time", None)
    assert seen(table) == [("a", "p", 9, "left over")]


@pytest.mark.parametrize(
    ("write", "error", "said"),
    [
        (
            lambda t: t.upsert(rows(("a", "p", 1, "x")).drop_columns(["ms"])),
            InvalidRecordError,
            "records without the column 'ms'",
        ),
        (
            lambda t: t.upsert(rows(("a", "p", 1, "x")).append_column("more", pa.array([1]))),
            InvalidRecordError,
            "the table has no column 'more'",
        ),
        (
            lambda t: t.upsert(
                rows(("a", "p", 1, "x")).rename_columns(["id", "part", "ms", "Word"]), schema_mode="merge"
            ),
            InvalidColumnNameError,
            "rename it to 'word'",
        ),
        (
            lambda t: t.upsert(rows(("a", "p", 1, "x")), schema_mode="append"),
            ConfigError,
            "eventide.write.schema.mode",
        ),
        (
            lambda t: t.upsert(pa.table({"part": ["p"], "ms": [1]})),
            InvalidRecordError,
            "records without the column 'id'",
        ),
        (
            lambda t: t.upsert(pa.table({"id": ["a"], "ms": [1]})),
            InvalidRecordError,
            "records without the column 'part'",
        ),
        (
            lambda t: t.upsert(pa.table({"id": ["a", None], "part": ["p", "p"], "ms": [1, 1], "word": ["x", "x"]})),
            InvalidRecordError,
            "row 1: record key field 'id' is null",
        ),
        (
            lambda t: t.upsert(pa.table({"id": ["a"], "part": ["p"], "ms": ["soon"], "word": ["x"]})),
            InvalidRecordError,
            "column 'ms' of type string does not fit the table's int64: .*soon",
        ),
        (lambda t: t.upsert(rows(("", "p", 1, "x"))), InvalidRecordError, "record key field 'id' is empty"),
        (lambda t: t.upsert(rows(("a:1", "p", 1, "x"))), EventideError, "a:1"),
        (lambda t: t.upsert(rows(("a", "../p", 1, "x"))), InvalidRecordError, "partition field 'part'"),
        (lambda t: t.delete(pa.table({"id": ["a"]})), InvalidRecordError, "without the column 'part'"),
        (lambda t: t.upsert([{"id": "a"}]), InvalidRecordError, "Arrow table"),
    ],
)
def test_bad_records_are_refused_before_anything_is_written(
    write: Callable[[Table], object], error: type[Exception], said: str, tmp_path: Path
) -> None:
    table = make(tmp_path / "t")
    before = files_of(tmp_path)
    with pytest.raises(error, match=said):
        write(table)
    assert files_of(tmp_path) == before


def test_a_table_of_consistent_hashing_is_left_to_hudi(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9, "SIMPLE")
    table.upsert(rows(("a", "p", 1, "one")))
    settings = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    lines = settings.read_text().splitlines(keepends=True)
    settings.write_text("".join(line for line in lines if not line.startswith(INDEX_TYPE)))
    table.upsert(rows(("a", "p", 2, "two")))
    hashing = tmp_path / "t" / BUCKET_INDEX_DIRECTORY / "consistent_hashing_metadata" / "p"
    hashing.mkdir(parents=True)
    (hashing / "00000000000000.hashing_meta").write_text("{}")
    before = files_of(tmp_path)
    with pytest.raises(UnsupportedTableError, match=r"consistent_hashing_metadata: .*CONSISTENT_HASHING"):
        Table.open(table.uri).upsert(rows(("a", "p", 3, "three")))
    assert files_of(tmp_path) == before


def test_a_table_is_created_once(tmp_path: Path) -> None:
    make(tmp_path / "t")
    with pytest.raises(ConfigError, match="is already a Hudi table"):
        make(tmp_path / "t")


def test_of_two_writes_of_one_file_group_the_slower_is_refused_and_never_seen(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("a", "p", 1, "base")))
    slow = assemble(table.uri, table.options)
    records = incoming_records(slow, WriteOperation.UPSERT, rows(("a", "p", 3, "slower")))
    pending = slow.append.begin(WriteOperation.UPSERT, records, NoProgress())
    table.upsert(rows(("a", "p", 2, "faster")))
    with pytest.raises(WriteConflictError, match="write again"):
        slow.append.complete(pending)
    assert seen(table) == [("a", "p", 2, "faster")]
    table.upsert(rows(("a", "p", 4, "again")))
    assert seen(table) == [("a", "p", 4, "again")]


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
@pytest.mark.parametrize("version", [6, 9])
def test_a_log_file_of_full_size_ends_and_the_next_version_continues(
    version: int, block_format: str, tmp_path: Path
) -> None:
    table = make(tmp_path / "t", version, logfile_max_size=200, logfile_data_block_format=block_format)
    table.insert(rows(*((f"k{i}", "p", i, "base") for i in range(40))))
    result = table.upsert(rows(*((f"k{i}", "p", 100 + i, "x" * 20) for i in range(40))))
    table.delete(pa.table({"id": ["k1"], "part": ["p"]}))
    state = table.state()
    for file_slice in state.view.latest_slices():
        versions = [log.name.version for log in file_slice.log_files if file_slice.base_instant < result.instant]
        assert len(versions) > 2
        if version == 6:
            assert versions == list(range(1, len(versions) + 1))
    stats = state.commits[result.instant].stats
    assert sum(stat.num_writes for stat in stats) == 40
    ranges = [
        (s.min_event_time_ms, s.max_event_time_ms) for s in sorted(stats, key=lambda s: (s.file_id, s.log_version))
    ]
    assert min(least for least, _ in ranges if least is not None) == START_MS + 100
    assert len(set(ranges)) == len(ranges), "each file has a range of its own"

    expected = seen(table)
    assert expected == sorted((f"k{i}", "p", 100 + i, "x" * 20) for i in range(40) if i != 1)
    plan = table.plan_compaction(START_MS + 120)
    assert any(operation.left_overs for operation in plan.operations)
    table.compact(plan)
    assert seen(table) == expected


def test_keys_of_several_fields_and_partitions_by_time_are_hudis(tmp_path: Path) -> None:
    schema = schema_of(id=pa.int32(), kind=pa.string(), ms=pa.int64())
    times = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    table = Table.create(
        str(tmp_path / "t"),
        schema=schema,
        record_key=["id", "kind"],
        partition="ms",
        ordering="ms",
        options={BUCKETS: 2, "hoodie.datasource.write.hive_style_partitioning": "false", **times},
    )
    table.upsert(pa.table({"id": [1, 1], "kind": ["a", "b"], "ms": [START_MS, START_MS + 86_400_000]}, schema=schema))
    shown = Table.open(table.uri).snapshot().to_arrow().to_pylist()
    assert sorted((row["_hoodie_record_key"], row["_hoodie_partition_path"]) for row in shown) == [
        ("id:1,kind:a", "2023/11/14"),
        ("id:1,kind:b", "2023/11/15"),
    ]
    table.delete(pa.table({"id": [1], "kind": ["a"], "ms": [START_MS]}))
    assert Table.open(table.uri).snapshot().to_arrow().num_rows == 1


def test_a_key_generator_that_is_named_must_be_what_the_fields_make(tmp_path: Path) -> None:
    given: dict[str, Any] = {"schema": SCHEMA, "record_key": "id", "partition": "part", "ordering": "ms"}
    generator = "hoodie.datasource.write.keygenerator.class"
    for wrong, said in (
        ("NonpartitionedKeyGenerator", "make a .*SimpleKeyGenerator"),
        ("MyKeys", "'MyKeys' is not one of"),
    ):
        with pytest.raises(ConfigError, match=said):
            Table.create(str(tmp_path / "t"), **given, options={generator: wrong})
    with pytest.raises(ConfigError, match="use version 9"):
        Table.create(str(tmp_path / "t"), **given, version=6, options={generator: "a.b.ComplexKeyGenerator"})
    with pytest.raises(UnsupportedTableError, match="HBASE"):
        Table.create(str(tmp_path / "t"), **given, options={INDEX_TYPE: "HBASE"})
    table = Table.create(str(tmp_path / "t"), **given, options={generator: "a.b.ComplexKeyGenerator", BUCKETS: 1})
    table.upsert(rows(("a", "p", 1, "x")))
    table.upsert(rows(("a", "p", 2, "y")))
    assert table.snapshot().to_arrow().column("_hoodie_record_key").to_pylist() == ["id:a"]


def test_a_partition_path_may_be_made_of_a_value_and_a_time(tmp_path: Path) -> None:
    times = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }
    given: dict[str, Any] = {
        "schema": SCHEMA,
        "record_key": "id",
        "ordering": "ms",
        "partition": "part:SIMPLE,ms:timestamp",
    }
    with pytest.raises(ConfigError, match="timebased"):
        Table.create(str(tmp_path / "t"), **given, options={BUCKETS: 2})
    with pytest.raises(ConfigError, match="partition field 'ms': state the kind of each field"):
        Table.create(str(tmp_path / "t"), **{**given, "partition": "part:SIMPLE,ms"}, options={BUCKETS: 2, **times})
    with pytest.raises(ConfigError, match="use version 9"):
        Table.create(str(tmp_path / "t"), **given, version=6, options={BUCKETS: 2, **times})
    Table.create(str(tmp_path / "t"), **given, options={BUCKETS: 2, **times})
    table = Table.open(str(tmp_path / "t"))
    table.upsert(rows(("a", "p", 0, "one"), ("b", "p", 86_400_000, "two")))
    shown = table.snapshot().to_arrow().to_pylist()
    assert sorted((row["_hoodie_record_key"], row["_hoodie_partition_path"]) for row in shown) == [
        ("a", "part=p/ms=2023-11-14"),
        ("b", "part=p/ms=2023-11-15"),
    ]
    assert "hoodie.table.keygenerator.type=CUSTOM" in (tmp_path / "t/.hoodie/hoodie.properties").read_text()


def test_a_table_that_never_had_a_column_takes_those_of_the_rows(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9, "BUCKET")
    settings = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    without = [line for line in settings.read_text().splitlines() if not line.startswith("hoodie.table.create.schema")]
    settings.write_text("\n".join(without) + "\n")
    table.rollback(table.upsert(rows(("k0", "a", 1, "undone"))).instant)
    with pytest.raises(UnsupportedTableError, match="no commit on the timeline contains the table's schema"):
        table.delete(pa.table({"id": ["k0"], "part": ["a"]}))
    table.upsert(rows(("k1", "a", 1, "first")))
    assert seen(table) == [("k1", "a", 1, "first")]


def test_a_state_that_was_loaded_before_a_plan_was_rolled_back_is_loaded_again(tmp_path: Path) -> None:
    """An update reads its rows for a long time, and writes by the state that it read them from."""
    table = make(tmp_path / "t", 9)
    for ms in (0, 1):
        table.upsert(rows(("k0", "a", ms, "first")))
    table.schedule(table.plan_compaction(START_MS + 9))
    (plan,) = table.state().timeline.pending_plans
    application = assemble(table.uri, {})
    known = application.state()
    table.rollback(plan.requested_time)
    records = incoming_records(application, WriteOperation.UPSERT, rows(("k0", "a", 2, "second")))
    replace(application.append, known=known).write(WriteOperation.UPSERT, records, NoProgress())
    assert seen(table) == [("k0", "a", 2, "second")]


class _Listing(LocalStorage):
    """Notes which directories are listed."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.listed: list[str] = []

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        self.listed.append(directory)
        return super().list(directory)


def test_a_write_lists_the_partitions_again_only_if_others_wrote_meanwhile(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", "a", 1, "first")))
    for others in ((), (("k1", "a", 1, "others"),)):
        storage = _Listing(table.uri)
        application = assemble(table.uri, {}, storage=storage)
        known = application.state()
        if others:
            table.upsert(rows(*others))
        records = incoming_records(application, WriteOperation.UPSERT, rows(("k0", "a", 2, "second")))
        replace(application.append, known=known).write(WriteOperation.UPSERT, records, NoProgress())
        assert storage.listed.count("part=a") == (2 if others else 1)
    assert seen(table) == [("k0", "a", 2, "second"), ("k1", "a", 1, "others")]


def test_settings_that_were_changed_since_a_state_was_loaded_are_checked_again(tmp_path: Path) -> None:
    """An update reads its rows for a long time; meanwhile the table begins to capture changes, which eventide refuses."""
    table = make(tmp_path / "t", 9, "SIMPLE")
    table.upsert(rows(("k0", "a", 1, "first")))
    application = assemble(table.uri, {})
    known = application.state()
    with (tmp_path / "t/.hoodie/hoodie.properties").open("a") as settings:
        settings.write("hoodie.table.cdc.enabled=true\n")
    records = incoming_records(application, WriteOperation.UPSERT, rows(("k0", "a", 2, "second")))
    with pytest.raises(UnsupportedTableError, match=r"cdc\.enabled=true"):
        replace(application.append, known=known).write(WriteOperation.UPSERT, records, NoProgress())
    assert not Table.open(table.uri).state().timeline.pending
