"""A table of Hudi's that eventide compacted in part is damaged and repaired: every reader shows the rows of before, and
Hudi writes on and compacts as on a twin that was never damaged.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from eventide import Table
from support.faults.lost_settings import answers_of, lose_settings
from support.judge import HudiJudge, hudi_rs
from support.pasts import golden
from support.pasts.hudi_continues import rows, snapshots, write_on
from support.tables.thresholds import dividing_plan

BROAD = pytest.mark.broad
PROOF = pytest.mark.proof
JUDGES = {"0.15.0": "judge_015", "1.1.1": "judge_111", "1.2.0": "judge_120"}


def _timeline(path: Path) -> Path:
    later = path / ".hoodie" / "timeline"
    return later if later.is_dir() else path / ".hoodie"


def torn_delta_commit(path: Path) -> None:
    commit = max(_timeline(path).glob("*.deltacommit"))
    commit.write_bytes(commit.read_bytes()[:80])


def lost_delta_commit(path: Path) -> None:
    """The first one, on whose files all others build."""
    min(_timeline(path).glob("*.deltacommit")).unlink()


def torn_compaction(path: Path) -> None:
    commit = max(_timeline(path).glob("*.commit"))
    commit.write_bytes(commit.read_bytes()[:80])


def lost_base_file(path: Path) -> None:
    (instant,) = {name.name[:17] for name in _timeline(path).glob("*.compaction.requested")}
    next(path.rglob(f"*_{instant}.parquet")).unlink()


def lost_marks(path: Path) -> None:
    for mark in path.rglob(".hoodie_partition_metadata*"):
        mark.unlink()


def stray_files(path: Path) -> None:
    base = next(path.rglob("*.parquet"))
    group, _, end = base.name.split("_")
    base.with_name(f"{group}_7-7-7_{end}").write_bytes(base.read_bytes())


def check_that_hudi_goes_on(judge: HudiJudge, path: Path, twin: Path, options: dict[str, str]) -> None:
    """Hudi writes on and compacts, and shows the same rows of the repaired table as of its undamaged twin."""
    for table in (path, twin):
        write_on(judge, table, options)
        judge.schedule_compaction(table, options)
        judge.run_compaction(table, options)
    assert snapshots(judge, path) == snapshots(judge, twin)
    assert Table.open(str(path)).verify(deep=True).ok


def lost_and_torn(path: Path) -> None:
    for damage in (lost_delta_commit, torn_delta_commit, torn_compaction, lost_base_file, lost_marks):
        damage(path)


def torn_with_stray_files(path: Path) -> None:
    for damage in (torn_delta_commit, torn_compaction, lost_base_file, lost_marks, stray_files):
        damage(path)


@pytest.mark.parametrize(
    ("name", "mode", "bundle", "damage"),
    [
        pytest.param("v6_no_deletes", "copy", "0.15.0", torn_with_stray_files, marks=BROAD),
        pytest.param("v6_no_deletes", "copy", "0.15.0", lost_and_torn, marks=PROOF),
        pytest.param("v9_no_deletes", "prefix", "1.1.1", torn_with_stray_files, marks=PROOF),
        pytest.param("v9_event_bucket", "copy", "1.1.1", torn_compaction, marks=PROOF),
        pytest.param("v9_120_event", "copy", "1.2.0", lost_and_torn, marks=BROAD),
        pytest.param("v8_event_bucket", "copy", "1.1.1", lost_and_torn, marks=PROOF),
    ],
)
def test_hudi_continues_with_a_repaired_table(
    name: str,
    mode: str,
    bundle: str,
    damage: Callable[[Path], None],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    judge: HudiJudge = request.getfixturevalue(JUDGES[bundle])
    path, twin = (golden.unpack(name, tmp_path / directory) for directory in ("ours", "twin"))
    options = dict(golden.expected(name).options)
    for found in (path, twin):
        index = {"hoodie.index.type": options["hoodie.index.type"]} if "hoodie.index.type" in options else {}
        table = Table.open(str(found), index)
        table.compact(dividing_plan(table, "event_ts", mode))
    before = snapshots(judge, path)
    damage(path)

    done = Table.open(str(path)).repair(deep=True, apply=True)
    assert done.verification.ok, done.verification.failed
    assert done.repairs
    assert not done.unrepaired
    assert snapshots(judge, path) == before == snapshots(judge, twin)
    assert hudi_rs.read(path).num_rows == judge.read(path).num_rows

    check_that_hudi_goes_on(judge, path, twin, options)


@pytest.mark.parametrize(
    ("name", "bundle"),
    [
        pytest.param("v6_mdt", "0.15.0", marks=BROAD),
        pytest.param("v9_mdt", "1.1.1", marks=PROOF),
        pytest.param("v9_event_bucket", "1.1.1", marks=PROOF),
        pytest.param("v9_120_event", "1.2.0", marks=PROOF),
    ],
)
def test_a_base_file_of_hudis_own_compaction_is_merged_again(
    name: str, bundle: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """One is lost, one is cut off. Both have the rows that Hudi had merged."""
    judge: HudiJudge = request.getfixturevalue(JUDGES[bundle])
    path, twin = (golden.unpack(name, tmp_path / directory) for directory in ("ours", "twin"))
    options = dict(golden.expected(name).options)
    for found in (path, twin):
        judge.schedule_compaction(found, options)
        judge.run_compaction(found, options)
    before, optimized = snapshots(judge, path), rows(judge.read(path, "read_optimized"))
    instant = max(one.name for one in _timeline(path).glob("*.compaction.requested"))[:17]
    lost, damaged = sorted(path.rglob(f"*_{instant}.parquet"))[:2]
    lost.unlink()
    damaged.write_bytes(damaged.read_bytes()[:-50])

    table = Table.open(str(path))
    done = table.repair(apply=True)
    assert done.verification.ok, done.verification.failed
    assert any("merges 2 base files of the compaction" in one.action for one in done.repairs)
    assert not done.unrepaired
    assert snapshots(judge, path) == before
    assert rows(judge.read(path, "read_optimized")) == optimized
    assert rows(table.read_optimized().to_arrow()) == optimized
    assert table.verify(deep=True).ok

    check_that_hudi_goes_on(judge, path, twin, options)


@pytest.mark.parametrize(
    ("name", "bundle"),
    [
        pytest.param("v6_mdt", "0.15.0", marks=BROAD),
        pytest.param("v8_event_bucket", "1.1.1", marks=PROOF),
        pytest.param("v9_mdt", "1.1.1", marks=PROOF),
        pytest.param("v9_120_event", "1.2.0", marks=PROOF),
    ],
)
def test_hudi_continues_with_settings_that_were_lost(
    name: str, bundle: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(JUDGES[bundle])
    path, twin = (golden.unpack(name, tmp_path / directory) for directory in ("ours", "twin"))
    options = dict(golden.expected(name).options)
    settings = lose_settings(path)
    stated: dict[str, str] = {}
    while missing := Table.recover_settings(str(path), stated).missing:  # some depend on others
        stated |= answers_of(settings, missing)
    Table.recover_settings(str(path), stated, apply=True)
    assert snapshots(judge, path) == snapshots(judge, twin)
    assert hudi_rs.read(path).num_rows == judge.read(path).num_rows

    check_that_hudi_goes_on(judge, path, twin, options)
