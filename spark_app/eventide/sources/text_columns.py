"""Texts as values: converts a column of a text format to a type, and finds the type of a column that nothing declares.

A column has the first of these types that all of its values fit, and otherwise it is a text: an integer of 64 bits, a
double, a decimal, a Boolean, a date, a time without a zone, a time with one. It is a decimal if some value is a fraction and
some has more digits than a double holds. A value that a number would not give back is a text: one that begins with a
zero or a plus (`007`, `+47`).
"""

import base64
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.exact_cast import exact_cast, first_misfit, fits
from eventide_core.errors import InvalidRecordError

TIMES: Final[tuple[Any, ...]] = (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
EVERY_TYPE: Final[tuple[Any, ...]] = (pa.int64(), pa.float64(), pa.bool_(), *TIMES)

_NOT_A_NUMBER: Final = r"^(\+|-?0[0-9xX])"
_CURES: Final = {
    "expected a zone offset": "; name its zone, as in 2026-11-21T00:00Z",
    "expected no zone offset": "; the column has no zone: give local times",
    "base64": " in base64",
    "would be lost": "; it has more digits than that holds: state a decimal for a new table",
}
_WHOLE: Final = r"^-?[0-9]{1,19}$"
_BEYOND_A_LONG: Final = r"^-?[0-9]{19,}$"
_DECIMAL: Final = r"^-?(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]+))?$"
_DECIMAL_DIGITS_MAX: Final = 38


def is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_bytes(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def needs_parquet(kind: Any) -> bool:
    """Whether nested values of the type are not read from JSON: bytes and maps."""
    is_own = is_bytes(kind) or pa.types.is_map(kind)
    return is_own or any(needs_parquet(kind.field(number).type) for number in range(kind.num_fields))


def as_text(column: Any, name: str, place: str, first_row: int) -> Any:
    """A column of bytes as UTF-8. Raises InvalidRecordError, which names the row, for bytes that are none."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        row = first_misfit(column, pa.string())
        raise InvalidRecordError(
            f"source {place!r}, row {first_row + row + 1}: column {name!r}: {column[row].as_py()!r} is not UTF-8: name the "
            "encoding that it was written in, such as --encoding latin-1"
        ) from None


def converted(column: Any, kind: Any, name: str, place: str, first_row: int, *, empty_is_null: bool = True) -> Any:
    """A column of texts in that type, which begins with row `first_row` of its source. An empty cell of CSV is null.

    Raises InvalidRecordError, which names row and value, for one that does not fit.
    """
    if is_text(kind):
        return column.cast(kind)
    cells = column if is_bytes(kind) or not empty_is_null else _cells(column)
    try:
        return _decoded(cells, kind) if is_bytes(kind) else exact_cast(cells, kind)
    except pa.ArrowNotImplementedError:
        other = "Parquet" if needs_parquet(kind) else "JSON or Parquet"
        raise InvalidRecordError(
            f"source {place!r}: column {name!r} is of type {kind}, which a text cannot hold: use {other}"
        ) from None
    except ValueError as error:
        row = first_misfit(cells, kind, _decoded if is_bytes(kind) else exact_cast)
        hint = next((cure for symptom, cure in _CURES.items() if symptom in str(error)), "")
        if pa.types.is_timestamp(kind) and _all_match(cells.slice(row, 1), _WHOLE):
            hint = "; if it is an epoch, state its unit, such as --epochs ms"
        raise InvalidRecordError(
            f"source {place!r}, row {first_row + row + 1}: column {name!r}: {cells[row].as_py()!r} isn't of type "
            f"{kind}{hint}; correct the value, or declare it as null with --null"
        ) from None


_LAST_YEAR: Final = 9999  # an epoch beyond it is of another unit


def of_epochs(column: Any, kind: Any, unit: Any, name: str, place: str, first_row: int) -> Any:
    """A column of whole numbers, or of texts of such, as timestamps; any other column as it is.

    Raises InvalidRecordError, which names row and value, for an epoch that the type cannot hold.
    """
    is_whole = pa.types.is_integer(column.type) or (is_text(column.type) and _all_match(_cells(column), _WHOLE))
    if not pa.types.is_timestamp(kind) or not is_whole:
        return column
    numbers = _cells(column) if is_text(column.type) else column

    def moments(epochs: Any, wanted: Any) -> Any:
        known = epochs.cast(pa.int64()).cast(pa.timestamp(unit, wanted.tz))
        years = [year for year in pc.unique(pc.year(known)).to_pylist() if year is not None]
        if years and (min(years) < 1 or max(years) > _LAST_YEAR):
            raise pa.ArrowInvalid("a year that no text has")
        return known.cast(wanted)

    try:
        return moments(numbers, kind)
    except pa.ArrowInvalid:
        row = first_misfit(numbers, kind, moments)
        raise InvalidRecordError(
            f"source {place!r}, row {first_row + row + 1}: column {name!r}: {numbers[row]} {unit} isn't a {kind} up "
            f"to the year {_LAST_YEAR}: correct the value, or --epochs"
        ) from None


def inferred(columns: Sequence[Any], candidates: Sequence[Any]) -> Any:
    """The first candidate that every value fits; a text without one, or without values."""
    cells = [_cells(column) for column in columns]
    if all(map(has_no_value, cells)):
        return pa.string()
    for kind in candidates:
        if all(_is_safe(column, kind) and fits(column, kind) for column in cells):
            return kind
        if pa.types.is_floating(kind) and (exact := _decimal(cells)) is not None:
            return exact
    return pa.string()


def has_no_value(column: Any) -> bool:
    """Whether a column of texts has only nulls and empty cells."""
    return is_text(column.type) and bool(pc.all(pc.equal(column, pa.scalar("", column.type)), min_count=0).as_py())


def _decimal(columns: Sequence[Any]) -> Any:
    """The decimal that every value fits, some of which are fractions; None if there is none."""
    if any(_any_matches(column, _NOT_A_NUMBER) for column in columns):
        return None
    digits = [pc.extract_regex(column.drop_null(), _DECIMAL) for column in columns]
    if any(column.null_count for column in digits):
        return None
    whole, part = (
        max(pc.max(pc.utf8_length(pc.struct_field(column, name))).as_py() or 0 for column in digits)
        for name in ("whole", "part")
    )
    return pa.decimal128(whole + part, part) if part and whole + part <= _DECIMAL_DIGITS_MAX else None


def _cells(column: Any) -> Any:
    """The column without white space around values, and with nulls for empty texts."""
    trimmed: Any = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.equal(trimmed, pa.scalar("", trimmed.type)), pa.scalar(None, trimmed.type), trimmed)


def _decoded(column: Any, kind: Any) -> Any:
    """The bytes of texts in base64. Raises ValueError for another text."""
    try:
        values = [None if text is None else base64.b64decode(text, validate=True) for text in column.to_pylist()]
    except ValueError:
        raise ValueError("not base64") from None
    array: Any = pa.array(values, kind)
    return pa.chunked_array([array])


def _is_safe(column: Any, kind: Any) -> bool:
    if pa.types.is_floating(kind) and _any_matches(column, _BEYOND_A_LONG):
        return False
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return not (is_number and _any_matches(column, _NOT_A_NUMBER))


def _all_match(column: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column, pattern), min_count=0).as_py())


def _any_matches(column: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(column, pattern)).as_py())
