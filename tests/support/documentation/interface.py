"""What a release promises to its users by name: verbs, exit codes, options, JSON fields and Python names.

`python -m support.documentation.interface 0.1.0` keeps it beside the tables of that release. docs/stability.md says what is
promised.
"""

import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

import eventide
from eventide.cli import eventide as command_line
from eventide.options.sections import all_options
from eventide_core.errors import EventideError
from support.documentation.json_documents import DIRECTORY as SCHEMAS
from support.documentation.json_documents import Schema
from support.pasts.releases import DIRECTORY

_OPTIONAL_AT_WILL = {"self", "cls"}


def interface() -> dict[str, Any]:
    return {
        "python": {name: _parameters(getattr(eventide, name)) for name in sorted(eventide.__all__)},
        "verbs": dict(_verbs(command_line)),
        "exit_codes": {kind.__name__: kind.exit_code for kind in _errors(EventideError)},
        "error_bases": {kind.__name__: _python_bases(kind) for kind in _errors(EventideError)},
        "options": sorted(option.key for option in all_options()),
        "json": {path.name: dict(_fields(json.loads(path.read_text()))) for path in sorted(SCHEMAS.iterdir())},
    }


def _parameters(value: Any) -> dict[str, list[str]]:
    """The parameters of a function, or of each public method of a class."""
    if inspect.isclass(value) and not issubclass(value, Exception):
        members = inspect.getmembers(value, callable)
        return {name: _names(member) for name, member in members if not name.startswith("_")}
    return {"": _names(value)} if inspect.isfunction(value) else {}


def _names(function: Any) -> list[str]:
    try:
        return [name for name in inspect.signature(function).parameters if name not in _OPTIONAL_AT_WILL]
    except ValueError:
        return []


def _verbs(group: click.Group, above: str = "") -> Iterator[tuple[str, list[str]]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from _verbs(command, f"{above}{name} ")
        elif not command.hidden:
            yield f"{above}{name}", sorted(flag for one in command.params for flag in (*one.opts, *one.secondary_opts))


def _errors(kind: type[EventideError]) -> Iterator[type[EventideError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _errors(below)


def _python_bases(kind: type[EventideError]) -> list[str]:
    """What `except` catches it by, apart from eventide's own names."""
    return [base.__name__ for base in kind.__mro__ if base.__module__ == "builtins" and base is not object]


def _fields(schema: Schema, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """The fields of a document, each with the types that it may have."""
    for name, inner in schema.get("properties", {}).items():
        kinds = inner.get("type", [])
        yield f"{path}.{name}", [kinds] if isinstance(kinds, str) else kinds
        yield from _fields(inner, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if key in schema:
            yield from _fields(schema[key], f"{path}{mark}")


def kept(version: str) -> Mapping[str, Any]:
    found: dict[str, Any] = json.loads(path_of(version).read_text())
    return found


def path_of(version: str) -> Path:
    return DIRECTORY / version / "interface.json"


if __name__ == "__main__":
    path_of(sys.argv[1]).write_text(f"{json.dumps(interface())}\n")
