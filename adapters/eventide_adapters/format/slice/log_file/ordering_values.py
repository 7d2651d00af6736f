"""The ordering values of records as one column, and how Hudi compares them.

Without an ordering field, deletes have the null type, and all records are equal. With one field, the values are its
column. With several, they are a struct of the columns, which are compared one after another. A null of the whole column
is a delete in natural order. A null in one of several fields, or of an upsert, is less than any value; Hudi itself
can't read such a table.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import (
    ArrowArray,
    Flags,
    Numbers,
    null_flags,
    to_arrow,
    to_numbers,
)
from eventide_adapters.format.encoding.columns.field_path import column_at, type_at
from eventide_core.errors import UnsupportedTableError

LEAST = np.iinfo(np.int64).min


def ordering_type(fields: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.DataType:
    """The type of the ordering values, from the types of the table's columns.

    Raises UnsupportedTableError for an unknown field.
    """
    kinds: dict[str, Any] = {name: type_at(name, types) for name in fields}
    for name, kind in kinds.items():
        if kind is None:
            raise UnsupportedTableError(f"ordering field {name} is not a column of the table ({', '.join(types)})")
    if not fields:
        return pa.null()
    if len(fields) == 1:
        only: pa.DataType = kinds[fields[0]]
        return only
    return pa.struct([pa.field(name, kind) for name, kind in kinds.items()])


def orderings_of(records: pa.RecordBatch, fields: Sequence[str]) -> ArrowArray:
    """The ordering values of records that have these fields."""
    if not fields:
        return pa.nulls(len(records))
    columns: list[ArrowArray] = [column_at(records, name) for name in fields]
    return columns[0] if len(columns) == 1 else pa.StructArray.from_arrays(columns, list(fields))


def ordering_of_fields(values: ArrowArray, fields: Sequence[str], name: str) -> ArrowArray:
    """The values of one field of the ordering values."""
    if len(fields) == 1:
        return values
    assert isinstance(values, pa.StructArray), f"{values.type} for the ordering fields {fields}"
    return values.flatten()[list(fields).index(name)]


def ranks(values: ArrowArray) -> Numbers:
    """Numbers in the order of the values; the lowest number for null."""
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.int64)
    if isinstance(values, pa.StructArray):
        return _ranks_of_fields(values)
    ordered = comparable(values)
    if pa.types.is_integer(ordered.type) or pa.types.is_temporal(ordered.type):
        width = pa.int32() if ordered.type.bit_width == 32 else pa.int64()
        numbers = ordered.view(width).cast(pa.int64())
    else:
        encoded: Any = ordered.dictionary_encode()
        rank_of = np.empty(len(encoded.dictionary), np.int64)
        rank_of[to_numbers(pc.sort_indices(encoded.dictionary))] = np.arange(len(encoded.dictionary))
        numbers = to_arrow(rank_of).take(encoded.indices)
    return to_numbers(numbers, LEAST)


def common_ranks(one: ArrowArray, other: ArrowArray) -> tuple[Numbers, Numbers]:
    """The ranks of two columns of one type, comparable across the columns."""
    both = ranks(pa.concat_arrays([one, other]))
    return both[: len(one)], both[len(one) :]


def later_wins(earlier: ArrowArray, later: ArrowArray, is_natural_delete: Flags) -> Flags:
    """Of pairs of versions, whether the later one stays if event time orders them. On a tie, it does.

    `is_natural_delete`: one of the two is a delete in natural order; then the later one stays, too.
    """
    of_later, of_earlier = common_ranks(later, earlier)
    return np.asarray((of_later >= of_earlier) | is_natural_delete, np.bool_)


def _ranks_of_fields(values: pa.StructArray) -> Numbers:
    columns = [ranks(field) for field in values.flatten()]
    order = np.lexsort(columns[::-1])
    is_greater = np.zeros(len(values), np.bool_)
    for column in columns:
        ordered = column[order]
        is_greater[1:] |= ordered[1:] != ordered[:-1]
    numbers = np.empty(len(values), np.int64)
    numbers[order] = np.cumsum(is_greater)
    numbers[null_flags(values)] = LEAST
    return numbers


def comparable(values: ArrowArray) -> Any:
    """The values in a form that Arrow orders as Hudi does: floats become integers in Java's total order."""
    if not pa.types.is_floating(values.type):
        return values
    doubles: Any = values.cast(pa.float64())
    numbers = to_numbers(doubles, 0).copy()
    numbers[np.isnan(numbers)] = np.nan  # a single NaN, which is positive and greater than infinity
    bits = numbers.view(np.int64)
    ordered = bits ^ ((bits >> 63) & np.iinfo(np.int64).max)
    return to_arrow(ordered, null_flags(values))
