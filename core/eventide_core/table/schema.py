"""What a table's Avro schema, as JSON, says of one field."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from eventide_core.errors import ConfigError, UnsupportedTableError

META_FIELDS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""The columns that Hudi puts before a table's own."""
FILE_NAME = "_hoodie_file_name"


def field_names(schema: str) -> tuple[str, ...]:
    """The names of the top-level fields, in order. Raises UnsupportedTableError where this is no record schema."""
    return tuple(str(field["name"]) for field in _fields(schema))


def is_nullable(schema: str, name: str, option: str) -> bool:
    """Whether a record may lack this field's value. Raises ConfigError, naming `option`, where there is no such field."""
    for field in _fields(schema):
        if field["name"] == name:
            kind = field["type"]
            return kind == "null" or (isinstance(kind, list) and "null" in kind)
    raise ConfigError(
        f"option {option}={name!r}: the table has no such field; its fields are {', '.join(field_names(schema))}"
    )


def refuse_defaults(schema: str, table: str) -> None:
    """Raises UnsupportedTableError where a field's default is a value.

    Under hoodie.table.partial.update.mode=IGNORE_DEFAULTS Hudi 1.1 and 1.2 compare with it by Java's identity of objects, so
    that small numbers are found and others, and texts, are not.
    """
    for field in _fields(schema):
        if field.get("default") is not None:
            raise UnsupportedTableError(
                f"{table}: hoodie.table.partial.update.mode=IGNORE_DEFAULTS: column {field['name']} has the default "
                f"{field['default']!r}, which Hudi compares with by object, not by value; make its default null, or compact "
                "this table with Hudi itself"
            )


_TIMES = ("date", "timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros")


def is_time(schema: str, name: str) -> bool:
    """Whether the field is a timestamp or a date.

    Then its values are in the order of the milliseconds that they stand for. Plain numbers need not be, as their count of
    digits says their unit, nor are texts (table/event_time.py).
    """
    for field in _fields(schema):
        if field["name"] == name:
            match field["type"]:
                case (
                    {"logicalType": str(logical)}
                    | ["null", {"logicalType": str(logical)}]
                    | [{"logicalType": str(logical)}, "null"]
                ):
                    return logical in _TIMES
                case _:
                    return False
    return False


@lru_cache(maxsize=16)  # an operation asks for one field after the other
def _fields(schema: str) -> Sequence[Mapping[str, Any]]:
    try:
        parsed = json.loads(schema)
        fields = parsed["fields"]
        return [field for field in fields if isinstance(field["name"], str) and field["type"] is not None]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UnsupportedTableError(f"the table's schema is no Avro record schema: {schema[:200]}") from None
