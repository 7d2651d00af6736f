"""Filters on record keys by a record index that real Hudi keeps: the rows of a full read, whatever Hudi has done."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eventide import Table
from golden.histories import PLAIN_COLUMNS
from support.judge import HudiJudge
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    COMMIT_TIME_ORDERING,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    OVERWRITE_WITH_LATEST,
    table_name,
    table_version,
)
from support.run.reach import reached

FILE_GROUPS = {
    f"hoodie.metadata.{index}.{end}.filegroup.count": "2"
    for index in ("record.index", "global.record.level.index")
    for end in ("min", "max")
}
RECORD_INDEX = {
    **FILE_GROUPS,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "true",
}
SCHEMA = pa.schema([*PLAIN_COLUMNS, pa.field("_hoodie_is_deleted", pa.bool_())])
START_MS = 1_700_000_000_000
KEYS = (*(f"k{number:03}" for number in range(32)), "k100", "k101", "nobody")
CLUSTERED = (
    "hoodie.clustering.plan.strategy.small.file.limit=1000000000,hoodie.clustering.plan.strategy.max.num.groups=100"
)


def row(number: int, ms: int, *, part: str | None = None, is_deleted: bool = False) -> dict[str, Any]:
    return {
        "id": f"k{number:03}",
        "part": part or "abcdefgh"[number % 8],
        "event_ts": START_MS + ms,
        "val": f"{number} {ms}",
        "amount": 1.5,
        "_hoodie_is_deleted": is_deleted,
    }


def table_of(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def looked_up(path: Path, keys: tuple[str, ...] = KEYS) -> frozenset[str]:
    """The keys that the index decided about; each key has the rows of a full read."""
    rows = Table.open(str(path), {"hoodie.index.type": "RECORD_INDEX"}).snapshot()
    everything = rows.to_arrow()
    found: set[str] = set()
    for key in keys:
        condition = f"id = '{key}'"
        expected = everything.filter(pc.field("id") == key)
        assert sorted(map(repr, rows.to_arrow(None, condition).to_pylist())) == sorted(map(repr, expected.to_pylist()))
        if len(rows.reading(None, condition).slices) < len(rows.plan.slices):
            found.add(key)
    return frozenset(found)


def shown(path: Path) -> set[str]:
    return {str(key) for key in Table.open(str(path)).snapshot().to_arrow(["id"]).column("id").to_pylist()}


def merged(version: int, *, by_event_time: bool) -> Mapping[str, str]:
    if version == 6:
        return DEFAULT_PAYLOAD if by_event_time else OVERWRITE_WITH_LATEST
    return {**table_version(version), **(EVENT_TIME_ORDERING if by_event_time else COMMIT_TIME_ORDERING)}


@pytest.mark.parametrize(
    ("fixture", "version", "by_event_time"),
    [
        pytest.param("judge_111", 9, False, marks=pytest.mark.broad),
        pytest.param("judge_111", 9, True, marks=pytest.mark.proof),
        pytest.param("judge_102", 8, True, marks=pytest.mark.proof),
        pytest.param("judge_015", 6, True, marks=pytest.mark.proof),
    ],
)
def test_keys_are_found_by_the_record_index_of_hudi(
    fixture: str, version: int, by_event_time: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(fixture)
    order = merged(version, by_event_time=by_event_time)
    options = {**MERGE_ON_READ, **AVRO_LOG_BLOCKS, **RECORD_INDEX, **order, **table_name("looked_up")}
    path = tmp_path / "looked_up"
    base = table_of(*(row(number, number) for number in range(32)))
    judge.write(path, base, options=options, operation="bulk_insert", mode="overwrite")
    present = {f"k{number:03}" for number in range(32)}
    assert looked_up(path) >= present, "the table's first write is an insert"

    planned = Table.open(str(path), {"hoodie.index.type": "RECORD_INDEX"}).snapshot()
    before = planned.to_arrow(None, "id = 'k000'").to_pylist()
    judge.write(path, table_of(row(0, 100, part="e"), row(1, 100), row(100, 100)), options=options)
    assert planned.to_arrow(None, "id = 'k000'").to_pylist() == before, "a plan from before Hudi moved the key"
    judge.write(path, table_of(row(2, 200)), options=options, operation="delete")
    assert "k002" not in shown(path)
    found = looked_up(path)
    assert found >= shown(path)
    assert ("k002" in found) is not by_event_time

    # A delete that is older than the row: by event time, the row stays, and Hudi's index may have lost it.
    judge.write(path, table_of(row(3, -100, is_deleted=True)), options=options)
    assert ("k003" in shown(path)) is by_event_time
    found = looked_up(path)
    if "k003" not in found and by_event_time:
        reached(f"a row that the record index of Hudi {judge.version} has lost")
    judge.write(path, table_of(row(2, 300)), options=options)
    assert looked_up(path) >= shown(path) - {"k003"}

    judge.schedule_compaction(path, options)
    judge.run_compaction(path, options)
    assert looked_up(path) >= shown(path) - {"k003"}
    settings = ",".join(
        f"{key}={value}" for key, value in {**RECORD_INDEX, **order}.items() if key != "hoodie.index.type"
    )
    groups = {one.file_id for one in Table.open(str(path)).snapshot().plan.slices}
    judge.call("run_clustering", path=path, op="scheduleAndExecute", options=f"{settings},{CLUSTERED}")
    assert {one.file_id for one in Table.open(str(path)).snapshot().plan.slices}.isdisjoint(groups)
    assert looked_up(path) >= shown(path) - {"k003"}

    table = Table.open(str(path), {"hoodie.index.type": "RECORD_INDEX"})
    table.upsert(table_of(row(4, 400), row(101, 400)))
    table.delete(table_of(row(5, 400)).select(["id", "part", "event_ts"]))
    judge.write(path, table_of(row(5, 500), row(6, 500, part="a")), options=options)
    assert looked_up(path) >= shown(path) - {"k003"}
