"""Keeps texts with few distinct values as dictionary numbers, from one base file to the next.

Building such texts, copying them, and looking each one up in a new dictionary is a large part of the cost of rewriting
a slice. Columns that a merge compares, keys and ordering values, are texts from the beginning.

1. A column is read so where each row group has a small dictionary for all of it (`small_dictionary_columns`).
2. The log files' rows are given the same type, as far as they have few values, too (`with_dictionaries`); otherwise,
   the base's rows become texts.
3. What is written has one dictionary a row group (parquet_output); who reads rows gets texts (`in_columns`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide_adapters.format.avro.schema import RECORD_KEY, AvroField
from eventide_core.errors import CorruptBaseFileError
from eventide_core.table.record_shape import RecordShape

_FEW: Final = pa.dictionary(pa.int32(), pa.string())
_ROWS_MIN: Final = 4096  # with fewer rows there is no gain
_VALUE_BYTES_MAX: Final = 2  # of a number and its share of the dictionary; texts in no dictionary have four and more
_VALUES_MAX: Final = 1 << 14  # of the log files' dictionary, which is looked into for each batch of the base


def dictionary_fields(fields: Iterable[AvroField], shape: RecordShape) -> frozenset[str]:
    """The text fields that a merge passes on without comparing them."""
    looked_into = {RECORD_KEY, *shape.ordering_fields, *shape.key_fields}
    return frozenset(field.name for field in fields if field.type.arrow == pa.string()) - looked_into


def small_dictionary_columns(file: pq.ParquetFile, names: Collection[str]) -> list[str]:
    """The text columns for which every row group of the file has a small dictionary."""
    metadata, written = file.metadata, file.schema_arrow
    if not names or metadata.num_rows < _ROWS_MIN:
        return []
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    places = {groups[0].column(place).path_in_schema: place for place in range(metadata.num_columns)}
    return [
        name
        for name in written.names
        if name in names
        and written.field(name).type == pa.string()
        and all(_has_small_dictionary(group.column(places[name])) for group in groups)
    ]


def _has_small_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    return chunk.has_dictionary_page and chunk.total_uncompressed_size <= _VALUE_BYTES_MAX * chunk.num_values


def as_dictionaries(target: Sequence[AvroField], names: Collection[str]) -> Sequence[AvroField]:
    """The fields, with the named ones as dictionaries."""
    if not names:
        return target
    return [replace(f, type=replace(f.type, arrow=_FEW)) if f.name in names else f for f in target]


def check_numbers(batch: pa.RecordBatch, names: Iterable[str], place: str) -> None:
    """Raises CorruptBaseFileError if a column's number exceeds its dictionary, which Arrow doesn't check."""
    for name in names:
        column: Any = batch.column(name)
        ends: Any = pc.min_max(column.indices).as_py()
        if ends["min"] is not None and not 0 <= ends["min"] <= ends["max"] < len(column.dictionary):
            raise CorruptBaseFileError(
                f"{place} cannot be read: column {name} has value number {ends['max']} of a dictionary of "
                f"{len(column.dictionary)}; restore it, or roll back the commit that wrote it"
            )


def with_dictionaries(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows with dictionaries where `columns` has them, except for columns of many values."""
    for place, field in enumerate(columns):
        if field.type != rows.schema.field(place).type:
            encoded: Any = rows.column(place).dictionary_encode()
            if all(len(chunk.dictionary) <= _VALUES_MAX for chunk in encoded.chunks):
                rows = rows.set_column(place, field, encoded)
    return rows


def in_columns(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """The batch with texts where `columns` has them."""
    if batch.schema.types == columns.types:
        return batch
    arrays: list[Any] = batch.columns
    texts = [
        array.dictionary.take(array.indices) if array.type != kind else array
        for array, kind in zip(arrays, columns.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(texts, schema=columns)
