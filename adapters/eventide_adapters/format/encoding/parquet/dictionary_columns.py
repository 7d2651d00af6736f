"""Keeps strings with few distinct values dictionary-encoded from one base file to the next.

A large part of the cost of rewriting a slice is to build such strings, to copy them, and to look each one up in a new
dictionary. The columns that a merge compares, which are keys and ordering values, are always plain strings.

1. A column is read as dictionaries if each row group has a small dictionary for all its values
   (`small_dictionary_columns`).
2. The rows of the log files get the same type if they also have few distinct values (`with_dictionaries`). Otherwise,
   the rows of the base file become plain strings.
3. The output has one dictionary per row group (parquet_output). Callers that read rows get plain strings
   (`in_columns`).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide_adapters.format.encoding.avro.schema import AvroField
from eventide_adapters.format.encoding.parquet.footer_columns import Footer, require_sound_columns
from eventide_core.errors import CorruptBaseFileError
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import RECORD_KEY

_FEW: Final = pa.dictionary(pa.int32(), pa.string())
_ROWS_MIN: Final = 4096  # with fewer rows, dictionaries save nothing
_VALUE_BYTES_MAX: Final = 2  # of an index and its share of the dictionary; plain strings take four bytes or more
_REPEATED_BYTES_MAX: Final = 64 * 1024 * 1024
_VALUES_MAX: Final = 1 << 14  # of the log files' dictionary, which every batch of the base file is compared with


def dictionary_fields(fields: Iterable[AvroField], shape: RecordShape) -> frozenset[str]:
    """The string fields that a merge copies without comparing them."""
    if shape.merger is not None:
        return frozenset()  # a user-defined merger gets plain strings
    looked_into = {RECORD_KEY, *shape.ordering_fields, *shape.key_fields}
    return frozenset(field.name for field in fields if field.type.arrow == pa.string()) - looked_into


def small_dictionary_columns(
    file: pq.ParquetFile,
    footer: Footer,
    names: Collection[str],
    place: str,
    *,
    rows_min: int = _ROWS_MIN,
    value_bytes_max: int = _VALUE_BYTES_MAX,
) -> list[str]:
    """The string columns for which every row group of the file has a small dictionary. Raises CorruptBaseFileError."""
    metadata, written = file.metadata, file.schema_arrow
    if not names or metadata.num_rows < rows_min:
        return []
    require_sound_columns(metadata, footer, place)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    places = {groups[0].column(number).path_in_schema: number for number in range(metadata.num_columns)}
    return [
        name
        for name in written.names
        if name in names
        and written.field(name).type == pa.string()
        and all(_has_small_dictionary(group.column(places[name]), value_bytes_max) for group in groups)
    ]


def _has_small_dictionary(chunk: pq.ColumnChunkMetaData, value_bytes_max: int) -> bool:
    return chunk.has_dictionary_page and chunk.total_uncompressed_size <= value_bytes_max * chunk.num_values


def as_dictionaries(target: Sequence[AvroField], names: Collection[str]) -> Sequence[AvroField]:
    """The fields; those in `names` become dictionaries."""
    if not names:
        return target
    return [replace(f, type=replace(f.type, arrow=_FEW)) if f.name in names else f for f in target]


def check_numbers(batch: pa.RecordBatch, names: Iterable[str], place: str) -> None:
    """Raises CorruptBaseFileError if a dictionary index is out of range, which Arrow doesn't check."""
    for name in names:
        column: Any = batch.column(name)
        ends: Any = pc.min_max(column.indices).as_py()
        if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] < len(column.dictionary):
            raise CorruptBaseFileError(
                f"{place} cannot be read: column {name} has value number {ends['max']} of a dictionary of "
                f"{len(column.dictionary)}; restore it, or roll back the commit that wrote it"
            )


def with_dictionaries(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows, with dictionaries in the columns that have them in `columns`.

    Columns with many distinct values stay plain.
    """
    for place, field in enumerate(columns):
        if field.type != rows.schema.field(place).type:
            encoded: Any = rows.column(place).dictionary_encode()
            if all(len(chunk.dictionary) <= _VALUES_MAX for chunk in encoded.chunks):
                rows = rows.set_column(place, field, encoded)
    return rows


def in_columns(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """The batch, with plain strings in the columns that have them in `columns`."""
    if batch.schema.types == columns.types:
        return batch
    arrays: list[Any] = batch.columns
    texts = [_texts(array) if array.type != kind else array for array, kind in zip(arrays, columns.types, strict=True)]
    return pa.RecordBatch.from_arrays(texts, schema=columns)


def _texts(array: Any) -> Any:
    """The strings of a dictionary array, of which the numbers are in range."""
    values, count = array.dictionary, len(array)
    text = values[0].as_py().encode() if len(values) == 1 and not array.null_count else None
    if text is None or len(text) * count > _REPEATED_BYTES_MAX:
        return pc.take(values, array.indices, boundscheck=False)
    bounds = np.arange(count + 1, dtype=np.int32) * np.int32(len(text))
    return pa.StringArray.from_buffers(count, pa.py_buffer(bounds.data), pa.py_buffer(text * count))
