"""The columns in a Parquet footer, checked before Arrow reads it.

pyarrow (seen up to 26) ends the process where it is asked for a column chunk whose size statistics don't fit the schema, as
after one flipped bit. So the footer is walked here first, wherever columns are asked for.
"""

from collections.abc import Collection
from functools import cached_property
from typing import Any, Final

import pyarrow.parquet as pq

from eventide_adapters.format.encoding.parquet import field_ids as ids
from eventide_adapters.format.encoding.parquet import thrift_compact as thrift
from eventide_core.errors import CorruptBaseFileError
from eventide_core.table.schema.avro_schema import AvroSchema

_AVRO_SCHEMA: Final = b"parquet.avro.schema"
_TAIL: Final = 8  # the footer's length, and Parquet's mark


class Footer:
    """The bytes of the footer of a Parquet file of `size` bytes, which are read when they are first needed.

    `walked` are the structs that were found in them.
    """

    def __init__(self, source: Any, size: int) -> None:
        self._source, self._size = source, size
        self.walked: thrift.WalkedStructs = {}

    @cached_property
    def data(self) -> bytes:
        self._source.seek(self._size - _TAIL)
        length = int.from_bytes(bytes(self._source.read(_TAIL))[:4], "little")
        self._source.seek(max(0, self._size - _TAIL - length))
        return bytes(self._source.read(length))


def require_sound_columns(metadata: pq.FileMetaData, footer: Footer, place: str) -> None:
    """Raises CorruptBaseFileError for column chunks that Arrow must not be asked for."""
    data = footer.data
    columns: list[Any] = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    try:
        for group in ids.row_groups(data, footer.walked):
            chunks = list(ids.column_chunks(data, group, footer.walked))
            if len(chunks) != len(columns):
                raise ValueError(f"a row group has {len(chunks)} columns, and the schema {len(columns)}")
            for (_, values), column in zip(chunks, columns, strict=True):
                if ids.COLUMN_SIZE_STATISTICS in values:
                    _check_size_statistics(data, values[ids.COLUMN_SIZE_STATISTICS][0], column)
    except (IndexError, KeyError, ValueError) as error:
        raise CorruptBaseFileError(
            f"{place} cannot be read: its footer is damaged ({error}); restore it, or roll back the commit that wrote it"
        ) from error


def _check_size_statistics(data: bytes, at: int, column: Any) -> None:
    sizes, _ = thrift.fields(data, at)
    levels = {ids.SIZES_REPETITIONS: column.max_repetition_level, ids.SIZES_DEFINITIONS: column.max_definition_level}
    for number, level in levels.items():
        stated = len(thrift.elements(data, sizes[number][0])) if number in sizes else 0
        if stated not in (0, level + 1):
            raise ValueError(f"column {column.path} has {level + 1} levels, and {stated} in its size statistics")
    if ids.SIZES_UNENCODED_BYTES in sizes and column.physical_type != "BYTE_ARRAY":
        raise ValueError(f"column {column.path} of type {column.physical_type} has the sizes of texts")


def stated_chunks(metadata: pq.FileMetaData, column: str) -> list[Any] | None:
    """The column's chunks of all row groups with rows; None if the file has no such column, or lacks statistics of one.

    Statistics state the number of nulls and, of a chunk with values, the least and the greatest. `column` is a dotted path.
    """
    number = next((n for n in range(metadata.num_columns) if metadata.schema.column(n).path == column), None)
    if number is None:
        return None
    groups = (metadata.row_group(n) for n in range(metadata.num_row_groups))
    chunks: list[Any] = [group.column(number) for group in groups if group.num_rows]
    return chunks if all(map(_is_stated, chunks)) else None


def _is_stated(chunk: Any) -> bool:
    stated = chunk.statistics
    if stated is None or not stated.has_null_count:
        return False
    return bool(stated.has_min_max or stated.null_count == chunk.num_values)


def require_columns(metadata: pq.FileMetaData, absent: Collection[str], place: str) -> None:
    """Raises CorruptBaseFileError if the file lacks one of these columns, but had it when it was written.

    Hudi states the file's columns twice, by the Avro schema, too. No checksum covers a footer.
    """
    stated = (metadata.metadata or {}).get(_AVRO_SCHEMA)
    if stated is None or not absent:
        return
    had = AvroSchema.of(stated.decode()).field_names
    for name in absent:
        if name in had:
            raise CorruptBaseFileError(
                f"{place} cannot be read: its footer states the column {name}, which it does not have; restore it, or "
                "roll back the commit that wrote it"
            )


def codec_of(footer: Footer) -> str | None:
    """The codec of the first column chunk; None if there is none, or its codec is unknown."""
    data = footer.data
    try:
        group = thrift.first_element(data, thrift.field(data, 0, ids.FILE_ROW_GROUPS))
        chunk = thrift.first_element(data, thrift.field(data, group, ids.GROUP_COLUMNS))
        chunk = thrift.field(data, chunk, ids.CHUNK_METADATA)
        return ids.CODECS[thrift.integer(data, thrift.field(data, chunk, ids.COLUMN_CODEC))[0]]
    except (IndexError, KeyError, ValueError):
        return None
