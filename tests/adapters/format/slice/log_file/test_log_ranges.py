"""Large logs are read by ranges: a segment of an Avro block, a batch of a Parquet block, nothing of what does not count."""

import io
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.encoding.avro import decode as avro_decode
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.slice.log_file.records import DataBlock, DeleteBlock
from eventide_adapters.format.slice.merge.log_fold import FoldedLogFiles
from eventide_core.errors import RecordDecodeError
from eventide_core.table.files.read_ahead import READ_AHEAD_BYTES, WHOLE_FILE_BYTES
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from support.doubles.counting_storage import CountingStorage
from support.files.logs import (
    AVRO,
    INSTANT_TIME,
    PARQUET,
    SCHEMA,
    avro_block,
    avro_content,
    block,
    table_schema,
    with_meta,
    written_schema,
)

T1, T2 = "20261121060413861", "20261121060413862"
FIELDS = table_schema({"name": "id", "type": "string"}, {"name": "ts", "type": "long"}, {"name": "s", "type": "string"})
SHAPE = RecordShape(AvroSchema.of(FIELDS), MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts")
LOG = "part=a/.f_1.log.1_0-0-0"
SEGMENT = 4096


@pytest.fixture
def storage(tmp_path: Path) -> CountingStorage:
    (tmp_path / "part=a").mkdir()
    return CountingStorage(str(tmp_path))


def _read(
    storage: CountingStorage, columns: list[str], blocks: BlockFilter | None = None
) -> Iterator[DataBlock | DeleteBlock]:
    info = storage.stat(LOG)
    assert info is not None
    both = BlockFilter(frozenset({T1, T2}), None)
    return LogCursor(storage, [(LOG, info.size)], blocks or both, is_strict=True).parts(SHAPE, columns)


def _records(count: int, text: str) -> list[dict[str, object]]:
    return [with_meta({"id": f"k{n}", "ts": n, "s": text}, f"k{n}", T1) for n in range(count)]


def test_an_avro_block_comes_in_segments_and_counts_as_one(
    storage: CountingStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avro_decode, "SEGMENT_BYTES", SEGMENT)
    data = avro_block(T1, written_schema(FIELDS), _records(1000, "x" * 40))
    storage.put(LOG, data)
    reads: list[int] = []
    plain = storage.read_range

    def read_range(path: str, offset: int, length: int) -> bytes:
        reads.append(length)
        return plain(path, offset, length)

    monkeypatch.setattr(CountingStorage, "read_range", lambda _, *range_: read_range(*range_))
    columns = ["_hoodie_record_key", "id", "ts", "s"]
    parts = [part for part in _read(storage, columns) if isinstance(part, DataBlock)]
    assert [row["ts"] for part in parts for row in part.records.to_pylist()] == list(range(1000))
    assert len(parts) > len(data) // SEGMENT
    assert max(reads) <= READ_AHEAD_BYTES
    # Each byte of the content once, except for records that a segment's end cuts in two.
    assert sum(length for length in reads if length <= SEGMENT) < 1.1 * len(data)
    assert [part.is_first for part in parts] == [True] + [False] * (len(parts) - 1)
    assert FoldedLogFiles.of(parts, parts[0].records.schema, SHAPE).block_count == 1


def test_a_small_log_takes_one_request(storage: CountingStorage) -> None:
    schema = written_schema(FIELDS)
    storage.put(LOG, b"".join(avro_block(instant, schema, _records(5, "x")) for instant in (T1, T2)))
    assert sum(part.records.num_rows for part in _read(storage, ["s"]) if isinstance(part, DataBlock)) == 10
    assert storage.opened[LOG] == 1


@pytest.mark.parametrize(("blocks", "requests"), [(1, 1), (2, 5)])
def test_a_log_of_a_server_is_small_up_to_a_larger_size(
    storage: CountingStorage, monkeypatch: pytest.MonkeyPatch, blocks: int, requests: int
) -> None:
    monkeypatch.setattr(CountingStorage, "is_remote", True)
    storage.put(LOG, blocks * avro_block(T1, written_schema(FIELDS), _records(1, "x" * 2 * WHOLE_FILE_BYTES)))
    assert sum(part.records.num_rows for part in _read(storage, ["s"]) if isinstance(part, DataBlock)) == blocks
    assert storage.opened[LOG] == requests


def test_the_headers_of_large_blocks_take_a_request_each(storage: CountingStorage) -> None:
    schema = written_schema(FIELDS)
    large = avro_block(T1, schema, _records(1, "x" * 3 * READ_AHEAD_BYTES))
    storage.put(LOG, large + large + avro_block(T2, schema, _records(5, "x")))
    only_last = BlockFilter(frozenset({T2}), None)
    assert sum(part.records.num_rows for part in _read(storage, ["s"], only_last) if isinstance(part, DataBlock)) == 5
    assert storage.opened[LOG] == 3


@pytest.mark.parametrize("text", ["", "y" * (SEGMENT - 200), "y" * SEGMENT, "y" * 3 * SEGMENT])
def test_a_record_longer_than_a_segment_is_read_alone(
    storage: CountingStorage, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(avro_decode, "SEGMENT_BYTES", SEGMENT)
    records = [*_records(3, "short"), *_records(2, text), *_records(1, "last")]
    storage.put(LOG, avro_block(T1, written_schema(FIELDS), records))
    rows = [row for part in _read(storage, ["s"]) if isinstance(part, DataBlock) for row in part.records.to_pylist()]
    assert rows == [{"s": record["s"]} for record in records]


@pytest.mark.parametrize("most", [1, 300, 800, 1 << 20])
def test_a_segment_is_decoded_in_pieces(storage: CountingStorage, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(avro_decode, "DECODED_BYTES", most)
    records = [*_records(30, "short"), *_records(2, "y" * 400), *_records(7, "last")]
    storage.put(LOG, avro_block(T1, written_schema(FIELDS), records))
    parts = [part for part in _read(storage, ["s"]) if isinstance(part, DataBlock)]
    assert [row for part in parts for row in part.records.to_pylist()] == [{"s": record["s"]} for record in records]
    assert (len(parts) == len(records)) == (most == 1)
    assert (len(parts) == 1) == (most == 1 << 20)


@pytest.mark.parametrize("cut", [1, 5, SEGMENT])
def test_a_content_shorter_than_its_records_is_reported(
    storage: CountingStorage, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    monkeypatch.setattr(avro_decode, "SEGMENT_BYTES", SEGMENT)
    schema = written_schema(FIELDS)
    content = avro_content(schema, _records(200, "x" * 40))
    storage.put(LOG, block(AVRO, {INSTANT_TIME: T1, SCHEMA: schema}, content[:-cut]))
    with pytest.raises(RecordDecodeError, match=r"block at byte 0: ends before record \d+ of 200"):
        list(_read(storage, ["s"]))
    storage.put(LOG, block(AVRO, {INSTANT_TIME: T1, SCHEMA: schema}, content + bytes(cut)))
    with pytest.raises(RecordDecodeError, match=r"its 200 records end at byte"):
        list(_read(storage, ["s"]))


def test_of_a_parquet_block_only_the_asked_columns_are_read(storage: CountingStorage) -> None:
    records = _records(3000, "")
    table = pa.Table.from_pylist([{**record, "s": f"{n:>500}"} for n, record in enumerate(records)])
    content = io.BytesIO()
    pq.write_table(table, content, row_group_size=500, compression="none", use_dictionary=False)
    storage.put(LOG, block(PARQUET, {INSTANT_TIME: T1, SCHEMA: written_schema(FIELDS)}, content.getvalue()))
    rows = [
        row["ts"] for part in _read(storage, ["ts"]) if isinstance(part, DataBlock) for row in part.records.to_pylist()
    ]
    assert rows == list(range(3000))
    assert storage.bytes_read[LOG] < len(content.getvalue()) / 10


def test_a_block_that_does_not_count_is_passed_over_whatever_its_size(storage: CountingStorage, tmp_path: Path) -> None:
    """The first block is a hole of three gigabytes in a sparse file."""
    hole = 3 << 30
    framed = block(AVRO, {INSTANT_TIME: "20260101000000000", SCHEMA: "{}"}, b"")
    head = framed[: -len(struct.pack(">qiq", 0, 0, 0))]
    with (tmp_path / LOG).open("wb") as file:
        size = len(framed) - 14 + hole
        file.write(head[:6] + struct.pack(">q", size) + head[14:] + struct.pack(">q", hole))
        file.seek(hole, io.SEEK_CUR)
        file.write(struct.pack(">iq", 0, size + 6))
        file.write(avro_block(T2, written_schema(FIELDS), _records(1, "seen")))
    (part,) = _read(storage, ["s"], BlockFilter(frozenset({T2}), "20250101000000000"))
    assert isinstance(part, DataBlock)
    assert part.records.to_pylist() == [{"s": "seen"}]
    assert storage.bytes_read[LOG] < 100_000
