"""docs/on_disk_additions.md specifies each file and key that eventide adds to a Hudi table."""

import ast
import re
from pathlib import Path

import pytest

from eventide.options.sections import all_options
from eventide_core.table.files.own_file import VERSION
from support.pasts.releases import STATES, made

ROOT = Path(__file__).parents[2]
ADDITIONS = (ROOT / "docs/on_disk_additions.md").read_text()
KEY = re.compile(r"(hoodie\.(ro|eventide)|eventide)\.[a-z_.]*[a-z_.=]")
WRITERS = ("core/eventide_core/table", "core/eventide_core/service", "adapters/eventide_adapters/format")


def _keys() -> set[str]:
    """The constants that look like keys, without options."""
    options = {option.key for option in all_options()}
    return {
        node.value
        for directory in WRITERS
        for path in (ROOT / directory).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and KEY.fullmatch(node.value)
    } - options


def test_each_key_is_specified() -> None:
    keys = _keys()
    assert {"eventide.checksums", "hoodie.ro.event.time.cut", "eventide.tag="} <= keys
    missing = {key for key in keys if f"`{key}" not in ADDITIONS and f"`.{key.rpartition('.')[2]}`" not in ADDITIONS}
    assert missing == set()


@pytest.mark.parametrize("state", STATES)
def test_each_own_file_of_a_table_is_specified(state: str) -> None:
    specified = [re.escape(name) for name in re.findall(r"^\| `(\.hoodie/[^`]+)` \|", ADDITIONS, re.MULTILINE)]
    patterns = [re.sub(r"<\w+>", "[^/]+", re.sub(r"\\([<>])", r"\1", name)) for name in specified]
    own = [path for path in made(state)[0] if path.startswith(".hoodie/.aux/eventide/") or path.endswith("repair.json")]
    assert [path for path in own if not any(re.fullmatch(pattern, path) for pattern in patterns)] == []


def test_the_page_states_the_version_of_the_files() -> None:
    assert f"an object whose `version` is {VERSION}" in ADDITIONS
