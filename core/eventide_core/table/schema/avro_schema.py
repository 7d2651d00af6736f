"""An Avro schema as a value, and questions about its fields."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

from eventide_core.errors import ConfigError, UnsupportedTableError
from eventide_core.table.schema.avro_types import branches

COMMIT_TIME: Final = "_hoodie_commit_time"
COMMIT_SEQNO: Final = "_hoodie_commit_seqno"
RECORD_KEY: Final = "_hoodie_record_key"
PARTITION_PATH: Final = "_hoodie_partition_path"
FILE_NAME: Final = "_hoodie_file_name"
META_FIELDS: Final = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""The columns that Hudi puts before a table's own."""
IS_DELETED: Final = "_hoodie_is_deleted"
"""A column of a table's own: true marks a delete."""

_T = TypeVar("_T")
_HASHED_LENGTH: Final = 256


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """The schema of records: its exact `text`, JSON, and what was derived from it so far.

    Any text makes a schema: it is parsed when somebody asks, and only then refused. Schemas that `of` returns for one text
    are one object while it is among the last ones in use, as the schemas of a table's commits and of the thousand blocks
    of its log files are. So what is derived once serves them all.
    """

    text: str
    _derived: dict[Callable[["AvroSchema"], Any], Any] = field(
        default_factory=dict[Callable[["AvroSchema"], Any], Any], init=False, repr=False, compare=False
    )

    @classmethod
    def of(cls, text: str) -> "AvroSchema":
        """The schema with that text, which need not be one."""
        return _shared(cls(text))

    @classmethod
    def of_json(cls, value: Any) -> "AvroSchema":
        """The schema with that JSON value, in the compact form that Hudi writes."""
        return cls.of(json.dumps(value, separators=(",", ":")))

    def __hash__(self) -> int:
        # Each block has a copy of its text. To hash some hundred kilobytes takes ten times as long as to compare them.
        return hash((len(self.text), self.text[-_HASHED_LENGTH:]))

    def __reduce__(self) -> tuple[Callable[[str], "AvroSchema"], tuple[str]]:
        return AvroSchema.of, (self.text,)

    def derived(self, derive: Callable[["AvroSchema"], _T]) -> _T:
        """What the function returns for this schema, computed once. Nobody changes it. An error comes each time."""
        if derive not in self._derived:
            self._derived[derive] = derive(self)
        return cast("_T", self._derived[derive])

    @property
    def parsed(self) -> Any:
        """The JSON value, which nobody changes. Raises ValueError or RecursionError."""
        return self.derived(_parsed)

    @property
    def record(self) -> Mapping[str, Any]:
        """The JSON value of a record schema. Raises UnsupportedTableError for any other."""
        try:
            parsed = self.parsed
        except (ValueError, RecursionError) as error:
            raise UnsupportedTableError(f"an Avro schema that is not JSON ({error}): {self.text[:200]}") from error
        if _attribute(parsed, "type") != "record" or not isinstance(_attribute(parsed, "fields"), list):
            raise UnsupportedTableError(f"an Avro schema that is not a record: {self.text[:200]}")
        return cast("dict[str, Any]", parsed)

    def with_meta_fields(self) -> "AvroSchema":
        """The schema with Hudi's meta fields first, as in log blocks and base files. Raises UnsupportedTableError."""
        return self.derived(_with_meta_fields)

    def without_meta_fields(self) -> "AvroSchema":
        """The schema of a table's own columns: an ALTER TABLE of Hudi states its meta fields, too."""
        return self.derived(_without_meta_fields)

    def with_names(self, names: Sequence[str]) -> "AvroSchema":
        """The record schema with these names of its top-level fields, in order."""
        root = self.parsed
        fields = [{**field, "name": name} for field, name in zip(root["fields"], names, strict=True)]
        return AvroSchema.of_json({**root, "fields": fields})

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names of the top-level fields, in order. Raises UnsupportedTableError if this is not a record schema."""
        return self.derived(_field_names)

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of all fields, including the fields of nested records."""
        return tuple(_names_in(self.parsed))

    def is_nullable(self, name: str, option: str) -> bool:
        """Whether a record may lack this field's value; `a.b` is the field b of the record a.

        Raises ConfigError, naming `option`, if there is no such field.
        """
        kinds = self._kinds_at(name)
        if kinds is None:
            raise ConfigError(
                f"option {option}={name!r}: the table has no such field; its fields are {', '.join(self.field_names)}"
            )
        return any("null" in branches(kind) for kind in kinds)

    def is_time(self, name: str) -> bool:
        """Whether the field is a timestamp or a date.

        Then the order of its values is the order of their milliseconds. That need not hold for plain numbers, whose number
        of digits gives their unit, or for strings (table/records/event_time.py).
        """
        return _attribute(self._kind_of(name), "logicalType") in _TIMES

    def is_text(self, name: str) -> bool:
        """Whether the field is a text; false if there is no such field."""
        return bool(_plain(self._kind_of(name)) == "string")

    def is_local_time(self, name: str) -> bool:
        """Whether the field is a timestamp without a zone, or a date; false if there is no such field."""
        return _attribute(self._kind_of(name), "logicalType") in _LOCAL_TIMES

    def holds_times_only(self, name: str) -> bool:
        """Whether each of the field's values is an event time: whole numbers, timestamps and dates, but no texts.

        A floating number may be NaN, and a decimal beyond 64 bits.
        """
        return _plain(self._kind_of(name)) in ("int", "long")

    def may_hold_event_times(self, name: str) -> bool:
        """Whether event times can be read from the field's type (table/records/event_time.py); true if it is unknown."""
        kind = self._kind_of(name)
        logical = _attribute(kind, "logicalType")
        return logical not in _TIMES_OF_DAY and (logical == "decimal" or _plain(kind) not in _NO_EVENT_TIMES)

    def refuse_defaults(self, table: str) -> None:
        """Raises UnsupportedTableError if a field's default is a value.

        Under hoodie.table.partial.update.mode=IGNORE_DEFAULTS, Hudi 1.1 and 1.2 compare with the default by Java's identity
        of objects. This finds small numbers, but not other numbers, and no strings.
        """
        for own in self._fields:
            if own.get("default") is not None:
                raise UnsupportedTableError(
                    f"{table}: hoodie.table.partial.update.mode=IGNORE_DEFAULTS: column {own['name']} has the default "
                    f"{own['default']!r}, which Hudi compares with by object, not by value; make its default null, or "
                    "compact this table with Hudi itself"
                )

    @property
    def types(self) -> dict[str, Any]:
        """The Avro types of the top-level fields by name, in order. Raises UnsupportedTableError as `field_names` does."""
        return {str(field["name"]): field["type"] for field in self._fields}

    @property
    def _fields(self) -> Sequence[Mapping[str, Any]]:
        return self.derived(_fields)

    def _kind_of(self, path: str) -> Any:
        """The field's Avro type, without null; None if the field doesn't exist."""
        kinds = self._kinds_at(path)
        return None if kinds is None else _without_null(kinds[-1])

    def _kinds_at(self, path: str) -> list[Any] | None:
        """The Avro types of the field and of its enclosing records, outermost first; None if the field doesn't exist."""
        fields = self._fields
        kinds: list[Any] = []
        for name in path.split("."):
            kind: Any = next((field["type"] for field in fields if field["name"] == name), None)
            if kind is None:
                return None
            kinds.append(kind)
            fields = _attribute(_without_null(kind), "fields") or ()
        return kinds


@lru_cache(maxsize=256)
def _shared(schema: AvroSchema) -> AvroSchema:
    return schema


@dataclass(frozen=True, slots=True)
class SchemaChanges:
    """The names of the top-level columns that a write changes in a table's schema.

    `added` and `widened` are in the order of the schema after it, `dropped` in the order of the one before. `renamed` are
    pairs of the old and the new name, which are in none of the others.
    """

    added: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()


def schema_changes(
    before: AvroSchema | None, after: AvroSchema, renamed: Mapping[str, str] | None = None
) -> SchemaChanges:
    """What the schema `after` a write changes. The first schema of a table changes nothing."""
    if before is None or before == after:
        return SchemaChanges()
    names_after = renamed or {}
    old = {names_after.get(name, name): kind for name, kind in before.types.items()}
    new = after.types
    return SchemaChanges(
        added=tuple(name for name in new if name not in old),
        widened=tuple(name for name, kind in new.items() if name in old and old[name] != kind),
        dropped=tuple(name for name in old if name not in new),
        renamed=tuple(names_after.items()),
    )


_LOCAL_TIMES = ("date", "local-timestamp-millis", "local-timestamp-micros")
_TIMES = ("timestamp-millis", "timestamp-micros", *_LOCAL_TIMES)
_NO_EVENT_TIMES = ("boolean", "bytes", "fixed", "array", "map", "record", "null")
_TIMES_OF_DAY = ("time-millis", "time-micros")


def _parsed(schema: AvroSchema) -> Any:
    return json.loads(schema.text)


def _fields(schema: AvroSchema) -> Sequence[Mapping[str, Any]]:
    try:
        fields = schema.parsed["fields"]
        return [field for field in fields if isinstance(field["name"], str) and field["type"] is not None]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UnsupportedTableError(f"the table's schema is not an Avro record schema: {schema.text[:200]}") from None


def _field_names(schema: AvroSchema) -> tuple[str, ...]:
    return tuple(str(own["name"]) for own in schema.derived(_fields))


def _with_meta_fields(schema: AvroSchema) -> AvroSchema:
    record = schema.record
    fields = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_FIELDS]
    own = record["fields"]
    if not all(isinstance(_attribute(field, "name"), str) for field in own):
        raise UnsupportedTableError(f"an Avro schema that isn't a record of named fields: {schema.text[:200]}")
    fields += [field for field in own if field["name"] not in META_FIELDS]
    try:
        return AvroSchema.of_json({**record, "fields": fields})
    except RecursionError as error:
        raise UnsupportedTableError(f"an Avro schema whose types are nested too deeply: {schema.text[:200]}") from error


def _without_meta_fields(schema: AvroSchema) -> AvroSchema:
    if f'"{META_FIELDS[0]}"' not in schema.text:
        return schema
    try:
        own = [field for field in schema.parsed["fields"] if field["name"] not in META_FIELDS]
        return AvroSchema.of_json({**schema.parsed, "fields": own})
    except (ValueError, TypeError, KeyError, RecursionError):
        return schema  # its reader raises an error that states what is wrong


def _names_in(kind: dict[str, Any] | list[Any] | str) -> Iterator[str]:
    if isinstance(kind, str):
        return
    if isinstance(kind, list):
        parts = kind
    else:
        fields: list[dict[str, Any]] = kind.get("fields", [])
        yield from (own["name"] for own in fields)
        parts = [kind[part] for part in ("type", "items", "values") if part in kind]
        parts += [own["type"] for own in fields]
    for part in parts:
        yield from _names_in(part)


def _plain(kind: Any) -> Any:
    """The name of a type; a type that is a name or a union, itself."""
    return _attribute(kind, "type") or kind


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
