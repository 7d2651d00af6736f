"""A table as a Python object: how it is opened, and copied into another process."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from eventide import ConfigError, InvalidRecordError, Table, UnsupportedTableError
from support.run.command_line import run
from support.tables.append import ROWS, START_MS, filled, make, rows, seen


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return filled(tmp_path / "t")


def test_a_pickled_table_reads_and_writes_as_the_table_does(table: Table) -> None:
    copy: Table = pickle.loads(pickle.dumps(table))
    assert copy.uri == table.uri
    assert copy.options == table.options
    copy.upsert(rows(("k9", "a", 40, "late")))
    assert seen(table) == sorted([*ROWS, ("k9", "a", 40, "late")])


@pytest.mark.parametrize("arguments", [0, 1, 2])
def test_a_table_that_is_called_names_what_opens_it(arguments: int, table: Table) -> None:
    called: Any = Table
    with pytest.raises(ConfigError, match=r"use Table\.open\(path\), or Table\.create"):
        called(*([table.uri, {}][:arguments]))


def test_an_index_of_pandas_is_not_left_out_without_a_word(table: Table) -> None:
    frame = rows(("k5", "a", 40, "five")).to_pandas()
    with pytest.raises(InvalidRecordError, match=r"'id' in its index.*frame\.reset_index\(\)"):
        table.upsert(frame.set_index("id"))
    table.upsert(frame.set_index("id").reset_index())
    table.upsert(frame.set_index(frame["id"].to_numpy()))  # an index without a name
    assert ("k5", "a", 40, "five") in seen(table)


def test_a_time_before_the_first_commit_has_no_rows_and_says_so(table: Table) -> None:
    rows_then = table.as_of("2001-01-01T00:00Z")
    assert rows_then.to_arrow().num_rows == 0
    (first,) = (entry.instant for entry in table.history())
    assert f"the first commit is {first}" in (rows_then.note or "")
    assert table.as_of(first).note is None
    answer = run("read", table.uri, "--as-of", "2001-01-01T00:00Z")
    assert answer.exit_code == 0
    assert f"the first commit is {first}" in answer.stderr


@pytest.mark.parametrize("version", [6, 9])
def test_an_older_row_stays_deleted_until_the_delete_is_merged(version: int, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", version)
    table.delete(rows(("k0", "a", 50, "gone")))
    table.upsert(rows(("k0", "a", 40, "older")))
    assert seen(table) == sorted(ROWS[1:])
    table.compact(before=START_MS + 100)
    table.upsert(rows(("k0", "a", 40, "older")))
    assert seen(table) == sorted([("k0", "a", 40, "older"), *ROWS[1:]])


def test_a_key_that_the_bucket_index_misreads_names_the_other_indexes(table: Table, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.index\.type=SIMPLE, BLOOM or RECORD_INDEX"):
        table.upsert(rows(("k:1", "a", 40, "x")))
    for index in ("SIMPLE", "BLOOM"):
        other = make(tmp_path / index, index=index)
        other.upsert(rows(("k:1", "a", 40, "x")))
        assert seen(other) == [("k:1", "a", 40, "x")]
