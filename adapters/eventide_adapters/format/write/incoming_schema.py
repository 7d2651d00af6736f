"""Fits the columns of incoming records to a table's schema, and evolves the schema.

A column that the table has     is cast to the table's type if all of its values fit. If its type is wider, the table's type
                                is widened instead: int to long, float to double, int to double.
A column that it does not have  is added at the end and may be null, as in Hudi.
A column that is missing        is null in these records, if the table's column may be null.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa

from eventide_adapters.format.avro.from_arrow import avro_field_of, avro_schema_of
from eventide_adapters.format.avro.schema import arrow_schema
from eventide_core.errors import InvalidRecordError
from eventide_core.table.avro_names import refuse_invalid_names
from eventide_core.table.schema import META_FIELDS

_WIDER: Final = {
    ("int", pa.int64()): "long",
    ("int", pa.uint32()): "long",
    ("int", pa.float32()): "double",
    ("int", pa.float64()): "double",
    ("float", pa.float64()): "double",
}


def evolved_schema(schema: str | None, incoming: pa.Schema, table_name: str) -> str:
    """The table's Avro schema after records with these columns; the same text if nothing changes.

    `schema` is None if the table has none yet. Raises InvalidRecordError for a missing column that is never null, and
    InvalidColumnNameError for a new column with a name that Avro does not allow.
    """
    if schema is None:
        own = [column.with_nullable(True) for column in incoming if column.name not in META_FIELDS]
        refuse_invalid_names(column.name for column in own)
        return avro_schema_of(table_name, pa.schema(own))
    parsed, table = json.loads(schema), arrow_schema(schema)
    changed = False
    for field in parsed["fields"]:
        place = incoming.get_field_index(field["name"])
        if place < 0:
            if not table.field(field["name"]).nullable:
                raise InvalidRecordError(
                    f"records without the column {field['name']!r}, which is never null in the table; they have "
                    f"{', '.join(incoming.names)}"
                )
            continue
        wider = _widened(field["type"], incoming.field(place).type)
        if wider is not None:
            field["type"] = wider
            changed = True
    record = f"{parsed['namespace']}.{parsed['name']}" if parsed.get("namespace") else str(parsed["name"])
    added = [column for column in incoming if column.name not in table.names and column.name not in META_FIELDS]
    refuse_invalid_names(column.name for column in added)
    parsed["fields"] += [avro_field_of(column.with_nullable(True), record) for column in added]
    changed = changed or bool(added)
    return json.dumps(parsed, separators=(",", ":")) if changed else schema


def conform(records: pa.Table, schema: pa.Schema, *, first_row: int = 0) -> pa.Table:
    """The records with the columns and types of `schema`. Missing columns are null.

    Raises InvalidRecordError for a value that does not fit, with its column, and for a null that is not allowed, with its
    row and column.
    """
    columns: list[Any] = []
    for field in schema:
        if field.name not in records.column_names:
            columns.append(pa.nulls(len(records), field.type))
            continue
        column: Any = records.column(field.name)
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except (pa.ArrowException, ValueError) as error:
                raise InvalidRecordError(
                    f"column {field.name!r} of type {column.type} does not fit the table's {field.type}: {error}"
                ) from error
        if column.null_count and not field.nullable:
            row = column.is_null().index(True).as_py()
            raise InvalidRecordError(f"row {first_row + row}: column {field.name!r} is null, but never in the table")
        columns.append(column)
    return pa.table(columns, schema=schema)


def _widened(avro: Any, incoming: Any) -> Any | None:
    """The wider type for the values of both types; None if the table's type stays."""
    if isinstance(avro, list):
        branches = [_WIDER.get((branch, incoming), branch) if isinstance(branch, str) else branch for branch in avro]
        return branches if branches != avro else None
    return _WIDER.get((avro, incoming)) if isinstance(avro, str) else None
