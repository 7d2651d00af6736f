"""Writing to tables whose keys are looked up in files: which file group new keys go to, and keys that move."""

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.writer import incoming_records
from eventide_core.errors import (
    ConfigError,
    EventideError,
    InvalidRecordError,
    WriteConflictError,
)
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from support.tables.append import START_MS, make, rows, seen
from support.values.columns import schema_of

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  a local timestamp has no zone


@pytest.mark.parametrize(
    ("version", "index", "moves"),
    [(6, "GLOBAL_SIMPLE", True), (9, "GLOBAL_BLOOM", True), (9, "GLOBAL_SIMPLE", False), (9, "RECORD_INDEX", False)],
)
def test_under_a_global_index_a_key_lives_in_one_partition(
    version: int, index: str, moves: bool, tmp_path: Path
) -> None:
    table = make(tmp_path / "t", version, index, simple_index_update_partition_path=str(moves).lower())
    table.insert(rows(("a", "p", 1, "base"), ("b", "p", 5, "base"), ("c", "q", 5, "base"), ("d", "q", 5, "base")))
    table.upsert(
        rows(
            ("a", "q", 3, "moved"),
            ("b", "q", 2, "too late to move"),
            ("c", "q", 6, "same"),
            ("e", "q", 1, "an older version in the same write"),
            ("e", "p", 2, "new"),
        )
    )
    at = {row["id"]: row["_hoodie_partition_path"] for row in table.snapshot().to_arrow().to_pylist()}
    assert at == {"a": "part=q" if moves else "part=p", "b": "part=p", "c": "part=q", "d": "part=q", "e": "part=p"}
    assert seen(table) == [
        ("a", "q", 3, "moved"),
        ("b", "p", 5, "base"),
        ("c", "q", 6, "same"),
        ("d", "q", 5, "base"),
        ("e", "p", 2, "new"),
    ]

    table.upsert(rows(("a", "p", 4, "back")))
    assert seen(table)[0] == ("a", "p", 4, "back")
    table.compact(table.plan_compaction(START_MS + 1000))
    table.upsert(rows(("a", "q", 7, "and off again")))
    result = table.delete(pa.table({"id": ["c", "b", "z"], "part": ["p", "q", "p"]}))
    assert result.deletes == 2, "a delete finds its key in whatever partition"
    assert [row[0] for row in seen(table)] == ["a", "d", "e"]
    assert seen(table)[0] == ("a", "q", 7, "and off again")


def test_under_a_global_index_writes_of_one_new_key_conflict_in_any_partitions(
    tmp_path: Path,
) -> None:
    table = make(tmp_path / "t", 9, "GLOBAL_SIMPLE")
    slow = assemble(table.uri, table.options)
    records = incoming_records(slow, WriteOperation.UPSERT, rows(("a", "p", 3, "slower")))
    pending = slow.append.begin(WriteOperation.UPSERT, records, NoProgress())
    table.upsert(rows(("a", "q", 2, "faster")))
    with pytest.raises(WriteConflictError, match="write again"):
        slow.append.complete(pending)
    table.upsert(rows(("a", "p", 3, "again")))
    assert seen(table) == [("a", "p", 3, "again")]


def test_an_insert_may_leave_out_or_refuse_keys_that_the_table_has(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9, "SIMPLE")
    table.insert(rows(("a", "p", 1, "base")))
    again = rows(("a", "p", 2, "again"), ("a", "q", 1, "elsewhere"), ("b", "p", 1, "new"), ("b", "p", 2, "newer"))
    fails = Table.open(table.uri, {**table.options, "hoodie.datasource.insert.dup.policy": "fail"})
    with pytest.raises(InvalidRecordError, match=r"already has the keys of 1 record, the first in partition 'part=p'"):
        fails.insert(again)
    assert seen(table) == [("a", "p", 1, "base")]
    drops = Table.open(table.uri, {**table.options, "hoodie.datasource.write.insert.drop.duplicates": "true"})
    assert drops.insert(again).upserts == 2
    assert seen(table) == [("a", "p", 1, "base"), ("a", "q", 1, "elsewhere"), ("b", "p", 2, "newer")]
    bucket = make(tmp_path / "bucket", 9, datasource_insert_dup_policy="drop")
    with pytest.raises(ConfigError, match="use upsert"):
        bucket.insert(again)


@pytest.mark.parametrize("version", [6, 9])
def test_new_keys_fill_up_a_small_base_file_which_keeps_its_rows(version: int, tmp_path: Path) -> None:
    table = make(tmp_path / "t", version, "SIMPLE")
    first = table.insert(rows(("a", "p", 1, "base"), ("b", "p", 2, "base")))
    second = table.upsert(rows(("c", "p", 3, "new")))
    assert (second.upserts, second.files) == (1, 1)
    third = table.insert(rows(("d", "p", 4, "new"), ("d", "p", 5, "twice, as inserts may")))
    assert (third.upserts, third.files) == (2, 1)
    (file_slice,) = table.state().view.latest_slices()
    assert (file_slice.base_instant, file_slice.log_files) == (third.instant, ())
    assert len(table.read_optimized().to_arrow()) == 5
    changed = table.incremental(first.instant if version == 6 else completion(table, first.instant)).to_arrow()
    assert sorted(row["id"] for row in changed.to_pylist()) == ["c", "d", "d"]
    shown = table.snapshot().to_arrow()
    assert set(shown.column("_hoodie_file_name").to_pylist()) == {
        str(file_slice.base_file and file_slice.base_file.name)
    }
    assert table.as_of(second.instant).to_arrow().num_rows == 3

    table.upsert(rows(("a", "p", 9, "in a log"), ("e", "p", 9, "beside it")))
    assert [len(s.log_files) for s in table.state().view.latest_slices()] in ([0, 1], [1, 0])
    table.upsert(rows(("f", "p", 10, "beside it, too")))
    expected = [
        ("a", "p", 9, "in a log"),
        ("b", "p", 2, "base"),
        ("c", "p", 3, "new"),
        ("d", "p", 4, "new"),
        ("d", "p", 5, "twice, as inserts may"),
        ("e", "p", 9, "beside it"),
        ("f", "p", 10, "beside it, too"),
    ]
    assert seen(table) == expected
    assert len(table.state().view.latest_slices()) == 2
    table.compact(table.plan_compaction(START_MS + 1000))
    assert seen(table) == expected


def test_a_base_file_that_is_filled_up_keeps_the_form_of_its_local_timestamps(tmp_path: Path) -> None:
    """Numbers, as in Hudi before 1.1."""
    schema = schema_of(id=pa.string(), part=pa.string(), ms=pa.int64(), local=pa.timestamp("us"))
    uri = str(tmp_path / "t")
    options = {"hoodie.index.type": "SIMPLE"}
    table = Table.create(
        uri, schema=schema, record_key="id", partition="part", event_time="ms", version=9, options=options
    )

    def insert(key: str) -> Path:
        table.insert(pa.Table.from_pylist([{"id": key, "part": "p", "ms": START_MS, "local": EPOCH}], schema=schema))
        (file_slice,) = table.state().view.latest_slices()
        assert file_slice.base_file is not None
        return tmp_path / "t" / file_slice.base_file.path

    first = insert("a")
    numbers = pq.read_table(first, partitioning=None)
    place = numbers.schema.get_field_index("local")
    pq.write_table(numbers.set_column(place, "local", numbers.column(place).cast(pa.int64())), first)
    second = pq.read_table(insert("b"), partitioning=None)
    assert second.schema.field("local").type == pa.int64()
    assert {row["id"]: row["local"] for row in table.snapshot().to_arrow().to_pylist()} == {"a": EPOCH, "b": EPOCH}


def completion(table: Table, instant: str) -> str:
    completed = table.state().timeline.find(instant)
    assert completed is not None
    assert completed.completion_time is not None
    return completed.completion_time


def test_a_write_that_filled_a_base_file_up_is_rolled_back_to_the_old_one(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9, "SIMPLE")
    table.insert(rows(("a", "p", 1, "base")))
    dying = assemble(table.uri, table.options)
    records = incoming_records(dying, WriteOperation.UPSERT, rows(("b", "p", 2, "never")))
    pending = dying.append.begin(WriteOperation.UPSERT, records, NoProgress())
    dying.heartbeats.stop(pending.instant)
    assert seen(table) == [("a", "p", 1, "base")]
    with pytest.raises(EventideError, match="alive"):
        table.rollback(pending.instant)
    late = Table.open(table.uri, {**table.options, "hoodie.client.heartbeat.interval_in_ms": "0"})
    assert any(path.endswith(f"_{pending.instant}.parquet") for path in late.rollback(pending.instant))
    last = table.upsert(rows(("c", "p", 3, "new")))
    assert seen(table) == [("a", "p", 1, "base"), ("c", "p", 3, "new")]
    table.rollback(last.instant)
    assert seen(table) == [("a", "p", 1, "base")]
