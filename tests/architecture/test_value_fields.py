"""Who reads a value class alone learns what each of its fields is: its docstring names the field, or a string below does.

A class that holds a port, directly or through another class, is a service: its fields are what it is given to work with.
Private classes are explained by their module. What a docstring says of a field no test can judge.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("core/eventide_core", "adapters/eventide_adapters", "spark_app/eventide")
DOCUMENTED = ("core/eventide_core", "adapters/eventide_adapters", "spark_app/eventide")
PORTS = Path("core/eventide_core/ports")
LIBRARIES_AT_WORK = frozenset({"SparkSession", "Application"})
READ_ON_DEMAND = frozenset({"ArchivedTimeline", "MetadataTableState"})
"""Ports that hold what has been read of a table. Who holds one of them may be a value, as a table's state is."""
GLOSSARY = frozenset(
    {
        *("table", "uri", "config", "version", "schema", "options", "layout", "timeline", "instant"),
        *("partition", "file_id", "file_slice", "base_file", "log_file", "path", "name", "size", "shape"),
        *("event_time_field", "min_ms", "max_ms", "reason"),
    }
)
"""Nouns that mean the same everywhere (docs/glossary.md): a field of such a name needs no word."""


class Field(NamedTuple):
    """A field of a dataclass: the names in its type, and whether a string below it says what it is."""

    name: str
    types: frozenset[str]
    has_docstring: bool


class Dataclass(NamedTuple):
    path: str
    name: str
    docstring: str
    fields: tuple[Field, ...]

    def is_service(self, services: Iterable[str]) -> bool:
        return any(not field.types.isdisjoint(services) for field in self.fields)

    @property
    def undocumented(self) -> tuple[str, ...]:
        return tuple(
            field.name
            for field in self.fields
            if not field.has_docstring and field.name not in GLOSSARY and f"`{field.name}`" not in self.docstring
        )


def dataclasses_in(source: str, path: str) -> Iterator[Dataclass]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(mark) for mark in node.decorator_list):
            yield Dataclass(path, node.name, ast.get_docstring(node) or "", tuple(fields_of(node)))


def fields_of(node: ast.ClassDef) -> Iterator[Field]:
    for statement, below in zip(node.body, [*node.body[1:], None], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind) if not name.startswith("_"):
                has_docstring = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
                yield Field(name, frozenset(re.findall(r"\w+", ast.unparse(kind))), has_docstring)


def services_among(dataclasses: Iterable[Dataclass], ports: Iterable[str]) -> frozenset[str]:
    """The ports, and the names of the classes that hold one of them."""
    known = tuple(dataclasses)
    services = frozenset(ports)
    while True:
        holders = {one.name for one in known if one.is_service(services)}
        if holders <= services:
            return services
        services |= holders


def undocumented(dataclasses: Iterable[Dataclass], services: Iterable[str]) -> list[str]:
    return [
        f"{one.path}: {one.name}: {', '.join(one.undocumented)}"
        for one in dataclasses
        if one.undocumented and not one.name.startswith("_") and not one.is_service(services)
    ]


@lru_cache(maxsize=1)
def product() -> tuple[Dataclass, ...]:
    return tuple(
        value_class
        for top in PRODUCT
        for path in sorted((ROOT / top).rglob("*.py"))
        if "testing" not in path.relative_to(ROOT / top).parts
        for value_class in dataclasses_in(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
    )


@lru_cache(maxsize=1)
def services() -> frozenset[str]:
    protocols = {
        node.name
        for path in (ROOT / PORTS).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)
    }
    assert protocols >= READ_ON_DEMAND
    # A dataclass may have the name of a port: then the name shows nothing.
    ports = protocols - READ_ON_DEMAND - {one.name for one in product()}
    return services_among(product(), ports | LIBRARIES_AT_WORK)


@pytest.mark.parametrize("top", DOCUMENTED)
def test_the_docstring_of_a_value_class_names_each_field(top: str) -> None:
    of_top = [one for one in product() if one.path.startswith(f"{top}/")]
    assert len(of_top) > 20
    assert undocumented(of_top, services()) == []


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ('@dataclass\nclass A:\n    """Of `one`, and of two."""\n    one: int\n    two: int', ["a.py: A: two"]),
        ("@dataclass(frozen=True)\nclass A:\n    one: int\n    two: int", ["a.py: A: one, two"]),
        ("@bulk_dataclass(frozen=True)\nclass A:\n    one: int = 0", ["a.py: A: one"]),
        ('@dataclass\nclass A:\n    one: int\n    """What it is."""\n    two: int', ["a.py: A: two"]),
        ("@dataclass\nclass A:\n    partition: str\n    _own: int", []),
        ("@dataclass\nclass _A:\n    one: int", []),
        ("class A:\n    one: int", []),
        ("@dataclass\nclass A:\n    one: int\n    storage: Storage | None", []),
        ("@dataclass\nclass A:\n    one: 'Of[B]'\n@dataclass\nclass B:\n    storage: Storage", []),
        ("@dataclass\nclass A:\n    one: StorageFacts", ["a.py: A: one"]),
    ],
)
def test_a_field_that_nothing_says_anything_about_is_found(source: str, missing: list[str]) -> None:
    dataclasses = tuple(dataclasses_in(source, "a.py"))
    assert undocumented(dataclasses, services_among(dataclasses, {"Storage"})) == missing
