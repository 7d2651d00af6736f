"""Which lost files of the archived timeline are written again. tests/conformance/test_lost_history.py goes on with Hudi."""

from pathlib import Path

import pytest

from eventide import Table
from support.tables.small import make, rows, seen

pytestmark = pytest.mark.slow
HISTORY = ".hoodie/timeline/history"


def archived(path: Path, *, is_compacted: bool) -> Table:
    """A table of version 9 with log files of archived writes: on top of a base file, or below one as well."""
    table = make(path, 9)
    for number in range(9):
        table.upsert(rows(("k0", number - 20, f"word {number}"), ("k1", number - 20, "other")))
        if number == 3 and is_compacted:
            table.compact(data_latency_seconds=1)
    table.archive()
    return table


def lost(path: Path) -> Path:
    (file,) = (path / HISTORY).glob("*.parquet")
    file.unlink()
    return file


def test_log_files_on_top_of_the_latest_base_file_stay_where_they_are(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = archived(path, is_compacted=False)
    before = seen(table.snapshot().to_arrow())
    file = lost(path)
    done = table.repair(apply=True)
    assert [one.path for one in done.repairs] == [f"{HISTORY}/{file.name}"]
    assert "completion times" in (done.repairs[0].loses or "")
    assert done.verification.ok
    assert seen(Table.open(table.uri, table.options).snapshot().to_arrow()) == before
    assert table.undo_repair().paths == (f"{HISTORY}/{file.name}",)
    assert not file.exists()


def test_a_log_file_that_a_later_compaction_may_have_missed_is_left_to_a_person(tmp_path: Path) -> None:
    """The plan of that compaction is archived, too, so nothing shows that it merged the log files below it."""
    path = tmp_path / "t"
    table = archived(path, is_compacted=True)
    file = lost(path)
    verification = table.verify()
    damaged = {check.name: check.findings for check in verification.failed}
    assert f"{HISTORY}/{file.name}" in {one.path for one in damaged["timeline"]}
    done = table.repair(apply=True)
    assert not done.repairs
    assert not file.exists()
    assert all("remove" not in one.cure for one in done.unrepaired)
