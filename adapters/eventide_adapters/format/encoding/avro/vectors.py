"""Decodes Avro records column by column: one cursor per record, and all cursors move over a field together.

1. Each record has a cursor, which begins at the record's start. The fields are passed in schema order; each field moves
   all cursors.
2. A nullable field reads the branch of its union. The cursors of nulls stay behind it. A union of several types passes
   each branch with the cursors of the records that have it.
3. A varint is read as eight bytes at once. The run of continuation bits gives its length, and three masks join its
   groups of seven bits. The rare longer varints take a second step.
4. A collection reads its counts, then the first item of all records that have one, then the second item, and so on.
5. After the last field, every cursor must be at its record's end. Otherwise, the bytes do not fit the schema.

Rows are processed in chunks whose cursors fit in the processor's cache. No cursor leaves its record by more than one
fixed step before it is checked; the buffer is padded by that much.
"""

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from eventide_adapters.format.encoding.avro.columns import (
    NUMBERS,
    Booleans,
    Collections,
    Column,
    NumericColumn,
    RowIndices,
    Spans,
    Structs,
    column_of,
)
from eventide_adapters.format.encoding.avro.schema import AvroField, AvroType
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, Bytes, Flags, Positions
from eventide_core.errors import RecordDecodeError

_CHUNK_ROWS: Final = 8192
_VARINT_BYTES_MAX: Final = 10
_DECIMAL_BYTES_MAX: Final = 16  # the size of decimal128
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1
# Collections take as many steps as the longest one has items. A step takes about as long as decoding eight items
# singly.
_STEPS_THAT_DO_NOT_MATTER: Final = 64
_ITEMS_A_STEP_MIN: Final = 8

_CONTINUATION: Final = np.uint64(0x8080808080808080)
_GROUPS: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONE: Final = np.uint64(1)
# (y * this) >> 56 is k for y = 1 << 8k: byte 7 - k of the number is k.
_BYTE_NUMBER: Final = np.uint64(0x0001020304050607)
_COMPRESS: Final = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


class UnevenCollectionsError(Exception):
    """The collections of these records have to be read one by one.

    Either a few are far longer than the others, or one comes in several blocks.
    """


def decode_vectors(
    content: bytes | memoryview,
    starts: Positions,
    ends: Positions,
    fields: Sequence[AvroField],
    wanted: Collection[str],
) -> dict[str, ArrowArray]:
    """The wanted columns of the records at `starts` to `ends`, in the schema's own types.

    Raises RecordDecodeError if the bytes do not fit the schema, UnevenCollectionsError if column-by-column decoding is
    not suitable for the collections.
    """
    arrays, read = _decode(content, starts, ends, fields, wanted)
    if (read != ends).any():
        raise RecordDecodeError("a record extends beyond its last field")
    return arrays


def decode_unbounded(
    content: bytes | memoryview, starts: Positions, fields: Sequence[AvroField], wanted: Collection[str]
) -> tuple[dict[str, ArrowArray], Positions]:
    """The wanted columns of records whose ends aren't known, and their ends."""
    return _decode(content, starts, np.full(len(starts), len(content), np.int64), fields, wanted)


def _decode(
    content: bytes | memoryview,
    starts: Positions,
    stops: Positions,
    fields: Sequence[AvroField],
    wanted: Collection[str],
) -> tuple[dict[str, ArrowArray], Positions]:
    widest = _VARINT_BYTES_MAX + 8 + max((_widest_step(field.type) for field in fields), default=0)
    buffer = np.zeros(len(content) + widest, np.uint8)
    buffer[: len(content)] = np.frombuffer(content, np.uint8)
    columns = {field.name: column_of(field.type, len(starts), buffer) for field in fields if field.name in wanted}
    reader = _Reader(buffer)
    ends = np.empty(len(starts), np.int64)
    for first in range(0, len(starts), _CHUNK_ROWS):
        rows = slice(first, min(first + _CHUNK_ROWS, len(starts)))
        cursors = starts[rows]
        for field in fields:
            cursors = reader.pass_field(field, cursors, stops[rows], columns.get(field.name), rows)
        ends[rows] = cursors
    arrays = {}
    for name, column in columns.items():
        try:
            arrays[name] = column.array()
        except pa.ArrowInvalid as error:
            raise RecordDecodeError(f"field {name}: {error}") from error
    return arrays, ends


def _widest_step(avro_type: AvroType) -> int:
    return max([avro_type.size, *(_widest_step(field.type) for field in avro_type.fields)])


class _Reader:
    """Reads values at many cursors of one buffer together. Each `pass_` method returns the cursors' new positions.

    Skips a column that is None.
    """

    def __init__(self, buffer: Bytes) -> None:
        self._bytes = buffer
        # Every position as the start of a number: unaligned, overlapping views.
        self._words = np.ndarray((len(buffer) - 7,), "<u8", buffer, strides=(1,))
        self._floats = {
            kind: np.ndarray((len(buffer) - 7,), NUMBERS[kind], buffer, strides=(1,)) for kind in ("float", "double")
        }

    def pass_field(
        self, field: AvroField, cursors: Positions, stops: Positions, column: Column | None, rows: RowIndices
    ) -> Positions:
        if field.null_branch is not None and not _states_branch(field.type):
            cursors = self._pass_nullable(field, cursors, stops, column, rows)
        else:
            cursors = self._pass_value(field, cursors, stops, column, rows)
        if (cursors > stops).any():
            raise RecordDecodeError(f"a record ends within its field {field.name}")
        return cursors

    def _pass_nullable(
        self, field: AvroField, cursors: Positions, stops: Positions, column: Column | None, rows: RowIndices
    ) -> Positions:
        branch = self._bytes[cursors]
        if (branch & 0xFD).any():  # the branches 0 and 1 are encoded as the bytes 0 and 2
            raise RecordDecodeError(f"field {field.name}: no such branch of its union")
        valid = branch != 2 * (field.null_branch or 0)
        cursors = cursors + 1
        if valid.all():
            return self._pass_value(field, cursors, stops, column, rows)
        if column is not None:
            column.mark_nulls(rows, valid)
        return self._pass_some(field, valid, cursors, stops, column, rows)

    def _pass_some(
        self,
        field: AvroField,
        chosen: Flags,
        cursors: Positions,
        stops: Positions,
        column: Column | None,
        rows: RowIndices,
    ) -> Positions:
        """Passes the value in the rows of `chosen`. Moves their cursors in place."""
        filled = np.flatnonzero(chosen)
        if len(filled):
            numbers = filled + rows.start if isinstance(rows, slice) else rows[filled]
            cursors[filled] = self._pass_value(field, cursors[filled], stops[filled], column, numbers)
        return cursors

    def _pass_value(
        self, field: AvroField, cursors: Positions, stops: Positions, column: Column | None, rows: RowIndices
    ) -> Positions:
        kind = field.type.kind
        match kind:
            case "null":
                return cursors
            case "boolean":
                truth = self._bytes[cursors]
                if (truth > 1).any():
                    raise RecordDecodeError(f"field {field.name}: a boolean that is neither 0 nor 1")
                if isinstance(column, Booleans):
                    column.values[rows] = truth
                return cursors + 1
            case "float" | "double":
                if isinstance(column, NumericColumn):
                    column.values[rows] = self._floats[kind][cursors]
                return cursors + (4 if kind == "float" else 8)
            case "fixed":
                if isinstance(column, Spans):
                    column.starts[rows] = cursors
                    column.stops[rows] = cursors + field.type.size
                return cursors + field.type.size
            case "string" | "bytes":
                return self._pass_bytes(field, cursors, stops, column, rows)
            case "record":
                for place, child in enumerate(field.type.fields):
                    cursors = self.pass_field(child, cursors, stops, _child(column, place), rows)
                return cursors
            case "union":
                return self._pass_union(field, cursors, stops, column, rows)
            case "array" | "map":
                return self._pass_collection(field, cursors, stops, column, rows)
            case _:
                numbers, cursors = self._pass_varint(cursors)
                low, high = (0, len(field.type.symbols) - 1) if kind == "enum" else (_INT_MIN, _INT_MAX)
                if kind != "long" and ((numbers < low) | (numbers > high)).any():
                    raise RecordDecodeError(f"field {field.name}: an {kind} outside {low} to {high}")
                if isinstance(column, NumericColumn):
                    column.values[rows] = numbers
                return cursors

    def _pass_bytes(
        self, field: AvroField, cursors: Positions, stops: Positions, column: Column | None, rows: RowIndices
    ) -> Positions:
        lengths, cursors = self._pass_varint(cursors)
        if ((lengths < 0) | (lengths > stops - cursors)).any():
            raise RecordDecodeError(f"field {field.name}: a length that extends beyond its record")
        if pa.types.is_decimal(field.type.arrow) and ((lengths == 0) | (lengths > _DECIMAL_BYTES_MAX)).any():
            raise RecordDecodeError(f"field {field.name}: a decimal of 0 or more than {_DECIMAL_BYTES_MAX} bytes")
        after = cursors + lengths
        if isinstance(column, Spans):
            column.starts[rows] = cursors
            column.stops[rows] = after
        return after

    def _pass_union(
        self, field: AvroField, cursors: Positions, stops: Positions, column: Column | None, rows: RowIndices
    ) -> Positions:
        """Passes a union of several types, or of one. Null can be among them."""
        members = list(enumerate(field.type.fields))
        branches, cursors = self._pass_varint(cursors)
        null = field.null_branch
        if ((branches < 0) | (branches >= len(members) + (null is not None))).any():
            raise RecordDecodeError(f"field {field.name}: no such branch of its union")
        if null is not None and column is not None:
            column.mark_nulls(rows, branches != null)
        cursors = cursors.copy()
        for place, member in members:
            chosen = branches == place + (null is not None and place >= null)
            child = _child(column, place)
            if child is not None:
                child.mark_nulls(rows, chosen)
            cursors = self._pass_some(member, chosen, cursors, stops, child, rows)
        return cursors

    def _pass_collection(
        self, field: AvroField, cursors: Positions, stops: Positions, column: Column | None, rows: RowIndices
    ) -> Positions:
        counts, cursors = self._pass_varint(cursors)
        if (counts < 0).any():
            raise UnevenCollectionsError
        if (counts > stops - cursors).any():  # an item takes at least one byte
            raise RecordDecodeError(f"field {field.name}: a count that extends beyond its record")
        longest = int(counts.max(initial=0))
        if longest > _STEPS_THAT_DO_NOT_MATTER and counts.sum() < _ITEMS_A_STEP_MIN * longest:
            raise UnevenCollectionsError
        items = column.open(rows, counts) if isinstance(column, Collections) else None
        firsts = np.cumsum(counts) - counts
        filled = active = np.flatnonzero(counts)
        cursors = cursors.copy()
        for step in range(longest):
            active = active[counts[active] > step]
            cursors[active] = self.pass_field(
                field.type.item, cursors[active], stops[active], items, firsts[active] + step
            )
        if len(filled):
            more, cursors[filled] = self._pass_varint(cursors[filled])
            if more.any():
                raise UnevenCollectionsError
        return cursors

    def _pass_varint(self, cursors: Positions) -> tuple[Positions, Positions]:
        first = self._bytes[cursors]
        if (first < 0x80).all():
            small = first.astype(np.int64)
            return (small >> 1) ^ -(small & 1), cursors + 1
        word = self._words[cursors]
        stop_bits = ~word & _CONTINUATION
        stop = stop_bits & (~stop_bits + _ONE)
        word &= ((stop << _ONE) - _ONE) & _GROUPS
        for low, high, shift in _COMPRESS:
            word = (word & low) | ((word & high) >> shift)
        after = cursors + (((stop >> np.uint64(7)) * _BYTE_NUMBER) >> np.uint64(56)).astype(np.int64) + 1
        long = np.flatnonzero(stop == 0)
        if len(long):
            ninth, tenth = self._bytes[cursors[long] + 8], self._bytes[cursors[long] + 9]
            has_tenth = ninth >= 0x80
            if (has_tenth & (tenth > 1)).any():
                raise RecordDecodeError("a number of more than 64 bits")
            word[long] |= (ninth & np.uint8(0x7F)).astype(np.uint64) << np.uint64(56)
            word[long] |= np.where(has_tenth, tenth, 0).astype(np.uint64) << np.uint64(63)
            after[long] = cursors[long] + 9 + has_tenth
        return (word >> _ONE).view(np.int64) ^ -(word & _ONE).view(np.int64), after


def _states_branch(avro_type: AvroType) -> bool:
    """Whether the value itself states its branch, including null."""
    return avro_type.kind == "union"


def _child(column: Column | None, place: int) -> Column | None:
    return column.children[place] if isinstance(column, Structs) else None
