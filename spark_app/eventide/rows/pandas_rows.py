"""Arrow rows of a DataFrame of pandas, where Arrow's own conversion would lose what a value says.

Arrow takes the type of a column of objects from the first value: a time with a zone after one without becomes a local time
of UTC, and a time after a date becomes a date.
"""

import datetime
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from eventide_core.errors import InvalidRecordError


def rows_of_pandas(frame: Any) -> pa.Table:
    """The rows without the index. Raises InvalidRecordError for an index that has a name, and for times of several kinds."""
    # The frame's own C stream would add its index as a column.
    if named := [name for name in frame.index.names if name is not None and name not in frame.columns]:
        raise InvalidRecordError(
            f"the DataFrame has {named[0]!r} in its index, which isn't a column: pass frame.reset_index(), or "
            "frame.reset_index(drop=True) to leave it out"
        )
    rows = pa.Table.from_pandas(frame, preserve_index=False)
    for place, field in enumerate(rows.schema):
        if frame.dtypes.iloc[place].kind == "O" and _has_times(field.type):
            _refuse_several_kinds(frame.iloc[:, place], field.name)
    return rows


def _has_times(kind: Any) -> bool:
    is_time = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    return is_time or any(_has_times(kind.field(number).type) for number in range(kind.num_fields))


def _refuse_several_kinds(column: Any, name: str) -> None:
    first: tuple[str, object] | None = None
    for row, value in enumerate(column):
        for kind, time in _kinds(value):
            if first is not None and kind != first[0]:
                raise InvalidRecordError(
                    f"row {row}: column {name!r} has {time!r}, {kind}, beside {first[1]!r}, {first[0]}: give all of its "
                    "values one kind, as pandas.to_datetime(..., utc=True) or dt.tz_localize do"
                )
            first = first or (kind, time)


def _kinds(value: Any) -> Iterator[tuple[str, object]]:
    """The kind of each time in a value, with the time."""
    if isinstance(value, datetime.datetime):
        if value == value:  # NaT is null, and doesn't equal itself
            yield "a time without a zone" if value.tzinfo is None else "a time with a zone", value
    elif isinstance(value, datetime.date):
        yield "a date", value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _kinds(inner)
    elif hasattr(value, "__iter__") and not isinstance(value, str | bytes):
        for inner in value:
            yield from _kinds(inner)
