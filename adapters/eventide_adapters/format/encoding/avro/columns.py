"""Collects the values of Avro columns during decoding and converts them to Arrow arrays.

A column has room for every row of its parent, which is the block, a struct, or the items of some collections. Rows are
valid, and zero or empty, until they are set. Values in or below a null row are never read.

Strings are not copied during decoding. Their bounds become the offsets of one array over the whole block, in which
every second element is a value. The items of collections arrive in the order in which they are read; each pass over
some rows adds a segment. `array` puts them in the order of the rows.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import AvroType
from eventide_adapters.format.encoding.columns.arrow_numpy import (
    Bytes,
    Flags,
    Positions,
    empty_array,
    to_arrow,
    to_texts,
)

RowIndices = slice | Positions
"""Which rows of a column: a run of them, or their numbers."""

NUMBERS: Final[Mapping[str, str]] = {"int": "<i4", "long": "<i8", "float": "<f4", "double": "<f8", "enum": "<i4"}


def column_of(avro_type: AvroType, count: int, buffer: Bytes) -> "Column":
    """An empty column of that type. `buffer` is the block, padded so that a fixed value can begin at its last byte."""
    match avro_type.kind:
        case "boolean":
            return Booleans(avro_type, count)
        case "string" | "bytes" | "fixed":
            return Spans(avro_type, count, buffer)
        case "null":
            return Column(avro_type, count)
        case "array" | "map":
            return Collections(avro_type, count, buffer)
        case "record":
            return Structs(avro_type, count, buffer)
        case "union" if avro_type.is_tagged_union:
            return Structs(avro_type, count, buffer)
        case "union":
            return Widened(avro_type, count, buffer)
        case _:
            return NumericColumn(avro_type, count)


class Column:
    """The values of one column."""

    def __init__(self, avro_type: AvroType, count: int) -> None:
        self.type = avro_type
        self.count = count
        self._valid: Flags | None = None

    def mark_nulls(self, rows: RowIndices, valid: Flags) -> None:
        """Marks the rows that are not valid as null."""
        if self._valid is None:
            self._valid = np.ones(self.count, np.bool_)
        self._valid[rows] = valid

    def array(self) -> Any:
        """The column's values. Raises ArrowInvalid if its type cannot hold one of them."""
        return pa.nulls(self.count, self.type.arrow)

    @property
    def validity(self) -> pa.Buffer | None:
        return None if self._valid is None else _buffer(np.packbits(self._valid, bitorder="little"))

    @property
    def mask(self) -> Flags | None:
        """True if null."""
        return None if self._valid is None else ~self._valid


class NumericColumn(Column):
    def __init__(self, avro_type: AvroType, count: int) -> None:
        super().__init__(avro_type, count)
        self.values = np.zeros(count, NUMBERS[avro_type.kind])

    def array(self) -> Any:
        storage = pa.from_numpy_dtype(self.values.dtype)
        numbers = pa.Array.from_buffers(storage, self.count, [self.validity, _buffer(self.values)])
        if self.type.kind == "enum":
            symbols: Any = to_texts(self.type.symbols)
            return symbols.take(numbers)
        return numbers.view(self.type.arrow)


class Booleans(Column):
    def __init__(self, avro_type: AvroType, count: int) -> None:
        super().__init__(avro_type, count)
        self.values = np.zeros(count, np.bool_)

    def array(self) -> Any:
        return to_arrow(self.values, self.mask)


class Spans(Column):
    """Values that are byte ranges of the block."""

    def __init__(self, avro_type: AvroType, count: int, buffer: Bytes) -> None:
        super().__init__(avro_type, count)
        self._buffer = buffer
        self._bounds = np.zeros(2 * count + 1, np.int32)
        self.starts = self._bounds[0 : 2 * count : 2]
        self.stops = self._bounds[1 : 2 * count : 2]

    def array(self) -> Any:
        arrow = self.type.arrow
        if pa.types.is_decimal(arrow):
            decimals = pa.Array.from_buffers(arrow, self.count, [self.validity, _buffer(self._decimals())])
            decimals.validate(full=True)
            return decimals
        if pa.types.is_fixed_size_binary(arrow):
            windows = np.lib.stride_tricks.sliding_window_view(self._buffer, self.type.size)
            rows = np.ascontiguousarray(windows[self.starts])
            return pa.Array.from_buffers(arrow, self.count, [self.validity, _buffer(rows)])
        if self.count == 0:
            return empty_array(arrow)
        # The values alternate with the gaps between them. Arrow sizes its copy by the last bound.
        self._bounds[-1] = len(self._buffer)
        spans = pa.Array.from_buffers(arrow, 2 * self.count, [None, _buffer(self._bounds), _buffer(self._buffer)])
        values = spans.take(to_arrow(np.arange(0, 2 * self.count, 2, dtype=np.int32)))
        values.validate(full=True)  # strings must be UTF-8
        if self._valid is None:
            return values
        _, offsets, data = values.buffers()
        return pa.Array.from_buffers(arrow, self.count, [self.validity, offsets, data])

    def _decimals(self) -> Bytes:
        """Converts big-endian numbers of up to 16 bytes to little-endian numbers of 16 bytes."""
        stops, lengths = self.stops.astype(np.int64), (self.stops - self.starts).astype(np.int64)
        sign = np.where((lengths > 0) & (self._buffer[self.starts] >= 0x80), np.uint8(0xFF), np.uint8(0))
        out = np.empty((self.count, 16), np.uint8)
        for place in range(16):
            out[:, place] = np.where(place < lengths, self._buffer[np.maximum(stops - 1 - place, 0)], sign)
        return out


class Structs(Column):
    """Records, and unions of several types, whose branches are the members of a struct."""

    def __init__(self, avro_type: AvroType, count: int, buffer: Bytes) -> None:
        super().__init__(avro_type, count)
        self.children = [column_of(field.type, count, buffer) for field in avro_type.fields]

    def array(self) -> Any:
        fields = [self.type.arrow.field(place) for place in range(len(self.children))]
        mask = None if self.mask is None else to_arrow(self.mask)
        return pa.StructArray.from_arrays([child.array() for child in self.children], fields=fields, mask=mask)


class Widened(Structs):
    """Unions with one type that can hold the values of all the others."""

    def array(self) -> Any:
        values = pc.coalesce(*(child.array().cast(self.type.arrow) for child in self.children))
        return values if self.mask is None else pc.if_else(to_arrow(self.mask), pa.nulls(1, values.type)[0], values)


class Collections(Column):
    """Arrays and maps. The items of a map are records of key and value."""

    def __init__(self, avro_type: AvroType, count: int, buffer: Bytes) -> None:
        super().__init__(avro_type, count)
        self._buffer = buffer
        self._segments: list[tuple[Positions, Positions, Column]] = []

    def open(self, rows: RowIndices, lengths: Positions) -> Column:
        """A column for the items of these rows, row by row."""
        numbers = np.arange(rows.start, rows.start + len(lengths)) if isinstance(rows, slice) else rows
        items = column_of(self.type.item.type, int(lengths.sum()), self._buffer)
        self._segments.append((numbers, lengths, items))
        return items

    def array(self) -> Any:
        lengths, firsts = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        read = 0
        for rows, counts, column in self._segments:
            lengths[rows] = counts
            firsts[rows] = read + np.cumsum(counts) - counts
            read += column.count
        offsets = np.append(0, np.cumsum(lengths))
        parts = [column.array() for _, _, column in self._segments]
        items = pa.concat_arrays(parts or [column_of(self.type.item.type, 0, self._buffer).array()])
        filled = firsts[lengths > 0]
        if (np.diff(filled) < 0).any():
            items = items.take(to_arrow(np.repeat(firsts - offsets[:-1], lengths) + np.arange(read)))
        bounds = to_arrow(offsets.astype(np.int32), None if self.mask is None else np.append(self.mask, False))
        if self.type.kind == "map":
            return pa.MapArray.from_arrays(bounds, items.field(0), items.field(1), type=self.type.arrow)
        return pa.ListArray.from_arrays(bounds, items, type=self.type.arrow)


def _buffer(values: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(values.data)
