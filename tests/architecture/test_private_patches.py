"""Tests make the product fail at its ports, libraries, clocks and arguments, and few of them replace its private names.

A private name that a test replaces can't be renamed or divided, and the test doesn't run what it stands for.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
PATCHES_MAX = 28
"""A third of them are steps that a mutant leaves out. Lower it with each one that goes."""
PATCHES = {"setattr", "delattr", "patch", "object", "_returns"}
"""The calls that replace a name: from `monkeypatch` and `mock`, and what the mutants of worlds make of them."""


def test_few_private_names_are_replaced() -> None:
    found = sorted(
        f"{path.relative_to(TESTS)}:{line}: {name}"
        for path in TESTS.rglob("*.py")
        for line, name in private_patches(path.read_text(encoding="utf-8"))
    )
    assert len(found) <= PATCHES_MAX, (
        "give the test a port, a library, a clock or an argument to fail at:\n" + "\n".join(found)
    )


def test_a_private_name_is_counted_however_it_is_replaced() -> None:
    replaced = """
monkeypatch.setattr(module, "_SIZE", 1)
monkeypatch.setattr("package.module._SIZE", 1)
monkeypatch.setattr("package._module.size", 1)
patch.delattr(Thing, "_step")
setattr(thing, "_step", None)
mock.patch.object(module, "_SIZE", 1)
mock.patch("package.module._SIZE", 1)
module._SIZE = 1
"""
    kept = """
monkeypatch.setattr(module, "SIZE", 1)
monkeypatch.setattr(module, "__file__", "")
monkeypatch.setattr("package.module.size", 1)
monkeypatch.setenv("_SIZE", "1")
getattr(module, "_SIZE")
self._size = thing.size = 1
"""
    assert sorted(line for line, _ in private_patches(replaced)) == list(range(2, 10))
    assert not list(private_patches(kept))


def private_patches(source: str) -> Iterator[tuple[int, str]]:
    """The lines that replace a private name of another object, and the name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _called(node) in PATCHES:
            texts = (word.value for word in node.args if isinstance(word, ast.Constant) and isinstance(word.value, str))
            name = next(texts, "")
            if any(map(_is_private, name.split("."))):
                yield node.lineno, name
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and _is_private(target.attr) and not _is_own(target.value):
                    yield node.lineno, target.attr


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")
