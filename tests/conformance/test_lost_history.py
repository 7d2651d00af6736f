"""A lost file of the archived timeline: neither Hudi nor eventide reads the table, until a repair writes the file again."""

from pathlib import Path

import pytest

from eventide import Table
from eventide_core.errors import CorruptTimelineError
from golden.histories import EPOCH_MS, PLAIN
from support.judge import HudiJudge, hudi_rs
from support.judge.hudi_judge import JudgeError
from support.judge.options import ARCHIVED_EARLY
from support.pasts import golden
from support.pasts.hudi_continues import rows as rows_of
from support.run.command_line import run

HISTORY = ".hoodie/timeline/history"


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(0, marks=pytest.mark.proof),
        pytest.param(1, marks=pytest.mark.broad),
        pytest.param(2, marks=pytest.mark.proof),
    ],
)
def test_hudi_goes_on_after_the_repair(number: int, tmp_path: Path, judge_111: HudiJudge) -> None:
    path = golden.unpack("v9_archived", tmp_path)
    seen = rows_of(Table.open(path).snapshot().to_arrow())
    file = sorted(path.glob(f"{HISTORY}/*.parquet"))[number]
    file.unlink()
    with pytest.raises(
        CorruptTimelineError, match=r"its manifest names a file that is missing .* run `table\.repair\(\)`"
    ):
        Table.open(path).snapshot()
    with pytest.raises(JudgeError, match=file.name):
        judge_111.read(path)

    done = Table.open(path).repair(apply=True)
    assert [(one.check, one.path) for one in done.repairs] == [("timeline", f"{HISTORY}/{file.name}")]
    assert done.verification.ok
    assert Table.open(path).verify(deep=True).ok
    for shown in (Table.open(path).snapshot().to_arrow(), hudi_rs.read(path), judge_111.read(path)):
        assert rows_of(shown) == seen

    options = {**golden.expected("v9_archived").options, **ARCHIVED_EARLY, "hoodie.timeline.compaction.batch.size": "2"}
    for nth in range(5):
        row = {"id": f"k{nth:05d}", "part": "ab"[nth % 2], "event_ts": EPOCH_MS * 2 + nth, "val": "on", "amount": 1.0}
        judge_111.write(path, [row], PLAIN, options=options)
    table = Table.open(path)
    ours = rows_of(table.snapshot().to_arrow())
    assert ours == rows_of(judge_111.read(path))
    assert len(ours) >= len(seen)
    table.compact(before=EPOCH_MS * 2 + 5)
    assert rows_of(table.snapshot().to_arrow()) == rows_of(judge_111.read(path)) == ours
    assert table.verify(deep=True).ok


@pytest.mark.parametrize("number", [0, -1])
def test_no_cure_removes_what_a_lost_archive_of_version_6_knew(number: int, tmp_path: Path) -> None:
    """A file at either end leaves no gap between two numbers: nothing but files of unknown writes shows that it is lost."""
    path = golden.unpack("v6_archived", tmp_path)
    before = rows_of(Table.open(path).snapshot().to_arrow())
    sorted(path.glob(".hoodie/archived/.commits_*"))[number].unlink()
    found = Table.open(path).verify()
    cures = {one.cure for check in found.failed for one in check.findings}
    assert not any("remove" in cure or "rollback TABLE" in cure for cure in cures), cures
    run("repair", path, "--apply")
    assert rows_of(Table.open(path).snapshot().to_arrow()) == before
