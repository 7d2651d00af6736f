"""docs/on_disk_additions.md specifies each file, field and key that eventide adds to a Hudi table."""

import ast
import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from eventide.options.sections import all_options
from eventide_adapters.storage import remembered_trial as trial
from eventide_adapters.storage.open import open_storage
from eventide_core.action.windows.progress import ConsumerProgress, ConsumerView, LedgerEntry, Marks, OpenWindow
from eventide_core.config import Options
from eventide_core.table.files.own_file import VERSION
from eventide_core.table.settings.properties import PROPERTIES_PATH
from support.pasts.releases import STATES, made
from support.servers.s3_servers import BUCKET, S3Server

ROOT = Path(__file__).parents[2]
ADDITIONS = (ROOT / "docs/on_disk_additions.md").read_text()
KEY = re.compile(r"(hoodie\.(ro|eventide)|eventide)\.[a-z_.]*[a-z_.=]")
WRITERS = (
    "core/eventide_core/table",
    "core/eventide_core/service",
    "adapters/eventide_adapters/format",
    "adapters/eventide_adapters/markers",
)


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


@cache
def _own_files() -> dict[str, str]:
    """The line of each of eventide's own files, by its path."""
    return {
        path: line
        for line, path in re.findall(r"^(\| `(\.hoodie/(?:\.aux|\.backup)/[^`]+)` \|.*)$", ADDITIONS, re.MULTILINE)
    }


def _is_at(specified: str, path: str) -> bool:
    pattern = re.escape(specified).replace("<name>", ".+")
    return re.fullmatch(re.sub(r"<\w+>", "[^/]+", pattern), path) is not None


def _made(state: str) -> Iterator[tuple[str, bytes]]:
    for path, file in made(state)[0].items():
        if path.startswith(".hoodie/.aux/eventide/") or path.endswith("repair.json"):
            yield path, file.data


def test_each_key_is_specified() -> None:
    keys = _keys()
    assert {"eventide.checksums", "hoodie.ro.event.time.cut", "eventide.tag="} <= keys
    missing = {key for key in keys if f"`{key}" not in ADDITIONS and f"`.{key.rpartition('.')[2]}`" not in ADDITIONS}
    assert missing == set()


@pytest.mark.parametrize("state", STATES)
def test_each_own_file_of_a_table_is_specified_with_its_fields(state: str) -> None:
    for path, data in _made(state):
        lines = [line for specified, line in _own_files().items() if _is_at(specified, path)]
        assert lines, path
        stated = json.loads(data).keys() - {"version"} if data else set[str]()
        assert {field for field in stated if f"`{field}`" not in lines[0]} == set(), path


def test_a_table_is_made_with_each_own_file_that_is_specified() -> None:
    there = {path: data for state in STATES for path, data in _made(state)}
    missing = {specified for specified in _own_files() if not any(_is_at(specified, path) for path in there)}
    assert missing == {trial.PATH}  # of object stores; the states are made on a disk


def test_each_field_of_a_remembered_trial_is_specified(moto: S3Server) -> None:
    storage = open_storage(f"s3a://{BUCKET}/{uuid.uuid4().hex}", Options(moto.options))
    storage.put(PROPERTIES_PATH, b"")
    storage.put_if_absent("file", b"")
    content = json.loads(storage.read(trial.PATH))
    assert content.keys() == {"version", "store", "tried_ms"}
    assert {field for field in content if f"`{field}`" not in _own_files()[trial.PATH]} == {"version"}


@pytest.mark.parametrize("of_windows", [ConsumerProgress, ConsumerView, LedgerEntry, Marks, OpenWindow])
def test_each_field_of_the_state_of_windows_is_specified(of_windows: type) -> None:
    (line,) = (line for specified, line in _own_files().items() if specified.endswith("<number>.json"))
    names = {field.name for field in fields(of_windows)}
    assert {name for name in names if f"`{name}`" not in line} == set()


def test_the_page_states_the_version_of_the_files() -> None:
    assert f"an object whose `version` is {VERSION}" in ADDITIONS
