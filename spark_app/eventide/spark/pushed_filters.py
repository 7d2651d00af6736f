"""Turns the filters that Spark passes to a Python source into an Arrow expression.

The expression covers only a part of the conditions and is never stricter than they are: Spark applies all of them to the
rows that it gets. Conditions on nested columns, and on floating-point numbers, whose NaN Spark orders and Arrow does not,
are left to Spark.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

_COMPARISONS: Mapping[type[Filter], Callable[[Any, Any], Any]] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
_TEXTS: Mapping[type[Filter], Callable[[pc.Expression, str], pc.Expression]] = {
    StringStartsWith: pc.starts_with,
    StringEndsWith: pc.ends_with,
    StringContains: pc.match_substring,
}


def pushed_filter(filters: Sequence[Filter], schema: pa.Schema) -> pc.Expression | None:
    """The conjunction of the filters that Arrow can express over columns of the schema; None if there is none."""
    expressions = [expression for expression in (_expression(one, schema) for one in filters) if expression is not None]
    return reduce(operator.and_, expressions) if expressions else None


def _expression(condition: Filter, schema: pa.Schema) -> pc.Expression | None:
    if isinstance(condition, Not):
        # If the child is null, so is its negation, and neither engine keeps the row. `in` is false then, which keeps more.
        child = _expression(condition.child, schema)
        return None if child is None else operator.invert(child)
    attribute: tuple[str, ...] = getattr(condition, "attribute", ())
    if len(attribute) != 1 or schema.get_field_index(attribute[0]) < 0:
        return None
    column, kind = pc.field(attribute[0]), schema.field(attribute[0]).type
    if isinstance(condition, IsNull):
        return column.is_null()
    if isinstance(condition, IsNotNull):
        return operator.invert(column.is_null())
    if not _is_alike_in_both(kind):
        return None
    value: Any = getattr(condition, "value", None)
    try:
        if isinstance(condition, In):
            return column.isin(pa.array([item for item in value if item is not None], kind))
        if type(condition) in _TEXTS:
            return _TEXTS[type(condition)](column, value) if pa.types.is_string(kind) else None
        compare = _COMPARISONS.get(type(condition))
        return None if compare is None or value is None else compare(column, pa.scalar(value, kind))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, ValueError):
        return None  # a literal that does not fit the column is left to Spark


def _is_alike_in_both(kind: pa.DataType) -> bool:
    """Whether Spark and Arrow compare values of a type alike."""
    return (
        pa.types.is_integer(kind)
        or pa.types.is_string(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_decimal(kind)
    )
