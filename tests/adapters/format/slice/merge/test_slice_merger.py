"""The merge of one slice: the rows, deletes and statistics of its new base file."""

import io
import json
import threading
from datetime import datetime
from typing import Any, BinaryIO, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.encoding.parquet.bloom_filter import DEFAULT_PARAMETERS, BloomFilterBuilder
from eventide_adapters.format.slice.base_file.key_range import bloom_filter_in
from eventide_adapters.format.slice.base_file.parquet import BaseFileWriter, BaseFooter
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import ParquetCodec
from eventide_core.errors import CorruptLogBlockError
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.plans import LeftOver
from support.files import logs
from support.files.one_slice import (
    BASE,
    CARRIED,
    COPIES,
    D0,
    D1,
    D2,
    D3,
    FILES,
    LOGS,
    NEW_BASE,
    compactor,
    logged,
    name_of,
    task,
)
from support.files.slices import SCHEMA, base_file, data_block, delete_block, row


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> MemoryStorage:
    storage = MemoryStorage.from_dump(request.node.name, {})
    for path, data in FILES.items():
        storage.put(path, data)
    return storage


def new_rows(storage: MemoryStorage) -> list[dict[str, Any]]:
    return pq.read_table(io.BytesIO(storage.read(NEW_BASE))).to_pylist()


def files(storage: MemoryStorage) -> dict[str, bytes]:
    return {path: storage.read(path) for path in storage.dump()}


def test_the_new_base_holds_the_merged_rows_under_its_own_name(storage: MemoryStorage) -> None:
    result = compactor(storage)(task())
    name = NEW_BASE.rpartition("/")[2]
    assert new_rows(storage) == [row("b", 20, "first", D1, name), row("c", 20, "first", D1, name)]
    assert (result.num_writes, result.num_updates, result.num_inserts, result.num_deletes) == (2, 1, 1, 2)
    assert (result.log_records, result.log_blocks) == (4, 2)
    assert result.base_size == len(storage.read(NEW_BASE))
    assert result.new_base_path == NEW_BASE


@pytest.mark.parametrize("deleted", [4, 5])
def test_the_bloom_filter_is_extended_until_a_tenth_of_its_keys_have_no_row(
    storage: MemoryStorage, deleted: int
) -> None:
    """What it says of a deleted key is that it may be there, as before."""
    rows = pq.read_table(io.BytesIO(base_file([row(f"k{number}", 10, "base", D0, "old") for number in range(40)])))
    storage.delete(BASE)
    output = storage.open_output(BASE)
    writer = BaseFileWriter(output, AvroSchema.of(SCHEMA), codec="zstd", bloom=BloomFilterBuilder(DEFAULT_PARAMETERS))
    writer.write(rows)
    writer.close({})
    assert output.commit()
    gone = [f"k{number}" for number in range(deleted)]
    log = delete_block(D1, [(key, 30) for key in gone]) + data_block(D1, [row("new", 20, "first", D1, "f-0")])
    storage.put(LOGS[0], log)
    compactor(storage)(task(compacted=(logged(LOGS[0], len(log)),), left_overs=(), carried_name=None))

    footer = BaseFooter.read(storage, NEW_BASE)
    written = [each["_hoodie_record_key"] for each in new_rows(storage)]
    assert written == [*(f"k{number}" for number in range(deleted, 40)), "new"]
    bloom = bloom_filter_in(footer.pairs, NEW_BASE)
    assert bloom is not None
    assert bloom.may_contain(pa.array(written)).all()
    assert bloom.may_contain(pa.array(gone)).all() == (deleted == 4)
    assert bloom.key_count == (41 if deleted == 4 else 36)
    assert footer.pairs[b"hoodie_min_record_key"] == min(written).encode()


@pytest.mark.parametrize("is_marked", [False, True])
def test_local_timestamps_are_stored_as_the_base_file_stores_them(storage: MemoryStorage, is_marked: bool) -> None:
    """Hudi before 1.1 stores numbers and reads nothing else, and later ones read the marked form alone."""
    schema, kind = json.loads(SCHEMA), {"type": "long", "logicalType": "local-timestamp-millis"}
    schema["fields"].append({"name": "local", "type": ["null", kind], "default": None})
    wider = AvroSchema.of(json.dumps(schema))
    moment = datetime(1969, 12, 31, 23, 59, 59, 999_000)  # noqa: DTZ001
    listed = [row("x", 10, "base", D0, "old") | {"local": moment}]
    storage.delete(BASE)
    output = storage.open_output(BASE)
    with BaseFileWriter(
        output, wider, codec="zstd", bloom=BloomFilterBuilder(DEFAULT_PARAMETERS), marks_local_times=is_marked
    ) as writer:
        writer.write(pa.Table.from_pylist(listed, schema=arrow_schema(wider.with_meta_fields())))
        writer.close({})
    assert output.commit()
    shape = RecordShape(wider, MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts")
    compactor(storage)(task(shape=shape))
    found = {each["_hoodie_record_key"]: each["local"] for each in new_rows(storage)}
    assert found["x"] == (moment if is_marked else -1)
    assert BaseFooter.read(storage, NEW_BASE).marks_local_times(wider) == is_marked


def test_a_tombstone_that_a_left_over_record_would_lose_to_is_carried(storage: MemoryStorage) -> None:
    """The tombstone of d is not: what a left-over holds of d is newer than it."""
    result = compactor(storage)(task())
    assert storage.read(CARRIED) == delete_block(D1, [("a", 30)])
    assert (result.carried_tombstones, result.carried_size) == (1, len(storage.read(CARRIED)))


def test_tombstones_of_several_instants_are_carried_in_a_block_each(storage: MemoryStorage) -> None:
    storage.put(LOGS[0], delete_block(D2, [("b", 60)]) + delete_block(D1, [("a", 30)]))
    merged = (logged(LOGS[0], len(storage.read(LOGS[0]))),)
    compactor(storage)(task(compacted=merged))
    assert storage.read(CARRIED) == delete_block(D1, [("a", 30)]) + delete_block(D2, [("b", 60)])


def test_a_tombstone_of_several_ordering_fields_is_carried_where_any_of_them_decides(storage: MemoryStorage) -> None:
    def ordering(ts: int, val: str) -> tuple[str, Any]:
        values = (("LongWrapper", ts), ("StringWrapper", val))
        return ("ArrayWrapper", [(f"org.apache.hudi.avro.model.{name}", {"value": value}) for name, value in values])

    # The left-overs hold a@(20, late), b@(40, second) and d@(50, third).
    contradicted = [("a", ordering(20, "m")), ("d", ordering(50, "third "))]
    deletes = [*contradicted, ("b", ordering(40, "a"))]
    storage.put(LOGS[0], logs.delete_block(D1, deletes))
    shape = RecordShape(AvroSchema.of(SCHEMA), MergeRule.EVENT_TIME_ORDERING, ("ts", "val"), "ts")
    merged = (logged(LOGS[0], len(storage.read(LOGS[0]))),)
    result = compactor(storage)(task(compacted=merged, shape=shape))
    assert result.carried_tombstones == 2
    assert storage.read(CARRIED) == logs.delete_block(D1, contradicted)


def test_nothing_is_carried_where_no_left_over_contradicts(storage: MemoryStorage) -> None:
    left_overs = (LeftOver(logged(LOGS[2]), name_of(COPIES[1])),)
    result = compactor(storage)(task(left_overs=left_overs))
    assert result.carried_size is None
    assert storage.stat(CARRIED) is None


def test_a_slice_of_logs_alone_becomes_a_base_file(storage: MemoryStorage) -> None:
    result = compactor(storage)(task(base_path=None))
    assert [r["id"] for r in new_rows(storage)] == ["b", "c"]
    assert (result.num_inserts, result.num_updates, result.num_deletes) == (2, 0, 0)


def test_blocks_of_unfinished_instants_are_not_merged(storage: MemoryStorage) -> None:
    compactor(storage)(task(blocks=BlockFilter(frozenset({D0, D2, D3}), D0)))
    assert [(r["id"], r["val"]) for r in new_rows(storage)] == [("a", "base"), ("b", "base"), ("d", "base")]


def test_two_runs_from_nothing_write_the_same_bytes(storage: MemoryStorage) -> None:
    compactor(storage)(task())
    first = files(storage)
    for path in set(first) - set(FILES):
        storage.delete(path)
    compactor(storage)(task())
    assert files(storage) == first


def test_a_torn_log_stops_the_merge(storage: MemoryStorage) -> None:
    storage.put(LOGS[0], FILES[LOGS[0]][:-1] + b"\xff")
    with pytest.raises(CorruptLogBlockError):
        compactor(storage)(task())
    assert storage.stat(NEW_BASE) is None


@pytest.mark.parametrize(("asked", "before"), [("as-before", "snappy"), ("as-before", "gzip"), ("zstd", "gzip")])
def test_a_new_base_is_compressed_as_the_previous_one_unless_configured(
    asked: str, before: Literal["snappy", "gzip"], storage: MemoryStorage
) -> None:
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(FILES[BASE])), sink, compression=before)
    storage.put(BASE, sink.getvalue())
    compactor(storage)(task(codec=ParquetCodec(asked)))
    written = pq.read_metadata(storage.open_input(NEW_BASE)).row_group(0).column(0).compression
    assert written == (before if asked == "as-before" else asked).upper()


def test_the_base_file_of_a_server_is_opened_while_log_files_are_read(storage: MemoryStorage) -> None:
    opened = threading.Event()

    class Server(FaultyStorage):
        @property
        def is_remote(self) -> bool:
            return True

        def open_input(self, path: str) -> BinaryIO:
            opened.set()
            return super().open_input(path)

        def read_range(self, path: str, offset: int, length: int) -> bytes:
            assert path not in LOGS or opened.wait(60)
            return super().read_range(path, offset, length)

    assert compactor(Server(storage))(task()).num_writes == 2
