"""The JSON schemas of what the command line prints with `--output json`: docs/reference/json/VERB.schema.json.

`python -m support.documentation.json_documents` runs each verb on small tables, and adds to the schemas what they lack. It
takes nothing away: what a release promised stays, until a person removes it.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from eventide import Table
from eventide.cli.compaction.sync import _json as sync_document
from eventide_core.service.maintenance.sync import SyncedTable, SyncResult
from support.run.command_line import run
from support.tables.hourly import at, made, rows

DIRECTORY = Path(__file__).parents[3] / "docs/reference/json"
ERROR: Final = "error"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: Mapping[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
MAPS: Final = frozenset(
    {"by_partition", "data[]", "event_time_texts", "metrics", "missing"}
    | {"properties", "renamed", "renamed_columns", "settings"}
)
"""Objects whose keys are data, by the end of their path."""
_NULLABLE_BY_KIND: Mapping[str, str] = {
    "boolean": "exact is_exact",
    "object": "trigger chain freshness base_file",
    "array": "synced",
    "integer": """
        last_error_ms merged_before_ms waiting_from_ms min_event_time_ms max_event_time_ms watermark_ms cut_ms
        files_watermark_ms own_watermark_ms predicted_watermark_ms lag_ms earliest_log_event_time_ms
        earliest_event_time_ms progress_ms idle_since_ms next_ms closed_ms clock_offset_ms taken_ms event_time_ms
        unknown_event_time_records unreadable_event_time_records late_records delta_commits logs
        metadata_delta_commits requests token log_files_size_bytes file_slices_with_log_files log_files retry_at_ms""",
    "string": """
        instant completion_time tagged waits_for note file undone backup idle carried fallback symlink event_time_field
        event_time table_type problem last_error held_by held_back_by sync_error broken loses path last_compaction
        metadata_last_compaction payload_class progress idle_since tag error""",
}
NULLABLE: Final = {name: kind for kind, names in _NULLABLE_BY_KIND.items() for name in names.split()}
"""Fields that may be null, by name, with what they are otherwise: small tables don't show all that a field can be."""

Schema = dict[str, Any]


def widened(schema: Schema, value: object, path: str = "") -> Schema:
    """The schema that also takes this value; an empty one takes the value alone."""
    kind = _TYPES[type(value)]
    kinds = schema.get("type", [])
    known = {kinds} if isinstance(kinds, str) else set(kinds)
    made = {**schema, "type": _one_or_all({*known, kind})}
    match value:
        case dict() if path.endswith("data[]"):
            return {**made, "additionalProperties": {}}
        case dict() if _is_map(path):
            inner = schema.get("additionalProperties", {})
            for item in value.values():
                inner = widened(inner, item, f"{path}.*")
            return {**made, "additionalProperties": inner}
        case dict():
            old = schema.get("properties", {})
            properties = {
                **old,
                **{key: widened(old.get(key, {}), item, f"{path}.{key}") for key, item in value.items()},
            }
            required = [key for key in schema.get("required", value) if key in value]
            return {**made, "properties": properties, "required": required}
        case list():
            inner = schema.get("items", {})
            for item in value:
                inner = widened(inner, item, f"{path}[]")
            return {**made, "items": inner}
        case _:
            return made


def loosened(schema: Schema, name: str = "") -> Schema:
    """The schema in which the fields that may be null are."""
    inner = {key: loosened(one, key) for key, one in schema.get("properties", {}).items()}
    more: Schema = {key: loosened(schema[key]) for key in ("items", "additionalProperties") if key in schema}
    kinds = schema.get("type", [])
    known = {kinds} if isinstance(kinds, str) else set(kinds)
    if name in NULLABLE and known <= {NULLABLE[name], "null"}:
        known = {NULLABLE[name], "null"}
    return {
        **schema,
        **({"type": _one_or_all(known)} if known else {}),
        **({"properties": inner} if inner else {}),
        **more,
    }


def _is_map(path: str) -> bool:
    return path.rpartition(".")[2] in MAPS


def _one_or_all(kinds: set[str]) -> str | list[str]:
    if "number" in kinds:
        kinds = kinds - {"integer"}
    return next(iter(kinds)) if len(kinds) == 1 else sorted(kinds)


def problems(schema: Schema, value: object, path: str = "$") -> Iterator[str]:
    """What of a value the schema doesn't take, and each field that it doesn't name."""
    kinds = schema.get("type", list(_TYPES.values()))
    kind = _TYPES[type(value)]
    taken = {kinds} if isinstance(kinds, str) else set(kinds)
    if kind not in taken and not (kind == "integer" and "number" in taken):
        yield f"{path} is {kind}, not {kinds}"
        return
    match value:
        case dict():
            properties, others = schema.get("properties", {}), schema.get("additionalProperties")
            yield from (f"{path} lacks {key}" for key in schema.get("required", ()) if key not in value)
            for key, item in value.items():
                if key in properties or others is not None:
                    yield from problems(properties.get(key, others), item, f"{path}.{key}")
                else:
                    yield f"{path}.{key} isn't in the schema"
        case list():
            for number, item in enumerate(value):
                yield from problems(schema.get("items", {}), item, f"{path}[{number}]")
        case _:
            pass


def schema_of(verb: str) -> Schema:
    path = DIRECTORY / f"{verb.replace(' ', '_')}.schema.json"
    schema: Schema = json.loads(path.read_text()) if path.exists() else {}
    return schema


def name_of(verb: str, document: Mapping[str, Any]) -> str:
    return ERROR if set(document) == {ERROR} else verb


def samples(directory: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The verbs with what they print on small tables, in an order in which each has something to do."""
    path = str(made(directory).uri)
    for verb, *words in _steps(path, directory):
        yield from _printed(verb, words)
    kept = Table.open(path).upsert(rows(8)).instant
    last = partial(_last_write, path)
    yield from _printed("savepoint", [path, kept])
    Table.open(path).upsert(rows(9))
    yield from _printed("rollback", [path, last()])
    Table.open(path).upsert(rows(9))
    yield from _printed("restore", [path, kept])
    yield from _printed("savepoint", [path, kept, "--delete"])
    yield from _printed("alter", [path, "add", "word string"])
    table = SyncedTable("t_ro", True, False, 1, 0, 0)
    yield "sync", sync_document("hive", SyncResult("lake", (table,), {"hoodie.ro.basis": "files"}))


def _last_write(path: str) -> str:
    return Table.open(path).state().timeline.writes[-1].requested_time


def _printed(verb: str, words: Sequence[object]) -> Iterator[tuple[str, dict[str, Any]]]:
    answer = run(*verb.split(), *words, "--output", "json")
    lines = answer.stdout.splitlines()
    assert lines, f"{verb} {words} printed nothing: {answer.stderr}"
    for line in lines:
        document: dict[str, Any] = json.loads(line)
        assert name_of(verb, document) != ERROR or "nothing" in str(words), f"{verb} {words}: {document}"
        yield name_of(verb, document), document


def _steps(path: str, directory: Path) -> Iterator[tuple[Any, ...]]:
    some, one = directory / "new.csv", directory / "other.csv"
    some.write_text(f"id,ms\nk1,{at(2)}\nk2,{at(3)}\n")
    one.write_text(f"id,ms\nk1,{at(2)}\n")
    second = str(made(directory, "second").uri)
    Table.open(second).upsert(rows(0, 2))
    Table.open(second).compact(before=at(1))
    fleet = directory / "fleet.toml"
    fleet.write_text(f'[[table]]\nuri = "{path}"\ndata_latency = "5m"\n')
    windows = ("windows", path, "--every", "1h", "--consumer", "bills")
    yield "show", path
    yield "plan", path, "--before", at(1)
    yield "ingest", path, some, "--dry-run"
    yield "ingest", path, some
    yield "ingest", path, one, "--source", f"orders={at(3)}"
    yield "show", path
    yield "plan", path, "--before", at(3)
    yield "compact", path, "--before", at(3), "--schedule-only"
    yield "compact", path, "--before", at(3)
    yield "compact", path, "--before", at(3)
    yield "freshness", path
    yield "freshness", path, "--require", at(9)
    yield "freshness", path, "--by", "partition"
    yield "freshness", path, second
    yield "sources", path
    yield "sources", path, "--declare", "returns"
    yield "sources", path, "--forget", "returns"
    yield "report", path, "--to", directory / "report.html"
    yield "mark-done", path, "--every", "1h"
    yield "tag", path, "first"
    yield "tag", path
    yield "tag", path, "first", "--delete"
    yield "tag", path, second, "--before", at(0)
    yield windows
    yield (*windows, "--next", "--to", directory / "window.csv")
    yield windows
    yield (*windows, "--done")
    yield "read", path
    yield "read", path, "--to", directory / "rows.csv"
    yield "update", path, "--set", f"ms={at(4)}", "--where", "id = 'k1'"
    yield "verify", path
    yield "verify", path, "--deep"
    yield "repair", path
    yield "metadata", path
    yield "metadata", path, "--rebuild"
    yield "clean", path, "--dry-run"
    yield "clean", path
    yield "archive", path
    yield "status", path
    yield "serve", path, "--rounds", "1", "--data-latency", "1h"
    yield "serve", "--fleet", fleet, "--rounds", "1", "--engine", "local"
    yield "status", "--fleet", fleet
    yield "storage check", str(directory)
    yield "show", str(directory / "nothing")


def main(*, more: Callable[[], Iterator[tuple[str, dict[str, Any]]]] = lambda: iter(())) -> None:
    DIRECTORY.mkdir(exist_ok=True)
    schemas: dict[str, Schema] = {}
    with tempfile.TemporaryDirectory() as directory:
        for verb, document in (*more(), *samples(Path(directory))):
            schemas[verb] = loosened(widened(schemas.get(verb) or schema_of(verb), document))
    for verb, schema in schemas.items():
        named = {"$schema": _DRAFT, "title": f"What eventide {verb} prints with --output json", **schema}
        (DIRECTORY / f"{verb.replace(' ', '_')}.schema.json").write_text(f"{json.dumps(named, indent=1)}\n")


if __name__ == "__main__":
    main()
