"""Payloads that version 9 replaces by properties, on versions 6 and 8: every small history, before and after a compaction.

A record of a history is a whole row, a row that leaves out a column, a delete with an ordering value, or one without.
"""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Plan, Table
from eventide_core.errors import UnsupportedTableError, format_timestamp
from eventide_core.table.timeline.contents.plans import FallbackReason
from support.judge import HudiJudge
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    BUCKET_INDEX,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    PAYLOADS,
    table_name,
    table_version,
)

TYPES: dict[str, pa.DataType] = {
    "id": pa.string(),
    "part": pa.string(),
    "event_ts": pa.int64(),
    "seq": pa.int64(),
    "text": pa.string(),
    "number": pa.int32(),
    "Op": pa.string(),
    "_hoodie_is_deleted": pa.bool_(),
}
SCHEMA = pa.schema(TYPES)
DMS, NON_DEFAULTS, PARTIAL = (
    "AWSDmsAvroPayload",
    "OverwriteNonDefaultsWithLatestAvroPayload",
    "PartialUpdateAvroPayload",
)
ROW, PART, DELETE, UNORDERED, NONE = "R", "P", "D", "X", "-"
CHANGES = (NONE, UNORDERED, *(kind + seq for kind in (ROW, PART, DELETE) for seq in "123"))
OPTIONS = {"hoodie.payload.event.time.field": "event_ts"}
T = 250

Row = dict[str, Any]


def histories() -> Iterator[tuple[str, ...]]:
    """The base's row, if any, and three commits."""
    return itertools.product((NONE, ROW + "2"), *(CHANGES,) * 3)


def partition(history: tuple[str, ...]) -> str:
    """By the versions: `d` deletes in the last commit, `b` only before it, `c` has late rows, and `a` neither."""
    changes = [change for change in history if change != NONE]
    if history[3][0] in (DELETE, UNORDERED):
        return "d"
    if any(change[0] in (DELETE, UNORDERED) for change in changes):
        return "b"
    return "a" if changes == sorted(changes, key=lambda change: change[1:]) else "c"


def rows_of(commit: int, *, unordered: bool) -> list[Row]:
    """The rows of a commit, or what the operation `delete` deletes in it."""
    return [
        {
            "id": "_".join(history),
            "part": partition(history),
            "event_ts": commit * 100,
            "seq": int(change[1:] or 0),
            "text": None if change[0] == PART else f"text {commit}",
            "number": commit,
            "Op": "D" if change[0] == DELETE else "U",
            "_hoodie_is_deleted": change[0] == DELETE,
        }
        for history in histories()
        if (change := history[commit]) != NONE and (change == UNORDERED) is unordered
    ]


def later_rows() -> list[Row]:
    return [row | {"seq": 3, "event_ts": 400, "text": None, "number": 4} for row in rows_of(0, unordered=False)]


def written(judge: HudiJudge, path: Path, payload: str, version: int) -> dict[str, str]:
    """Writes the table, and returns its options."""
    options = MERGE_ON_READ | BUCKET_INDEX | NO_METADATA_TABLE | AVRO_LOG_BLOCKS | table_name("payloads")
    options |= {
        "hoodie.datasource.write.payload.class": f"{PAYLOADS}.{payload}",
        "hoodie.datasource.write.precombine.field": "seq",
        "hoodie.payload.ordering.field": "seq",
        "hoodie.bucket.index.num.buckets": "1",
    }
    if judge.version != "0.15.0":
        options |= table_version(version)
    first = rows_of(0, unordered=False)
    judge.write(path, first, SCHEMA, options=options, operation="bulk_insert", mode="overwrite")
    for commit in (1, 2, 3):
        judge.write(path, rows_of(commit, unordered=False), SCHEMA, options=options)
        judge.write(path, rows_of(commit, unordered=True), SCHEMA, options=options, operation="delete")
    return options


def seen(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in SCHEMA.names) for row in found.to_pylist())


def compacted(judge: HudiJudge, path: Path, options: dict[str, str]) -> list[tuple[Any, ...]]:
    judge.schedule_compaction(path, options)
    judge.run_compaction(path, options)
    return seen(judge.read(path, "read_optimized"))


def fallbacks(plan: Plan) -> dict[str, FallbackReason | None]:
    """Why slices are compacted in full, by partition. Nothing is left over in `d`, whose deletes have no event time."""
    found = {operation.partition.removeprefix("part="): operation for operation in plan.operations}
    assert {part for part, operation in found.items() if operation.left_overs} == {
        part for part, operation in found.items() if operation.fallback is None and part != "d"
    }
    return {part: operation.fallback for part, operation in found.items()}


@pytest.mark.parametrize(
    ("payload", "version"),
    [
        pytest.param(PARTIAL, 8, marks=pytest.mark.broad),
        pytest.param(NON_DEFAULTS, 8, marks=pytest.mark.proof),
        pytest.param(DMS, 8, marks=pytest.mark.proof),
        pytest.param(PARTIAL, 6, marks=pytest.mark.proof),
        pytest.param(NON_DEFAULTS, 6, marks=pytest.mark.proof),
        pytest.param(DMS, 6, marks=pytest.mark.proof),
    ],
)
def test_payloads_in_tables_of_hudi_1(payload: str, version: int, tmp_path: Path, judge_111: HudiJudge) -> None:
    path = tmp_path / "payloads"
    options = written(judge_111, path, payload, version)
    table = Table.open(str(path), OPTIONS)
    before = seen(judge_111.read(path))
    assert seen(table.snapshot().to_arrow()) == before

    plan = table.plan_compaction(format_timestamp(T))
    reordered = FallbackReason.PARTIAL_UPDATE_REORDERED
    of_deletes = None if payload == DMS else reordered
    of_late_rows = reordered if payload == PARTIAL else None
    assert fallbacks(plan) == {"a": None, "b": of_deletes, "c": of_late_rows, "d": None}
    table.compact(plan)
    assert seen(table.snapshot().to_arrow()) == before
    assert seen(judge_111.read(path)) == before
    assert seen(judge_111.read(path, "read_optimized")) == seen(table.read_optimized().to_arrow())
    assert table.verify(deep=True).ok

    judge_111.write(path, later_rows(), SCHEMA, options=options)
    gone_on = seen(table.snapshot().to_arrow())
    assert seen(judge_111.read(path)) == gone_on
    assert compacted(judge_111, path, options) == gone_on


@pytest.mark.proof
def test_the_payload_of_aws_dms_in_tables_of_hudi_0_15(
    tmp_path: Path, judge_015: HudiJudge, judge_111: HudiJudge
) -> None:
    """Hudi 0.15 compacts such a table, and fails to query log files with deletes: `No value present in Option`."""
    path, twin = tmp_path / "payloads", tmp_path / "twin"
    options = written(judge_015, path, DMS, 6)
    shutil.copytree(path, twin)
    expected = compacted(judge_015, twin, options)
    table = Table.open(str(path), OPTIONS)
    assert seen(table.snapshot().to_arrow()) == expected

    rising = [row for row in seen(judge_111.read(path)) if row[1] == "a"]
    plan = table.plan_compaction(format_timestamp(T))
    reasons = FallbackReason.DELETE_REORDERED, FallbackReason.LATE_RECORD_REORDERED
    assert fallbacks(plan) == {"a": None, "b": reasons[0], "c": reasons[1], "d": None}
    table.compact(plan)
    assert seen(table.snapshot().to_arrow()) == expected
    assert [row for row in seen(judge_111.read(path)) if row[1] == "a"] == rising
    assert seen(judge_015.read(path)) == expected
    assert table.verify(deep=True).ok
    for one in (path, twin):
        judge_015.write(one, later_rows(), SCHEMA, options=options)
    gone_on = seen(table.snapshot().to_arrow())
    assert compacted(judge_015, path, options) == gone_on
    assert compacted(judge_015, twin, options) == gone_on


@pytest.mark.broad
@pytest.mark.parametrize("payload", [PARTIAL, pytest.param(NON_DEFAULTS, marks=pytest.mark.proof)])
def test_hudi_0_15_and_1_read_other_payloads_differently(
    payload: str, tmp_path: Path, judge_015: HudiJudge, judge_111: HudiJudge
) -> None:
    """The reason for which eventide refuses them."""
    path = tmp_path / "payloads"
    written(judge_015, path, payload, 6)
    assert seen(judge_015.read(path)) != seen(judge_111.read(path))
    with pytest.raises(UnsupportedTableError, match=f"{payload} .*compact this table with the Hudi that writes it"):
        Table.open(str(path), OPTIONS).snapshot()
