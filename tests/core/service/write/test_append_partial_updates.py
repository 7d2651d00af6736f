"""Writing to a table in which a record takes the columns that it lacks from older ones."""

from pathlib import Path

import pytest

from eventide import Table
from eventide_core.errors import InvalidRecordError, UnsupportedTableError
from support.tables.append import make, rows, seen


def partially_updated(path: Path, index: str = "SIMPLE") -> Table:
    """A table under hoodie.table.partial.update.mode, with the record `a` in the partition `p`."""
    table = make(path, 9, index)
    table.upsert(rows(("a", "p", 1, "one")))
    with (path / ".hoodie" / "hoodie.properties").open("a") as settings:
        settings.write("\nhoodie.table.partial.update.mode=IGNORE_DEFAULTS\n")
    return Table.open(table.uri)


def files_of(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_two_versions_of_a_key_in_one_upsert_are_refused(tmp_path: Path) -> None:
    """To write only the later one would lose the columns that only the earlier one has."""
    table = partially_updated(tmp_path / "t")
    before = files_of(tmp_path)
    with pytest.raises(InvalidRecordError, match="record key 'a' occurs twice in one write"):
        table.upsert(rows(("a", "p", 2, "two"), ("a", "p", 3, "three")))
    assert files_of(tmp_path) == before


def test_one_version_of_each_key_and_partition_is_written(tmp_path: Path) -> None:
    table = partially_updated(tmp_path / "t")
    without_word = rows(("a", "p", 2, "two"), ("a", "q", 2, "two")).drop_columns(["word"])
    table.upsert(without_word)
    shown = {(row["part"], row["word"]) for row in table.snapshot().to_arrow().to_pylist()}
    assert shown == {("p", "one"), ("q", None)}


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_an_index_that_moves_keys_is_refused(index: str, tmp_path: Path) -> None:
    """A record that moves starts again without the older ones, and would lose the columns that it lacks."""
    table = partially_updated(tmp_path / "t", index)
    before = files_of(tmp_path)
    with pytest.raises(
        UnsupportedTableError, match=r"partial\.update\.mode: .* turn the index's update\.partition\.path"
    ):
        table.upsert(rows(("a", "q", 2, "two")))
    assert files_of(tmp_path) == before


def test_a_global_index_that_leaves_keys_where_they_are_is_written(tmp_path: Path) -> None:
    table = partially_updated(tmp_path / "t", "GLOBAL_SIMPLE")
    staying = Table.open(table.uri, options={"hoodie.simple.index.update.partition.path": "false"})
    staying.upsert(rows(("a", "q", 2, "two")))
    assert [(key, word) for key, _, _, word in seen(staying)] == [("a", "two")]
