"""An open base file, and its rows as Arrow decodes them."""

import io
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from eventide_adapters.format.encoding.avro.reading_limits import check_parquet, is_lack_of_resources, within_memory
from eventide_adapters.format.encoding.parquet.dictionary_columns import small_dictionary_columns
from eventide_adapters.format.encoding.parquet.footer_columns import Footer, codec_of
from eventide_adapters.format.encoding.parquet.inflated_pages import InflatedPages
from eventide_adapters.format.encoding.parquet.legacy_calendar import LegacyCalendar
from eventide_core.errors import CorruptBaseFileError, EventideError
from eventide_core.ports import Storage

# Arrow reads a Python file in pieces, each on a separate thread, but reads memory directly. Half a megabyte of even the
# smallest file is its bloom filter, which every read loads.
_AT_ONCE_BYTES_MAX: Final = 1024 * 1024
# With a buffer, Arrow reads page by page; it looks for each header in so many bytes.
_PAGE_BUFFER_BYTES: Final = 16 * 1024


class OpenBaseFile(pq.ParquetFile):
    """An open base file, with its stream, its size, and the bytes of its footer."""

    stream: BinaryIO
    size: int
    footer: Footer
    dictionary_columns: list[str]

    @classmethod
    def of_log_block(cls, stream: BinaryIO, size: int) -> Self:
        """The content of a Parquet log block. Raises Arrow's errors."""
        file = cls(stream, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
        file.stream, file.size, file.footer, file.dictionary_columns = stream, size, Footer(stream, size), []
        return file

    def inflated(self, columns: Collection[str]) -> "OpenBaseFile":
        """This file, to read only these columns; their gzip pages are inflated before Arrow reads them.

        Itself if nothing is to be inflated.
        """
        if codec_of(self.footer) != "gzip":
            return self
        source: Any = InflatedPages.of(self.stream, self.size, self.footer.data, columns, self.footer.walked)
        if source is None:
            return self
        return OpenBaseFile(
            source,
            read_dictionary=self.dictionary_columns,
            coerce_int96_timestamp_unit="us",
            pre_buffer=False,
            buffer_size=_PAGE_BUFFER_BYTES,
        )

    def batches(
        self, size: int, columns: list[str], *, use_threads: bool = True, groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, or the rows of some row groups, in batches of `size`, with times of Spark's legacy calendar corrected.

        Raises Arrow's errors, also at the end if these are not all rows, and UnsupportedTableError.

        Arrow skips a page whose header states an unknown type, and no checksum protects a header.
        """
        chosen = range(self.metadata.num_row_groups) if groups is None else groups
        stated = sum(self.metadata.row_group(group).num_rows for group in chosen)
        if groups is None:
            stated = self.metadata.num_rows
        missing = stated
        legacy = LegacyCalendar.of(self.metadata)
        # Reads one row group at a time, because its data stays in memory as long as its iterator exists.
        for group in chosen:
            for batch in self.iter_batches(size, [group], columns, use_threads=use_threads):
                missing -= batch.num_rows
                yield batch if legacy is None else legacy.corrected(batch)
        if missing:
            raise pa.ArrowInvalid(f"it has {stated - missing} rows, and its footer states {stated}")


@contextmanager
def open_base(storage: Storage, path: str, dictionary_candidates: Collection[str] = ()) -> Iterator[OpenBaseFile]:
    """The open file. Arrow's errors become CorruptBaseFileError; the storage's errors pass through.

    Reads columns of `dictionary_candidates` that have few distinct values as dictionaries. Raises ResourceLimitError
    for a file that claims to contain more than a base file can.
    """
    place = f"base file {path}"
    with storage.open_input(path) as stream, within_memory(place):
        try:
            size = stream.seek(0, io.SEEK_END)
            source: Any = stream
            if isinstance(stream, io.BytesIO):
                source = pa.BufferReader(stream.getvalue())
            elif size <= _AT_ONCE_BYTES_MAX:
                stream.seek(0)
                stream = io.BytesIO(stream.read())
                source = pa.BufferReader(stream.getvalue())
            file = OpenBaseFile(source, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
            footer = Footer(source, size)
            check_parquet(file.metadata, size, place)
            few = small_dictionary_columns(file, footer, dictionary_candidates, place)
            if few:
                file = OpenBaseFile(
                    source,
                    metadata=file.metadata,
                    read_dictionary=few,
                    coerce_int96_timestamp_unit="us",
                    page_checksum_verification=True,
                )
            file.stream, file.size, file.footer, file.dictionary_columns = stream, size, footer, few
            yield file
        except (EventideError, MemoryError):
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            if is_lack_of_resources(error):
                raise
            raise CorruptBaseFileError(
                f"{place} cannot be read: {error}; restore it, or roll back the commit that wrote it"
            ) from error
