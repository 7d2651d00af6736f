"""A history whose schema changes from write to write, as schema-on-write of Hudi allows it.

Stage 0 is the base file's and the first log's. Then columns are added, among them nested ones where `nested`, then types
are promoted, then a column goes, and the last write names its columns in another order.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from golden.histories import PLAIN_COLUMNS, Row, Step, changes_in_event_time_order
from support.judge.options import COLUMNS_MAY_GO

ADDED, PROMOTED, DROPPED, REORDERED = 1, 2, 3, 4
LAST_STAGE: Final = REORDERED
_STAGE_OF_WRITE: Final = (0, 0, ADDED, PROMOTED, PROMOTED, DROPPED, REORDERED)


def grown(stage: int, *, nested: bool = False, promotes: bool = True) -> pa.Schema:
    """The schema of a write of that stage."""
    has_added, is_promoted = stage >= ADDED, promotes and stage >= PROMOTED
    columns: list[Any] = [
        *PLAIN_COLUMNS,
        pa.field("seats", pa.int64() if is_promoted else pa.int32()),
        pa.field("meters", pa.float64() if is_promoted else pa.int32()),
        pa.field("code", pa.string() if is_promoted else pa.int64()),
        pa.field("fare", pa.decimal128(20, 2)),
        *([] if stage >= DROPPED else [pa.field("gone", pa.string())]),
        *(_nested(has_added=has_added, has_dropped=stage >= DROPPED) if nested else []),
        *([pa.field("note", pa.string()), pa.field("paid", pa.bool_())] if has_added else []),
    ]
    return pa.schema(columns[:2] + columns[:1:-1] if stage == REORDERED else columns)


def _nested(*, has_added: bool, has_dropped: bool) -> list[Any]:
    lat = [("lat", pa.float64())] if has_added else []
    floor = [] if has_dropped else [("floor", pa.int32())]
    at = [("at", pa.timestamp("us", "UTC"))] if has_added else []
    return [
        pa.field("place", pa.struct([("name", pa.string()), *floor, *lat])),
        pa.field("stops", pa.list_(pa.struct([("x", pa.int32()), *at]))),
        pa.field("fees", pa.map_(pa.string(), pa.struct([("y", pa.int64()), *lat]))),
        pa.field("ways", pa.list_(pa.list_(pa.string()))),
    ]


def a_schema_that_grows(*, nested: bool = False, promotes: bool = True) -> Iterator[Step]:
    """Writes in event-time order, each with the columns and types of its stage.

    Not `promotes`: all types stay, for hudi-rs reads no logs of several types of a column.
    """
    for step, stage in zip(changes_in_event_time_order(), _STAGE_OF_WRITE, strict=True):
        schema = grown(stage, nested=nested, promotes=promotes)
        rows = tuple(_row(row, schema) for row in step.rows)
        yield Step(step.operation, rows, schema=schema, options=COLUMNS_MAY_GO if stage >= DROPPED else {})


def _row(row: Row, schema: pa.Schema) -> Row:
    number = int(row["id"][1:])
    return {column.name: row.get(column.name, _value(column.type, number)) for column in schema}


def _value(kind: Any, number: int) -> Any:
    """A value of any type; the same number gives the same."""
    types = pa.types
    if number % 7 == 0:
        return None
    if types.is_struct(kind):
        return {field.name: _value(field.type, number + nth) for nth, field in enumerate(kind)}
    if types.is_map(kind):
        return [(f"k{nth}", _value(kind.item_type, number + nth)) for nth in range(number % 3)]
    if types.is_list(kind):
        return [_value(kind.value_type, number + nth) for nth in range(number % 4)]
    if types.is_string(kind):
        return f"s{number}"
    if types.is_boolean(kind):
        return number % 2 == 0
    if types.is_floating(kind):
        return number / 8
    if types.is_decimal(kind):
        return Decimal(number) / 100
    if types.is_timestamp(kind):
        return datetime.fromtimestamp(number, UTC)
    return number
