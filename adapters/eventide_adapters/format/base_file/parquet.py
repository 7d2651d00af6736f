"""Base files: Parquet as Hudi writes it, read and written in bounded memory.

Read: one row group at a time, with one batch prefetched. A file's columns become those of the table's schema, as
column_resolution describes. The reader accepts INT96 timestamps and every list form that Hudi's writers have used
(`list.element`, `array`, `bag.array`).

Written: row groups of 24 MB in memory, or a batch more. While one is gathered, a thread encodes the one before. Each column
is stored as parquet-avro stores it, except that lists always have three levels. The footer has the keys that Hudi's indexes
look for:

    org.apache.hudi.bloomfilter     the bloom filter of the record keys
    hoodie_bloom_filter_type_code   its type; absent for SIMPLE
    hoodie_min_record_key, hoodie_max_record_key     in Java's order of strings; absent if there are no records
    parquet.avro.schema, writer.model.name           the Avro schema, as Hudi's Avro writer stores it
    org.apache.spark.version        states that days count in today's calendar; without it, Spark refuses those before 1582
"""

import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from eventide_adapters.format.avro.column_resolution import check_columns, resolve_columns
from eventide_adapters.format.avro.reading_limits import check_parquet, is_lack_of_resources, within_memory
from eventide_adapters.format.avro.schema import RECORD_KEY, AvroField
from eventide_adapters.format.base_file.bloom_filter import (
    FOOTER_KEY,
    SIMPLE,
    TYPE_FOOTER_KEY,
    BloomFilter,
    BloomFilterBuilder,
)
from eventide_adapters.format.base_file.dictionary_columns import (
    as_dictionaries,
    check_numbers,
    small_dictionary_columns,
)
from eventide_adapters.format.base_file.footer_columns import Footer, codec_of, require_columns
from eventide_adapters.format.base_file.inflated_pages import InflatedPages, is_local
from eventide_adapters.format.base_file.key_range import (
    MAX_KEY_FOOTER,
    MIN_KEY_FOOTER,
    java_order,
    least_and_greatest,
)
from eventide_adapters.format.base_file.legacy_calendar import LegacyCalendar
from eventide_adapters.format.base_file.parquet_output import LEVELS, ROW_GROUP_ROWS_MAX, ParquetOutput, avro_footer
from eventide_adapters.format.base_file.parquet_output import ROW_GROUP_BYTES as _ROW_GROUP_BYTES
from eventide_adapters.format.base_file.prefetch import prefetch
from eventide_adapters.format.base_file.threads import processors, threads_at_most
from eventide_core.errors import CorruptBaseFileError, EventideError, RecordDecodeError
from eventide_core.ports import OutputFile, Storage
from eventide_core.ports.threads import Handed, Threads
from eventide_core.table.records.column_names import FileColumns

_BATCH_ROWS: Final = 1 << 17
_BATCH_BYTES: Final = 16 * 1024 * 1024  # of a merge that writes: two of them are a row group
_QUERY_BATCH_BYTES: Final = 28 * 1024 * 1024  # each batch costs milliseconds, and a query keeps its rows anyway
_BATCH_ROWS_MIN: Final = 1 << 10
_VALUE_BYTES_MIN: Final = 16  # of a string that a dictionary makes small in the file
_ROWS_WORTH_A_THREAD: Final = 4096
# Arrow reads a Python file in pieces, each on a separate thread, but reads memory directly. Half a megabyte of even the
# smallest file is its bloom filter, which every read loads.
_AT_ONCE_BYTES_MAX: Final = 1024 * 1024
# With a buffer, Arrow reads page by page; it looks for each header in so many bytes.
_PAGE_BUFFER_BYTES: Final = 16 * 1024
_SINK_BUFFER_BYTES: Final = 64 * 1024


def read_base(
    storage: Storage,
    path: str,
    target: Sequence[AvroField],
    dictionary_candidates: Collection[str] = (),
    choice: "Callable[[BaseFile], Sequence[int]] | None" = None,
    named: FileColumns | None = None,
) -> Iterator[pa.RecordBatch]:
    """The file's records in the columns and types of `target`, in the file's order.

    `named` are the names of the columns in the file; None if they are those of `target`.

    Strings of the columns `dictionary_candidates` come as dictionaries if they have few distinct values
    (dictionary_columns.py). `choice` returns the row groups to read; None: all.

    Raises MissingFileError; CorruptBaseFileError if the file is not Parquet or a value doesn't fit its column;
    UnsupportedTableError if a column's type doesn't fit the target's type.
    """
    wanted = _Wanted(target, dictionary_candidates if named is None else (), f"base file {path}", named)
    with open_base(storage, path, wanted.dictionary_candidates) as file:
        groups = None if choice is None else choice(file)
        if groups is None or len(groups):
            yield from _batches_ahead(file, wanted, _QUERY_BATCH_BYTES, groups)


def read_base_and_footer(
    storage: Storage,
    path: str,
    target: Sequence[AvroField],
    dictionary_candidates: Collection[str] = (),
    named: FileColumns | None = None,
) -> "tuple[BaseFooter, Iterator[pa.RecordBatch]]":
    """The footer and the records of a file. Opens it once. Raises the same errors as `read_base`."""
    wanted = _Wanted(target, dictionary_candidates if named is None else (), f"base file {path}", named)
    opened = _footer_then_batches(storage, path, wanted)
    footer: Any = next(opened)
    records: Any = opened
    return footer, records


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What to read of the base file that `place` names."""

    target: Sequence[AvroField]
    dictionary_candidates: Collection[str]
    place: str
    named: FileColumns | None

    def source(self, name: str) -> str | None:
        """The name in the file."""
        return name if self.named is None else self.named.source(name)


def _footer_then_batches(storage: Storage, path: str, wanted: _Wanted) -> "Iterator[BaseFooter | pa.RecordBatch]":
    with open_base(storage, path, wanted.dictionary_candidates) as file:
        yield BaseFooter.of(file)
        yield from _batches_ahead(file, wanted, _BATCH_BYTES)


def _batches_ahead(
    file: "BaseFile", wanted: _Wanted, batch_bytes: int, groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The batches, with one prefetched, unless there is neither a second processor to make it nor a network to wait for."""
    batches = _batches(file, wanted, batch_bytes, groups)
    if processors() == 1 and is_local(file.stream):
        return batches
    return prefetch(batches, file.metadata.num_rows)


def _batches(
    file: "BaseFile", wanted: _Wanted, batch_bytes: int, groups: Sequence[int] | None
) -> Iterator[pa.RecordBatch]:
    place, target, named = wanted.place, wanted.target, wanted.named
    written = {field.name: field.type for field in file.schema_arrow}
    if named is not None:
        named.require(written, place)
    sources = {field.name: source for field in target if (source := wanted.source(field.name)) is not None}
    require_columns(file.metadata, [source for source in sources.values() if source not in written], place)
    few = [name for name in wanted.dictionary_candidates if pa.types.is_dictionary(written.get(name, pa.null()))]
    target = as_dictionaries(target, few)
    sources = {name: source for name, source in sources.items() if source in written}
    check_columns({name: written[source] for name, source in sources.items()}, target, place)
    names = list(sources.values())
    file = file.inflated(names)
    # Decoding a few rows takes less time than starting a thread. Without a second processor, a thread only costs memory:
    # allocators keep what each thread freed for that thread.
    has_many = file.metadata.num_rows > _ROWS_WORTH_A_THREAD and processors() > 1
    size = _batch_rows(file.metadata, len(names), batch_bytes)
    for batch in file.batches(size, names, use_threads=has_many, groups=groups):
        check_numbers(batch, few, place)
        found = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns = {name: found[source] for name, source in sources.items()}
        try:
            yield resolve_columns(columns, batch.num_rows, target, place)
        except RecordDecodeError as error:
            raise CorruptBaseFileError(str(error)) from error


def _batch_rows(metadata: pq.FileMetaData, columns: int, batch_bytes: int) -> int:
    """The number of rows in a batch of so many bytes, assuming that all columns have similar sizes."""
    whole = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
    share = columns / max(metadata.num_columns, 1)
    row_bytes = max(whole * share / max(metadata.num_rows, 1), _VALUE_BYTES_MIN * columns, 1)
    return min(_BATCH_ROWS, max(_BATCH_ROWS_MIN, int(batch_bytes / row_bytes)))


def read_footer(storage: Storage, path: str) -> dict[str, str]:
    """The key-value pairs in the file's footer. Raises MissingFileError, CorruptBaseFileError."""
    with open_base(storage, path) as file:
        pairs = file.metadata.metadata or {}
        return {key.decode(): value.decode() for key, value in pairs.items()}


@dataclass(frozen=True, slots=True)
class BaseFooter:
    """The part of a base file's footer that the writer of the next base file needs.

    `pairs` are its keys and values, as undecoded bytes, because one value can have half a megabyte. `codec` is the
    compression of its columns, or gzip, which is Hudi's default, if eventide does not write that codec.
    """

    pairs: Mapping[bytes, bytes]
    row_count: int
    codec: str

    @classmethod
    def read(cls, storage: Storage, path: str) -> "BaseFooter":
        """Raises MissingFileError, CorruptBaseFileError."""
        with open_base(storage, path) as file:
            return cls.of(file)

    @classmethod
    def of(cls, file: "BaseFile") -> "BaseFooter":
        metadata, written = file.metadata, codec_of(file.footer)
        return cls(
            metadata.metadata or {}, metadata.num_rows, written if written is not None and written in LEVELS else "gzip"
        )


def earlier_bloom(footer: BaseFooter, path: str) -> BloomFilter | None:
    """The bloom filter in a footer; None if there is none. Raises CorruptBaseFileError."""
    text = footer.pairs.get(FOOTER_KEY.encode())
    if text is None:
        return None
    type_code = footer.pairs.get(TYPE_FOOTER_KEY.encode(), SIMPLE.encode())
    return BloomFilter(type_code.decode(errors="replace"), text, path)


class BaseFileWriter:
    """Writes one base file to an output: the records in order, then the footer. Does not commit the output.

    If `close` is not called, the output is unfinished at the end of the `with` block.
    """

    def __init__(self, output: OutputFile, schema: str, *, codec: str, bloom: BloomFilterBuilder | None) -> None:
        """`schema` is the table's Avro schema. `bloom` is None if the files have no record keys to look up.

        Raises ConfigError for an unknown codec.
        """
        self._schema = schema
        self._sink = _Sink(output)
        self._bloom = bloom
        self._keys: tuple[str, str] | None = None
        self._pending: list[pa.Table] = []
        self._pending_bytes = self._pending_rows = 0
        self.row_count = 0
        sink: Any = self._sink  # an IOBase; Arrow accepts it, although its stubs require IO
        # Pages of small columns have only a few bytes; without a buffer, each would be a call into Python.
        self._buffer: Any = pa.BufferedOutputStream(pa.PythonFile(sink, mode="w"), _SINK_BUFFER_BYTES)
        self._writer = ParquetOutput(self._buffer, schema, codec)
        # Encodes one row group while the next one is gathered.
        self._thread = threads_at_most(1)
        self._encoding: Handed[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Arrow's writer writes a footer whenever it is closed, and warns if it is not closed.
        self._sink.discard()
        if self._thread is not None:
            self._thread.shutdown()
        self._writer.abandon()

    def write(self, records: pa.Table, *, are_keys_known: bool = False) -> None:
        """Adds records with all columns of the table. `are_keys_known`: the bloom filter already contains their keys."""
        if not len(records):
            return
        if self._bloom is not None:
            keys = records.column(RECORD_KEY)
            if not are_keys_known:
                self._bloom.add(keys)
            self._widen_key_range(keys)
        self.row_count += len(records)
        self._pending.append(records)
        self._pending_bytes += records.nbytes
        self._pending_rows += len(records)
        if self._pending_bytes >= _ROW_GROUP_BYTES or self._pending_rows >= ROW_GROUP_ROWS_MAX:
            self._flush(self._thread)

    def close(self, footer: Mapping[str, str]) -> int:
        """Writes the footer with Hudi's keys and the pairs of `footer`. Returns the file's size in bytes."""
        self._flush(None)
        pairs: dict[str, str | bytes] = {}
        if self._bloom is not None:
            pairs[FOOTER_KEY] = self._bloom.text()
            if self._bloom.type_code != SIMPLE:
                pairs[TYPE_FOOTER_KEY] = self._bloom.type_code
        if self._keys is not None:
            pairs[MIN_KEY_FOOTER], pairs[MAX_KEY_FOOTER] = self._keys
        self._writer.close({**pairs, **avro_footer(self._schema), **footer})
        self._buffer.flush()
        return self._sink.tell()

    def _flush(self, thread: Threads | None) -> None:
        """Writes the row group, here or on the thread, after the previous one. Raises what that one raised."""
        if self._encoding is not None:
            self._encoding.result()
            self._encoding = None
        if self._pending:
            rows = pa.concat_tables(self._pending)
            if thread is None:
                self._writer.write(rows)
            else:
                self._encoding = thread.submit(self._writer.write, rows)
        self._pending = []
        self._pending_bytes = self._pending_rows = 0

    def _widen_key_range(self, keys: "pa.ChunkedArray[Any]") -> None:
        for chunk in keys.chunks:
            if len(chunk):
                ends = [*least_and_greatest(chunk), *(self._keys or ())]
                self._keys = min(ends, key=java_order), max(ends, key=java_order)


class _Sink(io.RawIOBase):
    """Presents an OutputFile to Parquet as a stream."""

    def __init__(self, output: OutputFile) -> None:
        self._output: OutputFile | None = output
        self._size = 0

    def discard(self) -> None:
        """Discards everything that is written from now on."""
        self._output = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self._output is not None:
            self._size += self._output.write(memoryview(data))
        return len(data)

    def tell(self) -> int:
        return self._size


class BaseFile(pq.ParquetFile):
    """An open base file, with its stream, its size, and the bytes of its footer."""

    stream: BinaryIO
    size: int
    footer: Footer
    dictionary_columns: list[str]

    @classmethod
    def of_log_block(cls, stream: BinaryIO, size: int) -> Self:
        """The content of a Parquet log block. Raises Arrow's errors."""
        file = cls(stream, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
        file.stream, file.size, file.footer, file.dictionary_columns = stream, size, Footer(stream, size), []
        return file

    def inflated(self, columns: Collection[str]) -> "BaseFile":
        """The same file to read only these columns, of which the pages in gzip are inflated before Arrow reads them.

        This one if nothing is to be inflated.
        """
        if codec_of(self.footer) != "gzip":
            return self
        source: Any = InflatedPages.of(self.stream, self.size, self.footer.data, columns, self.footer.walked)
        if source is None:
            return self
        return BaseFile(
            source,
            read_dictionary=self.dictionary_columns,
            coerce_int96_timestamp_unit="us",
            pre_buffer=False,
            buffer_size=_PAGE_BUFFER_BYTES,
        )

    def batches(
        self, size: int, columns: list[str], *, use_threads: bool = True, groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, or those of some row groups, in batches of `size`, with times of Spark's legacy calendar corrected.

        Raises Arrow's errors, also at the end if these are not all rows, and UnsupportedTableError.

        Arrow skips a page whose header states an unknown type, and no checksum protects a header.
        """
        chosen = range(self.metadata.num_row_groups) if groups is None else groups
        stated = sum(self.metadata.row_group(group).num_rows for group in chosen)
        if groups is None:
            stated = self.metadata.num_rows
        missing = stated
        legacy = LegacyCalendar.of(self.metadata)
        # Reads one row group at a time, because its data stays in memory as long as its iterator exists.
        for group in chosen:
            for batch in self.iter_batches(size, [group], columns, use_threads=use_threads):
                missing -= batch.num_rows
                yield batch if legacy is None else legacy.corrected(batch)
        if missing:
            raise pa.ArrowInvalid(f"it has {stated - missing} rows, and its footer states {stated}")


@contextmanager
def open_base(storage: Storage, path: str, dictionary_candidates: Collection[str] = ()) -> Iterator[BaseFile]:
    """The open file. Arrow's errors become CorruptBaseFileError; the storage's errors pass through.

    Reads columns of `dictionary_candidates` that have few distinct values as dictionaries. Raises ResourceLimitError
    for a file that claims to contain more than a base file can.
    """
    place = f"base file {path}"
    with storage.open_input(path) as stream, within_memory(place):
        try:
            size = stream.seek(0, io.SEEK_END)
            source: Any = stream
            if isinstance(stream, io.BytesIO):
                source = pa.BufferReader(stream.getvalue())
            elif size <= _AT_ONCE_BYTES_MAX:
                stream.seek(0)
                source = pa.BufferReader(stream.read())
            file = BaseFile(source, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
            footer = Footer(source, size)
            check_parquet(file.metadata, size, place)
            few = small_dictionary_columns(file, footer, dictionary_candidates, place)
            if few:
                file = BaseFile(
                    source,
                    metadata=file.metadata,
                    read_dictionary=few,
                    coerce_int96_timestamp_unit="us",
                    page_checksum_verification=True,
                )
            file.stream, file.size, file.footer, file.dictionary_columns = stream, size, footer, few
            yield file
        except (EventideError, MemoryError):
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            if is_lack_of_resources(error):
                raise
            raise CorruptBaseFileError(
                f"{place} cannot be read: {error}; restore it, or roll back the commit that wrote it"
            ) from error
