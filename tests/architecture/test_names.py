"""A class has a name of its own: who finds it in one room doesn't take it for another. The name of a test fits a line.

Not checked: private classes, which their module explains, type variables of one letter, and the kit of tests.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("core/eventide_core", "adapters/eventide_adapters", "spark_app/eventide")
KIT = "spark_app/eventide/testing/"
SHARED = {"Catalog": "the port, and what the public API puts before it"}
TEST_NAME_MAX = 80
_TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)


def names_in(source: str) -> Iterator[str]:
    """The classes and the aliases of types that a module defines for others."""
    for node in ast.parse(source).body:
        match node:
            case ast.ClassDef(name=name):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case _:
                continue
        if name[0].isupper() and not name.isupper():
            yield name


def test_a_name_of_a_class_stands_in_one_module() -> None:
    modules: dict[str, set[str]] = defaultdict(set)
    for part in PRODUCT:
        for path in sorted((ROOT / part).rglob("*.py")):
            module = path.relative_to(ROOT).as_posix()
            for name in () if module.startswith(KIT) else names_in(path.read_text(encoding="utf-8")):
                modules[name].add(module)
    assert len(modules) > 600
    repeated = {name: sorted(places) for name, places in modules.items() if len(places) > 1}
    assert {name: places for name, places in repeated.items() if name not in SHARED} == {}
    assert repeated.keys() == SHARED.keys()


def test_classes_and_aliases_are_names_and_constants_are_not() -> None:
    source = "class Slice: ...\nclass _Own: ...\nSlices = list[Slice]\nT = 1\nLIMIT = 2\nvalue: Slice\n"
    assert list(names_in(source)) == ["Slice", "Slices"]


def test_the_name_of_a_test_says_the_behavior_in_a_line() -> None:
    """The situation stands in the test's docstring, if its body doesn't show it."""
    names = [
        name
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for name in _TEST.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(names) > 3000
    assert [name for name in names if len(name) > TEST_NAME_MAX] == []
