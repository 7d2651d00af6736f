"""A writer that shares no lock requests its instant in the very millisecond that a plan has taken.

Found beside a writer of Hudi's Java client: the write hid the plan, a second plan was put, and the stock writer ended with
"has more than 1 pending operation".
"""

from pathlib import Path

import pytest

from support.tables.append import START_MS, make, rows, seen


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_the_plan_gives_way_to_the_write(state: str, tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9, "BUCKET")
    table.upsert(rows(("k0", "a", 10, "base")))
    table.upsert(rows(("k0", "a", 20, "log")))
    expected = seen(table)
    planned = table.schedule(table.plan_compaction(START_MS + 100)).instant
    assert table.state().timeline.pending_plans
    timeline = tmp_path / "t" / ".hoodie" / "timeline"
    for reached in ["requested"] if state == "requested" else ["requested", "inflight"]:
        (timeline / f"{planned}.deltacommit.{reached}").touch()

    result = table.execute(planned)
    assert result.instant != planned
    assert result.freshness.cut_ms == START_MS + 100
    assert seen(table) == expected
    assert not list(timeline.glob(f"{planned}*compaction*"))
    assert {file.name for file in timeline.glob(f"{planned}*")} >= {f"{planned}.deltacommit.{state}"}
    assert [pending.requested_time for pending in table.state().timeline.pending] == [planned]
