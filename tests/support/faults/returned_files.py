"""A table whose overwrite is archived, and whose replaced files come back from a backup."""

import shutil
from pathlib import Path

from eventide import Table
from support.tables.append import make, rows, seen

_SOON = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
OLD = [("k0", "a", 10, "old"), ("k1", "a", 11, "old"), ("k2", "b", 12, "kept")]
NOW = [("k1", "a", 67, "new"), ("k2", "b", 12, "kept")]


def overwritten_table(path: Path, version: int, *, has_metadata_table: bool) -> Path:
    """A table whose overwrite is archived, and what its old files were in `backup` beside it."""
    table = make(path, version)
    table.upsert(rows(*OLD))
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
    assert seen(table) == NOW
    return path


def bring_back(path: Path) -> list[str]:
    backup = path.parent / "backup"
    files = [file.relative_to(backup) for file in sorted(backup.rglob("*")) if file.is_file()]
    gone = [file for file in files if not (path / file).exists()]
    for file in gone:
        shutil.copy(backup / file, path / file)
    assert len(gone) >= 2
    return list(map(str, gone))
