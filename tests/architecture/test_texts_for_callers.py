"""What a Python caller meets knows no command line: its texts name cures, and whoever shows them says them in words."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND_LINE = re.compile(r"`eventide (?!serve`|storage check`|read`)|(?<![\w-])--[a-z]")
OTHER_PROGRAMS = re.compile(r"`(?:spark-submit|hdfs|hadoop) |--add-modules")
OF_THE_COMMAND_LINE = {
    "cli": "it is the command line",
    "sources": "import-linter lets only the command line import it",
    "testing/simulation": "it is a developer's command, and prints the one that replays a world",
    "report": "its pages are read beside a terminal, and name commands to copy",
}
MARKUP = re.compile(r"</[a-z]\w*>")


@pytest.mark.parametrize("layer", ["core", "adapters", "spark_app/eventide"])
def test_no_text_names_a_command_or_its_options(layer: str) -> None:
    assert _texts(layer, COMMAND_LINE) == []


def test_no_text_of_the_core_is_html() -> None:
    assert _texts("core", MARKUP) == []


def _texts(layer: str, pattern: re.Pattern[str]) -> list[str]:
    """The texts with a match, docstrings among them."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value!r}"
        for path in sorted((ROOT / layer).rglob("*.py"))
        if not path.relative_to(ROOT / layer).as_posix().startswith(tuple(f"{room}/" for room in OF_THE_COMMAND_LINE))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and pattern.search(node.value)
        and not OTHER_PROGRAMS.search(node.value)
    ]
