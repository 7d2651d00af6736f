"""Compresses the pages of a Parquet file with gzip while Arrow writes the file uncompressed.

Arrow compresses gzip with zlib, which takes four fifths of the time that a base file takes to write. Here, Arrow writes
to a `GzipPages`, which compresses each page and passes it on:

    file := "PAR1"  (page header, page)...  footer  i32 length of the footer  "PAR1"

In a page header, the compressed size and the checksum of the compressed page change. In the footer, the codec, the
compressed sizes and all offsets change. The rest, such as statistics, stays as Arrow wrote it. (Uncompressed sizes count
the page headers, too, which may become a few bytes longer. No reader adds them up.)

ISA-L compresses ten times as fast as zlib, but finds fewer repetitions, so that text becomes larger. libdeflate is two to
four times as fast as zlib, and compresses about as well. A sample of each page decides between them.
docs/decisions/gzip_pages.md has the measurements.
"""

from __future__ import annotations

import io
import zlib
from typing import Any, Final

import deflate
from isal import isal_zlib

from eventide_adapters.format.base_file.thrift_compact import Span, elements, fields, integer, with_integers

_MAGIC: Final = b"PAR1"
_TAIL_BYTES: Final = 8  # the footer's length, and the magic bytes
_GZIP: Final = 2  # as a codec of parquet.thrift

_ZLIB_LEVEL: Final = 6  # Java's default
_DEFLATE_LEVEL: Final = 6
_ISAL_LEVEL: Final = 1  # higher levels only gain on text, which libdeflate compresses anyway
_GZIP_FORMAT: Final = 31  # as `wbits` of zlib; the header contains no time
_SAMPLE_BYTES: Final = 8 * 1024
# ISA-L is for pages whose sample it compresses to at least this share, so that they hardly repeat themselves, and to no
# more than this multiple of zlib's size.
_ISAL_SHARE_MIN: Final = 0.4
_ISAL_SIZE_MAX: Final = 1.02

# Numbers of fields in parquet.thrift
_PAGE_COMPRESSED_SIZE, _PAGE_CRC = 3, 4
_FILE_ROW_GROUPS = 4
_GROUP_COLUMNS, _GROUP_OFFSET, _GROUP_COMPRESSED_SIZE = 1, 5, 6
_CHUNK_METADATA = 3
_CHUNK_OFFSETS = 2, 4, 6  # of the chunk, and of its indexes
_COLUMN_CODEC, _COLUMN_COMPRESSED_SIZE = 4, 7
_COLUMN_PAGES = 9, 11  # where data and dictionary pages begin
_COLUMN_OFFSETS = *_COLUMN_PAGES, 10, 14  # also of index pages, and of a bloom filter


def gzip_page(page: bytes) -> bytes:
    """The bytes as one gzip member. The same libraries on the same kind of processor give the same member."""
    if len(page) > 2 * _SAMPLE_BYTES:
        middle = len(page) // 2
        if _suits_isal(page[middle : middle + _SAMPLE_BYTES]):
            return isal_zlib.compress(page, _ISAL_LEVEL, _GZIP_FORMAT)
    return bytes(deflate.gzip_compress(page, _DEFLATE_LEVEL))


def _suits_isal(sample: bytes) -> bool:
    size = len(isal_zlib.compress(sample, _ISAL_LEVEL, _GZIP_FORMAT))
    if size < _ISAL_SHARE_MIN * len(sample):
        return False
    return size <= _ISAL_SIZE_MAX * len(zlib.compress(sample, _ZLIB_LEVEL, _GZIP_FORMAT))


class GzipPages(io.RawIOBase):
    """Arrow's sink for one uncompressed Parquet file without page indexes, of version 1 data pages with checksums.

    Keeps at most one page, and then the footer, in memory. `sink` has a method `write` for bytes; it stays open.
    """

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._waiting = bytearray()
        self._passed = self._written = 0
        # Where each page begins or ends in Arrow's file, and in this one. 0 is no offset.
        self._moved = {0: 0}
        self._is_footer = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        """The position in Arrow's file."""
        return self._passed + len(self._waiting)

    def write(self, data: Any, /) -> int:
        self._waiting += data
        if not self._is_footer:
            self._pass_pages_on()
        return len(data)

    def begin_footer(self) -> None:
        """Everything that Arrow writes from now on is the footer."""
        self._is_footer = True

    def finish(self) -> None:
        """Writes the footer."""
        data = bytes(self._waiting)
        length = int.from_bytes(data[-_TAIL_BYTES : -len(_MAGIC)], "little")
        if length + _TAIL_BYTES != len(data):
            raise AssertionError(f"Arrow wrote {len(data)} bytes after the last page, but a footer of {length}")
        footer = with_integers(data, 0, length, self._new_in_footer(data))
        self._sink.write(b"".join([footer, len(footer).to_bytes(4, "little"), _MAGIC]))

    def _pass_pages_on(self) -> None:
        if self._passed == 0:
            if len(self._waiting) < len(_MAGIC):
                return
            self._pass_on(len(_MAGIC), _MAGIC)
        while self._waiting:
            try:
                header, start = fields(self._waiting, 0)
            except IndexError:  # not all of it is here yet
                return
            end = start + integer(self._waiting, header[_PAGE_COMPRESSED_SIZE][0])[0]
            if len(self._waiting) < end:
                return
            page = gzip_page(bytes(self._waiting[start:end]))
            new = {header[_PAGE_COMPRESSED_SIZE]: len(page), header[_PAGE_CRC]: _signed(isal_zlib.crc32(page))}
            self._pass_on(end, with_integers(self._waiting, 0, start, new) + page)

    def _pass_on(self, length: int, data: bytes) -> None:
        """Writes `data` instead of the first `length` bytes that Arrow wrote."""
        self._sink.write(data)
        del self._waiting[:length]
        self._passed += length
        self._written += len(data)
        self._moved[self._passed] = self._written

    def _new_in_footer(self, footer: bytes) -> dict[Span, int]:
        new: dict[Span, int] = {}
        for group_start, _ in elements(footer, fields(footer, 0)[0][_FILE_ROW_GROUPS][0]):
            group, _ = fields(footer, group_start)
            group_size = 0
            for chunk_start, _ in elements(footer, group[_GROUP_COLUMNS][0]):
                chunk, _ = fields(footer, chunk_start)
                column, _ = fields(footer, chunk[_CHUNK_METADATA][0])
                starts = (integer(footer, column[number][0])[0] for number in _COLUMN_PAGES if number in column)
                first = min(filter(None, starts), default=0)  # a chunk without rows may have no pages
                size = integer(footer, column[_COLUMN_COMPRESSED_SIZE][0])[0]
                size = self._moved[first + size] - self._moved[first]
                group_size += size
                new[column[_COLUMN_COMPRESSED_SIZE]] = size
                new[column[_COLUMN_CODEC]] = _GZIP
                new |= self._moved_in(footer, chunk, _CHUNK_OFFSETS) | self._moved_in(footer, column, _COLUMN_OFFSETS)
            new[group[_GROUP_COMPRESSED_SIZE]] = group_size
            new |= self._moved_in(footer, group, (_GROUP_OFFSET,))
        return new

    def _moved_in(self, footer: bytes, struct: dict[int, Span], numbers: tuple[int, ...]) -> dict[Span, int]:
        """The new offsets, where the struct has such a field."""
        return {
            struct[number]: self._moved[integer(footer, struct[number][0])[0]] for number in numbers if number in struct
        }


def _signed(crc: int) -> int:
    return crc - (1 << 32) if crc >> 31 else crc
