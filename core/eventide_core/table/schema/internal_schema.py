"""Hudi's internal schemas, for tables with schema evolution on read: a field keeps its number when its name changes.

    extraMetadata latest_schema of a commit      {"version_id": i64, "type": "record", "fields": [{"id", "name", "type"}...]}
    .hoodie/.schema/<instant>.schemacommit       {"schemas": [all versions, each as above]}; from table version 8 on,
                                                 named <instant>_<completion time>.schemacommit

A type is a name, or {"type": "record", "fields"}, {"type": "array", "element"}, {"type": "map", "value"}. A version's
number is the instant that created it. A file of an instant is read with the greatest version up to that instant.

eventide reads files by field names as long as no version that a file may need has another name for a field's number, or
another number for its name (`unstable_names`). Otherwise it reads columns by their numbers (column_names.py). What it
can't read so is refused: fields below a column, and the columns by which records are found and merged.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from eventide_core.errors import CorruptTimelineError, UnsupportedTableError
from eventide_core.table.schema.avro_schema import META_FIELDS, AvroSchema
from eventide_core.table.schema.avro_types import branches, is_defined, is_union

LATEST_SCHEMA_KEY = "latest_schema"
SCHEMA_DIRECTORY = ".hoodie/.schema"
SCHEMA_COMMIT_SUFFIX = ".schemacommit"


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """`names` are the fields' paths, such as `place.lat` or `stops.element.x`, by their numbers."""

    version: int
    names: Mapping[int, str]

    @property
    def columns(self) -> dict[int, str]:
        """The names of the columns themselves."""
        return {number: name for number, name in self.names.items() if "." not in name}


def schema_commit_path(instant: str, completion_time: str | None) -> str:
    """The path of the history file of a write."""
    name = instant if completion_time is None else f"{instant}_{completion_time}"
    return f"{SCHEMA_DIRECTORY}/{name}{SCHEMA_COMMIT_SUFFIX}"


def schema_commit_instant(path: str) -> str:
    """The instant of the write whose history file that is."""
    return path.rpartition("/")[2].removesuffix(SCHEMA_COMMIT_SUFFIX).partition("_")[0]


def parse_version(text: str, place: str) -> SchemaVersion:
    """One internal schema. Raises CorruptTimelineError naming `place`."""
    versions = parse_versions(f'{{"schemas": [{text}]}}', place)
    if len(versions) != 1:
        raise CorruptTimelineError(f"{place}: {len(versions)} internal schemas of Hudi instead of one: {text[:200]}")
    return versions[0]


def parse_versions(text: str, place: str) -> tuple[SchemaVersion, ...]:
    """All versions of a history file. Raises CorruptTimelineError naming `place`."""
    try:
        schemas = json.loads(text)["schemas"]
        return tuple(SchemaVersion(int(schema["version_id"]), dict(_names(schema, ""))) for schema in schemas)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptTimelineError(f"{place}: not an internal schema of Hudi ({error!r}): {text[:200]}") from error


def _names(kind: Any, path: str) -> Iterator[tuple[int, str]]:
    if isinstance(kind, str):
        return
    match kind["type"]:
        case "record":
            for field in kind["fields"]:
                name = f"{path}{field['name']}"
                yield int(field["id"]), name
                yield from _names(field["type"], f"{name}.")
        case "array":
            yield from _names(kind["element"], f"{path}element.")
        case "map":
            yield from _names(kind["value"], f"{path}value.")
        case other:
            raise ValueError(f"unknown type {other!r}")


def unstable_names(version: SchemaVersion, current: SchemaVersion) -> dict[str, str]:
    """The names that do not identify the same fields in both versions, with the reason; both names of a renamed field.

    A field below a column goes by its name in that column, whatever the column's own name is now.
    """
    numbers = {name: number for number, name in current.names.items()}
    columns, column_numbers = current.columns, {name: number for number, name in version.columns.items()}
    reasons: dict[str, str] = {}
    for number, path in version.names.items():
        name, (column, dot, below) = path, path.partition(".")
        if dot:
            if column_numbers[column] not in columns:
                continue
            name = f"{columns[column_numbers[column]]}.{below}"
        now = current.names.get(number, name)
        if now != name:
            reasons |= dict.fromkeys((now, name), f"the column {now} had the name {name} in files that still exist")
        elif numbers.get(name, number) != number:
            reasons[name] = f"an earlier column {name} was dropped before the present one got the name"
    return reasons


def evolved(
    internal: str, before: AvroSchema, after: AvroSchema, version: str, renamed: Mapping[str, str] | None = None
) -> str:
    """The internal schema when the table's Avro schema changes from `before` to `after` at the instant `version`.

    A name keeps its number, and so does a column that is `renamed` from the old to the new name; a new name gets a number
    that none ever had. Types that stay are repeated as they are.

    Raises UnsupportedTableError for a new type that not every Hudi with schema evolution on read knows.
    """
    root = json.loads(internal)
    greatest = max((number for number, _ in _names(root, "")), default=-1)
    numbers = itertools.count(max(greatest, int(root.get("max_column_id", -1))) + 1)
    known, old = (_renamed(fields, renamed or {}) for fields in (root["fields"], before.parsed["fields"]))
    fields = _evolved_fields(known, old, after.parsed["fields"], numbers)
    if fields == root["fields"]:
        return internal
    root |= {"fields": fields, "version_id": int(version), "max_column_id": next(numbers) - 1}
    return json.dumps(root, separators=(",", ":"))


def first_versions(schemas: Iterable[tuple[str, AvroSchema]]) -> tuple[str, ...]:
    """The internal schemas of a table that has none yet, the newest first.

    `schemas` are the Avro schemas, without meta fields, by the instants of their commits, the oldest first. Raises
    UnsupportedTableError for a type that not every Hudi with schema evolution on read knows.
    """
    versions: list[str] = []
    last: AvroSchema | None = None
    for instant, schema in schemas:
        if last is None:
            numbers = itertools.count()
            meta = [{"id": next(numbers), "name": name, "optional": True, "type": "string"} for name in META_FIELDS]
            fields = [*meta, *_evolved_fields([], [], schema.parsed["fields"], numbers)]
            root = {"max_column_id": next(numbers) - 1, "version_id": 0, "type": "record", "fields": fields}
            versions.append(json.dumps(root, separators=(",", ":")))
        elif schema != last:
            versions.append(evolved(versions[-1], last, schema, instant))
        last = schema
    return tuple(dict.fromkeys(reversed(versions)))


def extended_history(history: str | None, latest: str, first: Sequence[str] = ()) -> str:
    """The text of a history file that has `latest` too, newest first as Hudi writes it.

    `first`: the versions before it in a table that has no history yet, newest first.
    """
    if history is None:
        history = f'{{"schemas":[{",".join(first)}]}}'
    version = json.loads(latest)["version_id"]
    schemas = json.loads(history)["schemas"]
    if any(schema["version_id"] == version for schema in schemas):
        return history
    return json.dumps({"schemas": [json.loads(latest), *schemas]}, separators=(",", ":"))


_Numbers = Iterator[int]


def _renamed(fields: Sequence[Any], names: Mapping[str, str]) -> list[Any]:
    return [{**field, "name": names.get(field["name"], field["name"])} for field in fields]


def _evolved_fields(known: Any, before: Any, after: Any, numbers: _Numbers) -> list[Any]:
    numbered = {field["name"]: field for field in known}
    old = {field["name"]: field for field in before}
    fields = [field for field in known if field["name"] in META_FIELDS]
    for field in after:
        name = field["name"]
        if name in numbered and name in old:
            kind = _evolved_type(numbered[name]["type"], old[name]["type"], field["type"], numbers)
            fields.append({**numbered[name], "optional": _is_optional(field["type"]), "type": kind})
        else:
            number = next(numbers)
            fields.append(
                {"id": number, "name": name, "optional": _is_optional(field["type"])}
                | {"type": _internal_type(field["type"], name, numbers)}
            )
    return fields


def _evolved_type(known: Any, before: Any, after: Any, numbers: _Numbers) -> Any:
    was, now = _without_null(before), _without_null(after)
    if was == now:
        return known
    if all(map(is_defined, (known, was, now))) and was["type"] == now["type"]:
        match now["type"]:
            case "record":
                return {**known, "fields": _evolved_fields(known["fields"], was["fields"], now["fields"], numbers)}
            case "array":
                return {**known, "element": _evolved_type(known["element"], was["items"], now["items"], numbers)}
            case "map":
                return {**known, "value": _evolved_type(known["value"], was["values"], now["values"], numbers)}
            case _:
                pass
    return _internal_type(now, "", numbers)


_PRIMITIVES: Final = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "bytes": "binary",
}
_LOGICAL: Final = {("int", "date"): "date", ("long", "timestamp-micros"): "timestamp"}


def _internal_type(avro: Any, name: str, numbers: _Numbers) -> Any:
    kind = _without_null(avro)
    internal = _defined_type(kind, numbers) if is_defined(kind) else None if is_union(kind) else _PRIMITIVES.get(kind)
    if internal is None:
        raise UnsupportedTableError(
            f"the type {json.dumps(kind)} of the column {name}: the table's schema evolves on read, and not every version "
            "of Hudi knows such a type there; use another type, or add the column with Hudi"
        )
    return internal


def _defined_type(kind: Mapping[str, Any], numbers: _Numbers) -> Any:
    """None for a type that not every version of Hudi knows."""
    logical: str | None = kind.get("logicalType")
    if kind["type"] == "record":
        return {"type": "record", "fields": _evolved_fields([], [], kind["fields"], numbers)}
    if kind["type"] == "array":
        element = {"type": "array", "element_id": next(numbers), "element_optional": _is_optional(kind["items"])}
        return element | {"element": _internal_type(kind["items"], "", numbers)}
    if kind["type"] == "map":
        entry = {"type": "map", "key_id": next(numbers), "key": "string", "value_id": next(numbers)}
        optional = _is_optional(kind["values"])
        return entry | {"value": _internal_type(kind["values"], "", numbers), "value_optional": optional}
    if logical == "decimal":
        return f"decimal({kind['precision']}, {kind.get('scale', 0)})"
    return _PRIMITIVES.get(kind["type"]) if logical is None else _LOGICAL.get((kind["type"], logical))


def _is_optional(avro: Any) -> bool:
    return is_union(avro) and "null" in avro


def _without_null(avro: Any) -> Any:
    """The type in a union with null; any other union or type unchanged."""
    others = [branch for branch in branches(avro) if branch != "null"]
    return others[0] if len(others) == 1 else avro
