"""The custom storage in docs/storage.md runs unchanged."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from eventide.testing.storage_contract import StorageContract
from eventide_adapters.storage.memory import MemoryStorage
from support.run.child_processes import environment

DOCUMENT = Path(__file__).parents[3] / "docs" / "storage.md"

MY_STORAGE = """
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.ports import Capability


class MyStorage(MemoryStorage):
    capabilities = Capability.PUT_IF_ABSENT
    read_version = None  # and keeps no versions
"""


@pytest.mark.slow
def test_the_documented_test_holds_ones_own_storage_to_the_contract(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (tmp_path / "test_mine.py").write_text(MY_STORAGE + code)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            "whole or says_it_can_do",
            "test_mine.py",
        ],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE), done.stdout


def test_a_storage_that_is_not_held_to_the_contract_of_its_links_is_reported() -> None:
    with pytest.raises(AssertionError):
        StorageContract().test_the_contract_covers_every_capability_of_the_storage(MemoryStorage("with links"))
