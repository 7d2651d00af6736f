"""Questions about one field of a table's Avro schema (JSON)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

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


@lru_cache(maxsize=64)
def without_meta_fields(schema: str) -> str:
    """The schema of a table's own columns: an ALTER TABLE of Hudi states its meta fields, too."""
    if f'"{META_FIELDS[0]}"' not in schema:
        return schema
    try:
        parsed = json.loads(schema)
        own = [field for field in parsed["fields"] if field["name"] not in META_FIELDS]
        return json.dumps({**parsed, "fields": own}, separators=(",", ":"))
    except (ValueError, TypeError, KeyError, RecursionError):
        return schema  # its reader raises an error that states what is wrong


def with_names(schema: str, names: Sequence[str]) -> str:
    """The record schema with these names of its top-level fields, in order."""
    root = json.loads(schema)
    fields = [{**field, "name": name} for field, name in zip(root["fields"], names, strict=True)]
    return json.dumps({**root, "fields": fields}, separators=(",", ":"))


def field_names(schema: str) -> tuple[str, ...]:
    """The names of the top-level fields, in order. Raises UnsupportedTableError if this is not a record schema."""
    return tuple(str(field["name"]) for field in _fields(schema))


def is_nullable(schema: str, name: str, option: str) -> bool:
    """Whether a record may lack this field's value; `a.b` is the field b of the record a.

    Raises ConfigError, naming `option`, if there is no such field.
    """
    kinds = _kinds_at(schema, name)
    if kinds is None:
        raise ConfigError(
            f"option {option}={name!r}: the table has no such field; its fields are {', '.join(field_names(schema))}"
        )
    return any(kind == "null" or (isinstance(kind, list) and "null" in kind) for kind in kinds)


def refuse_defaults(schema: str, table: str) -> None:
    """Raises UnsupportedTableError if a field's default is a value.

    Under hoodie.table.partial.update.mode=IGNORE_DEFAULTS, Hudi 1.1 and 1.2 compare with the default by Java's identity
    of objects. This finds small numbers, but not other numbers, and no strings.
    """
    for field in _fields(schema):
        if field.get("default") is not None:
            raise UnsupportedTableError(
                f"{table}: hoodie.table.partial.update.mode=IGNORE_DEFAULTS: column {field['name']} has the default "
                f"{field['default']!r}, which Hudi compares with by object, not by value; make its default null, or compact "
                "this table with Hudi itself"
            )


@dataclass(frozen=True, slots=True)
class SchemaChanges:
    """The names of the top-level columns that a write changes in a table's schema.

    `added` and `widened` are in the order of the schema after it, `dropped` in that of the one before. `renamed` are pairs
    of the old and the new name, which are in none of the others.
    """

    added: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()


def schema_changes(before: str | None, after: str, renamed: Mapping[str, str] | None = None) -> SchemaChanges:
    """What the schema `after` a write changes. The first schema of a table changes nothing."""
    if before is None or before == after:
        return SchemaChanges()
    names_after = renamed or {}
    types = {names_after.get(name, name): kind for name, kind in ((str(f["name"]), f["type"]) for f in _fields(before))}
    fields = [(str(field["name"]), field["type"]) for field in _fields(after)]
    names = frozenset(name for name, _ in fields)
    return SchemaChanges(
        added=tuple(name for name, _ in fields if name not in types),
        widened=tuple(name for name, kind in fields if name in types and types[name] != kind),
        dropped=tuple(name for name in types if name not in names),
        renamed=tuple(names_after.items()),
    )


_TIMES = ("date", "timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros")
_NO_EVENT_TIMES = ("boolean", "bytes", "fixed", "array", "map", "record", "null")
_TIMES_OF_DAY = ("time-millis", "time-micros")


def is_time(schema: str, name: str) -> bool:
    """Whether the field is a timestamp or a date.

    Then the order of its values is the order of their milliseconds. That need not hold for plain numbers, whose number
    of digits gives their unit, or for strings (table/records/event_time.py).
    """
    kinds = _kinds_at(schema, name)
    return kinds is not None and _attribute(_without_null(kinds[-1]), "logicalType") in _TIMES


def may_hold_event_times(schema: str, name: str) -> bool:
    """Whether event times can be read from the field's type (table/records/event_time.py); true if the type is unknown."""
    kinds = _kinds_at(schema, name)
    if kinds is None:
        return True
    kind = _without_null(kinds[-1])
    logical, plain = _attribute(kind, "logicalType"), _attribute(kind, "type") or kind
    return logical not in _TIMES_OF_DAY and (logical == "decimal" or plain not in _NO_EVENT_TIMES)


def is_text(schema: str, name: str) -> bool:
    """Whether the field is a text; false if there is no such field."""
    kinds = _kinds_at(schema, name)
    kind = None if kinds is None else _without_null(kinds[-1])
    return (_attribute(kind, "type") or kind) == "string"


def holds_times_only(schema: str, name: str) -> bool:
    """Whether each of the field's values is an event time: whole numbers, timestamps and dates, but no texts.

    A floating number may be NaN, and a decimal beyond 64 bits.
    """
    kinds = _kinds_at(schema, name)
    kind = None if kinds is None else _without_null(kinds[-1])
    return kind is not None and (_attribute(kind, "type") or kind) in ("int", "long")


def _kinds_at(schema: str, path: str) -> list[Any] | None:
    """The Avro types of the field and of its enclosing records, outermost first; None if the field doesn't exist."""
    fields: Sequence[Mapping[str, Any]] = _fields(schema)
    kinds: list[Any] = []
    for name in path.split("."):
        kind: Any = next((field["type"] for field in fields if field["name"] == name), None)
        if kind is None:
            return None
        kinds.append(kind)
        fields = _attribute(_without_null(kind), "fields") or ()
    return kinds


def _without_null(kind: Any) -> Any:
    """The type in a union with null. Returns any other union or type unchanged."""
    match kind:
        case ["null", other] | [other, "null"]:
            return other
        case _:
            return kind


def _attribute(kind: Any, name: str) -> Any:
    """An attribute of a type's definition; None for a type that is a name or a union."""
    return cast("dict[str, Any]", kind).get(name) if isinstance(kind, dict) else None


@lru_cache(maxsize=16)  # an operation reads several fields in sequence
def _fields(schema: str) -> Sequence[Mapping[str, Any]]:
    try:
        parsed = json.loads(schema)
        fields = parsed["fields"]
        return [field for field in fields if isinstance(field["name"], str) and field["type"] is not None]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UnsupportedTableError(f"the table's schema is not an Avro record schema: {schema[:200]}") from None
