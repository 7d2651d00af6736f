"""What stock Hudi reads after archivals of eventide.

docs/invariants.md states each bound of Hudi's archival.
"""

import random
import shutil
from pathlib import Path

import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.table.table_service import TableService
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.ports import NoProgress
from golden.histories import PLAIN
from support.faults.dead_actions import ACTIONS, EARLY, SHOWN, die, instants_after, make_table
from support.judge import HudiJudge, hudi_rs
from support.judge.options import MERGE_ON_READ, METADATA_TABLE, table_name, table_version
from support.pasts import golden
from support.run.campaign import IS_REPEATED, tries
from support.run.reach import reached

IDLE = {
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.time.generator.max_expected_clock_skew_time_ms": "0",
}


def shown(judge: HudiJudge, path: Path) -> list[tuple[object, ...]]:
    return sorted((row["id"], row["event_ts"]) for row in judge.read(path, "snapshot").to_pylist())


def active(path: Path) -> set[str]:
    return {write.requested_time for write in Table.open(str(path)).state().timeline.writes}


@pytest.mark.parametrize(
    ("version", "action"),
    [
        pytest.param(*case, marks=() if case in {(6, "deltacommit"), (9, "clustering")} else pytest.mark.broad)
        for case in ACTIONS
    ],
)
def test_stock_shows_no_row_of_a_dead_action_after_an_archival(
    version: int, action: str, tmp_path: Path, judge_111: HudiJudge
) -> None:
    path = tmp_path / "t"
    die(path, make_table(path, version), action)
    assert shown(judge_111, path) == SHOWN
    assert Table.open(str(path), EARLY).archive()
    assert shown(judge_111, path) == SHOWN


@pytest.mark.broad
@pytest.mark.campaign
@pytest.mark.parametrize("version", [6, 9])
def test_wherever_an_action_died_an_archival_changes_no_row_of_any_reader(
    version: int, tmp_path: Path, judge_111: HudiJudge
) -> None:
    make_table(tmp_path / "t", version)
    chance = random.Random(version if IS_REPEATED else None)
    actions = [action for of_version, action in ACTIONS if of_version == version]
    archivals = 0
    for number, instant in enumerate(instants_after(tmp_path / "t")):
        for action in chance.sample(actions, tries(1, len(actions))):
            path = tmp_path / f"{number}-{action}"
            shutil.copytree(tmp_path / "t", path)
            die(path, instant, action)
            archivals += bool(Table.open(str(path), EARLY).archive())
            read = sorted((row["id"], row["event_ts"]) for row in hudi_rs.read(path).to_pylist())
            assert (read, shown(judge_111, path)) == (SHOWN, SHOWN), f"{action} {number}"
    reached(f"version {version}: archivals beside a dead action, stock and hudi-rs agree", archivals)
    assert archivals


@pytest.mark.broad
@pytest.mark.parametrize(
    ("name", "bundle"),
    [
        ("v9_mdt", "judge_111"),
        ("v6_mdt", "judge_015"),
        pytest.param("v9_mdt", "judge_120", marks=pytest.mark.proof),
    ],
)
def test_stock_finds_the_schema_of_an_idle_table_of_its_own(
    name: str, bundle: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """It asks the last commit that isn't of a table service: without one, and without any file, it shows no row."""
    judge: HudiJudge = request.getfixturevalue(bundle)
    path = golden.unpack(name, tmp_path)
    before, known = shown(judge, path), active(path)
    idle(path)
    assert not known & active(path), "otherwise the timeline grows with every round"
    assert shown(judge, path) == before
    assert sorted((row["id"], row["event_ts"]) for row in hudi_rs.read(path).to_pylist()) == before


@pytest.mark.broad
@pytest.mark.parametrize(
    ("version", "bundle"),
    [(9, "judge_111"), (6, "judge_015"), pytest.param(9, "judge_120", marks=pytest.mark.proof)],
)
def test_stock_continues_an_idle_table_with_an_empty_metadata_compaction(
    version: int, bundle: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(bundle)
    path = tmp_path / "t"
    make_table(path, version)
    assemble(str(path), IDLE).metadata_rebuilder.rebuild()
    known = active(path)
    idle(path)
    assert not known & active(path)
    assert compactions_without_files(path)
    assert shown(judge, path) == SHOWN
    options = {**MERGE_ON_READ, **METADATA_TABLE, **table_name("t"), **table_version(version)}
    options |= {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
    row = {"id": "new", "part": "a", "event_ts": 2 * 10**12, "val": "on", "amount": 1.0}
    for _ in range(2):
        judge.write(path, [row], PLAIN, options=options)
        assert shown(judge, path) == sorted([*SHOWN, ("new", 2 * 10**12)])
    assert len(Table.open(str(path)).snapshot().to_arrow()) == len(SHOWN) + 1
    assert Table.open(str(path), IDLE).verify().ok


def idle(path: Path) -> None:
    """Rounds of the table service whose cuts change no file."""
    for _ in range(14):
        service = TableService(assemble(str(path), IDLE), CompactionRequest(None, 0, LinkChoice.COPY))
        assert service.round(NoProgress()).troubles == ()


def compactions_without_files(path: Path) -> list[str]:
    state = assemble(str(path), IDLE).files.metadata_table.load()
    made = {one.base_instant for name in state.facts.partitions for one in state.view(name).latest_slices()}
    commits = [i.requested_time for i in state.facts.timeline.completed if i.action == "commit"]
    return [time for time in commits if time not in made]
