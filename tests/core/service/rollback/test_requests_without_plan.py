"""A rollback or restore was requested, and its engine died before it wrote the plan: its file is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide import Table
from support.command_line import run
from support.small_table import HOUR_MS, LATER_MS, make, rows, seen

SOON_ABANDONED = {"eventide.pending.service.stale_ms": "0"}


def requested(path: Path, version: int, action: str) -> tuple[Path, str]:
    """The table with such a file, and its instant."""
    table = make(path, version)
    first = table.upsert(rows(("k1", 1, "old"), ("k2", 1, "old")))
    table.savepoint(first.instant)
    last = table.upsert(rows(("k1", 2, "new")))
    instant = str(int(last.instant) + 5)
    directory = path / ".hoodie" if version == 6 else path / ".hoodie" / "timeline"
    file = directory / f"{instant}.{action}.requested"
    file.write_bytes(b"")
    return file, instant


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("action", ["rollback", "restore"])
def test_the_command_that_the_message_names_removes_it(action: str, version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    file, instant = requested(path, version, action)
    before = seen(Table.open(str(path)).snapshot().to_arrow())
    assert run("rollback", path, instant).exit_code == 4, "its engine may be about to write the plan"
    assert run("rollback", path, instant, "--force").exit_code == 0
    assert not file.exists()
    table = Table.open(str(path))
    assert seen(table.snapshot().to_arrow()) == before
    table.upsert(rows(("k3", 3, "next")))
    assert run("compact", path, "--before", LATER_MS - HOUR_MS, "--engine", "local").exit_code == 0
    assert run("verify", path).exit_code == 0


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_removes_an_abandoned_request_of_a_rollback(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    file, _ = requested(path, version, "rollback")
    table = Table.open(str(path), SOON_ABANDONED)
    table.upsert(rows(("k3", 3, "next")))
    assert not file.exists()
    assert seen(table.snapshot().to_arrow()).keys() == {"k1", "k2", "k3"}


@pytest.mark.parametrize("version", [6, 9])
def test_a_restore_begins_anew_after_an_abandoned_request(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    file, _ = requested(path, version, "restore")
    table = Table.open(str(path), SOON_ABANDONED)
    saved = table.state().timeline.writes[0].requested_time
    table.restore(saved)
    assert not file.exists()
    assert {key: word for key, (_, word) in seen(table.snapshot().to_arrow()).items()} == {"k1": "old", "k2": "old"}
