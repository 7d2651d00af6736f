"""Files of file groups that an archived overwrite replaced, and that are there again, as from a backup."""

import shutil
from pathlib import Path

import pytest

from eventide import Table
from eventide_core.errors import RefusedError
from support.append_tables import START_MS, make, rows, seen

_SOON = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
_OLD = [("k0", "a", 10, "old"), ("k1", "a", 11, "old"), ("k2", "b", 12, "kept")]
_NOW = [("k1", "a", 67, "new"), ("k2", "b", 12, "kept")]


@pytest.fixture(scope="module", params=[6, 9])
def version(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture(scope="module")
def overwritten(version: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _overwritten(tmp_path_factory.mktemp("overwritten") / "t", version, has_metadata_table=False)


@pytest.fixture
def path(overwritten: Path, tmp_path: Path) -> Path:
    shutil.copytree(overwritten.parent, tmp_path / "copy")
    return tmp_path / "copy" / "t"


@pytest.fixture
def returned(path: Path) -> list[str]:
    return _bring_back(path)


def _overwritten(path: Path, version: int, *, has_metadata_table: bool) -> Path:
    """A table whose overwrite is archived, and what its old files were in `backup` beside it."""
    table = make(path, version)
    table.upsert(rows(*_OLD))
    table.upsert(rows(("k0", "a", 20, "older log")))
    if has_metadata_table:
        table.rebuild_metadata_table()
    shutil.copytree(path, path.parent / "backup", ignore=shutil.ignore_patterns(".hoodie"))
    table = Table.open(str(path), _SOON)
    table.insert_overwrite(rows(("k1", "a", 60, "over")))
    for ms in range(61, 68):
        table.upsert(rows(("k1", "a", ms, "new")))
    table.clean()
    table.archive()
    assert not list((path / ".hoodie").rglob("*.replacecommit"))
    assert seen(table) == _NOW
    return path


def _bring_back(path: Path) -> list[str]:
    backup = path.parent / "backup"
    files = [file.relative_to(backup) for file in sorted(backup.rglob("*")) if file.is_file()]
    gone = [file for file in files if not (path / file).exists()]
    for file in gone:
        shutil.copy(backup / file, path / file)
    assert len(gone) >= 2
    return list(map(str, gone))


def _named(table: Table) -> list[str]:
    return [finding.path for check in table.verify().failed for finding in check.findings]


def test_verify_names_files_that_an_archived_overwrite_replaced(path: Path, returned: list[str]) -> None:
    table = Table.open(str(path))
    assert len(seen(table)) > len(_NOW), "as stock Hudi, which does not know of the overwrite, either"
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
    assert seen(table) == _NOW
    assert table.verify().ok
    table.rebuild_metadata_table()
    assert seen(Table.open(str(path))) == _NOW
    assert table.verify().ok


def test_beside_a_metadata_table_they_are_no_rows(version: int, tmp_path: Path) -> None:
    path = _overwritten(tmp_path / "t", version, has_metadata_table=True)
    _bring_back(path)
    table = Table.open(str(path))
    assert seen(table) == _NOW
    with pytest.raises(RefusedError, match="is there again"):
        table.compact(before=START_MS + 30)
    table.repair(apply=True)
    assert table.verify().ok
    assert seen(Table.open(str(path))) == _NOW
