"""Files of an overwritten file group that come back after its archival: readers of the directories show their rows."""

from pathlib import Path

import pytest

from eventide import Table
from support.faults.returned_files import NOW, bring_back, overwritten_table
from support.judge import HudiJudge, hudi_rs
from support.tables.append import seen


@pytest.mark.broad
def test_hudi_shows_the_rows_that_eventide_shows(tmp_path: Path, judge_111: HudiJudge) -> None:
    path = overwritten_table(tmp_path / "t", 9, has_metadata_table=False)
    bring_back(path)
    shown = sorted(row[0] for row in seen(Table.open(str(path))))
    assert len(shown) > len(NOW)
    assert sorted(map(str, judge_111.read(path)["id"].to_pylist())) == shown
    assert sorted(map(str, hudi_rs.read(path)["id"].to_pylist())) == shown
