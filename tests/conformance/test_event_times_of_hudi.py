"""Event times of every type and form, null and unreadable ones too, in log files that real Hudi wrote: eventide counts them
as what they are, promises nothing while one is unreadable, and shows every row once they are merged."""

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.config import EVENT_TIME_FIELD
from support.judge import HudiJudge
from support.judge.options import BUCKET_INDEX, MERGE_ON_READ, NO_METADATA_TABLE, table_name, table_version
from support.run.reach import reached
from support.values.event_times import UNREADABLE, VALUES

KINDS: Final = [kind for kind in VALUES if kind != "timestamp"]
"""Spark has no timestamps that are as far away as those."""
COUNT: Final = max(len(values) for _, values in VALUES.values())
COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string()),
    pa.field("part", pa.string()),
    pa.field("event_ts", pa.int64()),
    *(pa.field(kind, VALUES[kind][0]) for kind in KINDS),
]
NOT_TRACKED: Final = {"hoodie.write.track.event.time.watermark": "false"}


def rows(event_ts: int) -> pa.Table:
    """Row n has the n-th value of each kind, or null if the kind has fewer."""
    found: list[dict[str, Any]] = []
    for number in range(COUNT):
        row: dict[str, Any] = {"id": f"k{number}", "part": "a", "event_ts": event_ts}
        for kind in KINDS:
            values = VALUES[kind][1]
            row[kind] = values[number][0] if number < len(values) else None
        found.append(row)
    return pa.Table.from_pylist(found, schema=pa.schema(COLUMNS))


@pytest.mark.broad
@pytest.mark.parametrize("version", [pytest.param(6, marks=pytest.mark.proof), 9])
def test_event_times_that_hudi_wrote_count_as_what_they_are(version: int, judge_111: HudiJudge, tmp_path: Path) -> None:
    path = tmp_path / "times"
    options = (
        MERGE_ON_READ | BUCKET_INDEX | NO_METADATA_TABLE | NOT_TRACKED | table_version(version) | table_name("times")
    )
    for event_ts in (1000, 2000):
        judge_111.write(path, rows(event_ts), options=options)
    for kind in KINDS:
        means = [meaning for _, meaning in VALUES[kind][1]] + [None] * (COUNT - len(VALUES[kind][1]))
        unreadable, times = means.count(UNREADABLE), [one for one in means if isinstance(one, int)]
        table = Table.open(str(path), {EVENT_TIME_FIELD: f"{kind}.at" if kind == "nested" else kind})
        found = table.freshness()
        counts = found.unreadable_event_time_records, found.unknown_event_time_records
        assert counts == (unreadable, means.count(None)), kind
        assert found.earliest_log_event_time_ms == min(times), kind
        assert found.watermark_ms is None, kind
        reached("unreadable event times written by Hudi", unreadable)
        reached("null event times written by Hudi", means.count(None))
    table = Table.open(str(path), {EVENT_TIME_FIELD: "double"})
    table.compact(before="2026-11-20T00:00Z")
    found = table.freshness()
    assert found.unreadable_event_time_records == 0, "those are merged first"
    assert found.has_reached("2026-11-20T00:00Z")
    shown = table.read_optimized().to_arrow(["id", "event_ts"]).to_pylist()
    assert {row["id"]: row["event_ts"] for row in shown} == {f"k{number}": 2000 for number in range(COUNT)}
