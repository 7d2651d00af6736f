"""A file that a killed process left half-written below `.hoodie/.eventide_temp` goes with the next clean after a day."""

import os
import time
from pathlib import Path

from eventide import Table
from eventide_adapters.storage.local.names import ABANDONED_AFTER_SECONDS
from eventide_adapters.storage.paths import TEMPORARY
from support.pasts import golden


def test_a_clean_removes_files_of_dead_writers_and_spares_those_of_live_ones(tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    temporary = path / TEMPORARY
    temporary.mkdir()
    (temporary / "dead").write_bytes(b"half")
    (temporary / "alive").write_bytes(b"half")
    old = time.time() - ABANDONED_AFTER_SECONDS - 60
    os.utime(temporary / "dead", (old, old))
    Table.open(path).clean()
    assert [file.name for file in temporary.iterdir()] == ["alive"]
