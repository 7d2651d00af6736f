r"""HFiles of version 3, the key-value files of Hudi's metadata table: base files, and the contents of HFILE log blocks.

    hfile     := block...  trailer of 4096 bytes
    block     := magic (8 bytes)  i32 size on disk (without these 33 bytes, with checksums)  i32 size  i64 previous
                 u8 checksum kind  i32 bytes per checksum  i32 size on disk (with these 33 bytes, without checksums)
                 data, compressed as a whole  checksums
    DATABLK*  := (i32 key length  i32 value length  key  value  vint 0)...      keys in the order of their bytes
    key       := i16 row length  row  00  i64 7fffffffffffffff  04
    IDXROOT2  := (i64 offset  i32 size on disk  vint length  first key)...      one for each data block
    FILEINF2  := "PBUF"  length  protobuf map of bytes
    trailer   := "TRABLK\"$"  length  protobuf numbers  padding  i32 version 3 (in HBase's style 03000003)

Hudi 0.x writes with HBase's classes, Hudi 1.x with its own. In Hudi 1.x, a key of the index, and the last key in the
file's info, is only the row with its length. This module calls a row a key, and doesn't interpret the values.

The checksums are not checked. gzip checks compressed data; other lengths are checked against each other.
"""

import zlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from eventide_adapters.format.encoding.avro.reading_limits import inflated_bytes_max
from eventide_core.errors import EventideError, ResourceLimitError, UnsupportedTableError
from eventide_core.table.files.read_ahead import ReadRange

TRAILER_LENGTH: Final = 4096
BLOCK_HEADER_LENGTH: Final = 33
DATA_MAGIC: Final = b"DATABLK*"
INDEX_MAGIC: Final = b"IDXROOT2"
INFO_MAGIC: Final = b"FILEINF2"
TRAILER_MAGIC: Final = b'TRABLK"$'
INFO_PREFIX: Final = b"PBUF"
VERSION: Final = 3
GZIP: Final = 1
UNCOMPRESSED: Final = 2

_BLOCK_BYTES_MAX: Final = 256 * 1024 * 1024  # one value names all files of a partition: about a hundred bytes each

Torn = Callable[[str], EventideError]
"""Makes the error for a description of what is wrong; the error names the file and the solution."""


@dataclass(frozen=True, slots=True)
class Trailer:
    """The fields of the trailer that a reader needs. Offsets are from the file's beginning.

    `info_offset` is where the file info begins, `index_offset` where the root index does. The index has `block_count`
    entries, the data blocks if `index_levels` is 1. With more levels, a reader goes from `first_data_offset` to
    `last_data_offset` instead. `entry_count` counts pairs of key and value. `compression` is HBase's number of the codec:
    GZIP or UNCOMPRESSED, or one that eventide refuses.
    """

    info_offset: int
    index_offset: int
    block_count: int
    entry_count: int
    index_levels: int
    first_data_offset: int
    last_data_offset: int
    compression: int


class HFile:
    """One HFile. Reads only the blocks that are requested.

    Torn bytes raise the error that `torn` makes, in the constructor or when they are read. A compression that Hudi doesn't
    write raises UnsupportedTableError.
    """

    def __init__(self, read: ReadRange, size: int, torn: Torn) -> None:
        self._read = read
        self._size = size
        self._torn = torn
        if size < TRAILER_LENGTH:
            raise torn(f"{size} bytes are not an HFile")
        self._trailer = _read_trailer(self._range(size - TRAILER_LENGTH, TRAILER_LENGTH), torn)
        if self._trailer.compression not in (GZIP, UNCOMPRESSED):
            raise UnsupportedTableError(
                f"an HFile with compression {self._trailer.compression}; eventide reads gzip and none, as Hudi writes them"
            )

    def info(self) -> Mapping[str, bytes]:
        """The file info. Hudi stores the values' Avro schema under `schema`."""
        cursor = Cursor(self._block(self._trailer.info_offset, INFO_MAGIC)[1], self._torn)
        if cursor.take(len(INFO_PREFIX)) != INFO_PREFIX:
            raise self._torn("its file info is not a protobuf")
        entries: dict[str, bytes] = {}
        for number, pair in _messages(Cursor(cursor.take(cursor.varint()), self._torn)):
            if number == 1 and isinstance(pair, bytes):
                parts = dict(_messages(Cursor(pair, self._torn)))
                key, value = parts.get(1, b""), parts.get(2, b"")
                if isinstance(key, bytes) and isinstance(value, bytes):
                    entries[key.decode(errors="replace")] = value
        return entries

    def entries(self, wanted: Collection[bytes] | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in the file's order. With `wanted`, yields only these keys and reads only their blocks."""
        keys = None if wanted is None else sorted(set(wanted))
        for offset in self._data_offsets(keys):
            magic, data = self._block(offset, None)
            if magic == DATA_MAGIC:
                for key, value in _entries(Cursor(data, self._torn)):
                    if wanted is None or key in wanted:
                        yield key, value

    def _data_offsets(self, wanted: list[bytes] | None) -> Iterator[int]:
        """The offsets of the data blocks that may contain a wanted key."""
        trailer = self._trailer
        if trailer.entry_count == 0:
            return
        if trailer.index_levels != 1:  # the lower levels of such an index are between the data blocks
            offset = trailer.first_data_offset
            while offset <= trailer.last_data_offset:
                yield offset
                offset = self._header(offset)[3]
            return
        index = list(self._index())
        for number, (first, offset) in enumerate(index):
            # Versions of a key may continue in the next block, so the block's range includes the next block's first key.
            last = index[number + 1][0] if number + 1 < len(index) else None
            if wanted is None:
                yield offset
                continue
            place = bisect_left(wanted, first)
            if place < len(wanted) and (last is None or wanted[place] <= last):
                yield offset

    def _index(self) -> Iterator[tuple[bytes, int]]:
        cursor = Cursor(self._block(self._trailer.index_offset, INDEX_MAGIC)[1], self._torn)
        before = -1
        for _ in range(self._trailer.block_count):
            offset = cursor.number(8)
            if offset <= before:  # otherwise, a damaged index could repeat one block for each of its entries
                raise self._torn(f"its index goes back from byte {before} to {offset}")
            before = offset
            cursor.number(4)
            key = Cursor(cursor.take(cursor.vint()), self._torn)
            yield key.take(key.number(2)), offset

    def _header(self, offset: int) -> tuple[bytes, int, int, int]:
        """Magic, size of the data on disk, size of the data, and the offset of the next block."""
        if not 0 <= offset <= self._size - TRAILER_LENGTH - BLOCK_HEADER_LENGTH:
            raise self._torn(f"it has no block at byte {offset}")
        cursor = Cursor(self._range(offset, BLOCK_HEADER_LENGTH), self._torn)
        magic, on_disk, size = cursor.take(8), cursor.number(4), cursor.number(4)
        cursor.take(13)
        data_length = cursor.number(4) - BLOCK_HEADER_LENGTH
        end = offset + BLOCK_HEADER_LENGTH + on_disk
        if not 0 <= data_length <= on_disk or end > self._size - TRAILER_LENGTH or size < 0:
            raise self._torn(f"its block at byte {offset} does not fit")
        if size > (limit := min(_BLOCK_BYTES_MAX, inflated_bytes_max(data_length))):
            raise ResourceLimitError(
                f"an HFile block of {size} bytes, {data_length} on disk, above the {limit} that eventide reads of it; let "
                "Hudi build the metadata table again"
            )
        return magic, data_length, size, end

    def _block(self, offset: int, magic: bytes | None) -> tuple[bytes, bytes]:
        """The magic, which is checked if one is given, and the data."""
        actual, data_length, size, _ = self._header(offset)
        if magic is not None and actual != magic:
            raise self._torn(f"its block at byte {offset} is {actual!r} instead of {magic!r}")
        data = self._range(offset + BLOCK_HEADER_LENGTH, data_length)
        if self._trailer.compression == GZIP:
            data = self._inflated(data, size, offset)
        if len(data) != size:
            raise self._torn(f"its block at byte {offset} has {len(data)} bytes, but states {size}")
        return actual, data

    def _inflated(self, data: bytes, size: int, offset: int) -> bytes:
        inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            content = inflater.decompress(data, size + 1)
        except zlib.error as error:
            raise self._torn(f"its block at byte {offset} cannot be inflated ({error})") from error
        if not inflater.eof:
            raise self._torn(f"its block at byte {offset} does not end where it states")
        return content

    def _range(self, offset: int, length: int) -> bytes:
        data = self._read(offset, length)
        if len(data) != length:
            raise self._torn(f"it ends within the {length} bytes at byte {offset}")
        return data


class Cursor:
    """Takes bytes from the front. Raises the error of `torn` if too few are left."""

    __slots__ = ("_data", "_torn", "position")

    def __init__(self, data: bytes, torn: Torn) -> None:
        self._data = data
        self._torn = torn
        self.position = 0

    @property
    def is_at_end(self) -> bool:
        return self.position >= len(self._data)

    def take(self, length: int) -> bytes:
        end = self.position + length
        if length < 0 or end > len(self._data):
            raise self._torn(f"{length} bytes at {self.position} of {len(self._data)}")
        taken = self._data[self.position : end]
        self.position = end
        return taken

    def number(self, length: int) -> int:
        """A big-endian number."""
        return int.from_bytes(self.take(length), "big", signed=True)

    def varint(self) -> int:
        """A number in protobuf's encoding."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise self._torn("a number of more than 64 bits")

    def vint(self) -> int:
        """A number of 0 or more in Hadoop's encoding: up to 127 itself; above, -112 minus its byte count, then its bytes."""
        first = self.number(1)
        if first >= 0:
            return first
        if not -120 <= first < -112:
            raise self._torn(f"a length that begins with {first}")
        return int.from_bytes(self.take(-112 - first), "big")


def _entries(cursor: Cursor) -> Iterator[tuple[bytes, bytes]]:
    while not cursor.is_at_end:
        key_length, value_length = cursor.number(4), cursor.number(4)
        end = cursor.position + key_length
        key = cursor.take(cursor.number(2))
        cursor.take(end - cursor.position)
        value = cursor.take(value_length)
        cursor.vint()
        yield key, value


def _messages(cursor: Cursor) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message that are varints or have a length. Skips fields of fixed size."""
    while not cursor.is_at_end:
        tag = cursor.varint()
        match tag & 7:
            case 0:
                yield tag >> 3, cursor.varint()
            case 2:
                yield tag >> 3, cursor.take(cursor.varint())
            case _:
                cursor.take(8 if tag & 7 == 1 else 4)


def _read_trailer(data: bytes, torn: Torn) -> Trailer:
    version = int.from_bytes(data[-3:], "big")  # the byte before it is HBase's minor version
    if version != VERSION or not data.startswith(TRAILER_MAGIC):
        raise torn("it does not end with the trailer of an HFile of version 3")
    cursor = Cursor(data, torn)
    cursor.take(len(TRAILER_MAGIC))
    fields = dict(_messages(Cursor(cursor.take(cursor.varint()), torn)))

    def number(field: int, default: int = 0) -> int:
        value = fields.get(field, default)
        if isinstance(value, bytes):
            raise torn(f"field {field} of its trailer is not a number")
        return value

    return Trailer(
        number(1), number(2), number(5), number(7), number(8, 1), number(9), number(10), number(12, UNCOMPRESSED)
    )
