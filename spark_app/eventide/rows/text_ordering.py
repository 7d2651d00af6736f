"""Warns where the texts of an ordering field would merge otherwise than the times or numbers that they hold.

Hudi compares texts by their letters, and so does eventide: '9' wins over '10', and '02:00+02:00' over '01:00Z'. Only the
rows that make a table are checked: afterwards the order is what its readers agree on.
"""

import re
import warnings
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide.bootstrap import Application
from eventide_adapters.format.write.arrow_records import ArrowRecords
from eventide_core.ports import IncomingRecords

_NUMBER: Final = r"^[+-]?\d+(\.\d+)?$"
_TIME: Final = r"^(\d{4}-\d{1,2}-\d{1,2}([T ]\d{1,2}:\d\d.*)?|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}\b.*)$"
_YEAR_FIRST: Final = re.compile(r"\d{4}-")
_ZONE: Final = re.compile(r"(?:Z|[+-]\d\d:?\d\d)?$")
_DIGIT: Final = re.compile(r"\d")
_LOOKED_AT_MAX: Final = 100_000


class TextOrderingWarning(UserWarning):
    """The ordering field of a new table is a text whose order by letters is not that of its times or numbers."""


def warn_of_text_ordering(application: Application, records: IncomingRecords, *, stacklevel: int) -> None:
    """Warns if these rows are the first of the table, and their ordering values merge otherwise than they read."""
    rows = records.upserts if isinstance(records, ArrowRecords) else None
    if rows is None or not any(_is_text(field.type) for field in rows.schema):
        return
    config = application.files.config()
    sentence = by_letters(rows, config.ordering_fields)
    if sentence is not None and not application.files.timeline(config).writes:
        warnings.warn(sentence, TextOrderingWarning, stacklevel=stacklevel)


def by_letters(rows: pa.Table, ordering_fields: Sequence[str]) -> str | None:
    """The first ordering field whose texts are times or numbers of several forms, in a sentence with the cure."""
    for name in ordering_fields:
        if name not in rows.column_names or not _is_text(rows.schema.field(name).type):
            continue
        values: Any = pc.unique(rows.column(name).slice(0, _LOOKED_AT_MAX)).drop_null()
        for pattern, what, kind in ((_NUMBER, "numbers", "long"), (_TIME, "times", "timestamp")):
            if len(values) and pc.all(pc.match_substring_regex(values, pattern)).as_py():
                pair = _of_two_forms(values.to_pylist())
                if pair is not None:
                    return (
                        f"the ordering field {name!r} is a text that holds {what}, and versions merge by its letters, as in "
                        f"Hudi: of {pair[0]!r} and {pair[1]!r}, {max(pair)!r} wins; make the table with a column of "
                        f"{what} instead, such as one of the type {kind}, or write its texts in one form of one length"
                    )
    return None


def _of_two_forms(values: Sequence[str]) -> tuple[str, str] | None:
    """Two values whose letters can't be compared; None if the order of letters is that of the values."""
    first: tuple[str, str] | None = None
    for value in values:
        zone = _ZONE.search(value)
        begin = len(value) if zone is None else zone.start()
        form = _DIGIT.sub("0", value[:begin]) + value[begin:]
        if first is None:
            first = (form, value)
        elif form != first[0]:
            return first[1], value
    is_in_order = first is None or first[1].isdigit() or _YEAR_FIRST.match(first[1]) is not None
    return None if is_in_order or len(values) < 2 else (values[0], values[1])


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
