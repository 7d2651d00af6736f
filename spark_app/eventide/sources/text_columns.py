"""Texts as values: converts a column of a text format to a type, and finds the type of a column that nothing declares.

A column has the first of these types that all of its values fit, and otherwise it is a text: an integer of 64 bits, a
double, a Boolean, a date, a time without a zone, a time with one. A value that a number would not give back is a text: one
that begins with a zero or a plus (`007`, `+47`), and an integer of more digits than a double holds.
"""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide_core.errors import InvalidRecordError

TIMES: Final[tuple[Any, ...]] = (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
EVERY_TYPE: Final[tuple[Any, ...]] = (pa.int64(), pa.float64(), pa.bool_(), *TIMES)

_NOT_A_NUMBER: Final = r"^(\+|-?0[0-9xX])"
_CURES: Final = {
    "expected a zone offset": "; name its zone, as in 2026-11-21T00:00Z",
    "expected no zone offset": "; the column has no zone: give local times",
}
_TOO_LONG_FOR_A_DOUBLE: Final = r"^-?[0-9]{16,}$"


def is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def as_text(column: Any, name: str, place: str, first_row: int) -> Any:
    """A column of bytes as UTF-8. Raises InvalidRecordError, which names the row, for bytes that are none."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        row = _first_misfit(column, pa.string())
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
    cells = column if pa.types.is_binary(kind) or not empty_is_null else _cells(column)
    try:
        return _cast(cells, kind)
    except pa.ArrowNotImplementedError:
        raise InvalidRecordError(
            f"source {place!r}: column {name!r} is of type {kind}, which a text cannot hold: use JSON or Parquet"
        ) from None
    except pa.ArrowInvalid as error:
        row = _first_misfit(cells, kind)
        hint = next((cure for symptom, cure in _CURES.items() if symptom in str(error)), "")
        raise InvalidRecordError(
            f"source {place!r}, row {first_row + row + 1}: column {name!r}: {cells[row].as_py()!r} is no {kind}{hint}; "
            "correct the value, or declare it as null with --null"
        ) from None


def inferred(columns: Sequence[Any], candidates: Sequence[Any]) -> Any:
    """The first candidate that every value fits; a text without one, or without values."""
    cells = [_cells(column) for column in columns]
    if all(column.null_count == len(column) for column in cells):
        return pa.string()
    for kind in candidates:
        if all(_is_safe(column, kind) and _fits(column, kind) for column in cells):
            return kind
    return pa.string()


def _cells(column: Any) -> Any:
    """The column without white space around values, and with nulls for empty texts."""
    trimmed: Any = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.equal(trimmed, pa.scalar("", trimmed.type)), pa.scalar(None, trimmed.type), trimmed)


def _is_safe(column: Any, kind: Any) -> bool:
    if pa.types.is_integer(kind):
        return not _any_matches(column, _NOT_A_NUMBER)
    if pa.types.is_floating(kind):
        return not _any_matches(column, _NOT_A_NUMBER) and not _any_matches(column, _TOO_LONG_FOR_A_DOUBLE)
    return True


def _any_matches(column: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(column, pattern)).as_py())


def _fits(column: Any, kind: Any) -> bool:
    try:
        _cast(column, kind)
    except pa.ArrowInvalid:
        return False
    return True


def _cast(column: Any, kind: Any) -> Any:
    """The column in that type. Raises pa.ArrowInvalid as a cast does, and for digits that the type has no number for."""
    values = column.cast(kind)
    if pa.types.is_floating(kind) and _any_matches(column.filter(pc.is_inf(values)), r"\d"):  # not the word `inf`
        raise pa.ArrowInvalid(f"a number too large for {kind}")
    return values


def _first_misfit(column: Any, kind: Any) -> int:
    """The first row that does not fit. At least one does not."""
    begin, end = 0, len(column)
    while end - begin > 1:
        middle = (begin + end) // 2
        begin, end = (middle, end) if _fits(column.slice(begin, middle - begin), kind) else (begin, middle)
    return begin
