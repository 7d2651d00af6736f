"""Encodes flat records as Avro, column by column: the counterpart of `vectors`.

1. Each column becomes pieces: the branch of its union, a varint, raw bytes. A piece consists of the length of each
   row's part, which is 0 for a null, and of the concatenated parts.
2. The length of a row is the sum over its pieces. This gives the position of every part in the block.
3. Each piece is copied to its positions in one step.

Rows are processed in chunks whose positions fit in the processor's cache.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.avro.schema import AvroField
from eventide_adapters.format.columns.arrow_numpy import Bytes
from eventide_core.errors import UnsupportedTableError

Lengths = npt.NDArray[np.int64]
Piece = tuple[Lengths, Bytes]

_FLAT: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "string", "bytes", "fixed", "enum"})
_CHUNK_ROWS: Final = 8192
_VARINT_BYTES_MAX: Final = 10
_SHIFTS: Final = np.arange(0, 7 * _VARINT_BYTES_MAX, 7, dtype=np.uint64)
_STORAGE: Final = {"int": pa.int32(), "long": pa.int64()}
_RAW: Final = {"float": "<f4", "double": "<f8"}


def can_encode(fields: Sequence[AvroField]) -> bool:
    """Whether every field is a primitive, a fixed, or an enum, or a union of one of these with null.

    False for a decimal on bytes, because its shortest form depends on each value.
    """
    return all(
        field.type.kind in _FLAT and not (field.type.kind == "bytes" and pa.types.is_decimal(field.type.arrow))
        for field in fields
    )


def encode_records(records: pa.Table, fields: Sequence[AvroField]) -> bytes:
    """The encoded records, each preceded by its length in four bytes. The table has the fields' columns in their types.

    Raises UnsupportedTableError for a string that is not a symbol of its enum.
    """
    chunks: list[Bytes] = []
    for begin in range(0, len(records), _CHUNK_ROWS):
        rows = records.slice(begin, _CHUNK_ROWS)
        pieces: list[Piece] = []
        for field in fields:
            pieces += pieces_of(rows.column(field.name).combine_chunks(), field)
        chunks.append(laid_out(pieces, len(rows)))
    return np.concatenate(chunks).tobytes() if chunks else b""


def laid_out(pieces: Sequence[Piece], count: int) -> Bytes:
    sizes = np.zeros(count, np.int64)
    for lengths, _ in pieces:
        sizes += lengths
    ends = np.cumsum(sizes + 4)
    out = np.empty(int(ends[-1]), np.uint8)
    cursors = ends - sizes - 4
    for lengths, data in ((np.full(count, 4, np.int64), _big_endian(sizes)), *pieces):
        if len(data) == count and int(lengths.min(initial=1)) == 1:
            out[cursors] = data
        else:
            starts = np.cumsum(lengths) - lengths
            out[np.repeat(cursors - starts, lengths) + np.arange(len(data))] = data
        cursors = cursors + lengths
    return out


def pieces_of(column: Any, field: AvroField) -> Iterator[Piece]:
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if field.null_branch is not None:
        branches = np.where(valid, 2 * (1 - field.null_branch), 2 * field.null_branch).astype(np.uint8)
        yield np.ones(len(column), np.int64), branches
    elif field.type.kind == "null":
        return
    filled = column if column.null_count == 0 else column.drop_null()
    for lengths, data in _values(filled, field):
        if len(filled) == len(column):
            yield lengths, data
        else:
            spread = np.zeros(len(column), np.int64)
            spread[valid] = lengths
            yield spread, data


def _values(column: Any, field: AvroField) -> Iterator[Piece]:
    """The pieces of a column without nulls."""
    kind, count = field.type.kind, len(column)
    match kind:
        case "boolean":
            yield np.ones(count, np.int64), column.to_numpy(zero_copy_only=False).astype(np.uint8)
        case "int" | "long":
            yield _varints(column.view(_STORAGE[kind]).to_numpy())
        case "float" | "double":
            raw = np.ascontiguousarray(column.to_numpy(), _RAW[kind])
            yield np.full(count, raw.itemsize, np.int64), raw.view(np.uint8)
        case "enum":
            yield _varints(_symbols(column, field))
        case "fixed":
            yield np.full(count, field.type.size, np.int64), _fixed(column, field.type.size)
        case _:
            lengths, data = _spans(column)
            yield _varints(lengths)
            yield lengths, data


def _varints(numbers: npt.NDArray[Any]) -> Piece:
    signed = numbers.astype(np.int64)
    folded = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    if len(folded) == 0 or int(folded.max()) < 0x80:
        return np.ones(len(folded), np.int64), folded.astype(np.uint8)
    groups = (folded[:, None] >> _SHIFTS).astype(np.uint8) & np.uint8(0x7F)
    # The last nonzero group ends the number. The number 0 has one group.
    lengths = np.maximum(_VARINT_BYTES_MAX - np.argmax((groups != 0)[:, ::-1], axis=1), 1)
    lengths[folded == 0] = 1
    places = np.arange(_VARINT_BYTES_MAX)
    groups |= np.where(places < (lengths - 1)[:, None], np.uint8(0x80), np.uint8(0))
    return lengths.astype(np.int64), groups[places < lengths[:, None]]


def _spans(column: Any) -> Piece:
    """Strings and bytes, concatenated."""
    buffers: list[Any] = column.buffers()
    offsets = np.frombuffer(buffers[1], np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = np.frombuffer(buffers[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    return np.diff(offsets), data


def _fixed(column: Any, size: int) -> Bytes:
    """Fixed values unchanged; decimals, which Arrow stores as 16-byte little-endian numbers, as big-endian numbers."""
    width = 16 if pa.types.is_decimal(column.type) else size
    data = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * width : (column.offset + len(column)) * width]
    if pa.types.is_decimal(column.type):
        data = np.ascontiguousarray(data.reshape(-1, width)[:, size - 1 :: -1])
    return data.reshape(-1)


def _symbols(column: Any, field: AvroField) -> npt.NDArray[Any]:
    places = pc.index_in(column, value_set=pa.array(field.type.symbols, pa.string()))
    if places.null_count:
        unknown = column.filter(places.is_null())[0]
        raise UnsupportedTableError(
            f"field {field.name}: {unknown.as_py()!r} is not one of {', '.join(field.type.symbols)}"
        )
    numbers: npt.NDArray[Any] = places.to_numpy()
    return numbers


def _big_endian(numbers: Lengths) -> Bytes:
    return numbers.astype(">i4").view(np.uint8)
