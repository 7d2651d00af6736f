"""Reads some rows of a row group: of each column, Arrow decodes the pages that hold them, and no others.

pyarrow reads whole column chunks. So the pages, as they are, become a Parquet file in memory, with the base file's footer,
in which the row group has fewer rows. Columns of which the same rows come share such a file.

A chunk's pages are known from the file's offset index. Without one, the chunk is read, and the headers of its pages show
them. No checksum covers an index or a header, so what they state has to fit together: pages lie side by side and fill the
chunk, and each that is read has as many rows as the next one's first row implies. Where they don't, and where a column is
nested, encrypted or not understood, `rows_of` returns None, and the row group is read whole. So is a small one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.parquet import field_ids as ids
from eventide_adapters.format.encoding.parquet.inflated_pages import read_spans, without_bloom_filter
from eventide_adapters.format.encoding.parquet.open_file import OpenBaseFile
from eventide_adapters.format.encoding.parquet.page_search import SEARCHED_VALUES_MAX, PageSearch
from eventide_adapters.format.encoding.parquet.thrift_compact import (
    Span,
    binary,
    elements,
    fields,
    integer,
    with_integers,
)

RowNumbers: TypeAlias = npt.NDArray[np.int64]
"""Rows of a row group, by their numbers in it, which rise."""

RowsOfGroups: TypeAlias = Mapping[int, RowNumbers | None]
"""Rows by the number of their row group; None: all of it."""

_MAGIC: Final = b"PAR1"
_ROWS_MIN: Final = 4096  # of a row group; one of fewer rows is decoded in less time than its pages are found

_TRUE: Final = 1  # in a list
_TEXT: Final = 6  # BYTE_ARRAY


def rows_of(file: OpenBaseFile, group: int, rows: RowNumbers, columns: Sequence[str]) -> pa.RecordBatch | None:
    """These rows of a row group; None if it has to be read whole. Raises Arrow's errors."""
    with suppress(IndexError, KeyError, ValueError, RecursionError):
        return _RowGroup.of(file, group).taken(rows, columns)
    return None


def batches_of(
    file: OpenBaseFile, size: int, columns: list[str], *, use_threads: bool, chosen: RowsOfGroups | None
) -> Iterator[pa.RecordBatch]:
    """The chosen rows, or all if None, in batches of `size`. Raises what `OpenBaseFile.batches` raises."""
    if chosen is None:
        yield from file.inflated(columns).batches(size, columns, use_threads=use_threads)
        return
    whole: list[int] = []
    for group, rows in chosen.items():
        few = None if rows is None else rows_of(file, group, rows, columns)
        if few is None:
            whole.append(group)
        else:
            yield few
    if whole:
        yield from file.inflated(columns).batches(size, columns, use_threads=use_threads, groups=whole)


def rows_with(file: OpenBaseFile, group: int, column: str, values: Collection[str]) -> RowNumbers | None:
    """The rows in which a text column has one of these values; None if it has to be read whole. Raises Arrow's errors."""
    with suppress(IndexError, KeyError, ValueError, RecursionError, OSError):
        return _RowGroup.of(file, group).having(column, values)
    return None


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A column chunk: its place in the file and in the footer, and the places of its indexes."""

    start: int
    end: int
    column: ids.Struct
    offset_index: Span | None
    column_index: Span | None


@dataclass(frozen=True, slots=True)
class _Pages:
    """The data pages of a chunk: where each begins, and last where they end; the same of its rows.

    `data` is the chunk, if it was read to find out.
    """

    chunk: _Chunk
    offsets: Sequence[int]
    rows: Sequence[int]
    data: bytes | None

    def holding(self, wanted: RowNumbers) -> list[int]:
        """The pages that hold these rows."""
        pages: list[int] = np.unique(np.searchsorted(self.rows, wanted, "right") - 1).tolist()
        return pages

    def extents(self, pages: Sequence[int]) -> tuple[Span, ...]:
        """The rows of these pages."""
        return tuple((self.rows[page], self.rows[page + 1]) for page in pages)

    def spans(self, pages: Sequence[int]) -> list[Span]:
        """The places of the dictionary, which may be empty, and of these pages."""
        return [(self.chunk.start, self.offsets[0]), *((self.offsets[page], self.offsets[page + 1]) for page in pages)]


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """A row group of an open file: its number, its rows, where the footer has those, and its flat columns."""

    file: OpenBaseFile
    number: int
    rows: int
    rows_place: Span
    chunks: Mapping[str, _Chunk]

    @classmethod
    def of(cls, file: OpenBaseFile, group: int) -> "_RowGroup":
        """Raises IndexError, KeyError or ValueError for a footer that it does not understand."""
        footer, walked = file.footer.data, file.footer.walked
        if file.metadata.row_group(group).num_rows < _ROWS_MIN:
            raise ValueError("a small row group")
        if ids.FILE_ENCRYPTION in fields(footer, 0, walked)[0]:
            raise ValueError("an encrypted file")
        stated = ids.row_groups(footer, walked)[group]
        chunks: dict[str, _Chunk] = {}
        for chunk, column in ids.column_chunks(footer, stated, walked):
            path = [binary(footer, name).decode() for name, _ in elements(footer, column[ids.COLUMN_NAMES][0])]
            if len(path) == 1 and not ids.is_elsewhere(chunk):
                chunks[path[0]] = _chunk(file, chunk, column)
        return cls(file, group, integer(footer, stated[ids.GROUP_ROWS][0])[0], stated[ids.GROUP_ROWS], chunks)

    def taken(self, rows: RowNumbers, columns: Sequence[str]) -> pa.RecordBatch:
        """These rows. Raises KeyError for a column that is nested."""
        known = dict(zip(columns, self._pages([self.chunks[name] for name in columns]), strict=True))
        needed = {name: pages.holding(rows) for name, pages in known.items()}
        data = self._read_pages([(known[name], pages) for name, pages in needed.items()])
        alike: dict[tuple[Span, ...], list[str]] = {}
        for name, pages in needed.items():
            alike.setdefault(known[name].extents(pages), []).append(name)
        arrays: dict[str, Any] = {}
        for extents, names in alike.items():
            of_pages = np.concatenate([np.arange(first, end) for first, end in extents])
            batch = self._decoded({name: known[name].spans(needed[name]) for name in names}, data, len(of_pages))
            places: Any = pa.array(np.searchsorted(of_pages, rows))
            arrays |= {name: batch.column(name).take(places) for name in names}
        return pa.RecordBatch.from_pydict({name: arrays[name] for name in columns})

    def having(self, name: str, values: Collection[str]) -> RowNumbers:
        """The rows in which this column has one of the values. Raises KeyError if it is nested, or not of texts."""
        chunk, wanted, footer = self.chunks[name], [value.encode() for value in values], self.file.footer.data
        kind, codec = ids.integers(footer, chunk.column, ids.COLUMN_KIND, ids.COLUMN_CODEC)
        if kind != _TEXT:
            raise KeyError(name)
        (pages,) = self._pages([chunk])
        chosen = self._not_outside(pages, wanted)
        if not chosen:
            return np.arange(0)
        data = self._read_pages([(pages, chosen)])
        dictionary, *spans = pages.spans(chosen)
        if len(wanted) <= SEARCHED_VALUES_MAX:
            search = PageSearch(wanted, codec, data[dictionary])
            chosen = [page for page, span in zip(chosen, spans, strict=True) if search.may_have(data[span])]
            if not chosen:
                return np.arange(0)
        rows = np.concatenate([np.arange(*extent) for extent in pages.extents(chosen)])
        decoded = self._decoded({name: pages.spans(chosen)}, data, len(rows))
        is_wanted: Any = pc.is_in(decoded.column(0), value_set=pa.array(values, pa.string()))
        matching: RowNumbers = rows[is_wanted.to_numpy(zero_copy_only=False)]
        return matching

    def _not_outside(self, pages: _Pages, values: Sequence[bytes]) -> list[int]:
        """The pages that may have one of the values, by the column index, if there is one."""
        place = pages.chunk.column_index
        if place is None or pages.chunk.offset_index is None:
            return list(range(len(pages.rows) - 1))
        data = _read(self.file.stream, [place])[place]
        index, _ = fields(data, 0)
        nulls = [data[at] == _TRUE for at, _ in elements(data, index[ids.COLUMN_INDEX_NULL_PAGES][0])]
        least, greatest = (
            [binary(data, at) for at, _ in elements(data, index[number][0])]
            for number in (ids.COLUMN_INDEX_LEAST, ids.COLUMN_INDEX_GREATEST)
        )
        if not len(nulls) == len(least) == len(greatest) == len(pages.rows) - 1:
            raise ValueError("a column index of other pages")
        of_pages = enumerate(zip(nulls, least, greatest, strict=True))
        return [
            page for page, (null, low, high) in of_pages if not null and any(low <= value <= high for value in values)
        ]

    def _pages(self, chunks: Sequence[_Chunk]) -> list[_Pages]:
        """The pages of these chunks, by their offset indexes or their own headers."""
        read = _read(self.file.stream, [chunk.offset_index or (chunk.start, chunk.end) for chunk in chunks])
        of_chunks: list[_Pages] = []
        for chunk in chunks:
            data = read[chunk.offset_index or (chunk.start, chunk.end)]
            pages = list(_walked(data, chunk.start) if chunk.offset_index is None else _indexed(data))
            offsets, rows = [begin for begin, *_ in pages], [row for *_, row in pages]
            is_whole = [end for _, end, _ in pages] == [*offsets[1:], chunk.end] and chunk.start <= offsets[0]
            if not is_whole or rows[0] != 0 or any(one >= other for one, other in pairwise([*rows, self.rows])):
                raise ValueError("pages that do not fill their chunk")
            whole = data if chunk.offset_index is None else None
            of_chunks.append(_Pages(chunk, [*offsets, chunk.end], [*rows, self.rows], whole))
        return of_chunks

    def _read_pages(self, needed: Sequence[tuple[_Pages, Sequence[int]]]) -> dict[Span, bytes]:
        """The bytes of these pages and of their dictionaries. Raises ValueError if a page has not the rows it should."""
        data = _read(
            self.file.stream, [span for known, pages in needed if known.data is None for span in known.spans(pages)]
        )
        for known, pages in needed:
            spans, start = known.spans(pages), known.chunk.start
            if known.data is not None:
                data |= {(begin, end): known.data[begin - start : end - start] for begin, end in spans}
            for span, (first, after) in zip(spans[1:], known.extents(pages), strict=True):
                if _values(data[span], fields(data[span], 0)[0]) != after - first:
                    raise ValueError("a page of other rows")
        return data

    def _decoded(self, columns: Mapping[str, Sequence[Span]], data: Mapping[Span, bytes], rows: int) -> pa.RecordBatch:
        """The pages of these columns, which have so many rows."""
        footer, walked, pieces, at = self.file.footer.data, self.file.footer.walked, [_MAGIC], len(_MAGIC)
        new = {**without_bloom_filter(footer, fields(footer, 0, walked)[0], walked), self.rows_place: rows}
        for name, spans in columns.items():
            column, size = self.chunks[name].column, sum(end - start for start, end in spans)
            new |= {
                column[ids.COLUMN_VALUES]: rows,
                column[ids.COLUMN_COMPRESSED_SIZE]: size,
                column[ids.COLUMN_DATA]: at,
            }
            if ids.COLUMN_DICTIONARY in column:
                dictionary_size = spans[0][1] - spans[0][0]
                new |= {column[ids.COLUMN_DICTIONARY]: at, column[ids.COLUMN_DATA]: at + dictionary_size}
            pieces += [data[span] for span in spans]
            at += size
        tail = with_integers(footer, 0, len(footer), new)
        part = OpenBaseFile(
            pa.BufferReader(b"".join([*pieces, tail, len(tail).to_bytes(4, "little"), _MAGIC])),
            read_dictionary=self.file.dictionary_columns,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )
        batches = part.batches(rows, list(columns), use_threads=False, groups=[self.number])
        return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _chunk(file: OpenBaseFile, chunk: ids.Struct, column: ids.Struct) -> _Chunk:
    footer = file.footer.data

    def stated(struct: ids.Struct, number: int) -> int:
        return integer(footer, struct[number][0])[0] if number in struct else 0

    def index(offset: int, size: int) -> Span | None:
        start, length = stated(chunk, offset), stated(chunk, size)
        return (start, start + length) if 0 < start <= start + length <= file.size and length > 0 else None

    data, dictionary = stated(column, ids.COLUMN_DATA), stated(column, ids.COLUMN_DICTIONARY)
    start = dictionary if 0 < dictionary < data else data
    end = start + stated(column, ids.COLUMN_COMPRESSED_SIZE)
    if not 0 < start < end <= file.size:
        raise ValueError("a chunk outside of the file")
    return _Chunk(
        start,
        end,
        column,
        index(ids.CHUNK_OFFSET_INDEX, ids.CHUNK_OFFSET_INDEX_SIZE),
        index(ids.CHUNK_COLUMN_INDEX, ids.CHUNK_COLUMN_INDEX_SIZE),
    )


def _indexed(data: bytes) -> Iterator[tuple[int, int, int]]:
    """The data pages of an offset index: where each begins and ends, and its first row."""
    for at, _ in elements(data, fields(data, 0)[0][ids.OFFSET_INDEX_LOCATIONS][0]):
        location, _ = fields(data, at)
        offset, size, row = ids.integers(data, location, ids.LOCATION_OFFSET, ids.LOCATION_SIZE, ids.LOCATION_ROW)
        yield offset, offset + size, row


def _walked(data: bytes, start: int) -> Iterator[tuple[int, int, int]]:
    """The data pages of a flat chunk that begins at `start`: where each begins and ends, and its first row."""
    at = row = 0
    while at < len(data):
        header, length = fields(data, at)
        kind, size = ids.integers(data, header, ids.PAGE_KIND, ids.PAGE_COMPRESSED_SIZE)
        end = length + size
        if end <= at or (kind == ids.KIND_DICTIONARY and at > 0):
            raise ValueError("pages out of order")
        if kind != ids.KIND_DICTIONARY:
            yield start + at, start + end, row
            row += _values(data, header)
        at = end


def _values(data: bytes, header: ids.Struct) -> int:
    kind = integer(data, header[ids.PAGE_KIND][0])[0]
    page, _ = fields(data, header[{ids.KIND_DATA: ids.PAGE_DATA, ids.KIND_V2: ids.PAGE_V2}[kind]][0])
    return integer(data, page[ids.DATA_VALUES][0])[0]


def _read(stream: BinaryIO, spans: Sequence[Span]) -> dict[Span, bytes]:
    """The bytes of these places. Raises ValueError if the file ends before."""
    contents = {span: bytes(data) for span, data in read_spans(stream, spans).items()}
    if any(len(data) != end - start for (start, end), data in contents.items()):
        raise ValueError("a file that ends early")
    return contents
