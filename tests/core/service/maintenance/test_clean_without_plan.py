"""A clean whose request is empty, as a crash of the machine or of another engine leaves it."""

import os
import time
from pathlib import Path

import pytest

from eventide_core.errors import BusyError
from support.tables import small


@pytest.mark.parametrize("states", [("requested",), ("requested", "inflight")])
@pytest.mark.parametrize("version", [6, 9])
def test_a_clean_whose_files_are_empty_is_removed(version: int, states: tuple[str, ...], tmp_path: Path) -> None:
    table = small.make(tmp_path / "t", version)
    table.upsert(small.rows(("k0", 0, "first"), ("k1", 0, "first")))
    timeline = tmp_path / "t" / ".hoodie" / ("" if version == 6 else "timeline")
    files = [timeline / f"20200101000000000.clean.{state}" for state in states]
    for empty in files:
        empty.touch()
    with pytest.raises(BusyError, match="may be running"):
        table.clean()
    hours_ago = time.time() - 2 * 3600
    for empty in files:
        os.utime(empty, (hours_ago, hours_ago))
    table.clean()
    assert not any(empty.exists() for empty in files)
    assert small.seen(table.snapshot().to_arrow()).keys() == {"k0", "k1"}
