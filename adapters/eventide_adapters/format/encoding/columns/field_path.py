"""Fields by path, as in Hudi's settings: `a.b` is the field b of the record a. No field name contains a dot."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide_core.errors import UnsupportedTableError


def top_level(paths: Iterable[str]) -> tuple[str, ...]:
    """The columns that contain these fields, without duplicates."""
    return tuple(dict.fromkeys(path.partition(".")[0] for path in paths))


def type_at(path: str, types: Mapping[str, pa.DataType]) -> Any:
    """The type of a field in these columns; None if there is no such field."""
    name, *inner = path.split(".")
    kind: Any = types.get(name)
    for step in inner:
        if kind is None or not pa.types.is_struct(kind):
            return None
        place = kind.get_field_index(step)
        kind = None if place < 0 else kind.field(place).type
    return kind


def column_at(records: pa.RecordBatch | pa.Table, path: str) -> Any:
    """The values of a field; null if an enclosing record is null. Raises UnsupportedTableError if the column is missing."""
    name, *inner = path.split(".")
    if name not in records.schema.names:
        raise UnsupportedTableError(
            f"no column {name!r} in the table's schema; it has {', '.join(records.schema.names)}"
        )
    column: Any = records.column(name)
    return pc.struct_field(column, inner) if inner else column
