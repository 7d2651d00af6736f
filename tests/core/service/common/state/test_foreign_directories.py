"""What lies below a table's root and isn't the table's is never read, compacted, cleaned or repaired."""

import re
import shutil
from pathlib import Path

import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide_core.errors import RefusedError
from support.tables.append import START_MS, filled, make, rows, seen

ARCHIVES_EARLY = {"keep_min_commits": 2, "keep_max_commits": 3, "cleaner_commits_retained": 1}
DUE = {"compact_inline_max_delta_commits": 1}

versions = pytest.mark.parametrize("version", [6, 9])


def content(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def all_actions(table: Table) -> None:
    table.upsert(rows(("k0", "a", 40, "later")))
    table.compact(before=START_MS + 1_000_000)
    table.clean()
    table.repair(apply=True)


@versions
def test_a_copy_below_a_partition_is_left_alone(version: int, tmp_path: Path) -> None:
    table = filled(tmp_path / "own", version, **DUE)
    before = seen(table)
    place = tmp_path / "own" / "part=a" / "old"
    shutil.copytree(tmp_path / "own" / "part=a", place)
    kept = content(place)
    assert seen(table) == before
    assert table.verify().ok
    all_actions(table)
    assert content(place) == kept
    assert seen(table) == [("k0", "a", 40, "later"), *before[1:]]


@versions
@pytest.mark.parametrize("where", ["other", "part=a/other"])
def test_another_table_below_the_table_is_left_alone(where: str, version: int, tmp_path: Path) -> None:
    table = filled(tmp_path / "own", version, **DUE)
    before = seen(table)
    shutil.copytree(tmp_path / "own", tmp_path / "copy")
    shutil.move(tmp_path / "copy", tmp_path / "own" / where)
    kept = content(tmp_path / "own" / where)
    assert seen(table) == before
    assert table.verify().ok
    all_actions(table)
    assert content(tmp_path / "own" / where) == kept
    assert seen(Table.open(str(tmp_path / "own" / where))) == before


def test_a_directory_that_is_called_like_hudis_makes_no_table(tmp_path: Path) -> None:
    table = filled(tmp_path)
    before = seen(table)
    (tmp_path / "part=a" / ".hoodie").mkdir()
    assert seen(table) == before


@versions
def test_a_partition_below_another_one_stays_when_its_commits_are_archived(version: int, tmp_path: Path) -> None:
    table = make(tmp_path, version, index="SIMPLE", **ARCHIVES_EARLY, **DUE)
    table.upsert(rows(("k0", "a", 10, "zero"), ("k1", "a/b", 10, "one")))
    table.compact(before=START_MS + 1_000_000)
    for number in range(4):
        table.upsert(rows(("k0", "a", 20 + number, "again")))
    assert len(table.archive()) > 2
    assert seen(table) == [("k0", "a", 23, "again"), ("k1", "a/b", 10, "one")]
    assert table.verify().ok


@versions
def test_a_metadata_table_lists_what_it_was_made_with_and_no_copy(version: int, tmp_path: Path) -> None:
    """It has no commit of the actions before it."""
    table = filled(tmp_path / "own", version, **DUE)
    assemble(table.uri, table.options).metadata_rebuilder.rebuild()
    table = Table.open(table.uri, table.options)
    table.upsert(rows(("k0", "a", 50, "after")))
    before = seen(table)
    shutil.copytree(tmp_path / "own" / "part=a", tmp_path / "own" / "part=a_backup")
    kept = content(tmp_path / "own" / "part=a_backup")
    table = Table.open(table.uri, table.options)
    assert seen(table) == before
    all_actions(table)
    assert content(tmp_path / "own" / "part=a_backup") == kept
    assert table.verify().ok


@versions
@pytest.mark.parametrize("is_archived", [False, True])
@pytest.mark.parametrize("copy", ["partition", "log", "renamed log"])
def test_what_was_copied_into_the_table_is_never_compacted(
    copy: str, version: int, tmp_path: Path, *, is_archived: bool
) -> None:
    """Without a metadata table, readers show its rows, as stock Hudi's do."""
    table = make(tmp_path / "t", version, index="SIMPLE", **ARCHIVES_EARLY, **DUE)
    table.upsert(rows(("k0", "a", 10, "zero"), ("k1", "b", 10, "one")))
    table.upsert(rows(("k0", "a", 20, "log"), ("k1", "b", 20, "log")))
    for number in range(4 if is_archived else 0):
        table.upsert(rows((f"c{number}", "c", 20, "other")))
    assert bool(table.archive()) == is_archived
    before = seen(table)
    (log,) = (tmp_path / "t" / "part=a").glob(".*.log.*")
    match copy:
        case "partition":
            place = tmp_path / "t" / "a_backup"
            shutil.copytree(log.parent, place)
        case "log":
            place = tmp_path / "t" / "part=b" / log.name
            shutil.copy(log, place)
        case _:
            (other,) = (tmp_path / "t" / "part=b").glob(".*.log.*")
            group = other.name.partition("_")[0]
            place = other.with_name(f"{group}_{other.name.split('_')[1].partition('.')[0]}.log.9_9-9-9")
            shutil.copy(log, place)
    kept = content(tmp_path / "t")
    copied = str(place.relative_to(tmp_path / "t"))
    with pytest.raises(
        RefusedError, match=rf"{re.escape(copied)}\S* is not named by a commit .* move it out of the table"
    ):
        table.compact(before=START_MS + 1_000_000)
    assert content(tmp_path / "t") == kept
    assert any(copied in finding.path for check in table.verify().failed for finding in check.findings)
    shutil.move(place, tmp_path / "out")
    table.compact(before=START_MS + 1_000_000)
    assert seen(table) == before
    assert table.verify().ok
