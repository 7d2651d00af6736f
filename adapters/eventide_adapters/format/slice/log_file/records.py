"""Reads the records of a slice's log files, block by block, as Arrow columns.

A block comes in batches, which are read as ranges of its log file: an Avro block by segments, a Parquet block by
batches of its row groups, a delete block as a whole. Rows of a data block with `_hoodie_is_deleted`, or with the
table's delete marker, are deletes with the ordering value of their row. They come as a separate DeleteBlock. If a block
has the same key both as a delete and as a record, it comes in pieces that keep the order of its rows.

To decode an Avro block takes a thousand calls of numpy and Arrow, however few its records. So small blocks that follow one
another and have one schema are decoded together, as the many that a stream writes.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.column_resolution import check_columns, resolve_columns
from eventide_adapters.format.encoding.avro.decode import DECODED_BYTES, count_of_whole, iter_avro_block, join_contents
from eventide_adapters.format.encoding.avro.event_time_properties import without_event_times
from eventide_adapters.format.encoding.avro.reading_limits import check_parquet, is_lack_of_resources, within_memory
from eventide_adapters.format.encoding.avro.schema import AvroField, record_fields, table_fields
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, to_arrow, to_flags, to_texts
from eventide_adapters.format.slice.base_file.virtual_key import with_record_keys
from eventide_adapters.format.slice.log_file.blocks import PlacedBlock
from eventide_adapters.format.slice.log_file.delete_block import decode_delete_block
from eventide_adapters.format.slice.log_file.ordering_values import ordering_type, orderings_of
from eventide_core.access.requests import AHEAD_BYTES_MAX, responses
from eventide_core.errors import (
    CorruptLogBlockError,
    EventideError,
    InvalidFilterError,
    RecordDecodeError,
    UnsupportedTableError,
)
from eventide_core.ports import Storage
from eventide_core.table.files.log_block import BlockType, HeaderKey
from eventide_core.table.records.record_shape import RecordShape, refusal_of_partial_updates
from eventide_core.table.schema.avro_schema import IS_DELETED, RECORD_KEY, AvroSchema
from eventide_core.table.schema.column_names import FileColumns

_BATCH_ROWS: Final = 1 << 17
_TOGETHER_BYTES_MAX: Final = 1 << 20  # of the blocks that are decoded together


@dataclass(frozen=True, slots=True)
class DataBlock:
    """Records of a block, or of a part of it, in the order of the block.

    `instant` names the write that made the block. `records` have the requested columns in the table's types, whatever
    schema the block was written with. `is_first`: no other part of the block precedes this one. `absent`, for a block of
    partial updates: the columns that its records lack, which are null here. None for whole records.
    """

    instant: str
    records: pa.RecordBatch
    is_first: bool = True
    absent: frozenset[str] | None = None

    @property
    def keys(self) -> ArrowArray:
        """The record keys, if their column is among those requested."""
        return self.records.column(RECORD_KEY)

    def filter(self, mask: ArrowArray) -> "DataBlock":
        """The records for which the mask is true."""
        return replace(self, records=self.records.filter(mask))


@dataclass(frozen=True, slots=True)
class DeleteBlock:
    """Deleted keys in the order of their block, which may be a data block with rows that are marked as deleted.

    `instant` names the write that made the block. `keys` and `orderings` are parallel; `orderings` have the type that
    `ordering_values` defines for the table, and null is a delete in natural order. `is_first`: no other part of the block,
    with deletes or with records, precedes this one.
    """

    instant: str
    keys: ArrowArray
    orderings: ArrowArray
    is_first: bool = True

    def filter(self, mask: ArrowArray) -> "DeleteBlock":
        """The deletes for which the mask is true."""
        return replace(self, keys=self.keys.filter(mask), orderings=self.orderings.filter(mask))


LogPart: TypeAlias = DataBlock | DeleteBlock
"""A block, or a part of one."""


def _together(blocks: Iterable[PlacedBlock]) -> Iterator[list[PlacedBlock]]:
    """The blocks in their order: small Avro blocks of one schema that follow one another in one list, any other alone."""
    several, size, common = list[PlacedBlock](), 0, None
    for placed in blocks:
        schema = schema_to_share(placed)
        size += placed.block.content_length
        if several and (schema is None or schema != common or size > _TOGETHER_BYTES_MAX):
            yield several
            several, size = [], placed.block.content_length
        several.append(placed)
        common = schema
    if several:
        yield several


def schema_to_share(placed: PlacedBlock) -> AvroSchema | None:
    """The schema of a block that may be decoded with others of it: an Avro block of whole records that was read already."""
    schema, is_avro = placed.block.schema, placed.block.block_type is BlockType.AVRO_DATA
    return without_event_times(schema) if schema.text and is_avro and placed.content and not placed.is_partial else None


def _with_content(storage: Storage, placed: PlacedBlock) -> PlacedBlock:
    """The block with its content, unless that is large."""
    return replace(placed, content=placed.read_content(storage)) if _bytes_to_read(placed) else placed


def _bytes_to_read(placed: PlacedBlock) -> int:
    """How much of the block is read ahead: a whole content, if it isn't large, and isn't read already."""
    size = placed.block.content_length
    is_whole = placed.block.block_type in (BlockType.AVRO_DATA, BlockType.DELETE)
    return size if is_whole and placed.content is None and size <= AHEAD_BYTES_MAX else 0


class BlockReader:
    """Reads the same columns from blocks of one table."""

    def __init__(self, storage: Storage, shape: RecordShape, columns: Sequence[str] | None) -> None:
        fields = {field.name: field for field in table_fields(shape.schema)}
        self._storage = storage
        self._columns = list(fields) if columns is None else list(columns)
        for name in self._columns:
            if name not in fields:
                raise InvalidFilterError(f"no column {name!r} in the table's schema; it has {', '.join(fields)}")
        self.schema = pa.schema([fields[name].arrow for name in self._columns])
        self._ordering = shape.ordering_fields
        self.ordering_type = ordering_type(self._ordering, {name: field.type.arrow for name, field in fields.items()})
        # A block that may contain deletes is read with the columns that mark them.
        self._marks = _marks(shape, {name: field.type.arrow for name, field in fields.items()})
        extra = [*(mark.column for mark in self._marks), RECORD_KEY, *self._ordering] if self._marks else []
        self._key_fields = shape.key_fields
        self._shape = shape
        self._orders_deletes = shape.orders_deletes
        wider = dict.fromkeys([*self._columns, *extra, *self._key_fields])
        self._read_fields = tuple(fields[name] for name in wider)

    def read(self, placed: PlacedBlock) -> Iterator[LogPart]:
        """The records of a block, in one or more parts."""
        yield from _numbered(self._parts(placed))

    def read_each(self, blocks: Iterable[PlacedBlock]) -> Iterator[tuple[PlacedBlock, LogPart]]:
        """The records of blocks in their order, each part beside its block. Of a remote storage, reads blocks ahead."""
        if self._storage.is_remote:
            blocks = responses(self._storage, partial(_with_content, self._storage), blocks, _bytes_to_read)
        for several in _together(blocks):
            for placed, records in zip(several, self._decoded(several), strict=True):
                parts = self._parts(placed) if records is None else self._split(placed.instant, records)
                for part in _numbered(parts):
                    yield placed, part

    def _decoded(self, several: Sequence[PlacedBlock]) -> Sequence[pa.RecordBatch | None]:
        """The records of each block, decoded together; all None if they have to be read one by one."""
        one_by_one = [None] * len(several)
        if len(several) == 1 or any(self._named(placed) is not None for placed in several):
            return one_by_one
        contents = [placed.read_content(self._storage) for placed in several]
        counted = [(content, count) for content in contents if (count := count_of_whole(content)) is not None]
        if len(counted) < len(several):
            return one_by_one
        records = self.read_joined(counted, _schema_of(several[0]))
        if records is None:
            return one_by_one
        counts = [count for _, count in counted]
        starts = itertools.accumulate([0, *counts[:-1]])
        return [records.slice(start, count) for start, count in zip(starts, counts, strict=True)]

    def read_joined(self, counted: Sequence[tuple[bytes, int]], schema: AvroSchema) -> pa.RecordBatch | None:
        """The records of several contents, each with the answer of `count_of_whole`, not separated from deletes.

        None if they take more than is decoded at once, or can't be read: the error of one block alone names it.
        """
        content = join_contents(counted)
        if len(content) > DECODED_BYTES:
            return None

        def read(offset: int, length: int) -> bytes:
            return content[offset : offset + length]

        with suppress(EventideError):
            (records,) = iter_avro_block(read, len(content), schema, self._read_fields, "small blocks")
            return records
        return None

    def _fields_of(self, placed: PlacedBlock) -> tuple[AvroField, ...]:
        """The columns to read from the block. For partial updates, only the columns that they have."""
        if not placed.is_partial:
            return self._read_fields
        refusal = refusal_of_partial_updates(self._shape, placed.path)
        if refusal is None and self._named(placed) is not None:
            refusal = (
                f"{placed.place}: partial updates from before columns were renamed or dropped; compact it with Hudi"
            )
        if refusal is not None:
            raise UnsupportedTableError(refusal)
        written = {field.name for field in record_fields(_schema_of(placed))}
        for name in self._key_fields:
            if name not in written:
                raise UnsupportedTableError(
                    f"{placed.place}: a partial update without the column {name}, which the record key is made of; compact "
                    "this table with Hudi itself"
                )
        return tuple(field for field in self._read_fields if field.name in written)

    def _whole(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The records with all requested columns. Columns that a partial update lacks are null."""
        columns = {name: records.column(name) for name in records.schema.names}
        arrays = [
            columns[field.name] if field.name in columns else pa.nulls(records.num_rows, field.arrow.type)
            for field in self._read_fields
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field.arrow for field in self._read_fields]))

    def _parts(self, placed: PlacedBlock) -> Iterator[LogPart]:
        match placed.block.block_type:
            case BlockType.DELETE:
                keys, orderings = decode_delete_block(
                    placed.read_content(self._storage), self.ordering_type, placed.place
                )
                yield self._delete_block(placed.instant, keys, orderings)
            case BlockType.AVRO_DATA | BlockType.PARQUET_DATA:
                fields = self._fields_of(placed)
                is_avro = placed.block.block_type is BlockType.AVRO_DATA
                for records in self._read_avro(placed, fields) if is_avro else self._read_parquet(placed, fields):
                    if not placed.is_partial:
                        yield from self._split(placed.instant, records)
                        continue
                    absent = frozenset(self._columns).difference(records.schema.names)
                    for part in self._split(placed.instant, self._whole(records)):
                        yield replace(part, absent=absent) if isinstance(part, DataBlock) else part
            case other:
                raise AssertionError(f"{placed.place}: a {other.name} block does not count")

    def _named(self, placed: PlacedBlock) -> FileColumns | None:
        return self._shape.columns_in_block(placed.instant, placed.place)

    def _read_avro(self, placed: PlacedBlock, fields: Sequence[AvroField]) -> Iterator[pa.RecordBatch]:
        schema, named = _schema_of(placed), self._named(placed)
        if named is not None:
            schema = schema.with_names(named.names_read(schema.field_names, placed.place))

        def read(offset: int, length: int) -> bytes:
            return placed.read_range(self._storage, offset, length)

        return iter_avro_block(
            read, placed.block.content_length, schema, fields, placed.place, is_remote=self._storage.is_remote
        )

    def deleted_rows(self, records: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which rows of a data block are marked as deleted."""
        is_deleted = np.zeros(records.num_rows, np.bool_)
        for mark in self._marks:
            is_deleted |= mark.rows(records)
        return is_deleted

    def _read_parquet(self, placed: PlacedBlock, fields: Sequence[AvroField]) -> Iterator[pa.RecordBatch]:
        from eventide_adapters.format.encoding.parquet.open_file import OpenBaseFile

        with placed.open_content(self._storage) as stream, within_memory(placed.place):
            try:
                file = OpenBaseFile.of_log_block(stream, placed.block.content_length)
                check_parquet(file.metadata, placed.block.content_length, placed.place)
                written, named = {field.name: field for field in file.schema_arrow}, self._named(placed)
                if named is not None:
                    written = named.by_name_read(written, placed.place)
                check_columns({name: field.type for name, field in written.items()}, fields, placed.place)
                if file.metadata.num_rows == 0:
                    empty = pa.schema([field.arrow for field in fields])
                    yield pa.RecordBatch.from_pylist([], schema=empty)
                sources = {field.name: written[field.name].name for field in fields if field.name in written}
                names = list(sources.values())
                for batch in file.inflated(names).batches(_BATCH_ROWS, names):
                    arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
                    columns = {name: arrays[source] for name, source in sources.items()}
                    yield resolve_columns(columns, batch.num_rows, fields, placed.place)
            except (EventideError, MemoryError):
                raise
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                if is_lack_of_resources(error):
                    raise
                raise RecordDecodeError(f"{placed.place}: its Parquet content cannot be read: {error}") from error

    def _split(self, instant: str, records: pa.RecordBatch) -> Iterator[LogPart]:
        """Separates records and deletes."""
        records = with_record_keys(records, self._key_fields)
        is_deleted = self.deleted_rows(records)
        if not is_deleted.any():
            yield DataBlock(instant, records.select(self._columns))
            return
        keys = records.column(RECORD_KEY)
        mask = to_arrow(is_deleted)
        deleted_keys = keys.filter(mask)
        if not pc.any(pc.is_in(keys.filter(pc.invert(mask)), deleted_keys)).as_py():
            kept = records.filter(pc.invert(mask))
            if kept.num_rows:
                yield DataBlock(instant, kept.select(self._columns))
            yield self._deletes(instant, records.filter(mask))
            return
        borders = [0, *(np.flatnonzero(np.diff(is_deleted)) + 1).tolist(), records.num_rows]
        for start, end in itertools.pairwise(borders):
            piece = records.slice(start, end - start)
            yield (
                self._deletes(instant, piece) if is_deleted[start] else DataBlock(instant, piece.select(self._columns))
            )

    def _deletes(self, instant: str, records: pa.RecordBatch) -> DeleteBlock:
        return self._delete_block(instant, records.column(RECORD_KEY), orderings_of(records, self._ordering))

    def _delete_block(self, instant: str, keys: ArrowArray, orderings: ArrowArray) -> DeleteBlock:
        return DeleteBlock(instant, keys, orderings if self._orders_deletes else pa.nulls(len(keys), orderings.type))


def _numbered(parts: Iterable[LogPart]) -> Iterator[LogPart]:
    """The parts of one block, of which one is the first."""
    for number, part in enumerate(parts):
        yield part if number == 0 else replace(part, is_first=False)


def _schema_of(placed: PlacedBlock) -> AvroSchema:
    if HeaderKey.SCHEMA not in placed.block.header:
        raise CorruptLogBlockError(f"{placed.place}: a data block without a schema in its header")
    return placed.block.schema


@dataclass(frozen=True, slots=True)
class _Mark:
    """A column that marks a delete by exactly `text`; null marks nothing."""

    column: str
    text: str

    def rows(self, records: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        says: Any = pc.equal(records.column(self.column).cast(pa.string()), to_texts([self.text])[0])
        return to_flags(says)


def _marks(shape: RecordShape, types: Mapping[str, pa.DataType]) -> tuple[_Mark, ...]:
    """The columns and values that mark deletes in a table with these columns.

    Ignores the table's delete marker if the table has no such column.
    """
    marks: list[_Mark] = []
    if IS_DELETED in types:
        if not pa.types.is_boolean(types[IS_DELETED]):
            raise UnsupportedTableError(
                f"the table's column {IS_DELETED} is {types[IS_DELETED]}; in Hudi it is a boolean"
            )
        marks.append(_Mark(IS_DELETED, "true"))
    marker = shape.delete_marker
    if marker is not None and marker.field in types:
        kind = types[marker.field]
        if not (pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            raise UnsupportedTableError(
                f"the table marks deletes by {marker.value!r} in its column {marker.field}, which is {kind}; supported are "
                "strings, whole numbers and booleans; compact it with Hudi itself"
            )
        marks.append(_Mark(marker.field, marker.value))
    return tuple(marks)
