"""What `eventide sync` prints, without a catalog."""

from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from eventide_core.service.maintenance.sync import SyncedTable, SyncResult
from support.run.command_line import run
from support.tables.append import make


def test_the_freshness_is_shown_in_times_and_fits_a_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = tuple(
        SyncedTable(
            f"trips{end}",
            is_created=False,
            is_altered=True,
            partitions_added=n,
            partitions_moved=0,
            partitions_dropped=0,
        )
        for n, end in enumerate(("_ro", "_rt", ""))
    )
    properties = {"hoodie.ro.event.time.cut": "1772496000000", "hoodie.ro.late.records": "0"}

    def synced(*_: Any, **__: Any) -> SyncResult:
        return SyncResult("lake", tables, properties)

    monkeypatch.setattr(Table, "sync", synced)
    table = make(tmp_path / "t")
    lines = run("sync", table.uri, columns=80).stdout.splitlines()
    assert lines[-2:] == [
        "hoodie.ro.event.time.cut = 1772496000000 (2026-03-03T00:00:00Z)",
        "hoodie.ro.late.records = 0",
    ]
    assert max(map(len, lines)) <= 80
    assert len(lines) == 7
