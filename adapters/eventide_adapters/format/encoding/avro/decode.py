"""Decodes the content of an Avro data block, one segment at a time.

    content := i32 version  i32 n  n x (i32 length  record)

Numbers are big-endian. A record is Avro without a schema; the schema is in the block's header. The versions 1, 2, and 3
have the same layout. Version 0 has no count and is older than any table that eventide reads.

A segment contains as many whole records as fit into one read; a longer record is read alone. A few megabytes of them are
decoded together, column by column, or one by one if their collections are too uneven for that.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from eventide_adapters.format.encoding.avro.column_resolution import check_columns, resolve_columns
from eventide_adapters.format.encoding.avro.records import decode_records
from eventide_adapters.format.encoding.avro.schema import AvroField, record_fields
from eventide_adapters.format.encoding.avro.vectors import UnevenCollectionsError, decode_vectors
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, Positions
from eventide_core.errors import RecordDecodeError, UnsupportedLogFormatError
from eventide_core.table.schema.avro_schema import AvroSchema

# To decode takes five times the memory of the records.
DECODED_BYTES: Final = 4 * 1024 * 1024
SEGMENT_BYTES: Final = DECODED_BYTES
REMOTE_SEGMENT_BYTES: Final = 32 * 1024 * 1024  # an object store sends a large range in parts, several at a time
_VERSIONS = (1, 2, 3)
_HEAD_BYTES = 8  # version and count
_CONTENT_BYTES_MAX = (1 << 31) - 1  # Hudi keeps a content in one Java array
_read_length = struct.Struct(">i").unpack_from

_Records: TypeAlias = tuple[bytes, Positions, Positions]
"""Bytes, and where whole records begin and end in them."""


def iter_avro_block(
    read: Callable[[int, int], bytes],
    size: int,
    writer_schema: AvroSchema,
    target: Sequence[AvroField],
    place: str,
    *,
    is_remote: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The records in the columns and types of `target`, in batches. `place` names the block in errors.

    `read` returns a range of the content, which has `size` bytes. If `is_remote`, the ranges are few and large. A block
    without records yields one empty batch. Raises RecordDecodeError if the content does not fit the writer's schema,
    UnsupportedTableError if that schema does not fit the target, UnsupportedLogFormatError for an unknown version.
    """
    fields = record_fields(writer_schema)
    check_columns({field.name: field.type.arrow for field in fields}, target, place)
    wanted = frozenset(field.name for field in target)
    for content, starts, ends in _pieces(
        _segments(read, size, place, REMOTE_SEGMENT_BYTES if is_remote else SEGMENT_BYTES)
    ):
        columns = _sharing(_decode(content, starts, ends, fields, wanted, place))
        yield resolve_columns(columns, len(starts), target, place)


def _sharing(columns: dict[str, ArrowArray]) -> dict[str, ArrowArray]:
    """The columns, of which equal ones share their memory, as the record key's and its field's do."""
    columns_of_size: dict[tuple[int, int], ArrowArray] = {}
    for name, column in columns.items():
        if pa.types.is_string(column.type):
            same = columns_of_size.setdefault((column.nbytes, column.null_count), column)
            if same is not column and same.equals(column):
                columns[name] = same
    return columns


def count_avro_records(head: bytes, place: str) -> int:
    """The number of records that a content states; `head` is its first 8 bytes or more."""
    if len(head) < _HEAD_BYTES:
        raise RecordDecodeError(f"{place}: {len(head)} bytes are not an Avro block")
    version, count = struct.unpack_from(">ii", head)
    if version not in _VERSIONS:
        raise UnsupportedLogFormatError(f"{place}: an Avro block of version {version}; supported are 1 to 3")
    return int(count)


def count_of_whole(content: bytes) -> int | None:
    """The number of records of a content, if they end where it ends; otherwise None."""
    if len(content) < _HEAD_BYTES or struct.unpack_from(">i", content)[0] not in _VERSIONS:
        return None
    count, position = _read_length(content, 4)[0], _HEAD_BYTES
    with suppress(struct.error):
        for _ in range(count):
            length = _read_length(content, position)[0]
            if length < 0:
                return None
            position += 4 + length
        return count if position == len(content) and count >= 0 else None
    return None


def join_contents(contents: Sequence[tuple[bytes, int]]) -> bytes:
    """One content with the records of several. Each comes with the answer of `count_of_whole`."""
    head = struct.pack(">ii", _VERSIONS[-1], sum(count for _, count in contents))
    return head + b"".join(content[_HEAD_BYTES:] for content, _ in contents)


def avro_record_bounds(content: bytes, place: str) -> tuple[Positions, Positions]:
    """The start and the end of each record of a whole content."""
    count = _checked_count(content, len(content), place)
    starts, ends, position = _bounds(content, _HEAD_BYTES, count, place)
    _check_end(len(starts), count, position, len(content), place)
    return starts, ends


def _segments(read: Callable[[int, int], bytes], size: int, place: str, segment_bytes: int) -> Iterator[_Records]:
    """The whole records of the content, as many as one read of `segment_bytes` contains."""
    offset, position, done = 0, _HEAD_BYTES, 0
    content = read(0, min(size, segment_bytes))
    count = _checked_count(content, size, place)
    while True:
        starts, ends, position = _bounds(content, position, count - done, place)
        done += len(starts)
        if len(starts) or count == 0:
            yield content, starts, ends
        has_more = offset + len(content) < size
        offset += position
        if done == count or not has_more:
            break
        next_bytes = 4 + _read_length(content, position)[0] if position + 4 <= len(content) else 0
        content, position = read(offset, min(size - offset, max(next_bytes, segment_bytes))), 0
    _check_end(done, count, offset, size, place)


def _pieces(segments: Iterator[_Records]) -> Iterator[_Records]:
    """The segments in pieces that are decoded at once: at most DECODED_BYTES, or one record."""
    for content, starts, ends in segments:
        first = 0
        while len(ends) and ends[-1] - starts[first] > DECODED_BYTES:
            after = max(first + 1, int(np.searchsorted(ends, starts[first] + DECODED_BYTES, "right")))
            if after == len(ends):
                break
            yield _piece(content, starts[first:after], ends[first:after])
            first = after
        yield _piece(content, starts[first:], ends[first:]) if first else (content, starts, ends)


def _piece(content: bytes, starts: Positions, ends: Positions) -> _Records:
    offset = starts[0]
    return content[offset : ends[-1]], starts - offset, ends - offset


def _bounds(content: bytes, position: int, count: int, place: str) -> tuple[Positions, Positions, int]:
    """The starts and ends of whole records from `position` on, and the position of the length after them.

    Finds at most `count` records.
    """
    bounds = [position]
    read, note, size = _read_length, bounds.append, len(content)
    # This loop only does what must be done record by record. A length that exceeds the content ends it, or is found
    # below.
    with suppress(struct.error):
        for _ in range(count):
            position += 4 + read(content, position)[0]
            note(position)
    borders = np.array(bounds, np.int64)
    begins, ends = borders[:-1] + 4, borders[1:]
    is_backward = ends < begins
    broken = np.flatnonzero(is_backward | (ends > size))
    if len(broken):
        number = int(broken[0])
        if is_backward[number]:
            raise RecordDecodeError(f"{place}: a record has a length of {ends[number] - begins[number]}")
        begins, ends = begins[:number], ends[:number]
    return begins, ends, int(borders[len(ends)])


def _checked_count(head: bytes, size: int, place: str) -> int:
    count = count_avro_records(head, place)
    if size > _CONTENT_BYTES_MAX:
        raise UnsupportedLogFormatError(f"{place}: an Avro block of {size} bytes; Hudi writes less than 2 GiB")
    if not 0 <= count <= (size - _HEAD_BYTES) // 4:
        raise RecordDecodeError(f"{place}: {count} records in {size} bytes")
    return count


def _check_end(done: int, count: int, end: int, size: int, place: str) -> None:
    if done < count:
        raise RecordDecodeError(f"{place}: ends before record {done} of {count}")
    if end != size:
        raise RecordDecodeError(f"{place}: its {count} records end at byte {end} of {size}")


def _decode(
    content: bytes,
    starts: Positions,
    ends: Positions,
    fields: Sequence[AvroField],
    wanted: frozenset[str],
    place: str,
) -> dict[str, ArrowArray]:
    try:
        try:
            return decode_vectors(content, starts, ends, fields, wanted)
        except UnevenCollectionsError:
            return decode_records(content, starts, ends, fields, wanted)
    except RecordDecodeError as error:
        raise RecordDecodeError(
            f"{place}: {error}; the block does not fit its own schema: restore the file, or roll back its write"
        ) from error
