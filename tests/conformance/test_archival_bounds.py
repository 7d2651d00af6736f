"""What stock Hudi reads after archivals of eventide, and that its own archival keeps no more than eventide's.

docs/invariants.md states each bound of Hudi's archival.
"""

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
from support import golden
from support.dead_actions import ACTIONS, EARLY, SHOWN, die, make_table
from support.judge import HudiJudge
from support.judge.deeds import call_on

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
@pytest.mark.parametrize(("version", "action"), [(9, "clustering"), (9, "deltacommit"), (9, None)])
def test_stock_archives_no_less_than_eventide(
    version: int, action: str | None, tmp_path: Path, judge_111: HudiJudge
) -> None:
    """By the same options: what it keeps, eventide keeps, too."""
    path = tmp_path / "t"
    instant = make_table(path, version)
    if action is not None:
        die(path, instant, action)
    by_stock = shutil.copytree(path, tmp_path / "by stock")
    Table.open(str(path), EARLY).archive()
    settings = {key: value for key, value in EARLY.items() if "time.generator" not in key}
    counts = {"min_commits": 2, "max_commits": 3, "retain_commits": 1, "enable_metadata": False}
    judge_111.together([(call_on(by_stock, "archive_commits", settings, **counts),)])
    assert active(path) >= active(by_stock)
    assert shown(judge_111, by_stock) == shown(judge_111, path) == SHOWN


@pytest.mark.broad
@pytest.mark.parametrize(
    ("name", "bundle"),
    [
        ("v9_mdt", "judge_111"),
        ("v6_mdt", "judge_015"),
        pytest.param("v9_mdt", "judge_120", marks=pytest.mark.proof),
    ],
)
def test_stock_continues_a_table_whose_metadata_table_was_compacted_without_records(
    name: str, bundle: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Idle rounds of the table service: their cuts change no file."""
    judge: HudiJudge = request.getfixturevalue(bundle)
    path = golden.unpack(name, tmp_path)
    before, known = shown(judge, path), active(path)
    for _ in range(14):
        service = TableService(assemble(str(path), IDLE), CompactionRequest(None, 0, LinkChoice.COPY))
        assert service.round(NoProgress()).troubles == ()
    assert not known & active(path)
    assert _compactions_without_files(path)
    assert shown(judge, path) == before
    options = {**golden.expected(name).options}
    row = {"id": "new", "part": "a", "event_ts": 2 * 10**12, "val": "on", "amount": 1.0}
    for _ in range(3):
        judge.write(path, [row], PLAIN, options=options)
        assert shown(judge, path) == sorted([*before, ("new", 2 * 10**12)])
    assert len(Table.open(str(path)).snapshot().to_arrow()) == len(before) + 1
    assert Table.open(str(path), IDLE).verify().ok


def _compactions_without_files(path: Path) -> list[str]:
    state = assemble(str(path), IDLE).files.metadata_table.load()
    made = {one.base_instant for name in state.facts.partitions for one in state.view(name).latest_slices()}
    commits = [i.requested_time for i in state.facts.timeline.completed if i.action == "commit"]
    return [time for time in commits if time not in made]
