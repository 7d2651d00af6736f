"""Small files that would cost their reader much memory or time: each is refused at once, with little memory."""

import io
import json
import resource
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.encoding.avro.schema import table_fields
from eventide_adapters.format.encoding.parquet.thrift_compact import elements, fields, with_integers
from eventide_adapters.format.metadata_table.records.hfile import HFile
from eventide_adapters.format.metadata_table.records.hfile_writer import HFileStyle, encode_hfile
from eventide_adapters.format.metadata_table.records.records import decode_value
from eventide_adapters.format.slice.base_file.parquet import read_base
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.timeline.archived_lsm import LsmArchivedTimeline
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import (
    CorruptLogBlockError,
    CorruptTimelineError,
    EventideError,
    RecordDecodeError,
    ResourceLimitError,
    UnsupportedTableError,
)
from eventide_core.table.files.log_block import MAGIC, BlockType, HeaderKey, encode_block
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from support.processes.peak_memory import peak_memory

CODEC = HudiMetadataCodec()
MEBIBYTE = 1024 * 1024
PEAK_BYTES_MAX = 64 * MEBIBYTE
SECONDS_MAX = 5
INSTANT = "20261121000000000"
LOG = f".f_{INSTANT}.log.1_0-0-0"

Schema = dict[str, Any]


def refused(kind: type[EventideError], read: Callable[[], object], *, match: str | None = None) -> None:
    """The typed answer, in little time and memory."""
    began = time.process_time()
    with peak_memory() as peak, pytest.raises(kind, match=match):
        read()
    assert peak.grown_bytes < PEAK_BYTES_MAX, f"{peak.grown_bytes // MEBIBYTE} MB"
    assert time.process_time() - began < SECONDS_MAX


def record(name: str, **fields: Any) -> Schema:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


def doubling(times: int, leaf: Any) -> Schema:
    """Each type holds the one before it twice: a schema of n lines for 2**n values."""
    types = [record("R0", leaf=leaf)] + [record(f"R{n}", left=f"R{n - 1}", right=f"R{n - 1}") for n in range(1, times)]
    return record("T", **{f"f{n}": kind for n, kind in enumerate(types)})


def container(schema: Any, content: bytes, codec: str = "null") -> bytes:
    """An Avro container of one record, whatever its bytes."""
    if codec == "deflate":
        deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        content = deflate.compress(content) + deflate.flush()
    head, body, sync = io.BytesIO(b"Obj\x01"), io.BytesIO(), bytes(16)
    head.seek(4)
    metadata = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    fastavro.schemaless_writer(head, {"type": "map", "values": "bytes"}, metadata)
    for number in (1, len(content)):
        fastavro.schemaless_writer(body, "long", number)
    return head.getvalue() + sync + body.getvalue() + content + sync


BOMBS_OF_TIMELINES: dict[str, tuple[type[EventideError], bytes]] = {
    "200 MB in 200 kB": (ResourceLimitError, container("bytes", bytes(200 * MEBIBYTE), "deflate")),
    "2**60 nulls in no bytes": (CorruptTimelineError, container(doubling(60, "null"), b"")),
    "2**60 records without fields": (CorruptTimelineError, container(doubling(60, record("E")), b"")),
    "a list of 2**40 nulls": (
        CorruptTimelineError,
        container(record("T", a={"type": "array", "items": "null"}), b"\x80\x80\x80\x80\x80\x80\x40\0"),
    ),
    "a list of 2**40 records without fields": (
        CorruptTimelineError,
        container(record("T", a={"type": "array", "items": record("E")}), b"\x80\x80\x80\x80\x80\x80\x40\0"),
    ),
    "a list that says 2**40 items": (
        CorruptTimelineError,
        container(record("T", a={"type": "array", "items": "string"}), b"\x80\x80\x80\x80\x80\x80\x40\0"),
    ),
    "a text that says 2**40 bytes": (CorruptTimelineError, container(record("T", a="string"), b"\x80" * 6 + b"\x40")),
    "fixed bytes, 2**40 of them": (
        CorruptTimelineError,
        container(record("T", a={"type": "fixed", "name": "F", "size": 2**40}), b"x"),
    ),
    "fixed bytes, less than none": (
        CorruptTimelineError,
        container(record("T", a={"type": "fixed", "name": "F", "size": -1}), b"x"),
    ),
    "a type within itself": (CorruptTimelineError, container(record("T", a=["null", "T"]), b"\x02" * 1000)),
}


@pytest.mark.parametrize("bomb", BOMBS_OF_TIMELINES)
def test_a_timeline_file_that_inflates_too_much_is_refused(bomb: str) -> None:
    kind, data = BOMBS_OF_TIMELINES[bomb]
    assert len(data) < MEBIBYTE
    refused(kind, lambda: CODEC.decode_commit(data, "t.commit"), match=r"t\.commit")


def nested(times: int) -> str:
    """A schema of lists in lists, deeper than json would write it."""
    begin, end = '{"type":"array","items":', "}"
    return f'{{"type":"record","name":"T","fields":[{{"name":"a","type":{begin * times}"int"{end * times}}}]}}'


BOMBS_OF_LOGS: dict[str, tuple[type[EventideError], str, bytes]] = {
    "2**60 values": (ResourceLimitError, json.dumps(doubling(60, "int")), b""),
    "2**20 values": (ResourceLimitError, json.dumps(doubling(20, "int")), b""),
    "65 types in each other": (ResourceLimitError, nested(65), b"\0"),
    "200 types in each other": (ResourceLimitError, nested(200), b"\0"),
    "10,000 types in each other": (UnsupportedTableError, nested(10_000), b"\0"),
    "a type within itself": (UnsupportedTableError, json.dumps(record("T", a=["null", "T"])), b"\x02" * 1000),
    "a list that says 2**40 items": (
        RecordDecodeError,
        json.dumps(record("T", a={"type": "array", "items": "int"})),
        b"\x80\x80\x80\x80\x80\x80\x40\0",
    ),
    "a text that says 2**40 bytes": (RecordDecodeError, json.dumps(record("T", a="string")), b"\x80" * 6 + b"\x40"),
}


def log_with(kind: BlockType, schema: str, content: bytes) -> MemoryStorage:
    header = {HeaderKey.INSTANT_TIME: INSTANT, HeaderKey.SCHEMA: schema}
    storage = MemoryStorage.from_dump("bombs", {})
    storage.put(LOG, encode_block(kind, header, content))
    return storage


def read_log(storage: MemoryStorage | LocalStorage, size: int, schema: str) -> None:
    shape = RecordShape(AvroSchema.of(schema), MergeRule.COMMIT_TIME_ORDERING, (), None)
    blocks = BlockFilter(frozenset({INSTANT}), "0")
    for _ in LogCursor(storage, [(LOG, size)], blocks, is_strict=True).parts(shape, None):
        pass


@pytest.mark.parametrize("bomb", BOMBS_OF_LOGS)
def test_a_log_file_that_inflates_too_much_is_refused(bomb: str) -> None:
    kind, schema, avro = BOMBS_OF_LOGS[bomb]
    content = struct.pack(">iii", 3, 1, len(avro)) + avro
    storage = log_with(BlockType.AVRO_DATA, schema, content)
    info = storage.stat(LOG)
    assert info is not None
    refused(kind, lambda: read_log(storage, info.size, schema))


def test_a_schema_of_a_very_wide_table_is_read() -> None:
    wide = record("T", **{f"c{number}": ["null", "string"] for number in range(10_000)})
    assert len(table_fields(AvroSchema.of(json.dumps(wide)))) == 10_005


def test_a_delete_block_that_claims_gigabytes_of_a_hole_in_a_file_is_refused(tmp_path: Path) -> None:
    """A file may be as large as it says, and have no bytes on the disk."""
    header = struct.pack(">iii", 1, HeaderKey.INSTANT_TIME, len(INSTANT)) + INSTANT.encode()
    size = 3 * 1024**3
    head = struct.pack(">ii", 1, BlockType.DELETE) + header
    length = size - 6 - 8
    content = length - len(head) - 8 - 4 - 8
    with open(tmp_path / LOG, "wb") as file:
        file.write(MAGIC + struct.pack(">q", length) + head + struct.pack(">q", content))
        file.seek(size - 12)
        file.write(struct.pack(">iq", 0, length + len(MAGIC)))
    schema = json.dumps(record("T", a="int"))
    refused(ResourceLimitError, lambda: read_log(LocalStorage(tmp_path), size, schema), match="at once")


def test_a_timeline_file_of_gigabytes_of_nothing_is_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "file", "wb") as file:
        file.truncate(2**40)
    refused(ResourceLimitError, lambda: LocalStorage(tmp_path).read("file"), match="'file'")
    assert LocalStorage(tmp_path).read_range("file", 2**39, 3) == bytes(3)


def hfile(data: bytes) -> HFile:
    return HFile(lambda offset, length: data[offset : offset + length], len(data), CorruptLogBlockError)


def entries_of(data: bytes) -> list[tuple[bytes, bytes]]:
    return list(hfile(data).entries())


BYTES = AvroSchema.of('"bytes"')
HFILE = encode_hfile([(b"a", bytes(1000)), (b"b", bytes(1000))], BYTES, style=HFileStyle.NATIVE, block_bytes=100)


def test_a_block_of_an_hfile_that_inflates_too_much_is_refused() -> None:
    size_at = 8 + 4
    said = HFILE[:size_at] + struct.pack(">i", 2**31 - 1) + HFILE[size_at + 4 :]
    refused(ResourceLimitError, lambda: entries_of(said), match="HFile block of 2147483647 bytes")
    held = encode_hfile([(b"a", bytes(20 * MEBIBYTE))], BYTES, style=HFileStyle.NATIVE)
    refused(ResourceLimitError, lambda: entries_of(held), match="HFile block")
    lied = held[:size_at] + struct.pack(">i", 1000) + held[size_at + 4 :]
    refused(CorruptLogBlockError, lambda: entries_of(lied), match="does not end where it states")


def test_an_index_of_an_hfile_that_names_one_block_again_and_again_is_refused() -> None:
    """Otherwise, each name would cost the inflation of a block."""
    entries = [(f"{number:04}".encode(), bytes(100)) for number in range(50)]
    data = encode_hfile(entries, BYTES, style=HFileStyle.NATIVE, block_bytes=100)
    index_at = data.index(b"IDXROOT2")
    on_disk, _, _ = struct.unpack_from(">iiq", data, index_at + 8)
    start, end = index_at + 33, index_at + 33 + on_disk
    with_header = struct.unpack_from(">i", data, index_at + 29)[0]
    index = bytearray(zlib.decompress(data[start : index_at + with_header], 31))
    second = len(index) // 50
    index[second : second + 8] = bytes(8)  # the second entry leads to the first block again
    squeezed = zlib.compressobj(0, wbits=31)
    packed = squeezed.compress(bytes(index)) + squeezed.flush()
    assert second * 50 == len(index)
    moved = len(packed) - (with_header - 33)
    header = data[index_at : index_at + 8] + struct.pack(">i", on_disk + moved) + data[index_at + 12 : index_at + 29]
    header += struct.pack(">i", with_header + moved)
    rest = data[index_at + with_header : -4096]
    torn = data[:index_at] + header + packed + rest + data[-4096:]
    assert end <= len(data)
    refused(CorruptLogBlockError, lambda: entries_of(torn), match="goes back")


def test_a_schema_of_the_metadata_table_that_expands_too_much_is_refused() -> None:
    schema = json.dumps(doubling(60, "null"))
    refused(RecordDecodeError, lambda: decode_value(b"", AvroSchema.of(schema), "the file"), match="the file")


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=len(table) or 1, store_schema=False, **options)
    return sink.getvalue()


ALIKE = parquet(pa.table({"a": pa.repeat(pa.scalar(7, pa.int32()), 10_000_000)}), compression="zstd")
A_SCHEMA = json.dumps(record("T", a=["null", "int"]))


def test_a_parquet_file_of_more_rows_than_its_bytes_can_tell_apart_is_refused() -> None:
    """A run of one value takes some bytes, however long it is."""
    assert len(ALIKE) < 50_000
    storage = MemoryStorage.from_dump("bombs", {})
    storage.put("base.parquet", ALIKE)
    fields = table_fields(AvroSchema.of(A_SCHEMA), ["a"])
    refused(ResourceLimitError, lambda: list(read_base(storage, "base.parquet", fields)), match=r"base\.parquet.*rows")
    log = log_with(BlockType.PARQUET_DATA, A_SCHEMA, ALIKE)
    info = log.stat(LOG)
    assert info is not None
    refused(ResourceLimitError, lambda: read_log(log, info.size, A_SCHEMA), match="rows")


def test_a_column_that_claims_to_inflate_to_gigabytes_is_refused() -> None:
    data = parquet(pa.table({"a": pa.array(["x" * 1000] * 4000)}), compression="gzip", use_dictionary=False)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:-8]
    group, _ = fields(footer, elements(footer, fields(footer, 0)[0][4][0])[0][0])
    chunk, _ = fields(footer, elements(footer, group[1][0])[0][0])
    column, _ = fields(footer, chunk[3][0])
    claimed = with_integers(footer, 0, len(footer), {group[2]: 2 << 30, column[6]: 2 << 30})
    storage = MemoryStorage.from_dump("bombs", {})
    storage.put("base.parquet", data[:start] + claimed + len(claimed).to_bytes(4, "little") + b"PAR1")
    asked = table_fields(AvroSchema.of(json.dumps(record("T", a=["null", "string"]))), ["a"])
    refused(ResourceLimitError, lambda: list(read_base(storage, "base.parquet", asked)), match="column a inflates")


def test_what_takes_more_memory_than_the_process_has_is_reported_by_name() -> None:
    """One text of a megabyte, to which all rows point: only reading it shows what it takes."""
    rows = 100_000
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * MEBIBYTE]))
    storage = MemoryStorage.from_dump("bombs", {})
    storage.put("base.parquet", parquet(pa.table({"a": texts}), compression="gzip"))
    fields = table_fields(AvroSchema.of(json.dumps(record("T", a=["null", "string"]))), ["a"])
    limit = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 200 * MEBIBYTE, limit[1]))
    try:
        with pytest.raises(ResourceLimitError, match=r"base\.parquet takes more memory"):
            list(read_base(storage, "base.parquet", fields))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)


def archive_of(table: pa.Table) -> LsmArchivedTimeline:
    storage = MemoryStorage.from_dump("bombs", {})
    name = f"{INSTANT}_{INSTANT}_0.parquet"
    storage.put("history/_version_", b"1")
    storage.put("history/manifest_1", json.dumps({"files": [{"fileName": name, "fileLen": 1}]}).encode())
    storage.put(f"history/{name}", parquet(table, compression="gzip"))
    return LsmArchivedTimeline(storage, "history")


def instants(count: int, **columns: Any) -> pa.Table:
    said = {"instantTime": INSTANT, "completionTime": INSTANT, "action": "deltacommit", **columns}
    texts = {
        name: pa.DictionaryArray.from_arrays(
            pa.array([0] * count, pa.int32()), pa.array([text], pa.binary() if name == "metadata" else pa.string())
        )
        for name, text in said.items()
    }
    return pa.table(texts)


def test_an_archived_timeline_of_more_instants_than_bytes_is_refused() -> None:
    archive = archive_of(instants(200_000, metadata=b"{}"))
    refused(ResourceLimitError, lambda: archive.find(INSTANT), match="200000 rows")


def test_a_time_of_a_megabyte_is_refused() -> None:
    archive = archive_of(instants(1, instantTime="0" * MEBIBYTE, metadata=b"{}"))
    refused(CorruptTimelineError, lambda: archive.find(INSTANT), match="instantTime of 1048576 characters")


def test_metadata_that_many_instants_point_to_take_their_room_once() -> None:
    metadata = b'{"extraMetadata": {"x": "' + b"x" * MEBIBYTE + b'"}}'
    archive = archive_of(instants(1000, metadata=metadata))
    with peak_memory() as peak:
        assert archive.commit(INSTANT) is not None
    assert peak.grown_bytes < PEAK_BYTES_MAX
