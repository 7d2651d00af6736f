"""Warns where the values of an ordering field would merge otherwise than the times or numbers that they hold.

Texts     by their letters: see below
Numbers   epochs of several units: the later row in seconds loses to the earlier one in milliseconds. The rows of a write are
          compared with one another and with a row of the table, which is read before the first such write of a process.

Hudi compares texts by their letters, and so does eventide: '9' wins over '10', and '02:00+02:00' over '01:00Z'. Only the
rows that make a table are checked: afterwards the order is what its readers agree on.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.bootstrap import Application
from eventide.own_warnings import OwnWarning, warn
from eventide_core.service.common.state.table import TableState
from eventide_core.table.records.record_order import MergeRule

_NUMBER: Final = r"^[+-]?\d+(\.\d+)?$"
_TIME: Final = r"^(\d{4}-\d{1,2}-\d{1,2}([T ]\d{1,2}:\d\d.*)?|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}\b.*)$"
_YEAR_FIRST: Final = re.compile(r"\d{4}-")
_ZONE: Final = re.compile(r"(?:Z|[+-]\d\d:?\d\d)?$")
_DIGIT: Final = re.compile(r"\d")
_LOOKED_AT_MAX: Final = 100_000


_UNITS: Final = {10: "seconds", 13: "milliseconds", 16: "microseconds", 19: "nanoseconds"}
"""The units of epochs from 2001 on, by their digits."""
_SECONDS_END: Final = 4_102_444_800  # the year 2100


class OrderingWarning(OwnWarning, UserWarning):
    """The values of the ordering field merge in another order than their times or numbers."""


def warn_of_ordering(
    application: Application, state: TableState, rows: pa.Table, known: Callable[[str], pa.Table | None]
) -> None:
    """Warns if the ordering values of these rows merge otherwise than they read.

    Of texts, that is checked in the first rows of the table. `known` reads a row of the table with that column.
    """
    config = state.config
    sentence = by_letters(rows, config.ordering_fields)
    if sentence is not None and state.timeline.writes:
        sentence = None
    if sentence is None and config.merge_rule is not MergeRule.COMMIT_TIME_ORDERING:
        sentence = _by_units(application, rows, config.ordering_fields, known)
    if sentence is not None:
        warn(sentence, OrderingWarning)


def _by_units(
    application: Application, rows: pa.Table, fields: Sequence[str], known: Callable[[str], pa.Table | None]
) -> str | None:
    """The first ordering field whose numbers are epochs of several units, here or in the table, in a sentence."""
    for name in fields:
        units = epochs(rows.column(name)) if name in rows.column_names else {}
        if not units:
            continue
        if name not in application.ordering_units:
            earlier = known(name)
            application.ordering_units[name] = {} if earlier is None else epochs(earlier.column(name))
        units = {**application.ordering_units[name], **units}
        application.ordering_units[name] = units
        if len(units) > 1:
            (one, first), *_, (other, second) = sorted(units.items())
            return (
                f"the ordering field {name!r} has epochs of several units: of {first} ({_UNITS[one]}) and {second} "
                f"({_UNITS[other]}), {second} wins, whichever is later; write all of them in one unit"
            )
    return None


def epochs(column: Any) -> dict[int, Any]:
    """The first epoch of each unit, by its digits, in a column of numbers; empty if it has none."""
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return {}
    values: Any = column.slice(0, _LOOKED_AT_MAX).drop_null().to_numpy()
    found: dict[int, Any] = {}
    for digits in _UNITS:
        unit = 10 ** (digits - 10)
        rows = np.flatnonzero((values >= 10**9 * unit) & (values < _SECONDS_END * unit))
        if len(rows):
            found[digits] = values[rows[0]].item()
    return found


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
    """Two values whose letters can't be compared; None if the letters have the order of the values."""
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
