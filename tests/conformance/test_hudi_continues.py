"""After a partial compaction, or in the middle of one, stock Hudi continues as if nothing had been there.

A twin of each table goes through the same writes and services of Hudi without eventide; both must show the same rows.
"""

from pathlib import Path

import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.engine_local import LocalEngine
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_core.ports import NoProgress
from support.judge import HudiJudge
from support.pasts import golden
from support.pasts.hudi_continues import rows, snapshots, write_on
from support.tables.thresholds import dividing_plan

PROOF = pytest.mark.proof
JUDGES = {"0.15.0": "judge_015", "1.1.1": "judge_111", "1.2.0": "judge_120"}


@pytest.fixture
def judge(request: pytest.FixtureRequest, bundle: str) -> HudiJudge:
    found: HudiJudge = request.getfixturevalue(JUDGES[bundle])
    return found


def twins(name: str, directory: Path) -> tuple[Path, Path, dict[str, str]]:
    path = golden.unpack(name, directory / "ours")
    twin = golden.unpack(name, directory / "twin")
    return path, twin, dict(golden.expected(name).options)


def opened(path: Path, options: dict[str, str]) -> Table:
    index = {"hoodie.index.type": options["hoodie.index.type"]} if "hoodie.index.type" in options else {}
    return Table.open(str(path), index)


@pytest.mark.parametrize(
    ("name", "mode", "bundle"),
    [
        pytest.param("v6_no_deletes", "copy", "0.15.0", marks=PROOF),
        pytest.param("v6_avro_defpay", "copy", "0.15.0", marks=PROOF),
        pytest.param("v6_111_avro_bucket", "copy", "1.1.1", marks=PROOF),
        pytest.param("v6_archived", "copy", "0.15.0", marks=PROOF),
        pytest.param("v8_event_bucket", "copy", "1.1.1", marks=PROOF),
        pytest.param("v8_commit_no_deletes", "prefix", "1.1.1", marks=PROOF),
        pytest.param("v9_archived", "copy", "1.1.1", marks=PROOF),
        pytest.param("v9_no_deletes", "prefix", "1.1.1", marks=pytest.mark.broad),
        pytest.param("v9_event_bucket", "copy", "1.1.1", marks=PROOF),
        pytest.param("v9_commit_bucket", "copy", "1.1.1", marks=PROOF),
        pytest.param("v9_event_simple", "copy", "1.1.1", marks=PROOF),
        pytest.param("v9_event_bloom", "copy", "1.1.1", marks=PROOF),
        pytest.param("v9_event_ordered_deletes", "copy", "1.1.1", marks=PROOF),
        pytest.param("v9_120_event", "copy", "1.2.0", marks=PROOF),
    ],
)
def test_hudi_writes_compacts_and_cleans_a_compacted_table(
    name: str, mode: str, tmp_path: Path, judge: HudiJudge
) -> None:
    path, twin, options = twins(name, tmp_path)
    table = opened(path, options)
    plan = dividing_plan(table, "event_ts", mode)
    assert any(operation.left_overs for operation in plan.operations)
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


@pytest.mark.parametrize("crash_at", [pytest.param(None, marks=PROOF), pytest.param(2, marks=PROOF), 5])
@pytest.mark.parametrize(
    ("name", "mode", "bundle"),
    [
        ("v6_no_deletes", "copy", "0.15.0"),
        pytest.param("v9_event_bucket", "copy", "1.1.1", marks=PROOF),
        ("v9_no_deletes", "prefix", "1.1.1"),
    ],
)
def test_hudi_runs_a_plan_that_eventide_made_and_left(
    name: str, mode: str, crash_at: int | None, tmp_path: Path, judge: HudiJudge
) -> None:
    """`crash_at`: None, the plan is only scheduled; otherwise, eventide dies before that write of the plan's execution."""
    path, _, options = twins(name, tmp_path)
    before = rows(judge.read(path))
    table = opened(path, options)
    scheduled = table.schedule(dividing_plan(table, "event_ts", mode))
    assert any(operation.left_overs for operation in scheduled.operations)
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
