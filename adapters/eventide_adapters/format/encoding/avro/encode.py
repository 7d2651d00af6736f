"""Encodes records as Avro, column by column: the counterpart of `vectors`.

1. Each column becomes pieces: the branch of its union, a varint, raw bytes. A piece consists of the length of each
   row's part, which is 0 for a null, and of the concatenated parts. A record has the pieces of its fields.
2. The length of a row is the sum over its pieces. This gives the position of every part in the block.
3. Each piece is copied to its positions in one step.
4. The items of collections are rows of their own. Joined, the items of one collection are its part of a piece.

Rows are processed in chunks whose positions fit in the processor's cache.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import AvroField, AvroType
from eventide_adapters.format.encoding.columns.arrow_numpy import Bytes, to_arrow
from eventide_core.errors import UnsupportedTableError

Lengths = npt.NDArray[np.int64]
Piece = tuple[Lengths, Bytes]

_CHUNK_ROWS: Final = 8192
_VARINT_BYTES_MAX: Final = 10
_DECIMAL_BYTES: Final = 16
_SHIFTS: Final = np.arange(0, 7 * _VARINT_BYTES_MAX, 7, dtype=np.uint64)
_STORAGE: Final = {"int": pa.int32(), "long": pa.int64()}
_RAW: Final = {"float": "<f4", "double": "<f8"}


def encode_records(records: pa.Table, fields: Sequence[AvroField]) -> bytes:
    """The encoded records, each preceded by its length in four bytes. The table has the fields' columns in their types.

    Raises UnsupportedTableError for a value that its field cannot hold, and for unions of several types.
    """
    chunks: list[Bytes] = []
    for begin in range(0, len(records), _CHUNK_ROWS):
        rows = records.slice(begin, _CHUNK_ROWS)
        pieces: list[Piece] = []
        for field in fields:
            pieces += _pieces(rows.column(field.name).combine_chunks(), field)
        sizes = _sizes(pieces, len(rows))
        lengths = np.full(len(rows), 4, np.int64), sizes.astype(">i4").view(np.uint8)
        chunks.append(_joined([lengths, *pieces], sizes + 4))
    return np.concatenate(chunks).tobytes() if chunks else b""


def _sizes(pieces: Sequence[Piece], count: int) -> Lengths:
    """The length of each of `count` rows."""
    sizes = np.zeros(count, np.int64)
    for lengths, _ in pieces:
        sizes += lengths
    return sizes


def _joined(pieces: Sequence[Piece], sizes: Lengths) -> Bytes:
    """The rows one after another, each with its parts of all pieces. `sizes` are the rows' lengths."""
    out = np.empty(int(sizes.sum()), np.uint8)
    cursors = np.cumsum(sizes) - sizes
    for lengths, data in pieces:
        if len(data) == len(sizes) and int(lengths.min(initial=1)) == 1:
            out[cursors] = data
        else:
            starts = np.cumsum(lengths) - lengths
            out[np.repeat(cursors - starts, lengths) + np.arange(len(data))] = data
        cursors = cursors + lengths
    return out


def _pieces(column: Any, field: AvroField) -> Iterator[Piece]:
    kind, branch = _written(field)
    if column.null_count and field.null_branch is None and kind.kind != "null":
        raise _misfit(f"field {field.name} is null in a record, and never in the schema")
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if branch is not None:
        branches = np.where(valid, 2 * branch, 2 * (field.null_branch or 0)).astype(np.uint8)
        yield np.ones(len(column), np.int64), branches
    filled = column if column.null_count == 0 else column.drop_null()
    for piece in _values(filled, kind, field.name):
        yield piece if len(filled) == len(column) else _spread(piece, valid)


def _written(field: AvroField) -> tuple[AvroType, int | None]:
    """The type that the field's values are written as, and the number of its branch; None if there is no union."""
    kind, null = field.type, field.null_branch
    if kind.kind != "union":
        return kind, None if null is None else 1 - null
    if kind.is_tagged_union:
        raise _misfit(f"field {field.name} is a union of several types")
    # Of the types that hold one another's values, the one that holds all.
    place = next(number for number, member in enumerate(kind.fields) if member.type.arrow == kind.arrow)
    return kind.fields[place].type, place + (null is not None and place >= null)


def _spread(piece: Piece, chosen: npt.NDArray[np.bool_]) -> Piece:
    """The piece for more rows, of which only the chosen ones have a part."""
    spread = np.zeros(len(chosen), np.int64)
    spread[chosen] = piece[0]
    return spread, piece[1]


def _values(column: Any, kind: AvroType, name: str) -> Iterator[Piece]:
    """The pieces of a column without nulls."""
    count = len(column)
    match kind.kind:
        case "null":
            return
        case "boolean":
            yield np.ones(count, np.int64), column.to_numpy(zero_copy_only=False).astype(np.uint8)
        case "int" | "long":
            yield _varints(column.view(_STORAGE[kind.kind]).to_numpy())
        case "float" | "double":
            raw = np.ascontiguousarray(column.to_numpy(), _RAW[kind.kind])
            yield np.full(count, raw.itemsize, np.int64), raw.view(np.uint8)
        case "enum":
            yield _varints(_symbols(column, kind, name))
        case "fixed":
            yield np.full(count, kind.size, np.int64), _fixed(column, kind.size)
        case "record":
            for place, field in enumerate(kind.fields):
                yield from _pieces(column.field(place), field)
        case "array" | "map":
            yield from _collections(column, kind, name)
        case _:
            lengths, data = _decimals(column) if pa.types.is_decimal(column.type) else _spans(column)
            yield _varints(lengths)
            yield lengths, data


def _collections(column: Any, kind: AvroType, name: str) -> Iterator[Piece]:
    """One block with all items, unless there are none, and the end."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    counts, items = np.diff(offsets), column.values.slice(offsets[0], offsets[-1] - offsets[0])
    if kind.kind == "map":
        _refuse_equal_keys(items.field(0), counts, name)
    pieces = list(_pieces(items, kind.item))
    sizes = _sizes(pieces, len(items))
    ends = np.append(0, np.cumsum(sizes))[offsets - offsets[0]]
    yield _spread(_varints(counts[counts > 0]), counts > 0)
    yield np.diff(ends), _joined(pieces, sizes)
    yield np.ones(len(column), np.int64), np.zeros(len(column), np.uint8)


def _refuse_equal_keys(keys: Any, counts: Lengths, name: str) -> None:
    pairs = pa.table({"map": to_arrow(np.repeat(np.arange(len(counts)), counts)), "key": keys})
    if len(pairs.group_by(["map", "key"], use_threads=False).aggregate([])) < len(pairs):
        raise _misfit(f"field {name} has a map with two equal keys")


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


def _decimals(column: Any) -> Piece:
    """Decimals as big-endian numbers of as few bytes as Java writes, concatenated."""
    data = _fixed(column, _DECIMAL_BYTES).reshape(-1, _DECIMAL_BYTES)
    size = data ^ np.where(data[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))  # the sign needs one more bit
    first = np.argmax(np.column_stack([size, np.ones(len(size), np.uint8)]) != 0, axis=1)
    is_full = np.column_stack([size, np.zeros(len(size), np.uint8)])[np.arange(len(size)), first] >= 0x80
    lengths = np.maximum(_DECIMAL_BYTES - first + is_full, 1)
    return lengths, data[np.arange(_DECIMAL_BYTES) >= (_DECIMAL_BYTES - lengths)[:, None]]


def _fixed(column: Any, size: int) -> Bytes:
    """Fixed values unchanged; decimals, which Arrow stores as 16-byte little-endian numbers, as big-endian numbers."""
    width = _DECIMAL_BYTES if pa.types.is_decimal(column.type) else size
    data = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * width : (column.offset + len(column)) * width]
    if pa.types.is_decimal(column.type):
        data = np.ascontiguousarray(data.reshape(-1, width)[:, size - 1 :: -1])
    return data.reshape(-1)


def _symbols(column: Any, kind: AvroType, name: str) -> npt.NDArray[Any]:
    places = pc.index_in(column, value_set=pa.array(kind.symbols, pa.string()))
    if places.null_count:
        unknown = column.filter(places.is_null())[0]
        raise UnsupportedTableError(f"field {name}: {unknown.as_py()!r} is not one of {', '.join(kind.symbols)}")
    numbers: npt.NDArray[Any] = places.to_numpy()
    return numbers


def _misfit(what: str) -> UnsupportedTableError:
    return UnsupportedTableError(f"a record does not fit the table's schema: {what}")
