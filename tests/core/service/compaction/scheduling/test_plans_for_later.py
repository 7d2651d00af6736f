"""Plans that are left on the timeline for whoever comes by: stock Hudi fails over one that has no operations."""

from pathlib import Path

import pytest

from support.tables.append import START_MS, make, rows


@pytest.mark.parametrize("version", [6, 9])
def test_a_plan_without_operations_is_only_made_to_be_executed_at_once(version: int, tmp_path: Path) -> None:
    table = make(tmp_path / "t", version, "BUCKET")
    table.upsert(rows(("k0", "a", 10, "base")))
    before = sorted(tmp_path.rglob("*"))
    draft = table.plan_compaction(START_MS + 5)
    assert draft.operations == ()
    assert "Hudi can't run an empty plan" in (table.schedule(draft).idle or "")
    assert sorted(tmp_path.rglob("*")) == before
    assert table.compact(draft).freshness.cut_ms == START_MS + 5
