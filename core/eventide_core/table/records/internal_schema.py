"""Hudi's internal schemas, for tables with schema evolution on read: a field keeps its number when its name changes.

    extraMetadata latest_schema of a commit      {"version_id": i64, "type": "record", "fields": [{"id", "name", "type"}...]}
    .hoodie/.schema/<instant>.schemacommit       {"schemas": [all versions, each as above]}

A type is a name, or {"type": "record", "fields"}, {"type": "array", "element"}, {"type": "map", "value"}. A version's
number is the instant that created it. A file of an instant is read with the greatest version up to that instant.

eventide reads files by field names. That is correct as long as no version that a file may need has another name for a
field's number, or another number for its name. `require_stable_names` checks this.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventide_core.errors import CorruptTimelineError, UnsupportedTableError

LATEST_SCHEMA_KEY = "latest_schema"
SCHEMA_DIRECTORY = ".hoodie/.schema"
SCHEMA_COMMIT_SUFFIX = ".schemacommit"


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """`names` are the fields' paths, such as `place.lat` or `stops.element.x`, by their numbers."""

    version: int
    names: Mapping[int, str]


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


def require_stable_names(versions: Sequence[SchemaVersion], instants: Iterable[str]) -> None:
    """Checks that names alone identify the fields of the base and log files whose names have these instants.

    Raises UnsupportedTableError naming a field that was renamed, or that has the name of a dropped field.
    """
    if not versions:
        return
    oldest = int(min(instants, default="0"))
    latest = max(versions, key=lambda version: version.version)
    needed_from = max((v.version for v in versions if v.version <= oldest), default=0)
    numbers = {name: number for number, name in latest.names.items()}
    for version in versions:
        if version.version < needed_from:
            continue
        for number, name in version.names.items():
            now = latest.names.get(number, name)
            if now != name:
                raise UnsupportedTableError(f"the column {now} had the name {name} in files that still exist; {_CURE}")
            if numbers.get(name, number) != number:
                raise UnsupportedTableError(
                    f"an earlier column {name} was dropped before the present one got the name; {_CURE}"
                )


_CURE = (
    "eventide reads columns by name: let Hudi compact or cluster the whole table, so that no file has the old name, and "
    "clean the old file slices"
)
