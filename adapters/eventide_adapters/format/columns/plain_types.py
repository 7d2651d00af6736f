"""The types that tables have in place of those that hold the same values, and the columns in them.

dictionary                         its values' type        date64                  date32
large and view types               string, binary, list    decimal32, 64, 256      decimal128, of at most 38 digits
uint8, uint16; uint32, uint64      int32; int64            float16                 float32
"""

from typing import Any, Final

import pyarrow as pa

from eventide_adapters.format.columns.exact_cast import cast_whole
from eventide_core.errors import InvalidRecordError

_PLAIN: Final[dict[Any, Any]] = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}
_DECIMAL_DIGITS_MAX: Final = 38


def plain_type(kind: Any) -> Any:
    """The type of a table's column for these values; the type itself if it is one, or if there is none."""
    types: Any = pa.types
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_decimal(kind) and not types.is_decimal128(kind):
        digits = min(kind.precision, _DECIMAL_DIGITS_MAX)
        return pa.decimal128(digits, kind.scale) if kind.scale <= digits else kind
    if types.is_list(kind) or types.is_large_list(kind) or _is_view(kind):
        return pa.list_(_plain_field(kind.value_field))
    if types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field), kind.keys_sorted)
    return _PLAIN.get(kind, kind)


def plain_table(rows: pa.Table) -> pa.Table:
    """The rows with plain types. Raises InvalidRecordError, which names the column, for a value that does not fit."""
    for place, field in enumerate(rows.schema):
        _refuse_periods(field.type, field.name)
        kind = plain_type(field.type)
        if kind != field.type:
            column = _plain(rows.column(place), kind, f"column {field.name!r}")
            rows = rows.set_column(place, pa.field(field.name, kind, field.nullable), column)
    return rows


def _refuse_periods(kind: Any, name: str) -> None:
    """Raises InvalidRecordError for the periods of pandas, whose storage counts months, days or others since 1970."""
    if getattr(kind, "extension_name", None) == "pandas.period":
        raise InvalidRecordError(
            f"column {name!r} has periods of pandas ({kind.freq}), which no column of a table holds: write their beginning, "
            "dt.to_timestamp(), or their text, astype(str)"
        )
    for number in range(kind.num_fields):
        _refuse_periods(kind.field(number).type, name)


def _plain(column: Any, kind: Any, place: str) -> Any:
    if pa.types.is_dictionary(column.type):
        chunks = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(chunks, kind)
    if not _needs_values(column.type, is_nested=False):
        return cast_whole(column, kind, place)
    try:
        return pa.chunked_array([pa.array(column.to_pylist(), kind)])
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InvalidRecordError(
            f"{place} of type {column.type} does not fit {kind}: {error}; convert it before"
        ) from error


def _needs_values(kind: Any, *, is_nested: bool) -> bool:
    """Whether Arrow cannot cast the type: it loses elements of list views, and knows no cast of nested dictionaries."""
    if _is_view(kind) or (is_nested and pa.types.is_dictionary(kind)):
        return True
    return any(_needs_values(kind.field(number).type, is_nested=True) for number in range(kind.num_fields))


def _is_view(kind: Any) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _plain_field(field: Any) -> Any:
    return field.with_type(plain_type(field.type))
