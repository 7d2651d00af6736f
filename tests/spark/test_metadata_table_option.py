"""A table that has Hudi's metadata table: refused unless told to drop it, at every step that would make it stale."""

from pathlib import Path

import pytest

from eventide import Table
from eventide_core.errors import RefusedError
from support import golden
from support.thresholds import dividing_plan

DROP = {"eventide.metadata.table": "drop"}


@pytest.mark.parametrize("name", ["v6_mdt", "v9_mdt"])
def test_a_plan_made_with_leave_to_drop_is_not_run_without_it(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    with pytest.raises(RefusedError, match=r"eventide\.metadata\.table=drop"):
        Table.open(str(path)).plan_compaction(0)
    table = Table.open(str(path), DROP)
    plan = dividing_plan(table, "event_ts", "copy")
    assert any("dropped" in note for note in plan.draft.notes)
    scheduled = table.schedule(plan)
    with pytest.raises(RefusedError, match=r"eventide\.metadata\.table=drop"):
        Table.open(str(path)).execute(scheduled.instant)
    assert (path / ".hoodie" / "metadata").is_dir()
    table.execute(scheduled.instant)
    assert not (path / ".hoodie" / "metadata").exists()
    assert "hoodie.table.metadata.partitions" not in (path / ".hoodie" / "hoodie.properties").read_text()
