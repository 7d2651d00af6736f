"""Decodes flat Avro records column by column: one cursor a record, all of them moved over a field at once.

1. Each record has a cursor, at first its start. The fields are passed in schema order; a field moves every cursor.
2. A nullable field reads the branch of its union; the cursors of nulls stay there.
3. A varint is read as eight bytes at once: its length is that of the run of continuation bits, and its groups of seven
   bits are pushed together by three masks. The rare longer ones take a second step.
4. Texts are not copied on the way: their bounds become the offsets of one array over the whole block, of which every
   second element is a value.
5. After the last field every cursor must stand at its record's end; else the bytes do not fit the schema.

Rows go in chunks that keep the cursors in the processor's cache. No cursor ever leaves its record by more than one fixed
step before it is checked, and the buffer is padded by that much.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide_adapters.format.avro_schema import AvroField, AvroType
from eventide_core.errors import RecordDecodeError

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Rows = slice | npt.NDArray[np.int64]
"""Which rows of the block: a run of them, or their numbers."""

_FLAT: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "string", "bytes", "fixed", "enum"})
_NUMBERS: Final[Mapping[str, str]] = {"int": "<i4", "long": "<i8", "float": "<f4", "double": "<f8", "enum": "<i4"}
_CHUNK_ROWS: Final = 8192
_VARINT_BYTES_MAX: Final = 10
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1

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


def is_flat(fields: Sequence[AvroField]) -> bool:
    """Whether every field is a primitive, a fixed or an enum, or one of these and null."""
    return all(field.type.kind in _FLAT for field in fields)


def decode_vectors(
    content: bytes | memoryview,
    starts: Positions,
    ends: Positions,
    fields: Sequence[AvroField],
    wanted: Collection[str],
) -> dict[str, pa.Array[Any]]:
    """The wanted columns of the records that lie at `starts` to `ends`, in the schema's own types.

    Raises RecordDecodeError where the bytes do not fit the schema.
    """
    widest = max([_VARINT_BYTES_MAX + 8, *(field.type.size for field in fields)])
    buffer = np.zeros(len(content) + widest, np.uint8)
    buffer[: len(content)] = np.frombuffer(content, np.uint8)
    columns = {field.name: _column(field.type, len(starts), buffer) for field in fields if field.name in wanted}
    reader = _Reader(buffer)
    for first in range(0, len(starts), _CHUNK_ROWS):
        rows = slice(first, min(first + _CHUNK_ROWS, len(starts)))
        cursors, stops = starts[rows], ends[rows]
        for field in fields:
            cursors = reader.pass_field(field, cursors, stops, columns.get(field.name), rows)
            if (cursors > stops).any():
                raise RecordDecodeError(f"a record ends within its field {field.name}")
        if (cursors != stops).any():
            raise RecordDecodeError("a record goes on after its last field")
    arrays = {}
    for name, column in columns.items():
        try:
            arrays[name] = column.array()
        except pa.ArrowInvalid as error:
            raise RecordDecodeError(f"field {name}: {error}") from error
    return arrays


class _Column:
    """The values of one column while they are read. Rows are valid until said otherwise."""

    def __init__(self, avro_type: AvroType, count: int) -> None:
        self.type = avro_type
        self.count = count
        self._valid: npt.NDArray[np.bool_] | None = None

    def mark_nulls(self, rows: slice, valid: npt.NDArray[np.bool_], cursors: Positions) -> None:  # noqa: ARG002
        """`cursors` is where a null's value would lie."""
        if self._valid is None:
            self._valid = np.ones(self.count, np.bool_)
        self._valid[rows] = valid

    def array(self) -> pa.Array[Any]:
        return pa.nulls(self.count, self.type.arrow)

    @property
    def validity(self) -> pa.Buffer | None:
        return None if self._valid is None else _buffer(np.packbits(self._valid, bitorder="little"))

    @property
    def mask(self) -> npt.NDArray[np.bool_] | None:
        """True where null."""
        return None if self._valid is None else ~self._valid


class _Numbers(_Column):
    def __init__(self, avro_type: AvroType, count: int) -> None:
        super().__init__(avro_type, count)
        self.values = np.zeros(count, _NUMBERS[avro_type.kind])

    def array(self) -> Any:
        storage = pa.from_numpy_dtype(self.values.dtype)
        numbers = pa.Array.from_buffers(storage, self.count, [self.validity, _buffer(self.values)])
        if self.type.kind == "enum":
            symbols: Any = pa.array(self.type.symbols, pa.string())
            return symbols.take(numbers)
        return numbers.view(self.type.arrow)


class _Booleans(_Column):
    def __init__(self, avro_type: AvroType, count: int) -> None:
        super().__init__(avro_type, count)
        self.values = np.zeros(count, np.bool_)

    def array(self) -> pa.Array[Any]:
        return pa.array(self.values, pa.bool_(), mask=self.mask)


class _Spans(_Column):
    """Values that are runs of bytes of the block."""

    def __init__(self, avro_type: AvroType, count: int, buffer: Bytes) -> None:
        super().__init__(avro_type, count)
        self._buffer = buffer
        self._bounds = np.zeros(2 * count + 1, np.int32)
        self.starts = self._bounds[0 : 2 * count : 2]
        self.stops = self._bounds[1 : 2 * count : 2]

    def mark_nulls(self, rows: slice, valid: npt.NDArray[np.bool_], cursors: Positions) -> None:
        super().mark_nulls(rows, valid, cursors)
        self.starts[rows] = cursors
        self.stops[rows] = cursors

    def array(self) -> pa.Array[Any]:
        arrow = self.type.arrow
        if pa.types.is_decimal(arrow):
            decimals = pa.Array.from_buffers(arrow, self.count, [self.validity, _buffer(self._decimals())])
            decimals.validate(full=True)
            return decimals
        if pa.types.is_fixed_size_binary(arrow):
            width = self.type.size
            windows = np.lib.stride_tricks.sliding_window_view(self._buffer, width)
            rows = np.ascontiguousarray(windows[self.starts])
            return pa.Array.from_buffers(arrow, self.count, [self.validity, _buffer(rows)])
        if self.count == 0:
            return pa.array([], arrow)
        # Values and the gaps between them by turns; the last bound closes the last gap.
        self._bounds[-1] = self._bounds[-2]
        spans = pa.Array.from_buffers(pa.binary(), 2 * self.count, [None, _buffer(self._bounds), _buffer(self._buffer)])
        values = spans.take(np.arange(0, 2 * self.count, 2, dtype=np.int32))
        values = values.cast(arrow)  # to string: checks that it is UTF-8
        _, offsets, data = values.buffers()
        return pa.Array.from_buffers(arrow, self.count, [self.validity, offsets, data])

    def _decimals(self) -> Bytes:
        """Big-endian numbers of any length as little-endian ones of sixteen bytes."""
        stops, lengths = self.stops.astype(np.int64), (self.stops - self.starts).astype(np.int64)
        if ((lengths > 16) | ((lengths == 0) & (True if self.mask is None else ~self.mask))).any():
            raise pa.ArrowInvalid("a decimal of no or more than 16 bytes")
        sign = np.where((lengths > 0) & (self._buffer[self.starts] >= 0x80), np.uint8(0xFF), np.uint8(0))
        out = np.empty((self.count, 16), np.uint8)
        for place in range(16):
            out[:, place] = np.where(place < lengths, self._buffer[np.maximum(stops - 1 - place, 0)], sign)
        return out


def _buffer(values: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(values.data)


def _column(avro_type: AvroType, count: int, buffer: Bytes) -> _Column:
    match avro_type.kind:
        case "boolean":
            return _Booleans(avro_type, count)
        case "string" | "bytes" | "fixed":
            return _Spans(avro_type, count, buffer)
        case "null":
            return _Column(avro_type, count)
        case _:
            return _Numbers(avro_type, count)


class _Reader:
    """Reads values at many cursors of one buffer at once. Each `pass_` answers where the cursors stand after it."""

    def __init__(self, buffer: Bytes) -> None:
        self._bytes = buffer
        # Every position as the start of a number: unaligned views that overlap.
        self._words = np.ndarray((len(buffer) - 7,), "<u8", buffer, strides=(1,))
        self._floats = {
            kind: np.ndarray((len(buffer) - 7,), _NUMBERS[kind], buffer, strides=(1,)) for kind in ("float", "double")
        }

    def pass_field(
        self, field: AvroField, cursors: Positions, stops: Positions, column: _Column | None, rows: slice
    ) -> Positions:
        if field.null_branch is None:
            return self._pass_value(field, cursors, stops, column, rows)
        branch = self._bytes[cursors]
        if (branch & 0xFD).any():  # the branches 0 and 1 are written as the bytes 0 and 2
            raise RecordDecodeError(f"field {field.name}: no such branch of its union")
        valid = branch != 2 * field.null_branch
        cursors = cursors + 1
        if valid.all():
            return self._pass_value(field, cursors, stops, column, rows)
        if column is not None:
            column.mark_nulls(rows, valid, cursors)
        filled = np.flatnonzero(valid)
        if len(filled):
            cursors[filled] = self._pass_value(field, cursors[filled], stops[filled], column, filled + rows.start)
        return cursors

    def _pass_value(
        self, field: AvroField, cursors: Positions, stops: Positions, column: _Column | None, rows: Rows
    ) -> Positions:
        kind = field.type.kind
        match kind:
            case "null":
                return cursors
            case "boolean":
                truth = self._bytes[cursors]
                if (truth > 1).any():
                    raise RecordDecodeError(f"field {field.name}: a boolean that is neither 0 nor 1")
                if isinstance(column, _Booleans):
                    column.values[rows] = truth
                return cursors + 1
            case "float" | "double":
                if isinstance(column, _Numbers):
                    column.values[rows] = self._floats[kind][cursors]
                return cursors + (4 if kind == "float" else 8)
            case "fixed":
                if isinstance(column, _Spans):
                    column.starts[rows] = cursors
                    column.stops[rows] = cursors + field.type.size
                return cursors + field.type.size
            case "string" | "bytes":
                lengths, cursors = self._pass_varint(cursors)
                if ((lengths < 0) | (lengths > stops - cursors)).any():
                    raise RecordDecodeError(f"field {field.name}: a length that leads out of its record")
                after = cursors + lengths
                if isinstance(column, _Spans):
                    column.starts[rows] = cursors
                    column.stops[rows] = after
                return after
            case _:
                numbers, cursors = self._pass_varint(cursors)
                low, high = (0, len(field.type.symbols) - 1) if kind == "enum" else (_INT_MIN, _INT_MAX)
                if kind != "long" and ((numbers < low) | (numbers > high)).any():
                    raise RecordDecodeError(f"field {field.name}: an {kind} out of {low} to {high}")
                if isinstance(column, _Numbers):
                    column.values[rows] = numbers
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
