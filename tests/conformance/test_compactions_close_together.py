"""A compaction soon after one that was planned early and executed late, on version 6.

Hudi 1.x takes the modification time of a completed file for the completion time, and finds a log file in the slice that is
latest at the completion of the instant in its name.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.table.timeline.instant import instant_time
from support.judge import HudiJudge, hudi_rs
from support.tables.small import HOUR_MS, LATER_MS, SCHEMA, make, seen

DAY_MS = LATER_MS - 240 * HOUR_MS


def _upsert(table: Table, *values: tuple[str, int, str]) -> str:
    return table.upsert(
        pa.Table.from_pylist(
            [{"id": key, "part": "a", "ms": DAY_MS + hours * HOUR_MS, "word": word} for key, hours, word in values],
            schema=SCHEMA,
        )
    ).instant


@pytest.mark.broad
def test_time_travel_between_compactions_loses_no_row(
    tmp_path: Path, judge_015: HudiJudge, judge_111: HudiJudge, judge_120: HudiJudge
) -> None:
    path = tmp_path / "t"
    table = make(path, 6)
    _upsert(table, ("k0", 1, "base"), ("k2", 1, "base"))
    _upsert(table, ("k0", 2, "merged"))
    _upsert(table, ("k2", 20, "left over"))
    plan = table.schedule(table.plan_compaction(DAY_MS + 5 * HOUR_MS, link_mode="copy"))
    beside = _upsert(table, ("k0", 21, "beside"))
    table.execute(plan.instant)
    put_ms = (path / ".hoodie" / f"{plan.instant}.commit").stat().st_mtime_ns // 1_000_000
    second = table.compact(table.plan_compaction(DAY_MS + 30 * HOUR_MS, link_mode="copy"))
    expected = {"k0": (DAY_MS + 21 * HOUR_MS, "beside"), "k2": (DAY_MS + 20 * HOUR_MS, "left over")}
    assert second.instant > instant_time(put_ms)
    for read in (judge_015.read, judge_111.read, judge_120.read, hudi_rs.read):
        for as_of in (None, beside, second.instant):
            assert seen(read(path, as_of=as_of)) == expected, (read, as_of)
    for as_of in (beside, second.instant):
        assert seen(table.as_of(as_of).to_arrow()) == expected
