"""Tables with change data capture: eventide compacts them, and Hudi reads the same changes as before, and continues.

Hudi 1.1 writes change logs (`.cdc`) beside the base files of its own compactions: they are skipped, and cleaned.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import UnsupportedTableError
from support.command_line import content_of
from support.judge import HudiJudge
from support.judge.options import (
    BUCKET_INDEX,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    SIMPLE_INDEX,
    table_name,
    table_version,
)

T_MS = 1_700_000_000_000
COLUMNS: list[pa.Field[Any]] = [
    pa.field("id", pa.string()),
    pa.field("part", pa.string()),
    pa.field("event_ts", pa.int64()),
    pa.field("val", pa.string()),
]
SCHEMA = pa.schema(COLUMNS)
COMPACTED = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
JUDGES = {"0.15.0": "judge_015", "1.1.1": "judge_111", "1.2.0": "judge_120"}

Change = tuple[str, str, str, str]
Row = tuple[str, int, str]


def rows(*values: Row) -> pa.Table:
    found = [dict(zip(SCHEMA.names, (key, "a", T_MS + ms, val), strict=True)) for key, ms, val in values]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def capturing(version: int, mode: str, index: dict[str, str]) -> dict[str, str]:
    """The options of a table; 0.15 takes the mode in small letters."""
    ordering = DEFAULT_PAYLOAD if version == 6 else table_version(version) | EVENT_TIME_ORDERING
    logging = mode.lower() if version == 6 else mode
    return (
        MERGE_ON_READ
        | index
        | NO_METADATA_TABLE
        | ordering
        | table_name("captured")
        | {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": logging}
    )


def changes(judge: HudiJudge, path: Path) -> Counter[Change]:
    """What Hudi says has changed: instant, operation, and the columns before and after."""
    cdc = {"hoodie.datasource.query.incremental.format": "cdc"}
    return changes_of(judge.read(path, "incremental", begin="000", options=cdc))


def changes_of(found: pa.Table) -> Counter[Change]:
    return Counter((row["ts_ms"], row["op"], image(row["before"]), image(row["after"])) for row in found.to_pylist())


def image(text: str | None) -> str:
    return "" if text is None else repr({name: json.loads(text)[name] for name in SCHEMA.names})


def shown(found: pa.Table) -> list[tuple[str, str]]:
    return sorted((row["id"], row["val"]) for row in found.to_pylist())


def opened(path: Path) -> Table:
    return Table.open(str(path), {"hoodie.payload.event.time.field": "event_ts"})


@pytest.mark.parametrize(
    ("hudi", "version", "mode"),
    [
        pytest.param("0.15.0", 6, "DATA_BEFORE_AFTER", marks=pytest.mark.broad),
        pytest.param("0.15.0", 6, "OP_KEY_ONLY", marks=pytest.mark.proof),
        pytest.param("1.1.1", 9, "DATA_BEFORE_AFTER", marks=pytest.mark.proof),
        pytest.param("1.1.1", 9, "OP_KEY_ONLY", marks=pytest.mark.broad),
        pytest.param("1.1.1", 6, "DATA_BEFORE", marks=pytest.mark.proof),
        pytest.param("1.2.0", 9, "DATA_BEFORE", marks=pytest.mark.broad),
    ],
)
def test_hudi_reads_the_same_changes_after_a_compaction_and_continues(
    hudi: str, version: int, mode: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(JUDGES[hudi])
    path, options = tmp_path / "captured", capturing(version, mode, SIMPLE_INDEX)
    base = rows(*((f"k{number}", 100, "base") for number in range(6)))
    judge.write(path, base, options=options, operation="insert", mode="overwrite")
    judge.write(path, rows(("k0", 200, "one"), ("k1", 50, "late"), ("k9", 200, "new")), options=options)
    judge.write(path, rows(("k0", 5000, "two"), ("k2", 5000, "two")), options=options)
    before, snapshot = changes(judge, path), shown(judge.read(path))
    assert sum(before.values()) == 10

    table = opened(path)
    assert changes_of(table.changes("000").to_arrow()) == before
    plan = table.plan_compaction(T_MS + 1000)
    assert sum(len(operation.left_overs) for operation in plan.operations) == 1
    table.compact(plan)
    assert changes(judge, path) == before
    assert shown(judge.read(path)) == shown(table.snapshot().to_arrow()) == snapshot

    judge.write(path, rows(("k0", 6000, "three"), ("k9", 6000, "three")), options=options)
    judge.write(path, rows(("k4", 7000, "gone")), options=options | COMPACTED, operation="delete")
    judge.write(path, rows(("k3", 8000, "four")), options=options)
    assert changes_of(table.changes("000").to_arrow()) == changes(judge, path)
    after = changes(judge, path) - before
    assert Counter((operation, bool(old), bool(new)) for _, operation, old, new in after.elements()) == {
        ("u", True, True): 3,
        ("d", True, False): 1,
    }
    assert shown(judge.read(path)) == shown(table.snapshot().to_arrow())
    change_files = list(path.rglob("*.cdc"))
    assert len(change_files) == (2 if hudi >= "1.1" else 0)  # one for each file group with logs
    assert table.verify(deep=True).ok

    table.compact(before=T_MS + 20_000)
    judge.write(path, rows(("k3", 9000, "five")), options=options)
    table.clean(retain_commits=1)
    assert len([file for file in change_files if file.exists()]) == len(change_files) // 2  # k9's slice is still in use
    assert shown(judge.read(path)) == shown(table.snapshot().to_arrow())
    assert table.verify(deep=True).ok


@pytest.mark.broad
def test_what_would_leave_changes_out_is_refused_and_writes_nothing(judge_111: HudiJudge, tmp_path: Path) -> None:
    path, options = tmp_path / "captured", capturing(9, "DATA_BEFORE_AFTER", BUCKET_INDEX)
    judge_111.write(path, rows(("k0", 100, "base")), options=options, operation="insert", mode="overwrite")
    judge_111.write(path, rows(("k0", 200, "one")), options=options)
    table, before = opened(path), content_of(path)
    for refused in (
        lambda: table.plan_compaction(T_MS + 1000),
        lambda: table.compact(before=T_MS + 1000),
        lambda: table.upsert(rows(("k0", 300, "two"))),
    ):
        with pytest.raises(UnsupportedTableError, match=r"hoodie\.table\.cdc\.enabled=true"):
            refused()
    assert content_of(path) == before
    assert shown(table.snapshot().to_arrow()) == [("k0", "one")]
