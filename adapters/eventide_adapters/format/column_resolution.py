"""Brings columns as a writer wrote them to the table's types, by name.

A column that the writer did not have is null where the table's may be null. int becomes long, float becomes double;
inside lists, maps and structs the same types may bear other names of their own. Anything else does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from eventide_core.errors import RecordDecodeError, UnsupportedTableError

_PROMOTIONS = {(pa.int32(), pa.int64()), (pa.float32(), pa.float64())}


def resolve_columns(columns: Mapping[str, pa.Array[Any]], count: int, target: pa.Schema, place: str) -> pa.RecordBatch:
    """The rows in the target's columns and types. `check_columns` has passed for their types."""
    arrays = []
    for field in target:
        array = columns.get(field.name)
        if array is None:
            array = pa.nulls(count, field.type)
        elif array.type != field.type:
            array = array.cast(field.type)
        if not field.nullable and array.null_count:
            raise RecordDecodeError(f"{place}: field {field.name} is null in a record, but never in the table's schema")
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def check_columns(
    written: Mapping[str, pa.DataType], target: pa.Schema, place: str, *, defaults: frozenset[str] = frozenset()
) -> None:
    """Whether columns of these types can be brought to the target's; raises UnsupportedTableError naming what does not fit.

    `defaults` are the target's fields for which the schema has a value other than null where a writer did not know them.
    """
    for field in target:
        source = written.get(field.name)
        if source is None:
            if not field.nullable or field.name in defaults:
                raise UnsupportedTableError(
                    f"{place}: has no field {field.name} ({field.type}), which the table's schema does not leave null"
                )
        elif not _fits(source, field.type):
            raise UnsupportedTableError(
                f"{place}: field {field.name} was written as {source}, the table's schema says {field.type}"
            )


def _fits(source: pa.DataType, target: pa.DataType) -> bool:
    if source == target or (source, target) in _PROMOTIONS:
        return True
    if isinstance(source, pa.MapType) and isinstance(target, pa.MapType):
        return source.key_type == target.key_type and _fits(source.item_type, target.item_type)
    if isinstance(source, pa.ListType) and isinstance(target, pa.ListType):
        return _fits(source.value_type, target.value_type)
    if isinstance(source, pa.StructType) and isinstance(target, pa.StructType):
        return [f.name for f in source] == [f.name for f in target] and all(
            _fits(one.type, other.type) for one, other in zip(source, target, strict=True)
        )
    return False
