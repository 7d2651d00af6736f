"""Directories below a table's root that are not the table's: copies of a partition, and other tables.

What stock shows is what eventide shows; its actions take nothing in, and leave every byte there as it is.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from support.judge import HudiJudge, hudi_rs
from support.judge.options import (
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    table_name,
    table_version,
)
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64(), word=pa.string())
DAY_MS, HOUR_MS = 1_772_409_600_000, 3_600_000
OPTIONS = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.payload.event.time.field": "event_ts",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.index.type": "SIMPLE",
}
COPIES = ("a_backup", "part=a_backup", ".trash/part=a", "part=a/old")


def rows(word: str, hour: int) -> pa.Table:
    found = [{"id": f"k{n}", "part": "ab"[n % 2], "event_ts": DAY_MS + hour * HOUR_MS, "word": word} for n in range(12)]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def written_by(judge: HudiJudge, path: Path, *, has_metadata_table: bool = True) -> Path:
    """A table of Hudi's with twelve rows in base files, and two versions of each in log files."""
    version = DEFAULT_PAYLOAD if judge.version == "0.15.0" else table_version(9) | EVENT_TIME_ORDERING
    listing = {"hoodie.metadata.enable": "true"} if has_metadata_table else NO_METADATA_TABLE
    options = MERGE_ON_READ | table_name("own") | version | {"hoodie.index.type": "SIMPLE"} | listing
    for number in range(3):
        judge.write(path, rows(f"word {number}", number), options=options)
    return path


def content(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def copy_partition(path: Path, place: str) -> None:
    shutil.copytree(path / "part=a", path / place)


def copy_table(path: Path, place: str) -> None:
    whole = path.parent / "whole"
    shutil.copytree(path, whole)
    shutil.move(whole, path / place)


PLACES = [
    *(pytest.param(copy_partition, place, id=place) for place in COPIES),
    pytest.param(copy_table, "other", id="other"),
    pytest.param(copy_table, "part=a/other", id="part=a/other"),
]


def words(table: Table) -> list[tuple[str, str]]:
    return sorted((row["id"], row["word"]) for row in table.snapshot().to_arrow().to_pylist())


def all_actions(table: Table) -> None:
    """Each action that lists the table: a write, a compaction, a clean, a restore, a repair."""
    saved = table.upsert(rows("word 3", 3)).instant
    table.savepoint(saved)
    table.compact(before="2026-03-02T03:30Z")
    table.upsert(rows("word 4", 4))
    table.restore(saved)
    table.delete_savepoint(saved)
    table.compact(before="2026-03-02T05:00Z")
    table.upsert(rows("word 5", 5))
    table.compact(before="2026-03-02T06:00Z")
    table.clean()
    table.repair(apply=True)


def check_left_alone(path: Path, put: Callable[[Path, str], None], place: str) -> Table:
    """Puts it there, runs all actions, and compares it and the rows. Returns the table."""
    put(path, place)
    before = content(path / place)
    table = Table.open(str(path), OPTIONS)
    assert table.verify().ok
    all_actions(table)
    assert content(path / place) == before
    assert words(table) == sorted((f"k{n}", "word 5") for n in range(12))
    return table


@pytest.mark.parametrize(("put", "place"), PLACES)
def test_what_the_metadata_table_does_not_list_stays_as_it_is(
    judge_111: HudiJudge, tmp_path: Path, put: Callable[[Path, str], None], place: str
) -> None:
    path = written_by(judge_111, tmp_path / "own")
    table = check_left_alone(path, put, place)
    assert judge_111.count(path) == judge_111.count(path, "read_optimized") == hudi_rs.read(path).num_rows == 12
    assert table.verify(deep=True).ok


@pytest.mark.parametrize("place", ["part=a/old", "part=a/other"])
def test_without_a_metadata_table_nothing_below_a_partition_is_the_tables(
    judge_111: HudiJudge, tmp_path: Path, place: str
) -> None:
    path = written_by(judge_111, tmp_path / "own", has_metadata_table=False)
    (copy_table if place.endswith("other") else copy_partition)(path, place)
    before = content(path / place)
    table = Table.open(str(path), OPTIONS)
    assert judge_111.count(path) == len(words(table)) == 12
    assert table.verify().ok
    all_actions(table)
    assert content(path / place) == before
    assert words(table) == sorted((f"k{n}", "word 5") for n in range(12))
    assert judge_111.count(path) == judge_111.count(path, "read_optimized") == 12


def test_without_a_metadata_table_a_copy_beside_a_partition_is_one_as_for_hudi(
    judge_111: HudiJudge, tmp_path: Path
) -> None:
    path = written_by(judge_111, tmp_path / "own", has_metadata_table=False)
    copy_partition(path, "a_backup")
    table = Table.open(str(path), OPTIONS)
    assert judge_111.count(path) == hudi_rs.read(path).num_rows == len(words(table)) == 18


@pytest.mark.broad
@pytest.mark.parametrize(("put", "place"), PLACES)
def test_what_the_metadata_table_of_version_6_does_not_list_stays_as_it_is(
    judge_015: HudiJudge, tmp_path: Path, put: Callable[[Path, str], None], place: str
) -> None:
    path = written_by(judge_015, tmp_path / "own")
    check_left_alone(path, put, place)
    assert judge_015.read(path, options={"hoodie.metadata.enable": "true"}).num_rows == 12
