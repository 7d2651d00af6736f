"""A key of Hudi's or eventide's stands in one module, so that a misspelled one is a name that doesn't exist.

Tests write keys out: they are an independent oracle. Not checked: keys within the text of a message or a docstring, and the
names of Avro fields, which their schemas state.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("core/eventide_core", "adapters/eventide_adapters", "spark_app/eventide")
KIT = "spark_app/eventide/testing/"
KEY = re.compile(r"(hoodie|eventide)\.[a-z0-9_.-]+")
OPTION_THAT_A_TABLE_KEEPS = "neither `config`, which declares it, nor `table`, which reads it, knows the other"
REPEATED = {
    "hoodie.payload.event.time.field": OPTION_THAT_A_TABLE_KEEPS,
    "eventide.event.time.zone": OPTION_THAT_A_TABLE_KEEPS,
    "eventide.event.time.format": OPTION_THAT_A_TABLE_KEEPS,
    "eventide.streaming": "the name of the logger of both streams, and no key",
}


def keys_in(source: str) -> Iterator[str]:
    """The string constants that are a key, without those in the text of an f-string."""
    tree = ast.parse(source)
    texts = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in texts and KEY.fullmatch(text):
                yield text
            case _:
                pass


def modules_by_key() -> dict[str, set[str]]:
    modules: dict[str, set[str]] = defaultdict(set)
    for part in PRODUCT:
        for path in sorted((ROOT / part).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            for key in () if name.startswith(KIT) else keys_in(path.read_text(encoding="utf-8")):
                modules[key].add(name)
    return modules


def test_a_key_stands_in_one_module() -> None:
    modules = modules_by_key()
    assert len(modules) > 200
    repeated = {key: sorted(names) for key, names in modules.items() if len(names) > 1}
    assert {key: names for key, names in repeated.items() if key not in REPEATED} == {}
    assert repeated.keys() == REPEATED.keys()


def test_keys_of_tables_are_found_wherever_they_are_used() -> None:
    source = 'value = f"{p[\'hoodie.table.name\']} of hoodie.table.type"\nother = "hoodie.table.version"\n'
    assert sorted(keys_in(source)) == ["hoodie.table.name", "hoodie.table.version"]
