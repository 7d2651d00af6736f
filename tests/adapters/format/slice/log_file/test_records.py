"""The records of a slice's logs: which blocks count, deletes apart from records, and only what was requested."""

import random
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.encoding.avro.decode import iter_avro_block
from eventide_adapters.format.encoding.avro.event_time_properties import with_event_times
from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.encoding.parquet.inflated_pages import InflatedPages
from eventide_adapters.format.encoding.parquet.thrift_compact import fields
from eventide_adapters.format.slice.log_file import records as log_records
from eventide_adapters.format.slice.log_file.blocks import counting_blocks
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.slice.log_file.records import BlockReader, DataBlock, DeleteBlock
from eventide_adapters.format.slice.log_file.writer import encode_parquet_block
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import (
    CorruptLogBlockError,
    EventideError,
    InvalidFilterError,
    MissingFileError,
    RecordDecodeError,
    UnsupportedTableError,
)
from eventide_core.ports import Storage
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import DeleteMarker, RecordShape
from eventide_core.table.schema.avro_schema import RECORD_KEY, AvroSchema
from support.files.logs import (
    CDC,
    COMPACTED_BLOCK_TIMES,
    HFILE,
    INSTANT_TIME,
    SCHEMA,
    avro_block,
    avro_content,
    block,
    delete_block,
    parquet_block,
    rollback_block,
    table_schema,
    with_meta,
    written_schema,
)

pytestmark = pytest.mark.slow

T1, T2, T3, T4 = (f"2026112106041386{n}" for n in range(1, 5))
SCHEMA_TEXT = table_schema(
    {"name": "id", "type": "string"},
    {"name": "ts", "type": ["null", "long"], "default": None},
    {"name": "_hoodie_is_deleted", "type": ["null", "boolean"], "default": None},
)
PLAIN = AvroSchema.of(
    table_schema({"name": "id", "type": "string"}, {"name": "ts", "type": ["null", "long"], "default": None})
)
SHAPE = RecordShape(AvroSchema.of(SCHEMA_TEXT), MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts")
ALL = BlockFilter(frozenset({T1, T2, T3, T4}), None)


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> Storage:
    return MemoryStorage.from_dump(request.node.nodeid, {})


def _rows(instant: str, *rows: tuple[str, int | None, bool | None], schema: str = SCHEMA_TEXT) -> bytes:
    records = [
        with_meta({"id": key, "ts": ts, "_hoodie_is_deleted": deleted}, key, instant) for key, ts, deleted in rows
    ]
    return avro_block(instant, written_schema(schema), records)


def _merged(instant: str, originals: tuple[str, ...], *rows: tuple[str, int | None, bool | None]) -> bytes:
    """The block of a log compaction at `instant`; its records keep the commits that they came from."""
    schema = written_schema(SCHEMA_TEXT)
    records = [with_meta({"id": k, "ts": ts, "_hoodie_is_deleted": d}, k, originals[-1]) for k, ts, d in rows]
    header = {INSTANT_TIME: instant, SCHEMA: schema, COMPACTED_BLOCK_TIMES: ",".join(originals)}
    return block(3, header, avro_content(schema, records))


def _put(storage: Storage, *contents: bytes) -> list[tuple[str, int]]:
    """One log file for each content."""
    logs = []
    for number, content in enumerate(contents, start=1):
        storage.put(f"part=a/.f_{T1}.log.{number}_0-0-{number}", content)
        logs.append((f"part=a/.f_{T1}.log.{number}_0-0-{number}", len(content)))
    return logs


def _read(
    storage: Storage, logs: list[tuple[str, int]], blocks: BlockFilter = ALL, *, is_strict: bool = True
) -> list[tuple[Any, ...]]:
    """What came: instant, then keys with ordering values, `-` before the keys of deletes."""
    out: list[tuple[Any, ...]] = []
    for part in LogCursor(storage, logs, blocks, is_strict=is_strict).parts(SHAPE, ["id", "ts"]):
        if isinstance(part, DataBlock):
            assert part.records.schema.names == ["id", "ts"]
            out.append((part.instant, *((row["id"], row["ts"]) for row in part.records.to_pylist())))
        else:
            assert part.orderings.type == pa.int64()
            deletes = zip(part.keys.to_pylist(), part.orderings.to_pylist(), strict=True)
            out.append((part.instant, *((f"-{key}", ordering) for key, ordering in deletes)))
    return out


def test_blocks_come_in_the_order_of_logs_and_of_blocks_in_a_log(storage: Storage) -> None:
    logs = _put(
        storage,
        _rows(T1, ("a", 1, None)) + delete_block(T2, [("a", ("LongWrapper", 2)), ("b", ("IntWrapper", 0))]),
        _rows(T3, ("c", 3, False), ("d", None, None)),
    )
    assert _read(storage, logs) == [(T1, ("a", 1)), (T2, ("-a", 2), ("-b", None)), (T3, ("c", 3), ("d", None))]


def test_deletes_have_no_ordering_value_in_a_table_that_orders_none(storage: Storage) -> None:
    logs = _put(storage, _rows(T1, ("a", 1, True)) + delete_block(T2, [("b", ("LongWrapper", 2))]))
    shape = replace(SHAPE, orders_deletes=False)
    deletes = list(LogCursor(storage, logs, ALL, is_strict=True).parts(shape, ["id"]))
    assert [(part.keys.to_pylist(), part.orderings) for part in deletes if isinstance(part, DeleteBlock)] == [
        (["a"], pa.array([None], pa.int64())),
        (["b"], pa.array([None], pa.int64())),
    ]


def test_all_columns_stand_behind_the_meta_fields(storage: Storage) -> None:
    logs = _put(storage, _rows(T1, ("a", 1, None)))
    (part,) = LogCursor(storage, logs, ALL, is_strict=True).parts(SHAPE, None)
    assert isinstance(part, DataBlock)
    assert part.records.to_pylist() == [with_meta({"id": "a", "ts": 1, "_hoodie_is_deleted": None}, "a", T1)]


def test_a_parquet_block_gives_the_same_records(storage: Storage) -> None:
    records = [with_meta({"id": "a", "ts": 1, "_hoodie_is_deleted": None}, "a", T1)]
    texts = [f"_hoodie_{name}" for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")]
    types: dict[str, pa.DataType] = {name: pa.string() for name in [*texts, "id"]}
    types |= {"ts": pa.int32(), "_hoodie_is_deleted": pa.bool_()}
    table = pa.Table.from_pylist(
        records,
        pa.schema(types),
    )
    logs = _put(
        storage, parquet_block(T1, written_schema(SCHEMA_TEXT), table) + parquet_block(T2, "{}", table.slice(0, 0))
    )
    parts = list(LogCursor(storage, logs, ALL, is_strict=True).parts(SHAPE, ["ts", "_hoodie_record_key"]))
    assert [part.records.to_pylist() for part in parts if isinstance(part, DataBlock)] == [
        [{"ts": 1, "_hoodie_record_key": "a"}],
        [],
    ]


class TestLargeParquetBlocks:
    """In gzip: eventide inflates their pages before Arrow reads them."""

    COUNT = 40_000

    @pytest.fixture
    def written(self) -> bytes:
        drawn = random.Random(1)
        texts = {name: [drawn.randbytes(16).hex() for _ in range(self.COUNT)] for name in (RECORD_KEY, "id")}
        others = {f"_hoodie_{name}": [None] * self.COUNT for name in ("commit_time", "commit_seqno")}
        places = {f"_hoodie_{name}": [None] * self.COUNT for name in ("partition_path", "file_name")}
        rows: dict[str, list[Any]] = {**others, **places, **texts, "ts": list(range(self.COUNT))}
        columns = arrow_schema(PLAIN.with_meta_fields())
        table = pa.Table.from_pydict({name: rows[name] for name in columns.names}, columns)
        return encode_parquet_block(T1, PLAIN, table, codec="gzip")

    def test_their_records_are_whole_and_arrow_inflates_none_of_their_pages(
        self, storage: Storage, written: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (log,) = _put(storage, written)
        content = written[written.index(b"PAR1") : written.rindex(b"PAR1") + 4]
        expected = pq.read_table(pa.BufferReader(content)).to_pydict()
        reads: list[int] = []
        read = InflatedPages.read

        def noted(self: InflatedPages, size: int = -1) -> memoryview:
            data = read(self, size)
            reads.append(len(data))
            return data

        monkeypatch.setattr(InflatedPages, "read", noted)
        shape = replace(SHAPE, schema=PLAIN)
        parts = list(LogCursor(storage, [log], ALL, is_strict=True).parts(shape, None))
        batches = [part.records for part in parts if isinstance(part, DataBlock)]
        assert pa.Table.from_batches(batches).to_pydict() == expected
        assert sum(reads) > self.COUNT * (32 + 32 + 8)

    def test_a_flipped_bit_in_a_page_is_refused_by_its_checksum(self, storage: Storage, written: bytes) -> None:
        middle = len(written) // 2
        logs = _put(storage, written[:middle] + bytes([written[middle] ^ 1]) + written[middle + 1 :])
        shape = replace(SHAPE, schema=PLAIN)
        with pytest.raises(RecordDecodeError, match="CRC checksum"):
            list(LogCursor(storage, logs, ALL, is_strict=True).parts(shape, None))

    def test_a_page_of_unknown_type_is_refused(self, storage: Storage, written: bytes) -> None:
        """Arrow skips it. It says nothing of the rows that are missing if these are the last ones of a batch."""
        start = written.index(b"PAR1")
        content = written[start : written.rindex(b"PAR1") + 4]
        group = pq.ParquetFile(pa.BufferReader(content)).metadata.row_group(0)
        at = start + group.column(2).data_page_offset
        begin, end = fields(written, at)[0][1]
        logs = _put(storage, written[:begin] + b"\x20" + written[end:])
        shape = replace(SHAPE, schema=PLAIN)
        with pytest.raises(RecordDecodeError, match=f"its footer states {self.COUNT}"):
            list(LogCursor(storage, logs, ALL, is_strict=True).parts(shape, [RECORD_KEY]))


class TestRowsMarkedAsDeleted:
    def test_they_come_as_deletes_with_their_ordering_value(self, storage: Storage) -> None:
        logs = _put(storage, _rows(T1, ("a", 1, None), ("b", 2, True), ("c", 3, False), ("d", None, True)))
        assert _read(storage, logs) == [(T1, ("a", 1), ("c", 3)), (T1, ("-b", 2), ("-d", None))]

    def test_a_block_of_nothing_else_has_no_records(self, storage: Storage) -> None:
        assert _read(storage, _put(storage, _rows(T1, ("a", 1, True)))) == [(T1, ("-a", 1))]

    def test_a_key_that_is_both_keeps_the_order_of_its_rows(self, storage: Storage) -> None:
        logs = _put(storage, _rows(T1, ("a", 1, None), ("a", 2, True), ("b", 2, True), ("a", 3, None)))
        assert _read(storage, logs) == [(T1, ("a", 1)), (T1, ("-a", 2), ("-b", 2)), (T1, ("a", 3))]

    def test_a_block_older_than_the_column_has_none(self, storage: Storage) -> None:
        logs = _put(storage, _rows(T1, ("a", 1, None), schema=PLAIN.text))
        assert _read(storage, logs) == [(T1, ("a", 1))]

    def test_a_table_without_ordering_column_gives_natural_deletes(self, storage: Storage) -> None:
        logs = _put(storage, _rows(T1, ("a", 1, True)) + delete_block(T2, [("b", ("LongWrapper", 5))]))
        shape = RecordShape(AvroSchema.of(SCHEMA_TEXT), MergeRule.COMMIT_TIME_ORDERING, (), None)
        parts = list(LogCursor(storage, logs, ALL, is_strict=True).parts(shape, None))
        assert [p.keys.to_pylist() for p in parts if isinstance(p, DeleteBlock)] == [["a"], ["b"]]
        assert [p.orderings for p in parts if isinstance(p, DeleteBlock)] == [pa.nulls(1), pa.nulls(1)]


def _small_blocks(random_: random.Random) -> bytes:
    """Blocks of a few rows, deletes among them, of two schemas and of a range of event times each; DELETE blocks between."""
    content = b""
    for _ in range(random_.randrange(1, 12)):
        instant = random_.choice([T1, T2, T3, T4])
        rows = [
            (random_.choice("abcd"), random_.choice([None, 1, 2, 30]), random_.choice([None, None, False, True]))
            for _ in range(random_.randrange(4))
        ]
        if random_.random() < 0.2:
            content += delete_block(instant, [(key, ("LongWrapper", ts) if ts else None) for key, ts, _ in rows])
            continue
        schema = random_.choice([SCHEMA_TEXT, SCHEMA_TEXT, SCHEMA_TEXT, PLAIN.text])
        records = [with_meta({"id": k, "ts": ts, "_hoodie_is_deleted": d}, k, instant) for k, ts, d in rows]
        written = AvroSchema.of(written_schema(schema))
        text = with_event_times(written, "ts", EventTimeRange(len(rows), len(content))).text
        header = written_schema(schema) if random_.random() < 0.5 else text
        content += block(3, {INSTANT_TIME: instant, SCHEMA: header}, avro_content(written_schema(schema), records))
    return content


class TestSmallBlocks:
    @pytest.fixture
    def decoded(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The places that are decoded."""
        places: list[str] = []

        def counted(read: Any, size: int, schema: AvroSchema, target: Any, place: str, **named: Any) -> Any:
            places.append(place)
            return iter_avro_block(read, size, schema, target, place, **named)

        monkeypatch.setattr(log_records, "iter_avro_block", counted)
        return places

    def test_those_of_one_schema_are_decoded_together(self, storage: Storage, decoded: list[str]) -> None:
        logs = _put(
            storage,
            _rows(T1, ("a", 1, None)) + _rows(T2, ("b", 2, True)),
            _rows(T3, ("c", 3, None), ("a", 4, True)),
            _rows(T4, ("d", 5, None), schema=PLAIN.text),
        )
        expected = [(T1, ("a", 1)), (T2, ("-b", 2)), (T3, ("c", 3)), (T3, ("-a", 4)), (T4, ("d", 5))]
        assert _read(storage, logs) == expected
        assert len(decoded) == 2
        parts = LogCursor(storage, logs, ALL, is_strict=True).parts(SHAPE, None)
        assert [part.is_first for part in parts] == [True, True, True, False, True]

    def test_a_mebibyte_of_them_is_decoded_together(self, storage: Storage, decoded: list[str]) -> None:
        logs = _put(storage, *[_rows(T1, *((f"{n:0600}", n, None) for n in range(45)))] * 40)
        assert sum(size for _, size in logs) in range(2 << 20, 3 << 20)
        assert [len(part) - 1 for part in _read(storage, logs)] == [45] * 40
        assert len(decoded) == 3

    def test_a_large_one_is_decoded_alone(self, storage: Storage, decoded: list[str]) -> None:
        small, large = _rows(T1, ("a", 1, None)), _rows(T2, *((f"{n:01000}", n, None) for n in range(100)))
        logs = _put(storage, small, small, large, small)
        assert [len(part) - 1 for part in _read(storage, logs)] == [1, 1, 100, 1]
        assert len(decoded) == 3

    @pytest.mark.parametrize("bytes_left", [None, 20])
    def test_a_damaged_one_is_named_by_its_error(self, storage: Storage, bytes_left: int | None) -> None:
        schema = written_schema(SCHEMA_TEXT)
        content = avro_content(schema, [with_meta({"id": "b", "ts": 2, "_hoodie_is_deleted": None}, "b", T2)])
        damaged = block(3, {INSTANT_TIME: T2, SCHEMA: schema}, content[:12] + b"\x7e" + content[13:bytes_left])
        logs = _put(storage, _rows(T1, ("a", 1, None)), damaged, _rows(T3, ("c", 3, None)))
        with pytest.raises(RecordDecodeError, match=re.escape(logs[1][0])):
            _read(storage, logs)

    @pytest.mark.parametrize("seed", range(200))
    def test_they_come_as_if_each_were_decoded_alone(self, storage: Storage, seed: int) -> None:
        random_ = random.Random(seed)
        logs = _put(storage, *(_small_blocks(random_) for _ in range(3)))
        together = list(LogCursor(storage, logs, ALL, is_strict=True).parts(SHAPE, None))
        reader, blocks = BlockReader(storage, SHAPE, None), counting_blocks(storage, logs, ALL, is_strict=True)
        assert together == [part for placed in blocks for part in reader.read(placed)]


class TestWhichBlocksCount:
    def test_those_of_other_instants_are_passed_over_unread(self, storage: Storage) -> None:
        torn_content = block(3, {INSTANT_TIME: T2, SCHEMA: written_schema(SCHEMA_TEXT)}, b"no records at all")
        logs = _put(storage, _rows(T1, ("a", 1, None)) + torn_content, _rows(T3, ("c", 3, None)))
        assert _read(storage, logs, BlockFilter(frozenset({T1, T3}), None)) == [(T1, ("a", 1)), (T3, ("c", 3))]

    def test_those_after_the_last_instant_asked_for_are_passed_over(self, storage: Storage) -> None:
        logs = _put(storage, _rows(T1, ("a", 1, None)), _rows(T3, ("c", 3, None)))
        assert _read(storage, logs, BlockFilter(frozenset({T1, T3}), None, until=T2)) == [(T1, ("a", 1))]

    def test_a_rollback_block_rolls_back_earlier_blocks_of_its_target_in_any_log(self, storage: Storage) -> None:
        logs = _put(
            storage,
            _rows(T1, ("a", 1, None)) + _rows(T2, ("b", 2, None)),
            delete_block(T2, [("a", None)]) + _rows(T3, ("c", 3, None)),
            rollback_block(T4, T2),
        )
        assert _read(storage, logs) == [(T1, ("a", 1)), (T3, ("c", 3))]

    def test_a_rollback_block_leaves_later_blocks_of_its_target(self, storage: Storage) -> None:
        logs = _put(storage, _rows(T2, ("b", 2, None)) + rollback_block(T4, T2) + _rows(T2, ("b", 9, None)))
        assert _read(storage, logs) == [(T2, ("b", 9))]

    def test_a_rollback_block_counts_though_its_own_instant_does_not(self, storage: Storage) -> None:
        logs = _put(storage, _rows(T1, ("a", 1, None)) + rollback_block(T4, T1))
        assert _read(storage, logs, BlockFilter(frozenset({T1}), None)) == []

    def test_torn_blocks_raise_or_are_passed_over(self, storage: Storage) -> None:
        torn = _rows(T2, ("b", 2, None))[:-30]
        logs = _put(storage, _rows(T1, ("a", 1, None)) + torn + _rows(T3, ("c", 3, None)))
        with pytest.raises(CorruptLogBlockError, match=T2):
            _read(storage, logs)
        assert _read(storage, logs, is_strict=False) == [(T1, ("a", 1)), (T3, ("c", 3))]

    def test_a_torn_block_of_a_write_that_never_completed_is_passed_over(self, storage: Storage) -> None:
        torn = _rows(T2, ("b", 2, None))[:-30]
        logs = _put(storage, _rows(T1, ("a", 1, None)) + torn + _rows(T3, ("c", 3, None)))
        assert _read(storage, logs, BlockFilter(frozenset({T1, T3}), None)) == [(T1, ("a", 1)), (T3, ("c", 3))]
        logs = _put(storage, torn + rollback_block(T4, T2), _rows(T3, ("c", 3, None)))
        assert _read(storage, logs, BlockFilter(frozenset(), T4)) == [(T3, ("c", 3))]

    def test_a_block_torn_before_its_instant_may_have_counted(self, storage: Storage) -> None:
        logs = _put(storage, _rows(T1, ("a", 1, None))[:20] + _rows(T3, ("c", 3, None)))
        with pytest.raises(CorruptLogBlockError, match="torn before it names"):
            _read(storage, logs, BlockFilter(frozenset({T3}), None))

    def test_what_was_appended_after_the_listing_is_not_read(self, storage: Storage) -> None:
        (listed,) = _put(storage, _rows(T1, ("a", 1, None)))
        storage.put(listed[0], storage.read(listed[0]) + _rows(T2, ("b", 2, None)))
        assert _read(storage, [listed]) == [(T1, ("a", 1))]


class TestADeleteMarker:
    SCHEMA = table_schema(
        {"name": "id", "type": "string"},
        {"name": "ts", "type": ["null", "long"], "default": None},
        {"name": "op", "type": ["null", "string"], "default": None},
        {"name": "code", "type": ["null", "int"], "default": None},
        {"name": "rate", "type": ["null", "double"], "default": None},
    )

    def _read(self, storage: Storage, field: str, value: str, columns: list[str] | None) -> list[Any]:
        rows = [("a", "D", 1), ("b", "d", 2), ("c", None, None), ("e", "D", 2)]
        records = [
            with_meta({"id": key, "ts": 5, "op": op, "code": code, "rate": None}, key, T1) for key, op, code in rows
        ]
        logs = _put(storage, avro_block(T1, written_schema(self.SCHEMA), records))
        shape = RecordShape(
            AvroSchema.of(self.SCHEMA), MergeRule.EVENT_TIME_ORDERING, ("ts",), None, DeleteMarker(field, value)
        )
        parts = LogCursor(storage, logs, ALL, is_strict=True).parts(shape, columns)
        return [
            (part.keys.to_pylist(), part.orderings.to_pylist())
            if isinstance(part, DeleteBlock)
            else part.records.column("id").to_pylist()
            for part in parts
        ]

    @pytest.mark.parametrize("columns", [None, ["id"]])
    def test_rows_that_bear_it_exactly_are_deletes_with_their_ordering_value(
        self, storage: Storage, columns: list[str] | None
    ) -> None:
        assert self._read(storage, "op", "D", columns) == [["b", "c"], (["a", "e"], [5, 5])]

    def test_a_whole_number_is_compared_as_a_text(self, storage: Storage) -> None:
        assert self._read(storage, "code", "2", None) == [["a", "c"], (["b", "e"], [5, 5])]

    def test_it_marks_nothing_where_its_column_is_missing(self, storage: Storage) -> None:
        assert self._read(storage, "gone", "D", None) == [["a", "b", "c", "e"]]

    def test_a_column_whose_text_is_in_doubt_is_refused(self, storage: Storage) -> None:
        with pytest.raises(UnsupportedTableError, match=r"marks deletes by '1\.0' in its column rate, which is double"):
            self._read(storage, "rate", "1.0", None)


class TestLogCompaction:
    def test_the_merged_block_stands_for_its_originals_where_the_newest_of_them_stood(self, storage: Storage) -> None:
        """T3 was written while the log compaction ran: it stays the newer one, though the merged block lies behind it."""
        logs = _put(
            storage,
            _rows(T1, ("a", 1, None), ("b", 1, None)) + delete_block(T2, [("b", None)]),
            _rows(T3, ("a", 3, None)),
            _merged(T4, (T1, T2), ("a", 1, None), ("b", 1, True)),
        )
        assert _read(storage, logs) == [(T4, ("a", 1)), (T4, ("-b", 1)), (T3, ("a", 3))]

    def test_the_merged_block_of_a_merged_block_stands_for_them_all(self, storage: Storage) -> None:
        logs = _put(
            storage,
            _rows(T1, ("a", 1, None)) + _merged(T2, (T1,), ("a", 2, None)),
            _rows(T3, ("a", 3, None)) + _merged(T4, (T2, T3), ("a", 4, None)),
        )
        assert _read(storage, logs) == [(T4, ("a", 4))]

    def test_the_originals_count_where_the_log_compaction_does_not(self, storage: Storage) -> None:
        logs = _put(
            storage, _rows(T1, ("a", 1, None)), _rows(T2, ("a", 2, None)), _merged(T3, (T1, T2), ("a", 9, None))
        )
        originals = [(T1, ("a", 1)), (T2, ("a", 2))]
        assert _read(storage, logs, BlockFilter(frozenset({T1, T2, T3}), None, until=T2)) == originals
        assert _read(storage, logs, BlockFilter(frozenset({T1, T2}), None)) == originals
        rolled_back = [*logs, (f"part=a/.f_{T1}.log.9_0-0-1", len(rollback_block(T4, T3)))]
        storage.put(rolled_back[-1][0], rollback_block(T4, T3))
        assert _read(storage, rolled_back) == originals

    def test_a_merged_block_without_any_of_its_originals_does_not_count(self, storage: Storage) -> None:
        logs = _put(storage, _rows(T1, ("a", 1, None)), _merged(T3, (T1,), ("a", 1, None)), _rows(T4, ("b", 4, None)))
        assert _read(storage, logs, BlockFilter(frozenset({T3, T4}), None)) == [(T4, ("b", 4))]


class TestWhatCannotBeRead:
    @pytest.mark.parametrize("is_strict", [True, False])
    def test_a_missing_log_is_reported(self, storage: Storage, *, is_strict: bool) -> None:
        with pytest.raises(MissingFileError):
            _read(storage, [(f"part=a/.f_{T1}.log.1_0-0-1", 100)], is_strict=is_strict)

    @pytest.mark.parametrize("is_strict", [True, False])
    def test_a_log_shorter_than_it_was_listed_is_reported(self, storage: Storage, *, is_strict: bool) -> None:
        ((path, size),) = _put(storage, _rows(T1, ("a", 1, None)))
        for listed in (size + 1, size + 100_000):
            with pytest.raises(CorruptLogBlockError, match="shorter"):
                _read(storage, [(path, listed)], is_strict=is_strict)

    @pytest.mark.parametrize(
        ("kind", "header"),
        [(HFILE, {}), (CDC, {})],
    )
    def test_kinds_of_blocks_that_would_be_read_wrongly_are_refused(
        self, storage: Storage, kind: int, header: dict[int, str]
    ) -> None:
        schema = written_schema(SCHEMA_TEXT)
        strange = block(kind, {INSTANT_TIME: T1, SCHEMA: schema, **header}, avro_content(schema, []))
        logs = _put(storage, strange)
        with pytest.raises(UnsupportedTableError, match="block at byte 0"):
            _read(storage, logs)
        assert _read(storage, logs, BlockFilter(frozenset(), None)) == []

    def test_records_with_an_operation_of_flink_are_refused(self, storage: Storage) -> None:
        schema = table_schema({"name": "_hoodie_operation", "type": "string"}, {"name": "id", "type": "string"})
        row = with_meta({"_hoodie_operation": "D", "id": "a"}, "a", T1)
        with pytest.raises(UnsupportedTableError, match="_hoodie_operation"):
            _read(storage, _put(storage, avro_block(T1, written_schema(schema), [row])))

    @pytest.mark.parametrize("header", [{SCHEMA: "{}"}, {INSTANT_TIME: T1}, {INSTANT_TIME: T1, SCHEMA: "{}"}])
    def test_a_block_without_instant_or_schema_is_reported(self, storage: Storage, header: dict[int, str]) -> None:
        with pytest.raises(EventideError):
            _read(storage, _put(storage, block(3, header, b"")))

    def test_a_parquet_block_that_is_none_is_reported(self, storage: Storage) -> None:
        with pytest.raises(RecordDecodeError, match="Parquet"):
            _read(storage, _put(storage, block(5, {INSTANT_TIME: T1, SCHEMA: "{}"}, b"PAR1 no more than that")))

    def test_a_parquet_block_with_a_column_whose_name_is_no_text_is_reported(self, storage: Storage) -> None:
        """Arrow says it by an error of Python's own."""
        table = pa.table({"a column": pa.array([1])})
        whole = parquet_block(T1, written_schema(SCHEMA_TEXT), table)
        with pytest.raises(RecordDecodeError, match="Parquet"):
            _read(storage, _put(storage, whole.replace(b"a column", b"\xff column")))

    def test_an_unknown_command_is_refused(self, storage: Storage) -> None:
        with pytest.raises(UnsupportedTableError, match="command"):
            _read(storage, _put(storage, block(0, {INSTANT_TIME: T1, 3: "7", 1: T1}, b"")))

    @pytest.mark.parametrize("columns", [["nope"], ["id", "nope"]])
    def test_an_unknown_column_is_reported(self, storage: Storage, columns: list[str]) -> None:
        with pytest.raises(InvalidFilterError, match="nope"):
            list(LogCursor(storage, [], ALL, is_strict=True).parts(SHAPE, columns))
