"""Writes that had their instant before another one, which completes before they read the table."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import WriteConflictError
from eventide_core.service.common.state.table import TableState
from eventide_core.service.write.instants import RequestedWrite, WriteInstants
from eventide_core.table.timeline.instant import Action
from support.tables.append import START_MS, make, rows, seen

_BASE = (("k0", "a", 1, "base"), ("k1", "b", 2, "base"))
_OTHER = (("k2", "a", 3, "other"), ("k3", "b", 4, "other"), ("k0", "a", 5, "other"))
_OWN = (("k4", "a", 6, "own"), ("k5", "b", 7, "own"), ("k1", "b", 8, "own"))


def _alter(table: Table) -> None:
    table.alter(add={"tip": pa.float64()})


def _write_more(table: Table) -> None:
    table.upsert(rows(*_OWN).append_column("tip", pa.array([0.5] * len(_OWN))), schema_mode="merge")


def _overtake(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Another process acts as soon as the next write has its instant, which then reads the table again."""
    monkeypatch.setattr(TableState, "still_holds", lambda *_: False)
    request = WriteInstants.request

    def requested(self: WriteInstants, action: Action) -> RequestedWrite:
        instant = request(self, action)
        monkeypatch.setattr(WriteInstants, "request", request)
        act()
        return instant

    monkeypatch.setattr(WriteInstants, "request", requested)


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "BUCKET"])
def test_no_row_is_lost_when_a_later_instant_completes_first(
    index: str, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", version, index)
    table.bulk_insert(rows(*_BASE))
    _overtake(monkeypatch, lambda: table.upsert(rows(*_OTHER)))
    table.upsert(rows(*_OWN))
    latest = {(key, part): (key, part, ms, word) for key, part, ms, word in (*_BASE, *_OTHER, *_OWN)}
    assert seen(table) == sorted(latest.values())
    table.compact(before=START_MS + 100)
    assert seen(table) == sorted(latest.values())
    assert table.verify(deep=True).ok


@pytest.mark.parametrize("version", [6, 9])
def test_an_overwrite_replaces_what_a_later_instant_wrote_first(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", version, "SIMPLE")
    table.bulk_insert(rows(*_BASE))
    _overtake(monkeypatch, lambda: table.upsert(rows(*_OTHER)))
    table.insert_overwrite_table(rows(*_OWN))
    assert seen(table) == sorted(_OWN)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("change", [_alter, _write_more], ids=lambda f: f.__name__)
def test_a_schema_that_a_later_instant_would_hide_is_a_conflict(
    change: Callable[[Table], object], version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", version, "SIMPLE")
    table.bulk_insert(rows(*_BASE))
    _overtake(monkeypatch, lambda: table.upsert(rows(*_OTHER)))
    with pytest.raises(WriteConflictError, match="began later and has completed"):
        change(table)
    assert seen(table) == sorted(
        {(key, part): (key, part, ms, word) for key, part, ms, word in (*_BASE, *_OTHER)}.values()
    )
    change(table)
    assert "tip" in table.schema.names
