"""A table of version 6 that was copied: `verify` remarks on times that Hudi 1.x would take for completion times."""

import os
import shutil
import time
from pathlib import Path

import pytest

from eventide import Table
from support.tables.append import START_MS, make, rows

pytestmark = pytest.mark.slow


def remarks(path: Path) -> list[str]:
    checks = Table.open(str(path)).verify().checks
    return [remark for check in checks for remark in check.remarks if "Hudi 1.x" in remark]


@pytest.mark.parametrize("version", [6, 9])
def test_a_copy_without_its_times_is_remarked_on(version: int, tmp_path: Path) -> None:
    table = make(tmp_path / "table", version)
    for number in range(2):
        table.upsert(rows(("a", "p", number, "word")))
        table.compact(before=START_MS + 1000)
    copy = shutil.copytree(tmp_path / "table", tmp_path / "copy")
    assert remarks(copy) == []
    later = time.time() + 60
    for file in (copy / ".hoodie").rglob("*"):
        os.utime(file, (later, later))
    assert len(remarks(copy)) == (version == 6)
