"""Base files: Parquet as Hudi writes it, read and written in bounded memory.

Read: one row group at a time, with one batch prefetched. A file's columns become the columns of the table's schema, as
`avro/column_resolution` describes. The reader accepts INT96 timestamps and every list form that Hudi's writers have used
(`list.element`, `array`, `bag.array`).

Written: row groups of 24 MB in memory, or a batch more. While one is gathered, a thread encodes the one before. Each column
is stored as parquet-avro stores it, except that lists always have three levels. Local timestamps are plain numbers if the
base file before has them so, or the table's version is below 9: Hudi before 1.1 reads no other form. The footer has the keys
that Hudi's indexes look for:

    org.apache.hudi.bloomfilter     the bloom filter of the record keys
    hoodie_bloom_filter_type_code   its type; absent for SIMPLE
    hoodie_min_record_key, hoodie_max_record_key     in Java's order of strings; absent if there are no records
    parquet.avro.schema, writer.model.name           the Avro schema, as Hudi's Avro writer stores it
    org.apache.spark.version        states that days count in today's calendar; without it, Spark refuses those before 1582
"""

import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from eventide_adapters.format.encoding.avro.column_resolution import check_columns, resolve_columns
from eventide_adapters.format.encoding.avro.schema import AvroField, arrow_schema, table_fields
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowChunks
from eventide_adapters.format.encoding.parquet.bloom_filter import (
    FOOTER_KEY,
    SIMPLE,
    TYPE_FOOTER_KEY,
    BloomFilterBuilder,
)
from eventide_adapters.format.encoding.parquet.dictionary_columns import (
    as_dictionaries,
    check_numbers,
)
from eventide_adapters.format.encoding.parquet.footer_columns import codec_of, require_columns
from eventide_adapters.format.encoding.parquet.inflated_pages import is_local
from eventide_adapters.format.encoding.parquet.open_file import OpenBaseFile, open_base
from eventide_adapters.format.encoding.parquet.output import (
    LEVELS,
    ROW_GROUP_BYTES,
    ROW_GROUP_ROWS_MAX,
    ParquetOutput,
    avro_footer,
    unmarked,
)
from eventide_adapters.format.encoding.parquet.row_pages import RowsOfGroups, batches_of
from eventide_adapters.format.encoding.parquet.threads import prefetch, processors, threads_at_most
from eventide_adapters.format.slice.base_file.key_range import (
    MAX_KEY_FOOTER,
    MIN_KEY_FOOTER,
    java_order,
    least_and_greatest,
)
from eventide_adapters.format.slice.base_file.virtual_key import with_record_keys
from eventide_core.access.threads import Future, Threads
from eventide_core.errors import CorruptBaseFileError, RecordDecodeError
from eventide_core.ports import OutputFile, Storage
from eventide_core.table.files.slice_read import columns_in_base
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import RECORD_KEY, AvroSchema
from eventide_core.table.schema.column_names import FileColumns

_BATCH_ROWS: Final = 1 << 17
_BATCH_BYTES: Final = 16 * 1024 * 1024  # of a merge that writes: two of them are a row group
_QUERY_BATCH_BYTES: Final = 28 * 1024 * 1024  # each batch costs milliseconds, and a query keeps its rows anyway
_BATCH_ROWS_MIN: Final = 1 << 10
_VALUE_BYTES_MIN: Final = 16  # of a string that a dictionary makes small in the file
_ROWS_WORTH_A_THREAD: Final = 4096
_SINK_BUFFER_BYTES: Final = 64 * 1024


def read_base(
    storage: Storage,
    path: str,
    target: Sequence[AvroField],
    shape: RecordShape | None = None,
    dictionary_candidates: Collection[str] = (),
    choice: Callable[[OpenBaseFile], RowsOfGroups] | None = None,
    few_rows: int | None = None,
    *,
    named: FileColumns | None = None,
) -> Iterator[pa.RecordBatch]:
    """The file's records in the columns and types of `target`, in the file's order.

    With the table's `shape`, record keys are checked, or computed for a table without meta fields if `target` has their
    column, and columns may have other names in the file. Without it, `named` are these names; None if they are the same.

    Strings of the columns `dictionary_candidates` come as dictionaries if they have few distinct values
    (dictionary_columns.py). `choice` returns rows that are enough; None: all.
    `few_rows`: the caller will soon stop, so batches have no more rows than that, and none is prefetched.

    Raises MissingFileError; CorruptBaseFileError if the file is not Parquet, a value doesn't fit its column, or a record has
    no key in a table with meta fields, as if the footer names the column differently, because no checksum covers a footer;
    UnsupportedTableError if a column's type doesn't fit the target's type.
    """
    wanted = _Wanted.of(path, target, shape, dictionary_candidates, named)
    with open_base(storage, path, wanted.dictionary_candidates) as file:
        chosen = None if choice is None else choice(file)
        if chosen is None or len(chosen):
            if few_rows is None:
                batches = _batches_ahead(file, wanted, _QUERY_BATCH_BYTES, chosen)
            else:
                batches = _batches(file, wanted, _QUERY_BATCH_BYTES, chosen, few_rows)
            yield from wanted.keyed(batches)


def read_base_and_footer(
    storage: Storage,
    path: str,
    target: Sequence[AvroField],
    shape: RecordShape,
    dictionary_candidates: Collection[str] = (),
) -> "tuple[BaseFooter, Iterator[pa.RecordBatch]]":
    """The footer and the records of a file. Opens it once, immediately. Raises the same errors as `read_base`."""
    opened = _footer_then_batches(storage, path, _Wanted.of(path, target, shape, dictionary_candidates, None))
    footer: Any = next(opened)
    records: Any = opened
    return footer, records


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What to read of the base file at `path`: columns, and then the ones in `names`, with keys by the `shape`."""

    path: str
    target: Sequence[AvroField]
    names: Sequence[str]
    shape: RecordShape | None
    dictionary_candidates: Collection[str]
    named: FileColumns | None

    @classmethod
    def of(
        cls,
        path: str,
        target: Sequence[AvroField],
        shape: RecordShape | None,
        dictionary_candidates: Collection[str],
        named: FileColumns | None,
    ) -> "_Wanted":
        """Dictionaries are asked for by the names in the file, so a file with other names gets none."""
        names = [field.name for field in target]
        if shape is not None:
            named = columns_in_base(shape, path)
            if shape.key_fields and RECORD_KEY in names:
                target = table_fields(shape.schema, {*names, *shape.key_fields})
        return cls(path, target, names, shape, dictionary_candidates if named is None else (), named)

    @property
    def place(self) -> str:
        return f"base file {self.path}"

    def source(self, name: str) -> str | None:
        """The name in the file."""
        return name if self.named is None else self.named.source(name)

    def keyed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with their record keys."""
        if self.shape is None:
            yield from batches
            return
        for batch in batches:
            if self.shape.key_fields:
                yield with_record_keys(batch, self.shape.key_fields).select(self.names)
                continue
            if RECORD_KEY in self.names and batch.column(RECORD_KEY).null_count:
                raise CorruptBaseFileError(
                    f"{self.place} has a record without key; restore it, or roll back the commit that wrote it"
                )
            yield batch


def _footer_then_batches(storage: Storage, path: str, wanted: _Wanted) -> "Iterator[BaseFooter | pa.RecordBatch]":
    with open_base(storage, path, wanted.dictionary_candidates) as file:
        yield BaseFooter.of(file)
        yield from wanted.keyed(_batches_ahead(file, wanted, _BATCH_BYTES))


def _batches_ahead(
    file: OpenBaseFile, wanted: _Wanted, batch_bytes: int, chosen: RowsOfGroups | None = None
) -> Iterator[pa.RecordBatch]:
    """The batches, with one prefetched, unless there is neither a second processor to make it nor a network to wait for."""
    batches = _batches(file, wanted, batch_bytes, chosen)
    if processors() == 1 and is_local(file.stream):
        return batches
    return prefetch(batches, file.metadata.num_rows)


def _batches(
    file: OpenBaseFile,
    wanted: _Wanted,
    batch_bytes: int,
    chosen: RowsOfGroups | None,
    batch_rows: int = _BATCH_ROWS,
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
    # Decoding a few rows takes less time than starting a thread. Without a second processor, a thread only costs memory:
    # allocators keep what each thread freed for that thread.
    has_many = file.metadata.num_rows > _ROWS_WORTH_A_THREAD and processors() > 1
    size = min(batch_rows, _batch_rows(file.metadata, len(names), batch_bytes))
    for batch in batches_of(file, size, names, use_threads=has_many, chosen=chosen):
        check_numbers(batch, few, place)
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns = {name: arrays[source] for name, source in sources.items()}
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

    `pairs` are its keys and values, as undecoded bytes, because one value can have half a megabyte. `row_count` is the
    number of rows in the file itself, whatever log files replace or delete. `codec` is the compression of its columns, or
    gzip, which is Hudi's default, if eventide does not write that codec. `columns` are the file's.
    """

    pairs: Mapping[bytes, bytes]
    row_count: int
    codec: str
    columns: pa.Schema

    @classmethod
    def read(cls, storage: Storage, path: str) -> "BaseFooter":
        """Raises MissingFileError, CorruptBaseFileError."""
        with open_base(storage, path) as file:
            return cls.of(file)

    @classmethod
    def of(cls, file: "OpenBaseFile") -> "BaseFooter":
        metadata, written = file.metadata, codec_of(file.footer)
        codec = written if written is not None and written in LEVELS else "gzip"
        return cls(metadata.metadata or {}, metadata.num_rows, codec, file.schema_arrow)

    def marks_local_times(self, schema: AvroSchema) -> bool:
        """Whether no column that `schema` has as a local timestamp is a plain number in this file."""
        named = {field.name: field for field in self.columns}
        local = [field for field in arrow_schema(schema) if unmarked(field) != field and field.name in named]
        return not local or any(unmarked(named[field.name]) != named[field.name] for field in local)


class BaseFileWriter:
    """Writes one base file to an output: the records in order, then the footer. Does not commit the output.

    If `close` is not called, the output is unfinished at the end of the `with` block.
    """

    def __init__(
        self,
        output: OutputFile,
        schema: AvroSchema,
        *,
        codec: str,
        bloom: BloomFilterBuilder | None,
        marks_local_times: bool = True,
    ) -> None:
        """`schema` is the table's Avro schema. `bloom` is None if the files have no record keys to look up.

        Without `marks_local_times`, local timestamps are stored as plain numbers.

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
        self._writer = ParquetOutput(self._buffer, schema, codec, marks_local_times=marks_local_times)
        # Encodes one row group while the next one is gathered.
        self._thread = threads_at_most(1)
        self._encoding: Future[None] | None = None

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
        if self._pending_bytes >= ROW_GROUP_BYTES or self._pending_rows >= ROW_GROUP_ROWS_MAX:
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

    def _widen_key_range(self, keys: ArrowChunks) -> None:
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
