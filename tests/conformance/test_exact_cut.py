"""Real Hudi tables, compacted by an exact cut: every judge sees the same rows, and read-optimized nothing newer than T."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.results.plan import Plan
from golden.readings import as_values
from support.judge import hudi_rs
from support.pasts import golden
from support.run.reach import reached

JUDGES = {"0.15.0": "judge_015", "1.1.1": "judge_111", "1.2.0": "judge_120"}


def exact_plan(table: Table, event_time: str) -> Plan:
    """Of some plans the one that takes most early records of logs that stay."""
    times = sorted(time for time in table.snapshot().to_arrow([event_time]).column(0).unique().to_pylist() if time)
    plans = [table.plan_compaction(time, cut="exact", link_mode="copy") for time in times[:: max(1, len(times) // 16)]]
    return max(plans, key=lambda plan: sum(len(op.early) for op in plan.operations))


@pytest.mark.parametrize("name", ["v6_avro_defpay", "v9_event_bucket", "v9_commit_bucket", "v9_mdt"])
def test_an_exact_cut_is_exact_to_every_reader(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    expected = golden.expected(name)
    path = golden.unpack(name, tmp_path)
    event_time = expected.options["hoodie.payload.event.time.field"]
    options = {
        "hoodie.payload.event.time.field": event_time,
        "hoodie.index.type": expected.options["hoodie.index.type"],
    }
    table = Table.open(str(path), options)

    def rows(found: pa.Table) -> Counter[tuple[str, ...]]:
        return Counter(tuple(map(repr, as_values(row, expected.columns))) for row in found.to_pylist())

    snapshot, read_optimized = rows(table.snapshot().to_arrow()), rows(table.read_optimized().to_arrow())
    plan = exact_plan(table, event_time)
    early = sum(len(op.early) for op in plan.operations)
    assert early > 0
    assert not plan.draft.plan.fallbacks
    result = table.compact(plan)
    assert plan.cut_ms is not None
    assert result.freshness.watermark_ms == result.freshness.cut_ms == plan.cut_ms

    ours, ours_optimized = rows(table.snapshot().to_arrow()), rows(table.read_optimized().to_arrow())
    assert ours == snapshot
    event_column = expected.columns.index(event_time)
    for row in ours_optimized - read_optimized:
        assert int(row[event_column]) < plan.cut_ms, f"{row} is not before T"
    for row in snapshot:
        if int(row[event_column]) < plan.cut_ms:
            assert row in ours_optimized, f"{row} lies before T and is not in the read-optimized view"
    for judge in {reading.judge for reading in expected.readings if reading.error is None}:
        read = hudi_rs.read if judge == "hudi-rs" else request.getfixturevalue(JUDGES[judge]).read
        assert rows(read(path)) == snapshot, judge
        assert rows(read(path, "read_optimized")) == ours_optimized, judge
    reached(f"exact cut: left-overs merged early that every judge read, version {table.state().config.version}", early)
