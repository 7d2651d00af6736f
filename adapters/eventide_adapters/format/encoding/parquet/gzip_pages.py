"""Compresses the pages of a Parquet file with gzip while Arrow writes the file uncompressed.

Arrow compresses gzip with zlib, which takes four fifths of the time that a base file takes to write. Here, Arrow writes
to a `GzipPages`, which compresses each page, on other threads if it has some, and passes it on:

    file := "PAR1"  (page header, page)...  footer  i32 length of the footer  "PAR1"

In a page header, the compressed size and the checksum of the compressed page change. In the footer, the codec, the
compressed sizes and all offsets change. The rest, such as statistics, stays as Arrow wrote it. (Uncompressed sizes count
the page headers, too, which may become a few bytes longer. No reader adds them up.)

ISA-L compresses ten times as fast as zlib, but finds fewer repetitions, so that text becomes larger. libdeflate is two to
four times as fast as zlib, and compresses about as well. A sample of each page decides between them.
docs/decisions/gzip_pages.md has the measurements.
"""

import io
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import deflate
from isal import isal_zlib

from eventide_adapters.format.encoding.parquet import field_ids as ids
from eventide_adapters.format.encoding.parquet.thrift_compact import Span, fields, integer, with_integers
from eventide_core.access.threads import Threads

_MAGIC: Final = b"PAR1"
_TAIL_BYTES: Final = 8  # the footer's length, and the magic bytes
_WAITING_BYTES_MAX: Final = 8 * 1024 * 1024  # of pages on their way to the file; a page has about a megabyte
_WORTH_A_THREAD_BYTES: Final = 64 * 1024

_ZLIB_LEVEL: Final = 6  # Java's default
_DEFLATE_LEVEL: Final = 6
_ISAL_LEVEL: Final = 1  # higher levels only gain on text, which libdeflate compresses anyway
_GZIP_FORMAT: Final = 31  # as `wbits` of zlib; the header contains no time
_SAMPLE_BYTES: Final = 8 * 1024
# ISA-L is for pages whose sample it compresses to at least this share, so that they hardly repeat themselves, and to no
# more than this multiple of zlib's size.
_ISAL_SHARE_MIN: Final = 0.4
_ISAL_SIZE_MAX: Final = 1.02

_COLUMN_PAGES = ids.COLUMN_DATA, ids.COLUMN_DICTIONARY
_COLUMN_OFFSETS = *_COLUMN_PAGES, ids.COLUMN_INDEX_PAGES, ids.COLUMN_BLOOM_FILTER
_CHUNK_OFFSETS = ids.CHUNK_OFFSET, ids.CHUNK_OFFSET_INDEX, ids.CHUNK_COLUMN_INDEX


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


@dataclass(frozen=True, slots=True)
class _Header:
    """A page's header, the places of its integers, and the size of the page behind it."""

    data: bytes
    spans: ids.Struct
    page_size: int

    def of_compressed(self, page: "_Compressed") -> bytes:
        new = {self.spans[ids.PAGE_COMPRESSED_SIZE]: len(page.data), self.spans[ids.PAGE_CRC]: page.checksum}
        return with_integers(self.data, 0, len(self.data), new)


@dataclass(frozen=True, slots=True)
class _Compressed:
    data: bytes
    checksum: int


def _compressed(page: bytes) -> _Compressed:
    data = gzip_page(page)
    return _Compressed(data, _signed(isal_zlib.crc32(data)))


class GzipPages(io.RawIOBase):
    """Arrow's sink for one uncompressed Parquet file without page indexes, of version 1 data pages with checksums.

    Keeps a few pages, and then the footer, in memory. `sink` has a method `write` for bytes; it stays open. `threads` is
    None to compress each page where Arrow writes it. An error while a page is compressed is raised by a later `write`, or
    by `finish`.
    """

    def __init__(self, sink: Any, threads: Threads | None = None) -> None:
        self._sink = sink
        self._threads = threads
        self._received = bytearray()  # what is not yet a whole page
        self._header: _Header | None = None  # of the page that comes next
        # Pages on their way: their headers, their ends in Arrow's file, and what returns them compressed.
        self._pages = deque[tuple[_Header, int, Callable[[], _Compressed]]]()
        self._pages_bytes = 0
        # Positions in Arrow's file, and in this one.
        self._taken = self._written = 0
        # Where each page begins or ends in Arrow's file, and in this one. 0 isn't an offset.
        self._moved = {0: 0}
        self._is_footer = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        """The position in Arrow's file."""
        return self._taken + len(self._received)

    def write(self, data: Any, /) -> int:
        header = self._header
        if header is not None and not self._received and len(data) == header.page_size:
            self._taken += len(data)
            self._compress(header, bytes(data))  # Arrow writes a page at once, so that it need not be copied
        else:
            self._received += data
            if not self._is_footer:
                self._take_pages()
        return len(data)

    def begin_footer(self) -> None:
        """Everything that Arrow writes from now on is the footer."""
        self._is_footer = True

    def finish(self) -> None:
        """Writes the pages that are still on their way, and the footer."""
        self._pass_on(0)
        data = bytes(self._received)
        length = int.from_bytes(data[-_TAIL_BYTES : -len(_MAGIC)], "little")
        if length + _TAIL_BYTES != len(data):
            raise AssertionError(f"Arrow wrote {len(data)} bytes after the last page, but a footer of {length}")
        footer = with_integers(data, 0, length, self._new_in_footer(data))
        self._sink.write(b"".join([footer, len(footer).to_bytes(4, "little"), _MAGIC]))

    def _take_pages(self) -> None:
        """Takes the pages that are whole."""
        if self._taken == 0:
            if len(self._received) < len(_MAGIC):
                return
            self._write(self._take(len(_MAGIC)), self._taken)
        while True:
            if self._header is None:
                try:
                    spans, length = fields(self._received, 0)
                except IndexError:  # not all of it is here yet
                    return
                size = integer(self._received, spans[ids.PAGE_COMPRESSED_SIZE][0])[0]
                self._header = _Header(self._take(length), spans, size)
            if len(self._received) < self._header.page_size:
                return
            self._compress(self._header, self._take(self._header.page_size))

    def _take(self, length: int) -> bytes:
        data = bytes(self._received[:length])
        del self._received[:length]
        self._taken += length
        return data

    def _compress(self, header: _Header, page: bytes) -> None:
        """Compresses the page that ends where Arrow's file now ends, here or on another thread."""
        self._header = None
        compress: Callable[[], _Compressed] = partial(_compressed, page)
        if self._threads is not None and len(page) >= _WORTH_A_THREAD_BYTES:
            compress = self._threads.submit(compress).result
        self._pages.append((header, self._taken, compress))
        self._pages_bytes += len(page)
        self._pass_on(0 if self._threads is None else _WAITING_BYTES_MAX)

    def _pass_on(self, waiting_bytes: int) -> None:
        """Writes pages in their order, until less than so many bytes of them wait."""
        while self._pages and self._pages_bytes >= waiting_bytes:
            header, end, compress = self._pages.popleft()
            self._pages_bytes -= header.page_size
            page = compress()
            self._write(b"".join([header.of_compressed(page), page.data]), end)

    def _write(self, data: bytes, end: int) -> None:
        """Writes `data`, which ends where Arrow's file has `end`."""
        self._sink.write(data)
        self._written += len(data)
        self._moved[end] = self._written

    def _new_in_footer(self, footer: bytes) -> dict[Span, int]:
        new: dict[Span, int] = {}
        for group in ids.row_groups(footer):
            group_size = 0
            for chunk, column in ids.column_chunks(footer, group):
                starts = (integer(footer, column[number][0])[0] for number in _COLUMN_PAGES if number in column)
                first = min(filter(None, starts), default=0)  # a chunk without rows may have no pages
                size = integer(footer, column[ids.COLUMN_COMPRESSED_SIZE][0])[0]
                size = self._moved[first + size] - self._moved[first]
                group_size += size
                new[column[ids.COLUMN_COMPRESSED_SIZE]] = size
                new[column[ids.COLUMN_CODEC]] = ids.GZIP
                new |= self._moved_in(footer, chunk, _CHUNK_OFFSETS) | self._moved_in(footer, column, _COLUMN_OFFSETS)
            new[group[ids.GROUP_COMPRESSED_SIZE]] = group_size
            new |= self._moved_in(footer, group, (ids.GROUP_OFFSET,))
        return new

    def _moved_in(self, footer: bytes, struct: ids.Struct, offsets: tuple[int, ...]) -> dict[Span, int]:
        """The new offsets, where the struct has such a field."""
        return {
            struct[number]: self._moved[integer(footer, struct[number][0])[0]] for number in offsets if number in struct
        }


def _signed(crc: int) -> int:
    return crc - (1 << 32) if crc >> 31 else crc
