"""What a newcomer meets first can be read alone: a docstring needs none before it, and tests lie where their code does."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = {"core": "core/eventide_core", "adapters": "adapters/eventide_adapters", "spark_app": "spark_app/eventide"}
LEANING = re.compile(r"(The same|Those|That\sof|Also|Not so)\b")


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each string that stands alone, of a module, class, function or field."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


@pytest.mark.parametrize("package", PRODUCT.values())
def test_no_docstring_leans_on_the_one_before(package: str) -> None:
    leaning = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, text in docstrings(path.read_text(encoding="utf-8"))
        if LEANING.match(text)
    ]
    assert leaning == []


@pytest.mark.parametrize("text", ["The same, decoded.", "Those paths.", "Also for a path."])
def test_a_docstring_that_leans_on_another_is_found(text: str) -> None:
    assert [LEANING.match(docstring) for _, docstring in docstrings(f'def one():\n    """{text}"""')] != [None]


@pytest.mark.parametrize("part", PRODUCT)
def test_tests_lie_in_the_rooms_of_the_product(part: str) -> None:
    tests = ROOT / "tests" / part
    rooms = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    assert [str(room) for room in sorted(rooms) if not (ROOT / PRODUCT[part] / room).is_dir()] == []
