"""Tables with change data capture: eventide compacts them, and Hudi reads the same changes as before, and continues.

Hudi 1.1 writes change logs (`.cdc`) beside the base files of its own compactions: they are skipped, and cleaned.
"""

import functools
import io
import json
import os
import shutil
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.testing.histories import NoLock
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import BusyError, UnsupportedTableError
from eventide_core.table.files.log_block import BlockType, HeaderKey, read_blocks
from eventide_core.table.timeline.contents.plans import FallbackReason
from support.judge import HudiJudge
from support.judge.options import (
    BUCKET_INDEX,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    METADATA_TABLE,
    NO_METADATA_TABLE,
    SIMPLE_INDEX,
    table_name,
    table_version,
)
from support.run.command_line import content_of
from support.values.columns import schema_of

T_MS = 1_700_000_000_000
SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64(), val=pa.string())
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
        pytest.param("0.15.0", 6, "DATA_BEFORE_AFTER", marks=pytest.mark.proof),
        pytest.param("0.15.0", 6, "OP_KEY_ONLY", marks=pytest.mark.proof),
        pytest.param("1.1.1", 9, "DATA_BEFORE_AFTER", marks=pytest.mark.proof),
        pytest.param("1.1.1", 9, "OP_KEY_ONLY", marks=pytest.mark.proof),
        pytest.param("1.1.1", 6, "DATA_BEFORE", marks=pytest.mark.proof),
        pytest.param("1.2.0", 9, "DATA_BEFORE", marks=pytest.mark.proof),
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


def bucketed(
    judge: HudiJudge, path: Path, version: int, mode: str, metadata: dict[str, str] = NO_METADATA_TABLE
) -> dict[str, str]:
    """A table with a bucket index, in whose only file group a key is changed twice, one is late, one new, one deleted."""
    options = capturing(version, mode, BUCKET_INDEX | {"hoodie.bucket.index.num.buckets": "1"}) | metadata
    base = rows(*((f"k{number}", 100, "base") for number in range(6)))
    judge.write(path, base, options=options, operation="insert", mode="overwrite")
    judge.write(path, rows(("k0", 200, "one"), ("k1", 50, "late"), ("k9", 200, "new")), options=options)
    judge.write(path, rows(("k4", 300, "gone")), options=options, operation="delete")
    judge.write(path, rows(("k0", 5000, "two"), ("k2", 6000, "two")), options=options)
    return options


def logged(path: Path) -> Counter[tuple[str, ...]]:
    """The records of all change logs, without the compaction's instant."""
    found: Counter[tuple[str, ...]] = Counter()
    for file in path.rglob("*.cdc"):
        data = file.read_bytes()
        read = functools.partial(LocalStorage(file.parent).read_range, file.name)
        (block,) = read_blocks(read, len(data), file.name, is_strict=True)
        assert block.block_type is BlockType.CDC_DATA
        schema = fastavro.parse_schema(json.loads(block.header[HeaderKey.SCHEMA]))
        content = io.BytesIO(data[block.content_offset : block.content_offset + block.content_length])
        version, count = struct.unpack(">ii", content.read(8))
        assert version == 3
        for _ in range(count):
            (length,) = struct.unpack(">i", content.read(4))
            record = fastavro.schemaless_reader(io.BytesIO(content.read(length)), schema)
            assert isinstance(record, dict)
            assert record.pop("ts_ms", block.header[HeaderKey.INSTANT_TIME]) == block.header[HeaderKey.INSTANT_TIME]
            found[tuple(f"{name}={record[name]}" for name in sorted(record))] += 1
        assert not content.read(1)
    return found


@pytest.mark.parametrize(
    ("mode", "metadata", "is_planned_by_hudi"),
    [
        pytest.param("DATA_BEFORE_AFTER", METADATA_TABLE, False, marks=pytest.mark.proof),
        pytest.param("DATA_BEFORE_AFTER", NO_METADATA_TABLE, True, marks=pytest.mark.proof),
        pytest.param("DATA_BEFORE", NO_METADATA_TABLE, False, marks=pytest.mark.proof),
        pytest.param("OP_KEY_ONLY", NO_METADATA_TABLE, False, marks=pytest.mark.proof),
    ],
)
def test_under_a_bucket_index_compactions_write_the_change_logs_of_hudi(
    mode: str, metadata: dict[str, str], tmp_path: Path, judge_111: HudiJudge, *, is_planned_by_hudi: bool
) -> None:
    path, twin = tmp_path / "captured", tmp_path / "twin"
    options = bucketed(judge_111, path, 9, mode, metadata)
    shutil.copytree(path, twin)
    before, snapshot = changes(judge_111, path), shown(judge_111.read(path))
    for found in (twin, path) if is_planned_by_hudi else (twin,):
        judge_111.schedule_compaction(found, options)
    judge_111.run_compaction(twin, options)
    opened(path).compact(before=T_MS + 10_000)
    assert logged(path) == logged(twin)
    assert Counter(row for entry in logged(path) for row in entry if row.startswith("op=")) == {
        "op=u": 2,
        "op=i": 1,
        "op=d": 1,
    }
    splits, of_twin = judge_111.change_splits(path), judge_111.change_splits(twin)
    assert Counter(case for _, _, case, _ in splits) == Counter(case for _, _, case, _ in of_twin)
    (compacted,) = [split for split in splits if split[2] == "AS_IS"]
    assert [file.rpartition("/")[2] for file in compacted[3]] == [file.name for file in path.rglob("*.cdc")]
    assert changes(judge_111, path) == before
    assert shown(judge_111.read(path)) == snapshot
    assert opened(path).verify(deep=True).ok

    judge_111.write(path, rows(("k3", 8000, "three")), options=options | COMPACTED)
    table = opened(path)
    assert changes_of(table.changes("000").to_arrow()) == changes(judge_111, path)
    assert len([split for split in judge_111.change_splits(path) if split[2] == "AS_IS"]) == 2
    judge_111.write(path, rows(("k3", 9000, "four")), options=options)
    table.clean(retain_commits=1)
    assert len(list(path.rglob("*.cdc"))) == 1
    assert table.verify(deep=True).ok


@pytest.mark.parametrize("cut", [pytest.param("file", marks=pytest.mark.broad), "exact"])
def test_compactions_by_event_time_log_each_change_once(cut: Any, tmp_path: Path, judge_111: HudiJudge) -> None:
    path = tmp_path / "captured"
    bucketed(judge_111, path, 9, "DATA_BEFORE_AFTER")
    before = changes(judge_111, path)
    table = opened(path)
    # T lies within the last log file only for the exact cut, which would merge a part of it.
    plan = table.plan_compaction(T_MS + (1000 if cut == "file" else 5500), cut=cut)
    assert bool(plan.operations[0].left_overs) == (cut == "file")
    assert plan.operations[0].fallback == (None if cut == "file" else FallbackReason.CHANGE_CAPTURE)
    table.compact(plan)
    first = logged(path)
    table.compact(before=T_MS + 10_000)
    ops = Counter(row for entry in logged(path).elements() for row in entry if row.startswith("op="))
    assert ops == {"op=u": 3 if cut == "file" else 2, "op=i": 1, "op=d": 1}
    assert (logged(path) == first) == (cut == "exact")
    assert changes(judge_111, path) == before
    assert table.verify(deep=True).ok
    if cut == "file":
        last = table.state().timeline.writes[-1].requested_time
        assert [last in file for file in table.rollback(last) if file.endswith(".cdc")] == [True]
        assert logged(path) == first
        assert changes(judge_111, path) == before
        assert table.verify(deep=True).ok


@pytest.mark.broad
@pytest.mark.parametrize("version", [6, 9])
def test_a_compaction_that_breaks_off_and_runs_again_leaves_one_change_log(
    version: int, tmp_path: Path, judge_111: HudiJudge
) -> None:
    made = tmp_path / "made"
    bucketed(judge_111, made, version, "DATA_BEFORE_AFTER")
    path = tmp_path / "captured"
    number = 0
    for number in range(100):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(made, path)
        dying = FaultyStorage(LocalStorage(path), FaultPlan(writes={number: Fault.CRASH_BEFORE}))
        options = {"hoodie.payload.event.time.field": "event_ts"}
        table = Table(str(path), options, assemble(str(path), options, storage=dying, lock=NoLock()))
        try:
            table.compact(before=T_MS + 1000)
            break
        except SimulatedCrash:
            pass
        for heartbeat in (path / ".hoodie/.heartbeat").glob("*"):
            os.utime(heartbeat, (0, 0))  # its process has died long ago
        if number % 2:
            pending = [plan.requested_time for plan in opened(path).state().timeline.pending_plans]
            for instant in pending:
                try:
                    opened(path).rollback(instant)
                    assert not list(path.rglob("*.cdc")), number
                except BusyError:
                    assert list(path.rglob("*.cdc")), "the outcome is claimed"
        opened(path).compact(before=T_MS + 1000)
        assert len(list(path.rglob("*.cdc"))) == 1, number
        assert opened(path).verify(deep=True).ok, number
    assert number > 5


@pytest.mark.broad
def test_a_write_from_which_hudi_can_read_no_changes_is_refused_and_writes_nothing(
    judge_111: HudiJudge, tmp_path: Path
) -> None:
    path, options = tmp_path / "captured", capturing(9, "DATA_BEFORE_AFTER", BUCKET_INDEX)
    judge_111.write(path, rows(("k0", 100, "base")), options=options, operation="insert", mode="overwrite")
    judge_111.write(path, rows(("k0", 200, "one")), options=options)
    table, before = opened(path), content_of(path)
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.table\.cdc\.enabled=true"):
        table.upsert(rows(("k0", 300, "two")))
    assert content_of(path) == before
    assert shown(table.snapshot().to_arrow()) == [("k0", "one")]
