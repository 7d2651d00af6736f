"""The core and the adapters know no command line: their texts name cures, and whoever shows them says them in words."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND_LINE = re.compile(r"`eventide (?!serve`|storage check`)|(?<![\w-])--[a-z]")
OTHER_PROGRAMS = re.compile(r"`(?:spark-submit|hdfs|hadoop) ")
MARKUP = re.compile(r"</[a-z]\w*>")


@pytest.mark.parametrize("layer", ["core", "adapters"])
def test_no_text_names_a_command_or_its_options(layer: str) -> None:
    assert _texts(layer, COMMAND_LINE) == []


def test_no_text_of_the_core_is_html() -> None:
    assert _texts("core", MARKUP) == []


def _texts(layer: str, pattern: re.Pattern[str]) -> list[str]:
    """The texts with a match, docstrings among them."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value!r}"
        for path in sorted((ROOT / layer).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and pattern.search(node.value)
        and not OTHER_PROGRAMS.search(node.value)
    ]
