"""The rows that a query sees of one slice."""

import pickle
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import CorruptBaseFileError, InvalidFilterError, MissingFileError
from eventide_core.table.files.slice_read import BlockFilter, SliceRead
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from support.files.slices import META, SCHEMA, base_file, data_block, delete_block, row

D0, D1, D2 = (f"2026010100000000{i}" for i in range(3))
BASE = f"part=a/f-0_0-1-0_{D0}.parquet"
LOGS = tuple(f"part=a/.f-0_{D0}.log.{i}_0-1-0" for i in (1, 2))
SHAPE = RecordShape(AvroSchema.of(SCHEMA), MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts")
OLD = BASE.rpartition("/")[2]
FILES = {
    BASE: base_file([row(key, 10, "base", D0, OLD) for key in "abcd"]),
    LOGS[0]: data_block(D1, [row("b", 20, "first", D1, "f-0"), row("e", 20, "first", D1, "f-0")]),
    LOGS[1]: delete_block(D2, [("c", None), ("d", 5)]) + data_block(D2, [row("b", 15, "late", D2, "f-0")]),
}
SNAPSHOT = [
    row("a", 10, "base", D0, OLD),
    row("b", 20, "first", D1, "f-0"),
    row("d", 10, "base", D0, OLD),
    row("e", 20, "first", D1, "f-0"),
]


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> MemoryStorage:
    storage = MemoryStorage.from_dump(request.node.name, {})
    for path, data in FILES.items():
        storage.put(path, data)
    return storage


def slice_read(
    *,
    base: str | None = BASE,
    logs: Iterable[str] = LOGS,
    commit_times: frozenset[str] | None = None,
    completed: Iterable[str] = (D0, D1, D2),
) -> SliceRead:
    sized = tuple((log, len(FILES[log])) for log in logs)
    return SliceRead("part=a", "f-0", base, sized, BlockFilter(frozenset(completed), D0), commit_times)


def read(storage: MemoryStorage, wanted: SliceRead, columns: Iterable[str] | None = None) -> list[dict[str, Any]]:
    batches: list[pa.RecordBatch] = list(ArrowSliceReader(storage).read(wanted, SHAPE, columns))
    return [r for batch in batches for r in batch.to_pylist()]


def test_a_snapshot_shows_the_latest_version_of_each_key(storage: MemoryStorage) -> None:
    assert read(storage, slice_read()) == SNAPSHOT


@pytest.mark.parametrize("other", [None, "b2"], ids=["repeats", "differs in a log file"])
def test_a_key_field_that_repeats_the_record_keys_shares_their_memory(
    storage: MemoryStorage, other: str | None
) -> None:
    changed = {**row("b", 30, "late", D2, "f-0"), "id": other or "b"}
    block = data_block(D2, [changed])
    storage.put(log := f"part=a/.f-0_{D0}.log.3_0-1-0", block)
    wanted = SliceRead("part=a", "f-0", BASE, ((log, len(block)),), BlockFilter(frozenset({D0, D2}), D0), None)
    (batch,) = ArrowSliceReader(storage).read(wanted, SHAPE, None)
    assert batch.to_pylist() == [row("a", 10, "base", D0, OLD), changed, *(row(k, 10, "base", D0, OLD) for k in "cd")]
    keys, ids = (batch.column(name).buffers()[2] for name in ("_hoodie_record_key", "id"))
    assert keys is not None
    assert ids is not None
    assert (keys.address == ids.address) == (other is None)


def test_a_read_optimized_slice_shows_the_base_alone(storage: MemoryStorage) -> None:
    assert [r["id"] for r in read(storage, slice_read(logs=()))] == ["a", "b", "c", "d"]


def test_a_slice_without_base_shows_its_logs(storage: MemoryStorage) -> None:
    assert [(r["id"], r["val"]) for r in read(storage, slice_read(base=None))] == [("b", "first"), ("e", "first")]


def test_columns_come_in_the_schemas_order_whatever_was_asked(storage: MemoryStorage) -> None:
    rows = read(storage, slice_read(), ["val", "_hoodie_commit_time", "val"])
    assert rows == [{name: r[name] for name in ("_hoodie_commit_time", "val")} for r in SNAPSHOT]
    assert [list(r) for r in rows[:1]] == [["_hoodie_commit_time", "val"]]


def test_meta_columns_come_first(storage: MemoryStorage) -> None:
    (batch, *_) = ArrowSliceReader(storage).read(slice_read(), SHAPE, None)
    assert batch.schema.names == [*META, "id", "ts", "val"]


def test_an_unknown_column_is_refused_by_name(storage: MemoryStorage) -> None:
    with pytest.raises(InvalidFilterError, match="no column 'price'; it has _hoodie_commit_time"):
        read(storage, slice_read(), ["price"])


@pytest.mark.parametrize("logs", [(), LOGS])
def test_an_incremental_query_shows_rows_of_its_commits_after_the_merge(
    storage: MemoryStorage, logs: tuple[str, ...]
) -> None:
    seen = read(storage, slice_read(logs=logs, commit_times=frozenset({D1, D2})), ["id"])
    # The late version of b was committed at D2, but lost: it isn't a row of the table.
    assert seen == ([{"id": "b"}, {"id": "e"}] if logs else [])


def test_blocks_of_other_instants_do_not_count(storage: MemoryStorage) -> None:
    seen = read(storage, slice_read(completed=[D0, D2]), ["id", "val"])
    assert seen == [{"id": "a", "val": "base"}, {"id": "b", "val": "late"}, {"id": "d", "val": "base"}]


def test_a_torn_block_is_passed_over(storage: MemoryStorage) -> None:
    data = FILES[LOGS[0]]
    storage.put(LOGS[0], data[:-1] + bytes([data[-1] ^ 1]))
    assert [(r["id"], r["val"]) for r in read(storage, slice_read())] == [("a", "base"), ("b", "late"), ("d", "base")]


def test_a_torn_base_file_and_a_missing_file_are_reported(storage: MemoryStorage) -> None:
    storage.put(BASE, FILES[BASE][:50])
    with pytest.raises(CorruptBaseFileError, match="part=a/f-0"):
        read(storage, slice_read())
    storage.delete(LOGS[1])
    with pytest.raises(MissingFileError):
        read(storage, slice_read())


def test_a_reader_can_be_sent_to_another_process(storage: MemoryStorage) -> None:
    copy = pickle.loads(pickle.dumps(ArrowSliceReader(storage)))
    assert [r for batch in copy.read(slice_read(), SHAPE, None) for r in batch.to_pylist()] == SNAPSHOT
