"""After a partial compaction, or in the middle of one, stock Hudi goes on as if nothing had been there.

A twin of each table goes through the same writes and services of Hudi without eventide; both must show the same rows.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.engine_local import LocalEngine
from eventide.progress import NoProgress
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from golden.histories import EPOCH_MS, PLAIN
from golden.readings import as_json
from support import golden
from support.judge import HudiJudge, hudi_rs
from support.thresholds import dividing_plan

JUDGES = {"0.15.0": "judge_015", "1.1.1": "judge_111", "1.2.0": "judge_120"}
LATE_MS = EPOCH_MS + 60_000
NEW_MS = EPOCH_MS + 9_000_000


@pytest.fixture
def judge(request: pytest.FixtureRequest, bundle: str) -> HudiJudge:
    found: HudiJudge = request.getfixturevalue(JUDGES[bundle])
    return found


def rows(found: pa.Table) -> Counter[tuple[str, ...]]:
    return Counter(tuple(repr(as_json(row[name])) for name in PLAIN.names) for row in found.to_pylist())


def snapshots(judge: HudiJudge, path: Path) -> Counter[tuple[str, ...]]:
    """What Hudi reads, after hudi-rs and eventide have been seen to read the same."""
    seen = rows(judge.read(path))
    assert rows(hudi_rs.read(path)) == seen
    assert rows(Table.open(str(path)).snapshot().to_arrow()) == seen
    return seen


def row(key: int, event_ts: int, val: str) -> dict[str, Any]:
    return {"id": f"k{key:05d}", "part": "ab"[key % 2], "event_ts": event_ts, "val": val, "amount": float(key)}


def write_on(judge: HudiJudge, path: Path, options: dict[str, str]) -> None:
    """Newer and late versions of keys of the base, new keys, and deletes."""
    schema = pa.schema([*PLAIN, pa.field("_hoodie_is_deleted", pa.bool_())]) if _has_ordered_deletes(path) else PLAIN
    late = [row(key, LATE_MS + key, "late") for key in range(20, 40, 3)]
    newer = [row(key, NEW_MS + key, "newer") for key in range(40, 70, 3)]
    inserts = [row(key, NEW_MS + key, "new") for key in range(50_000, 50_006)]
    changes = [{"_hoodie_is_deleted": False, **found} for found in (*late, *newer, *inserts)]
    judge.write(path, pa.Table.from_pylist(changes, schema=schema), options=options)
    gone = [{"_hoodie_is_deleted": False, **row(key, NEW_MS, "gone")} for key in (41, 43, 50_001)]
    judge.write(path, pa.Table.from_pylist(gone, schema=schema), options=options, operation="delete")


def _has_ordered_deletes(path: Path) -> bool:
    return "ordered_deletes" in path.name


def twins(name: str, folder: Path) -> tuple[Path, Path, dict[str, str]]:
    path = golden.unpack(name, folder / "ours")
    twin = golden.unpack(name, folder / "twin")
    return path, twin, dict(golden.expected(name).options)


def opened(path: Path, options: dict[str, str]) -> Table:
    index = {"hoodie.index.type": options["hoodie.index.type"]} if "hoodie.index.type" in options else {}
    return Table.open(str(path), index)


@pytest.mark.parametrize(
    ("name", "mode", "bundle"),
    [
        ("v6_no_deletes", "copy", "0.15.0"),
        ("v6_avro_defpay", "copy", "0.15.0"),
        ("v6_111_avro_bucket", "copy", "1.1.1"),
        ("v6_archived", "copy", "0.15.0"),
        ("v8_event_bucket", "copy", "1.1.1"),
        ("v8_commit_no_deletes", "prefix", "1.1.1"),
        ("v9_archived", "copy", "1.1.1"),
        ("v9_no_deletes", "prefix", "1.1.1"),
        ("v9_event_bucket", "copy", "1.1.1"),
        ("v9_commit_bucket", "copy", "1.1.1"),
        ("v9_event_simple", "copy", "1.1.1"),
        ("v9_event_bloom", "copy", "1.1.1"),
        ("v9_event_ordered_deletes", "copy", "1.1.1"),
        ("v9_120_event", "copy", "1.2.0"),
    ],
)
def test_hudi_writes_compacts_and_cleans_a_compacted_table(
    name: str, mode: str, tmp_path: Path, judge: HudiJudge
) -> None:
    path, twin, options = twins(name, tmp_path)
    table = opened(path, options)
    plan = dividing_plan(table, "event_ts", mode)
    assert any(operation.remaining for operation in plan.operations)
    table.compact(plan)
    for found in (path, twin):
        write_on(judge, found, options)
    assert snapshots(judge, path) == snapshots(judge, twin)
    for found in (path, twin):
        judge.schedule_compaction(found, options)
        judge.run_compaction(found, options)
    everything = snapshots(judge, path)
    assert everything == snapshots(judge, twin)
    assert rows(judge.read(path, "read_optimized")) == everything
    files = set(path.rglob("part=*/*"))
    judge.sql(f"create table {name} using hudi location '{path}'")
    judge.call("run_clean", table=name, clean_policy="KEEP_LATEST_FILE_VERSIONS", file_versions_retained=1)
    judge.sql(f"drop table {name}")
    assert set(path.rglob("part=*/*")) < files
    assert snapshots(judge, path) == everything


@pytest.mark.parametrize("crash_at", [None, 2, 5])
@pytest.mark.parametrize(
    ("name", "mode", "bundle"),
    [("v6_no_deletes", "copy", "0.15.0"), ("v9_event_bucket", "copy", "1.1.1"), ("v9_no_deletes", "prefix", "1.1.1")],
)
def test_hudi_runs_a_plan_that_eventide_made_and_left(
    name: str, mode: str, crash_at: int | None, tmp_path: Path, judge: HudiJudge
) -> None:
    """`crash_at`: None, the plan is only scheduled; else eventide dies before that write of the plan's execution."""
    path, _, options = twins(name, tmp_path)
    before = rows(judge.read(path))
    table = opened(path, options)
    scheduled = table.schedule(dividing_plan(table, "event_ts", mode))
    assert any(operation.remaining for operation in scheduled.operations)
    if crash_at is not None:
        # The lock, its release and the inflight file come before the first write of a task.
        storage = FaultyStorage(LocalStorage(str(path)), FaultPlan(writes={3 + crash_at: Fault.CRASH_BEFORE}))
        application = assemble(str(path), {}, storage=storage, engine=LocalEngine(1))
        with pytest.raises(SimulatedCrash):
            application.runner.execute(scheduled.instant, NoProgress())
    assert snapshots(judge, path) == before
    judge.run_compaction(path, options)
    assert snapshots(judge, path) == before
    pending = [i for i in judge.timeline(path) if i.state != "COMPLETED"]
    assert pending == []
    read_optimized = rows(judge.read(path, "read_optimized"))
    assert (read_optimized == before) == (mode != "prefix")
