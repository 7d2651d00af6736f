"""Presents a Parquet file compressed with gzip to Arrow as an uncompressed one.

Arrow inflates gzip with zlib, which takes more than half of the time that a base file takes to read. Here, ISA-L inflates
each page when Arrow reads it, in less than half of zlib's time:

    room for the columns that are read...  footer  i32 length of the footer  "PAR1"

1. In the footer, the codec, the compressed size and the offset of these columns' chunks change, and the bloom filter's text
   becomes empty. The rest stays.
2. The size of an uncompressed chunk is known only when its pages have been read. So its room here is what the footer states
   and what its page headers can add at most. Nothing is behind its last page, and Arrow doesn't look there.
3. Arrow reads the chunks of a row group in turns, each from its beginning to its end, page by page. So one uncompressed page
   for each column is in memory. The compressed bytes are read in pieces from a local disk. From other storages, a row
   group's bytes are read at once, near ones together, as Arrow itself does, and stay until the next row group.
4. In a page header, the compressed size changes. The checksum covers the compressed page, so it is compared here.
5. Hudi stores a record key of one field twice: in its meta column, and in the field's own column. A member of gzip ends with
   the checksum and the size of what it inflates to. A page is not inflated again if its end states the same as a page of
   keys that was inflated shortly before, and if the chunk has the least and the greatest of the keys in this row group. The
   checksum alone would not be enough: one in 2^32 pages of another column has it by chance.

Files are left to Arrow as they are if a chunk to be read is encrypted or not in gzip, or the footer is not understood.
docs/decisions/gzip_pages.md has the measurements.
"""

import io
import struct
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Self

from isal import isal_zlib

from eventide_adapters.format.encoding.parquet import field_ids as ids
from eventide_adapters.format.encoding.parquet.bloom_filter import FOOTER_KEY
from eventide_adapters.format.encoding.parquet.thrift_compact import (
    Span,
    WalkedStructs,
    binary,
    elements,
    fields,
    integer,
    with_integers,
)
from eventide_core.table.files.read_ahead import SeekableStream
from eventide_core.table.schema.avro_schema import RECORD_KEY

_RECORD_KEY: Final = RECORD_KEY.encode()
_MAGIC: Final = b"PAR1"
_GZIP_OR_ZLIB: Final = 47  # as `wbits` of zlib: both are what Arrow accepts
_ISAL_ERROR: Any = isal_zlib.IsalError  # its stubs call it a value
_COMPRESSED_BYTES_MIN: Final = 512 * 1024  # to open the file again costs as much as this saves
_TAIL_BYTES: Final = 64 * 1024  # what Arrow reads first of a file's end; the footer may be shorter
_PIECE_BYTES: Final = 256 * 1024
_GAP_BYTES_MAX: Final = 256 * 1024  # which a read includes rather than be two
_READ_BYTES_MAX: Final = 32 * 1024 * 1024  # Arrow's own limit of one read
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_END: Final = struct.Struct("<II")  # the checksum and the size of the inflated bytes
_KEY_PAGES_MAX: Final = 6  # that wait for the other column; Hudi's have a megabyte each, and a batch reads five

_EMPTY: Final = 0  # an integer with the bytes of an empty text
_FALSE: Final = 2  # as a type in Thrift's compact protocol, which is the value of a boolean


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A column chunk: its place in the compressed file, its room here, and the number of its row group.

    `has_keys`: its column is the keys. `may_repeat_keys`: it has the same least and greatest value.
    """

    offset: int
    size: int
    start: int
    room: int
    group: int
    has_keys: bool
    may_repeat_keys: bool

    @property
    def end(self) -> int:
        return self.offset + self.size


class InflatedPages(SeekableStream):
    """Arrow's source for the uncompressed file. Reading raises OSError for a damaged page.

    The stream of the compressed file stays open. Arrow reads on several threads, but never at the same time.
    """

    def __init__(self, stream: BinaryIO, chunks: list[_Chunk], footer: bytes) -> None:
        self._stream = stream
        self._is_local = is_local(stream)
        self._chunks = chunks
        self._starts = [chunk.start for chunk in chunks]
        self._tail_start = chunks[-1].start + chunks[-1].room
        self._tail = b"".join([bytes(_TAIL_BYTES), footer, len(footer).to_bytes(4, "little"), _MAGIC])
        super().__init__(self._tail_start + len(self._tail))
        self._readings: dict[int, _Reading] = {}
        self._group = -1
        self._of_group: dict[Span, memoryview] = {}  # the chunks of this row group
        self._keys: dict[tuple[int, int], memoryview] = {}  # by checksum and size

    @classmethod
    def of(
        cls,
        stream: BinaryIO,
        size: int,
        footer: bytes,
        columns: Collection[str],
        walked: WalkedStructs | None = None,
        *,
        bytes_min: int = _COMPRESSED_BYTES_MIN,
    ) -> Self | None:
        """A file of `size` bytes with this footer, to read these columns; None if it is to be read as it is.

        `walked` are the structs that were already found in the footer. Fewer compressed bytes than `bytes_min` are left
        to Arrow.
        """
        if size < bytes_min:
            return None
        with suppress(IndexError, KeyError, ValueError):
            chunks, new = _laid_out(footer, size, columns, walked)
            if sum(chunk.size for chunk in chunks) >= bytes_min:
                return cls(stream, chunks, with_integers(footer, 0, len(footer), new))
        return None

    def read(self, size: int = -1, /) -> memoryview:
        """The bytes of one chunk or of the footer, less than `size` only where these end."""
        at = self._position - self._tail_start
        if self._position < len(_MAGIC):
            piece = memoryview(_MAGIC)[self._position :]
        elif at >= 0:
            piece = memoryview(self._tail)[at : None if size < 0 else at + size]
        else:
            number = bisect_right(self._starts, self._position) - 1
            chunk = self._chunks[number]
            at = self._position - chunk.start
            reading = self._readings.get(number)
            if reading is None or reading.position > at:
                reading = self._readings[number] = _Reading(self._pages(chunk))
            reading.take(at - reading.position)
            piece = reading.take(chunk.room if size < 0 else size)
        self._position += len(piece)
        return piece

    def _pages(self, chunk: _Chunk) -> Iterator[bytes | memoryview]:
        """Each page's header, and its uncompressed bytes."""
        at, data, left = chunk.offset, memoryview(b""), chunk.room
        while at < chunk.end:
            place = f"the page at byte {at}"
            while (parsed := page_header(data, place)) is None:
                data = self._more(chunk, at, data, 1)
            header, length = parsed
            size, inflated, checksum, levels, is_compressed = stated(data, header, place)
            if not (0 <= size <= chunk.end - at - length and 0 <= inflated <= left):
                raise OSError(f"{place} claims {size} bytes that inflate to {inflated}, more than its column chunk has")
            if len(data) < length + size:
                data = self._more(chunk, at, data, length + size - len(data))
            body = data[length : length + size]
            if checksum is not None and isal_zlib.crc32(body) != checksum:
                raise OSError(f"{place} does not have its CRC checksum")
            yield with_integers(data, 0, length, {header[ids.PAGE_COMPRESSED_SIZE]: inflated})
            page = self._keys.pop(_end_of(body), None) if chunk.may_repeat_keys and not levels else None
            if page is None or len(page) != inflated:
                page = memoryview(inflated_page(body, inflated, levels, is_compressed, place))
                if chunk.has_keys and not levels:
                    self._keep_keys(page)
            yield page
            at, data, left = at + length + size, data[length + size :], left - inflated

    def _keep_keys(self, page: memoryview) -> None:
        """Keeps a page of keys for the column of the key's field: as it is, and without the levels of a nullable column."""
        levels = 4 + int.from_bytes(page[:4], "little")
        for values in (page, page[levels:]):
            self._keys[isal_zlib.crc32(values), len(values)] = values
        while len(self._keys) > 2 * _KEY_PAGES_MAX:
            del self._keys[next(iter(self._keys))]

    def _more(self, chunk: _Chunk, at: int, data: memoryview, least: int) -> memoryview:
        """The data from `at` on, with `least` more bytes of the chunk, or even more."""
        offset = at + len(data)
        if self._is_local:
            self._stream.seek(offset)
            piece = memoryview(self._stream.read(min(max(least, _PIECE_BYTES), chunk.end - offset)))
        else:
            piece = self._whole(chunk)[offset - chunk.offset :]
        if len(piece) < least:
            raise OSError(f"the page at byte {at} is not whole")
        return memoryview(b"".join([data, piece])) if data else piece

    def _whole(self, chunk: _Chunk) -> memoryview:
        if chunk.group != self._group:
            self._group = chunk.group
            of_group = [(one.offset, one.end) for one in self._chunks if one.group == chunk.group]
            self._of_group = read_spans(self._stream, of_group)
        return self._of_group[chunk.offset, chunk.end]


class _Reading:
    """How far a chunk has been read."""

    def __init__(self, pages: Iterator[bytes | memoryview]) -> None:
        self._pages = pages
        self._rest = memoryview(b"")
        self.position = 0

    def take(self, size: int) -> memoryview:
        """The next bytes, less than `size` only at the end."""
        pieces: list[memoryview] = []
        left = size
        while left:
            if not self._rest:
                page = next(self._pages, None)
                if page is None:
                    break
                self._rest = memoryview(page)
            pieces.append(self._rest[:left])
            self._rest = self._rest[left:]
            left -= len(pieces[-1])
        self.position += size - left
        return pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))


def page_header(data: memoryview, place: str) -> tuple[ids.Struct, int] | None:
    """The fields of a page header, and its length; None if the data ends within it."""
    try:
        header, length = fields(data, 0)
        if length > len(data):
            return None
        if not header.keys() >= {ids.PAGE_SIZE, ids.PAGE_COMPRESSED_SIZE}:
            raise ValueError("it has no sizes")
    except IndexError:
        return None
    except (ValueError, RecursionError) as error:
        raise OSError(f"{place} has a damaged header: {error}") from error
    return header, length


def _end_of(body: memoryview) -> tuple[int, int]:
    """The checksum and the size of what a page in gzip inflates to; zeros for another page."""
    is_gzip = len(body) >= _GZIP_END.size and bytes(body[: len(_GZIP_MAGIC)]) == _GZIP_MAGIC
    checksum, size = _GZIP_END.unpack(body[-_GZIP_END.size :]) if is_gzip else (0, 0)
    return checksum, size


def stated(data: memoryview, header: ids.Struct, place: str) -> tuple[int, int, int | None, int, bool]:
    """What a page header states.

    That is the page's size, its uncompressed size, the checksum if there is one, how many bytes at the page's beginning are
    not compressed, and whether the others are.
    """
    try:
        size, inflated = ids.integers(data, header, ids.PAGE_COMPRESSED_SIZE, ids.PAGE_SIZE)
        checksum = integer(data, header[ids.PAGE_CRC][0])[0] & 0xFFFFFFFF if ids.PAGE_CRC in header else None
        if ids.PAGE_V2 not in header:
            return size, inflated, checksum, 0, True
        page, _ = fields(data, header[ids.PAGE_V2][0])
        if not page.keys() >= {*ids.V2_LEVELS}:
            raise ValueError("levels without sizes")
        sizes = ids.integers(data, page, *ids.V2_LEVELS)
        if min(sizes) < 0:
            raise ValueError(f"levels of {min(sizes)} bytes")
        is_compressed = ids.V2_IS_COMPRESSED not in page or data[page[ids.V2_IS_COMPRESSED][0] - 1] & 15 != _FALSE
    except (IndexError, ValueError, RecursionError) as error:
        raise OSError(f"{place} has a damaged header: {error}") from error
    return size, inflated, checksum, sum(sizes), is_compressed


def inflated_page(body: memoryview, size: int, levels: int, is_compressed: bool, place: str) -> bytes | memoryview:
    """The page's `size` uncompressed bytes."""
    if not is_compressed or len(body) == levels == size:
        page: bytes | memoryview = body
    elif levels > min(len(body), size):
        raise OSError(f"{place} claims levels of {levels} bytes, more than it is long")
    else:
        inflate = isal_zlib.decompressobj(_GZIP_OR_ZLIB)
        try:
            values = inflate.decompress(body[levels:], size - levels + 1)
        except _ISAL_ERROR as error:
            raise OSError(f"{place} cannot be inflated: {error}") from error
        page = values if levels == 0 else b"".join([body[:levels], values])
        if not inflate.eof:
            raise OSError(f"{place} does not end where it states")
    if len(page) != size:
        raise OSError(f"{place} inflates to {len(page)} bytes, and states {size}")
    return page


def _laid_out(
    footer: bytes, file_size: int, columns: Collection[str], walked: WalkedStructs | None
) -> tuple[list[_Chunk], dict[Span, int]]:
    """The chunks of these columns, and the new integers of the footer. Raises ValueError, KeyError or IndexError."""
    top, _ = fields(footer, 0, walked)
    if ids.FILE_ENCRYPTION in top:
        raise ValueError("an encrypted file")
    chunks: list[_Chunk] = []
    new = without_bloom_filter(footer, top, walked)
    start = len(_MAGIC)
    wanted = {name.encode() for name in columns}
    for number, group in enumerate(ids.row_groups(footer, walked)):
        of_keys: tuple[bytes, bytes] | None = None
        for chunk, column in ids.column_chunks(footer, group, walked):
            if ids.is_elsewhere(chunk):
                raise ValueError("a chunk that is encrypted, or in another file")
            name = binary(footer, elements(footer, column[ids.COLUMN_NAMES][0])[0][0])
            if name not in wanted:
                continue
            codec, inflated, size, offset = ids.integers(
                footer, column, ids.COLUMN_CODEC, ids.COLUMN_SIZE, ids.COLUMN_COMPRESSED_SIZE, ids.COLUMN_DATA
            )
            dictionary = integer(footer, column[ids.COLUMN_DICTIONARY][0])[0] if ids.COLUMN_DICTIONARY in column else 0
            has_dictionary = 0 < dictionary < offset
            offset = dictionary if has_dictionary else offset
            if codec != ids.GZIP or inflated < 0 or size < 0 or not 0 < offset <= file_size - size:
                raise ValueError("a chunk in another codec, or outside of the file")
            room = inflated + 2 * size  # headers may be missing in the first, are in the second, and hardly grow
            new |= {
                column[ids.COLUMN_CODEC]: ids.UNCOMPRESSED,
                column[ids.COLUMN_COMPRESSED_SIZE]: room,
                column[ids.COLUMN_DATA]: start + has_dictionary,  # behind the dictionary
            }
            if ids.COLUMN_DICTIONARY in column:
                new[column[ids.COLUMN_DICTIONARY]] = start
            bounds, has_keys = _bounds(footer, column, walked), name == _RECORD_KEY
            of_keys = bounds if has_keys else of_keys
            may_repeat_keys = bounds is not None and bounds == of_keys and not has_keys
            chunks.append(_Chunk(offset, size, start, room, number, has_keys, may_repeat_keys))
            start += room
    return chunks, new


def without_bloom_filter(footer: bytes, top: ids.Struct, walked: WalkedStructs | None) -> dict[Span, int]:
    """What empties the text of the bloom filter, most of a footer, of which Arrow makes copies when it opens the file."""
    if ids.FILE_PAIRS not in top:
        return {}
    pairs = [fields(footer, at, walked)[0] for at, _ in elements(footer, top[ids.FILE_PAIRS][0], walked)]
    return {
        pair[ids.PAIR_VALUE]: _EMPTY for pair in pairs if binary(footer, pair[ids.PAIR_KEY][0]) == FOOTER_KEY.encode()
    }


def _bounds(footer: bytes, column: ids.Struct, walked: WalkedStructs | None) -> tuple[bytes, bytes] | None:
    """The least and the greatest value of a chunk, as its statistics have them; None if they don't."""
    if ids.COLUMN_STATISTICS not in column:
        return None
    values, _ = fields(footer, column[ids.COLUMN_STATISTICS][0], walked)
    if ids.STATISTICS_LEAST not in values or ids.STATISTICS_GREATEST not in values:
        return None
    return binary(footer, values[ids.STATISTICS_LEAST][0]), binary(footer, values[ids.STATISTICS_GREATEST][0])


def read_spans(stream: BinaryIO, spans: Sequence[Span]) -> dict[Span, memoryview]:
    """The bytes of these places, fewer where the file ends before. Those near one another take one read."""
    runs: list[Span] = []
    for start, end in sorted(spans):
        if runs and start - runs[-1][1] <= _GAP_BYTES_MAX and end - runs[-1][0] <= _READ_BYTES_MAX:
            runs[-1] = runs[-1][0], max(end, runs[-1][1])
        else:
            runs.append((start, end))
    pieces: list[memoryview] = []
    for start, end in runs:
        stream.seek(start)
        pieces.append(memoryview(stream.read(end - start)))
    starts = [start for start, _ in runs]
    contents: dict[Span, memoryview] = {}
    for start, end in spans:
        run = bisect_right(starts, start) - 1
        contents[start, end] = pieces[run][start - starts[run] : end - starts[run]]
    return contents


def is_local(stream: BinaryIO) -> bool:
    """Whether small reads cost little: from memory, or from a file of this machine."""
    if isinstance(stream, io.BytesIO):
        return True
    try:
        stream.fileno()
    except io.UnsupportedOperation:
        return False
    return True
