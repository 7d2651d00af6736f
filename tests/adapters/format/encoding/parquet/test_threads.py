"""A base file that is encoded and compressed on threads: the same file, its errors, and what remains of the threads."""

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide_adapters.format.encoding.avro.schema import arrow_schema, table_fields
from eventide_adapters.format.encoding.parquet import gzip_pages, threads
from eventide_adapters.format.encoding.parquet.gzip_pages import gzip_page
from eventide_adapters.format.encoding.parquet.inflated_pages import InflatedPages
from eventide_adapters.format.encoding.parquet.output import ParquetOutput
from eventide_adapters.format.slice.base_file import parquet as base_parquet
from eventide_adapters.format.slice.base_file.parquet import BaseFileWriter, read_base
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.access.threads import Threads
from eventide_core.table.files.slice_read import BlockFilter, SliceRead
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from support.doubles.remote_stream import RemoteStream
from support.files.logs import table_schema

pytestmark = pytest.mark.slow

SCHEMA = AvroSchema.of(table_schema({"name": "id", "type": "string"}))
COLUMNS = arrow_schema(SCHEMA.with_meta_fields())


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_parquet, "ROW_GROUP_BYTES", 1 << 20)


@pytest.fixture
def processors() -> Iterator[Callable[[int], None]]:
    before = pa.cpu_count()
    yield pa.set_cpu_count
    pa.set_cpu_count(before)


def rows(group: int) -> pa.Table:
    """A row group of 1.1 MB in which each page differs."""
    count = 5000
    return pa.table({name: [f"{name} {group} {row:09}" for row in range(count)] for name in COLUMNS.names}, COLUMNS)


class Output:
    """Accepts so many bytes, and then has no space left."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.data = bytearray()
        self._room = room

    def write(self, data: Any, /) -> int:
        if len(self.data) + len(data) > self._room:
            raise OSError(errno.ENOSPC, "no space left on device")
        self.data += data
        return len(data)


def written(output: Any, codec: str, groups: int = 4) -> None:
    with BaseFileWriter(output, SCHEMA, codec=codec, bloom=None) as writer:
        for group in range(groups):
            writer.write(rows(group))
        writer.close({})


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_threads_write_the_same_bytes(codec: str, processors: Callable[[int], None]) -> None:
    contents: list[bytes] = []
    for count in (1, 2, 5):
        processors(count)
        output = Output()
        written(output, codec)
        contents.append(bytes(output.data))
    assert contents[0] == contents[1] == contents[2]


@pytest.mark.parametrize("count", [1, 2])
def test_only_a_second_processor_gets_threads(
    count: int, processors: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    processors(count)
    encoding, compressing = set[int](), set[int]()
    write = ParquetOutput.write

    def noted_write(self: ParquetOutput, records: pa.Table) -> None:
        encoding.add(threading.get_ident())
        write(self, records)

    def noted_page(page: bytes) -> bytes:
        if len(page) >= 64 * 1024:  # a smaller one is compressed where it is encoded
            compressing.add(threading.get_ident())
        return gzip_page(page)

    monkeypatch.setattr(ParquetOutput, "write", noted_write)
    monkeypatch.setattr(gzip_pages, "gzip_page", noted_page)
    written(Output(), "gzip")
    here = {threading.get_ident()}
    if count == 1:
        assert encoding == compressing == here
    else:
        assert not encoding & here
        assert not compressing & (here | encoding)


@pytest.mark.parametrize("count", [1, 2])
def test_only_a_second_processor_decodes_on_other_threads(
    count: int, processors: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    processors(count)
    output = Output()
    written(output, "gzip")
    (tmp_path / "base.parquet").write_bytes(output.data)
    reading = set[int]()
    read = InflatedPages.read

    def noted_read(self: InflatedPages, size: int = -1, /) -> memoryview:
        data = read(self, size)
        if len(data) > 16 * 1024:  # a page of values
            reading.add(threading.get_ident())
        return data

    monkeypatch.setattr(InflatedPages, "of", partial(InflatedPages.of, bytes_min=0))
    monkeypatch.setattr(InflatedPages, "read", noted_read)
    fields = table_fields(SCHEMA)
    batches = list(read_base(LocalStorage(str(tmp_path)), "base.parquet", fields))
    assert sum(len(batch) for batch in batches) == 20_000
    assert (reading == {threading.get_ident()}) == (count == 1)
    assert reading


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("room", [0, 100_000, 300_000])
def test_an_error_of_the_storage_is_raised_as_it_is_and_no_thread_remains(
    codec: str, count: int, room: int, processors: Callable[[int], None]
) -> None:
    processors(count)
    before = set(threading.enumerate())
    with pytest.raises(OSError, match="no space left") as raised:
        written(Output(room), codec, groups=20)
    assert raised.value.errno == errno.ENOSPC
    assert set(threading.enumerate()) <= before


def test_an_error_of_a_thread_that_compresses_is_raised_and_no_thread_remains(
    processors: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    processors(2)
    before = set(threading.enumerate())

    def failing(page: bytes) -> bytes:
        raise MemoryError(len(page))

    monkeypatch.setattr(gzip_pages, "gzip_page", failing)
    with pytest.raises(MemoryError):
        written(Output(), "gzip", groups=20)
    assert set(threading.enumerate()) <= before


def test_a_writer_that_is_left_in_the_middle_ends_its_threads_and_writes_no_more(
    processors: Callable[[int], None],
) -> None:
    processors(2)
    before = set(threading.enumerate())
    output = Output()

    def left(output: Any = output) -> None:
        with BaseFileWriter(output, SCHEMA, codec="gzip", bloom=None) as writer:
            for group in range(3):
                writer.write(rows(group))
            raise KeyError("id")

    with pytest.raises(KeyError):
        left()
    assert set(threading.enumerate()) <= before
    assert not output.data.endswith(b"PAR1")


@pytest.mark.parametrize(("count", "is_remote", "has_thread"), [(1, False, False), (1, True, True), (2, False, True)])
def test_a_batch_is_read_ahead_where_something_else_can_be_done_meanwhile(
    count: int,
    is_remote: bool,
    has_thread: bool,
    processors: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = Output()
    written(output, "uncompressed")  # so that the file is large enough not to be read at once
    storage = MemoryStorage.from_dump("base-file-on-threads", {})
    storage.put("file", bytes(output.data))
    if is_remote:
        monkeypatch.setattr(storage, "open_input", lambda path: RemoteStream(storage.read(path)))
    processors(count)
    pools: list[int] = []

    def noted(threads: int) -> Threads:
        pools.append(threads)
        return Threads(threads)

    monkeypatch.setattr(threads, "Threads", noted)
    table = pa.Table.from_batches(base_parquet.read_base(storage, "file", table_fields(SCHEMA)))
    assert table.column("id").to_pylist() == [name for group in range(4) for name in rows(group)["id"].to_pylist()]
    assert pools == ([1] if has_thread else [])


def test_slices_side_by_side_share_the_processors(processors: Callable[[int], None]) -> None:
    processors(4)
    shares: list[int] = [threads.processors()]
    with threads.slice_at_work():
        shares.append(threads.processors())
        with threads.slice_at_work():
            shares.append(threads.processors())
            with suppress(RuntimeError), threads.slice_at_work():
                shares.append(threads.processors())
                raise RuntimeError
        shares.append(threads.processors())
    assert shares == [4, 4, 2, 1, 4]
    processors(1)
    with threads.slice_at_work(), threads.slice_at_work():
        assert threads.processors() == 1


@pytest.mark.parametrize("ends_early", [False, True])
def test_a_slice_that_is_read_counts_until_its_reader_ends(
    ends_early: bool, processors: Callable[[int], None], tmp_path: Path
) -> None:
    processors(2)
    output = Output()
    written(output, "gzip")
    (tmp_path / "base.parquet").write_bytes(output.data)
    reader = ArrowSliceReader(LocalStorage(tmp_path))
    shape = RecordShape(SCHEMA, MergeRule.COMMIT_TIME_ORDERING, (), None)
    batches: Any = reader.read(SliceRead("", "f-0", "base.parquet", (), BlockFilter(frozenset(), None)), shape, None)
    assert threads.processors() == 2
    next(batches)
    with threads.slice_at_work():
        assert threads.processors() == 1
    if ends_early:
        batches.close()
    else:
        list(batches)
    with threads.slice_at_work():
        assert threads.processors() == 2
