"""The types that tables have in place of those that hold the same values, and the columns in them.

dictionary, run-end encoded        its values' type        date64                  date32
large and view types               string, binary, list    decimals                decimal128: 38 digits, scale of 0 or more
fixed-size binary and lists        binary, list            arrow.json, arrow.bool8 string, bool
uint8, uint16; uint32, uint64      int32; int64            float16                 float32

A column of fixed-size lists that a vector holds keeps its type, and one of UUIDs, which become texts in a column of texts.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from eventide_adapters.format.encoding.columns.exact_cast import cast_whole, is_list
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
_EXTENSIONS: Final[dict[str, Any]] = {"arrow.json": pa.string(), "arrow.bool8": pa.bool_()}
_CURES: Final = {
    "pandas.period": "periods of pandas: write their beginning, dt.to_timestamp(), or their text, astype(str)",
    "pandas.interval": "intervals of pandas: write their ends, .array.left and .array.right, or their text, astype(str)",
}
_DECIMAL_DIGITS_MAX: Final = 38


def plain_type(kind: Any) -> Any:
    """The type of a table's column for these values; the type itself if it is one, or if there is none."""
    is_vector = pa.types.is_fixed_size_list(kind) and kind.value_type in (pa.float32(), pa.float64(), pa.int8())
    return kind if is_vector else _rebuilt(kind, _plain_leaf)


def _rebuilt(kind: Any, leaf: Callable[[Any], Any]) -> Any:
    """The type without encodings and views, of which `leaf` gives those that contain no other."""

    def of_field(field: Any) -> Any:
        return field.with_type(_rebuilt(field.type, leaf))

    types: Any = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _rebuilt(kind.value_type, leaf)
    if is_list(kind) or _is_view(kind):
        return pa.list_(of_field(kind.value_field))
    if types.is_struct(kind):
        return pa.struct([of_field(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(of_field(kind.key_field), of_field(kind.item_field), kind.keys_sorted)
    return leaf(kind)


def _plain_leaf(kind: Any) -> Any:
    types: Any = pa.types
    if types.is_decimal(kind):
        digits, scale = min(kind.precision - min(kind.scale, 0), _DECIMAL_DIGITS_MAX), max(kind.scale, 0)
        return pa.decimal128(digits, scale) if scale <= digits else kind
    if types.is_fixed_size_binary(kind):
        return pa.binary()
    return _PLAIN.get(kind) or _EXTENSIONS.get(getattr(kind, "extension_name", ""), kind)


def plain_table(rows: pa.Table) -> pa.Table:
    """The rows with plain types. Raises InvalidRecordError, which names the column, for a value that does not fit."""
    for place, field in enumerate(rows.schema):
        _refuse_objects(field.type, field.name)
        kind = plain_type(field.type)
        if kind != field.type:
            column = _plain(rows.column(place), kind, f"column {field.name!r}")
            rows = rows.set_column(place, pa.field(field.name, kind, field.nullable), column)
    return rows


def _refuse_objects(kind: Any, name: str) -> None:
    """Raises InvalidRecordError for periods and intervals of pandas, whose storage alone says too little."""
    cure = _CURES.get(getattr(kind, "extension_name", ""))
    if cure is not None:
        raise InvalidRecordError(f"column {name!r} is {kind}, and no column of a table holds {cure}")
    for inner in [kind.value_type] if pa.types.is_dictionary(kind) else [field.type for field in _fields(kind)]:
        _refuse_objects(inner, name)


def _fields(kind: Any) -> list[Any]:
    return [kind.field(number) for number in range(kind.num_fields)]


def _plain(column: Any, kind: Any, place: str) -> Any:
    if pa.types.is_dictionary(column.type):
        with suppress(pa.ArrowException):  # a value that does not fit has a row only below
            return pa.chunked_array([chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks], kind)
    if _needs_values(column.type):
        own = _rebuilt(column.type, lambda leaf: leaf)
        column = pa.chunked_array([pa.array(chunk.to_pylist(), own) for chunk in column.chunks], own)
    return cast_whole(column, kind, place)


def _needs_values(kind: Any) -> bool:
    """Whether Arrow cannot cast the type: it loses elements of list views, and knows no cast of nested encodings."""
    types: Any = pa.types
    if _is_view(kind) or types.is_run_end_encoded(kind) or types.is_dictionary(kind):
        return True
    return any(_needs_values(field.type) for field in _fields(kind))


def _is_view(kind: Any) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))
