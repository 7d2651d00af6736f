"""A compaction with nothing to merge still publishes its cut, in a commit that says nothing to Hudi."""

from pathlib import Path

import pytest

from eventide import Table
from golden.histories import EPOCH_MS, PLAIN
from support.judge import HudiJudge, hudi_rs
from support.pasts import golden


@pytest.mark.parametrize(
    ("name", "judge"),
    [("v6_no_deletes", "judge_015"), pytest.param("v9_no_deletes", "judge_111", marks=pytest.mark.broad)],
)
def test_hudi_passes_over_a_compaction_that_merged_nothing(
    name: str, judge: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    hudi: HudiJudge = request.getfixturevalue(judge)
    path = golden.unpack(name, tmp_path)
    options = dict(golden.expected(name).options)
    before = hudi.count(path)
    table = Table.open(str(path))
    result = table.compact(table.plan_compaction(EPOCH_MS))
    assert result.metrics["operations"] == 0
    assert table.freshness().cut_ms == table.freshness().watermark_ms == EPOCH_MS
    assert hudi.count(path) == hudi_rs.read(path).num_rows == table.snapshot().to_arrow().num_rows == before
    # Hudi counts delta commits since the last compaction, ours too, so it plans after the next one.
    change = {"id": "k00001", "part": "b", "event_ts": EPOCH_MS + 9_000_000, "val": "newer", "amount": 1.0}
    hudi.write(path, [change], PLAIN, options=options)
    hudi.schedule_compaction(path, options)
    hudi.run_compaction(path, options)
    assert hudi.count(path, "read_optimized") == hudi.count(path) == before
    assert table.freshness().cut_ms == EPOCH_MS
