"""Files of file groups that an archived overwrite replaced, and that are there again, as from a backup."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eventide import Table
from eventide_core.errors import RefusedError
from eventide_core.service.common.state.returned_groups import refuse_returned
from eventide_core.table.timeline.contents.plans import ForeignOperation, ForeignPlan
from support.faults.returned_files import NOW, bring_back, overwritten_table
from support.tables.append import START_MS, seen


@pytest.fixture(scope="module", params=[6, 9])
def version(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture(scope="module")
def overwritten(version: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return overwritten_table(tmp_path_factory.mktemp("overwritten") / "t", version, has_metadata_table=False)


@pytest.fixture
def path(overwritten: Path, tmp_path: Path) -> Path:
    shutil.copytree(overwritten.parent, tmp_path / "copy")
    return tmp_path / "copy" / "t"


@pytest.fixture
def returned(path: Path) -> list[str]:
    return bring_back(path)


def _named(table: Table) -> list[str]:
    return [finding.path for check in table.verify().failed for finding in check.findings]


def test_verify_names_files_that_an_archived_overwrite_replaced(path: Path, returned: list[str]) -> None:
    table = Table.open(str(path))
    assert len(seen(table)) > len(NOW), "as stock Hudi, which does not know of the overwrite, either"
    assert sorted(_named(table)) == returned


def test_a_compaction_does_not_carry_them_on(path: Path, returned: list[str]) -> None:
    (log,) = (name for name in returned if "/." in name)
    group = log.partition("/.")[2].partition("_")[0]
    with pytest.raises(RefusedError, match=rf"{group}.* is there again: .* replaced its file group; .*table.repair"):
        Table.open(str(path)).compact(before=START_MS + 30)


@pytest.mark.usefixtures("returned")
def test_a_rebuild_of_the_metadata_table_does_not_carry_them_on(path: Path) -> None:
    with pytest.raises(RefusedError, match="is there again"):
        Table.open(str(path)).rebuild_metadata_table()


def test_repair_moves_them_to_the_backup(path: Path, returned: list[str]) -> None:
    table = Table.open(str(path))
    assert sorted(repair.path for repair in table.repair(apply=True).repairs) == returned
    assert seen(table) == NOW
    assert table.verify().ok
    table.rebuild_metadata_table()
    assert seen(Table.open(str(path))) == NOW
    assert table.verify().ok


def test_beside_a_metadata_table_they_are_no_rows(version: int, tmp_path: Path) -> None:
    path = overwritten_table(tmp_path / "t", version, has_metadata_table=True)
    bring_back(path)
    table = Table.open(str(path))
    assert seen(table) == NOW
    with pytest.raises(RefusedError, match="is there again"):
        table.compact(before=START_MS + 30)
    table.repair(apply=True)
    assert table.verify().ok
    assert seen(Table.open(str(path))) == NOW


class _CountedText(str):
    """A file id that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        _CountedText.comparisons += 1
        return str.__eq__(self, other)


def test_a_plan_of_many_slices_is_compared_with_each_file_once() -> None:
    """Ten files in each of 300 slices: as a sequence, the plan's slices would be compared 450,000 times."""
    plan = ForeignPlan("1", tuple(ForeignOperation("p", _CountedText(number), "0", None, ()) for number in range(300)))
    listing = [
        SimpleNamespace(
            partition="p", path=f"p/{number}.{log}", parsed=SimpleNamespace(file_id=_CountedText(number), instant="0")
        )
        for number in range(300)
        for log in range(10)
    ]
    timeline = SimpleNamespace(is_archived=lambda _: False)
    state: Any = SimpleNamespace(listing=listing, archive=None, timeline=timeline, commits={})
    refuse_returned(state, plan.file_groups)
    assert 0 < _CountedText.comparisons < 10 * len(listing)
