"""A table whose instants are local times, Hudi's default, between a Hudi and an eventide in different time zones."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from eventide import Table
from support.judge import HudiJudge
from support.judge.options import BUCKET_INDEX, MERGE_ON_READ, NO_METADATA_TABLE, table_name, table_version
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64())
LOCAL: Final = {"hoodie.table.timeline.timezone": "LOCAL"}
START_MS: Final = 1_795_000_000_000


@pytest.fixture(params=["America/Los_Angeles", pytest.param("Asia/Kolkata", marks=pytest.mark.proof)])
def own_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The time zone of this process; the judge's is UTC. The instants here would be behind the judge's, or ahead of them."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def rows(*changes: tuple[str, int]) -> pa.Table:
    found = [{"id": key, "part": "a", "event_ts": START_MS + ms} for key, ms in changes]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def shown(found: pa.Table) -> list[tuple[str, int]]:
    return sorted((row["id"], row["event_ts"] - START_MS) for row in found.to_pylist())


@pytest.mark.broad
@pytest.mark.parametrize("version", [pytest.param(6, marks=pytest.mark.proof), 9])
def test_compactions_and_queries_of_the_past_agree(
    version: int, own_zone: str, judge_111: HudiJudge, tmp_path: Path
) -> None:
    path = tmp_path / "local"
    options = MERGE_ON_READ | BUCKET_INDEX | NO_METADATA_TABLE | LOCAL | table_version(version) | table_name("local")
    table: Table | None = None
    for step in range(2):
        early = 100 * step
        judge_111.write(path, rows(("a", early + 1), ("b", early + 2)), options=options)
        judge_111.write(path, rows(("a", early + 5), ("c", early + 6)), options=options)
        judge_111.write(path, rows(("b", early + 50)), options=options)
        table = Table.open(str(path), BUCKET_INDEX)
        assert table.compact(before=START_MS + early + 10).instant
        assert shown(judge_111.read(path)) == shown(table.snapshot().to_arrow()), own_zone
    assert table is not None
    assert shown(table.snapshot().to_arrow()) == [("a", 105), ("b", 150), ("c", 106)]
    table.upsert(rows(("c", 200)))
    judge_111.write(path, rows(("d", 201)), options=options)
    assert shown(judge_111.read(path)) == shown(table.snapshot().to_arrow())
    assert shown(table.snapshot().to_arrow()) == [("a", 105), ("b", 150), ("c", 200), ("d", 201)]
    writes = [one for one in judge_111.timeline(path) if one.action == "deltacommit"]
    assert len(writes) == 8
    for one in (writes[0], writes[2], writes[4], writes[7]):
        time_of = one.requested_time
        assert shown(table.as_of(time_of).to_arrow()) == shown(judge_111.read(path, as_of=time_of)), time_of
        begin = one.completion_time if version == 9 else time_of
        assert begin is not None
        ours = shown(table.incremental(begin).to_arrow())
        assert ours == shown(judge_111.read(path, "incremental", begin=begin)), begin
