"""Event times without a zone that real Hudi wrote: of UTC, or of the zone that an option states."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.config import EVENT_TIME_ZONE
from eventide_core.table.records.event_time import parse_threshold
from support.judge import HudiJudge
from support.judge.deeds import Write
from support.judge.options import BUCKET_INDEX, MERGE_ON_READ, NO_METADATA_TABLE, table_name, table_version
from support.values.columns import schema_of

BERLIN = {str(EVENT_TIME_ZONE): "Europe/Berlin"}
SCHEMA = schema_of(id=pa.string(), part=pa.string(), at=pa.timestamp("us"))
OPTIONS = {
    **MERGE_ON_READ,
    **BUCKET_INDEX,
    **NO_METADATA_TABLE,
    **table_name("local"),
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.datasource.write.precombine.field": "at",
    "hoodie.payload.ordering.field": "at",
    "hoodie.payload.event.time.field": "at",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.write.track.event.time.watermark": "true",
}
WRITES: list[tuple[str, dict[str, str]]] = [
    ("bulk_insert", {"a": "2026-03-01T12:00", "b": "2026-03-01T12:00", "c": "2026-03-01T12:00"}),
    ("upsert", {"a": "2026-03-02T08:00"}),
    ("delete", {"b": "2026-03-03T00:30"}),
    ("upsert", {"c": "2026-03-03T00:45", "d": "2026-03-04T00:00"}),
]


def _rows(times: dict[str, str]) -> pa.Table:
    found = [{"id": key, "part": "p", "at": datetime.fromisoformat(text)} for key, text in times.items()]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def _shown(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["at"]) for row in found.to_pylist())


@pytest.mark.broad
@pytest.mark.parametrize("version", [6, 9])
def test_the_zone_of_a_table_of_hudi_is_stated_by_an_option(version: int, tmp_path: Path, judge_111: HudiJudge) -> None:
    """00:30 of Tuesday in Berlin, which only a log file holds, is 23:30Z of Monday."""
    path = tmp_path / "t"
    for operation, times in WRITES:
        deeds = [[Write(path, _rows(times), OPTIONS | table_version(version), operation)]]
        assert judge_111.together(deeds) == [None]
    expected = _shown(judge_111.read(str(path), "snapshot"))
    assert _shown(Table.open(str(path)).snapshot().to_arrow()) == expected
    assert any("read as UTC" in note for note in Table.open(str(path)).freshness().notes)
    berlin = Table.open(str(path), BERLIN)
    assert not berlin.freshness().notes
    berlin.compact(before="2026-03-02T23:00Z", cut="exact", link_mode="copy")
    watermark, tuesday = berlin.freshness().watermark_ms, "2026-03-03T00:00Z"
    assert watermark == parse_threshold("2026-03-02T23:00Z")
    assert not berlin.freshness().has_reached(tuesday)
    berlin.compact(before=tuesday, cut="exact", link_mode="copy")
    assert berlin.freshness().has_reached(tuesday)
    assert _shown(judge_111.read(str(path), "snapshot")) == expected
    assert _shown(judge_111.read(str(path), "read_optimized")) == [one for one in expected if one[0] != "d"]
    assert berlin.verify(deep=True).ok
