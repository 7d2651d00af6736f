"""Tables without meta fields: records are distinguished by keys made of their columns, as Hudi's delete blocks have them."""

import io
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.encoding.avro.schema import table_fields
from eventide_adapters.format.slice.base_file.parquet import read_base
from eventide_adapters.format.slice.base_file.virtual_key import with_record_keys
from eventide_adapters.format.slice.log_content.content import ArrowLogContent
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import CorruptBaseFileError, InvalidFilterError, UnsupportedTableError
from eventide_core.ports import SplitSlice
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.slice_read import BlockFilter, SliceRead
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from support.files.one_slice import compactor, logged, task
from support.files.slices import META, SCHEMA, base_file, data_block, delete_block

D0, D1, D2 = (f"2026010100000000{i}" for i in range(3))
C = "20260101000000009"
BASE, NEW_BASE = f"part=a/f-0_0-1-0_{D0}.parquet", f"part=a/f-0_9-9-9_{C}.parquet"
LOGS = tuple(f"part=a/.f-0_{D0}.log.{i}_0-1-0" for i in (1, 2))
SHAPE = RecordShape(AvroSchema.of(SCHEMA), MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts", key_fields=("id", "ts"))
BLOCKS = BlockFilter(frozenset({D0, D1, D2}), D0)


def bare(key: str, ts: int, val: str, meta: str | None = None) -> dict[str, Any]:
    """A record as Hudi stores it without meta fields: bulk inserts leave empty texts, other writes nulls."""
    return {**dict.fromkeys(META, meta), "id": key, "ts": ts, "val": val}


FILES = {
    BASE: base_file([bare("a", 1, "base", ""), bare("b", 1, "base", ""), bare("b", 2, "base", "")]),
    LOGS[0]: data_block(D1, [bare("a", 1, "first"), bare("c", 3, "first")]),
    LOGS[1]: delete_block(D2, [("id:b,ts:1", None), ("id:c,ts:3", None), ("id:b", None)]),
}
SNAPSHOT = [{"id": "a", "ts": 1, "val": "first"}, {"id": "b", "ts": 2, "val": "base"}]


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> MemoryStorage:
    storage = MemoryStorage.from_dump(request.node.name, {})
    for path, data in FILES.items():
        storage.put(path, data)
    return storage


def read(storage: MemoryStorage, base: str, logs: tuple[str, ...], columns: list[str] | None = None) -> list[Any]:
    wanted = SliceRead("part=a", "f-0", base, tuple((log, len(FILES[log])) for log in logs), BLOCKS)
    return [row for batch in ArrowSliceReader(storage).read(wanted, SHAPE, columns) for row in batch.to_pylist()]


def test_a_query_merges_by_the_columns_and_shows_no_meta_columns(storage: MemoryStorage) -> None:
    assert read(storage, BASE, LOGS) == SNAPSHOT
    assert read(storage, BASE, LOGS, ["val"]) == [{"val": "first"}, {"val": "base"}]
    assert [row["val"] for row in read(storage, BASE, ())] == ["base"] * 3
    with pytest.raises(InvalidFilterError, match="_hoodie_record_key"):
        read(storage, BASE, LOGS, ["_hoodie_record_key"])


def test_a_compaction_writes_no_keys_and_no_bloom_filter(storage: MemoryStorage) -> None:
    merged = tuple(logged(log, len(FILES[log])) for log in LOGS)
    result = compactor(storage)(task(compacted=merged, left_overs=(), carried_name=None, shape=SHAPE, blocks=BLOCKS))
    assert (result.num_writes, result.num_updates, result.num_deletes, result.num_inserts) == (2, 1, 1, 0)
    written = pq.ParquetFile(io.BytesIO(storage.read(NEW_BASE)))
    name = NEW_BASE.rpartition("/")[2]
    assert {(row["_hoodie_record_key"], row["_hoodie_file_name"]) for row in written.read().to_pylist()} == {
        (None, name)
    }
    assert not [key for key in written.metadata.metadata or {} if b"bloom" in key or b"record_key" in key]
    assert read(storage, NEW_BASE, ()) == SNAPSHOT


def test_histories_of_keys_name_them_as_delete_blocks_do(storage: MemoryStorage) -> None:
    logs = []
    for path in LOGS:
        name = LogFileName.parse(path.rpartition("/")[2])
        assert name is not None
        logs.append(LogFile(name, path, len(FILES[path])))
    content, split = ArrowLogContent(storage), SplitSlice(BASE, tuple(logs[:1]), tuple(logs[1:]))
    (history,) = content.records.key_histories(split, SHAPE, BLOCKS, only_deleted=True)
    assert history.key == "id:c,ts:3"


@pytest.mark.parametrize(
    ("key_fields", "keys"),
    [
        (("name",), ["a", "", None]),
        (("number",), ["1", "-2", None]),
        (("is_new", "name"), ["is_new:true,name:a", "is_new:false,name:__empty__", "is_new:__null__,name:__null__"]),
    ],
)
def test_keys_have_the_form_of_hudis_key_generators(key_fields: tuple[str, ...], keys: list[str | None]) -> None:
    columns: dict[str, Any] = {"name": ["a", "", None], "number": [1, -2, None], "is_new": [True, False, None]}
    source = pa.RecordBatch.from_pydict({"_hoodie_record_key": pa.nulls(3, pa.string()), **columns})
    assert with_record_keys(source, key_fields).column(0).to_pylist() == keys


def test_a_key_of_a_type_that_writers_print_in_several_ways_is_refused() -> None:
    source = pa.RecordBatch.from_pydict({"_hoodie_record_key": pa.nulls(1, pa.string()), "day": [date(2026, 11, 21)]})
    with pytest.raises(UnsupportedTableError, match=r"day is date32.*hoodie\.populate\.meta\.fields"):
        with_record_keys(source, ["day"])


def test_a_base_file_without_keys_is_corrupt_if_the_table_has_meta_fields(storage: MemoryStorage) -> None:
    """One flipped bit in a footer gives a column another name; then updates would stand beside their old rows."""
    shape = RecordShape(AvroSchema.of(SCHEMA), MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts")
    storage.put(BASE, base_file([bare("a", 1, "base")]).replace(b"_hoodie_record_key", b"_hoodie_record_kex"))
    with pytest.raises(CorruptBaseFileError, match=rf"base file {BASE} has a record without key"):
        list(ArrowSliceReader(storage).read(SliceRead("part=a", "f-0", BASE, (), BLOCKS), shape, None))
    assert list(read_base(storage, BASE, table_fields(AvroSchema.of(SCHEMA), ["id"]), shape)), (
        "where no key is asked for"
    )
