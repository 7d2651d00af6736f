"""Table.merge and upserts of some columns: what matches, what becomes of it, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import (
    ConfigError,
    InvalidColumnNameError,
    InvalidFilterError,
    InvalidRecordError,
    Table,
    WriteConflictError,
)
from eventide.rows.reader import Rows
from support.tables.append import ROWS, SCHEMA, START_MS, filled, rows, seen


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE", "GLOBAL_SIMPLE"])
def test_a_merge_updates_deletes_and_inserts_in_one_commit(version: int, index: str, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", version, index=index)
    source = rows(("k0", "a", 11, "new"), ("k1", "a", 21, "drop"), ("k3", "b", 40, "three"), ("k4", "a", 50, "no"))
    result = table.merge(
        source,
        when_matched_update=True,
        when_matched_delete="source.word = 'drop' and source.ms > target.ms",
        when_not_matched_insert="source.word <> 'no'",
    )
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 1, 1)
    assert seen(table) == [("k0", "a", 11, "new"), ("k2", "b", 30, "two"), ("k3", "b", 40, "three")]
    assert len([entry for entry in table.history() if entry.action == "deltacommit"]) == 2
    table.compact(data_latency_seconds=0)
    assert seen(table) == [("k0", "a", 11, "new"), ("k2", "b", 30, "two"), ("k3", "b", 40, "three")]


def test_values_are_computed_from_both_sides(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    source = pa.table({"key": ["k0", "k1", "k7"], "id": ["k0", "k1", "k7"], "part": ["a", "a", "c"], "n": [1, 2, 3]})
    result = table.merge(
        source,
        when_matched_update=(
            "source.n > 1",
            {"word": "target.word || '+' || source.key", "ms": "target.ms + source.n"},
        ),
        when_not_matched_insert={"id": "source.key", "part": "source.part", "ms": START_MS, "word": "null"},
    )
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 1, 0)
    expected = [("k0", "a", 10, "zero"), ("k1", "a", 22, "one+k1"), ("k2", "b", 30, "two"), ("k7", "c", 0, None)]
    assert seen(table) == expected


def test_rows_match_by_columns_that_are_named(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    table.merge(
        pa.table({"word": ["one", None], "new": ["uno", "x"]}), "word", when_matched_update={"word": "source.new"}
    )
    assert seen(table)[1] == ("k1", "a", 20, "uno")
    table.merge(pa.table({"word": ["two"]}), ["word"], when_matched_delete=True)
    assert [key for key, *_ in seen(table)] == ["k0", "k1"]


def test_a_late_source_row_leaves_the_row_as_it_is(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    result = table.merge(rows(("k0", "a", 9, "late"), ("k1", "a", 20, "same time")), when_matched_update="*")
    assert result.rows_updated == 1
    assert seen(table)[:2] == [("k0", "a", 10, "zero"), ("k1", "a", 20, "same time")]


@pytest.mark.parametrize(
    ("source", "words", "error", "message"),
    [
        (rows(ROWS[0]), {}, ConfigError, "needs one of when_matched_update"),
        (rows(ROWS[0]), {"when_matched_delete": {"a": 1}}, ConfigError, r"when_matched_delete=.* true or a condition"),
        (rows(ROWS[0]), {"when_matched_update": 5}, ConfigError, "when_matched_update=5 is not true, a condition"),
        (rows(ROWS[0]), {"when_matched_update": {"id": "'x'"}}, ConfigError, "'id' is of the record key"),
        (rows(ROWS[0]), {"when_matched_update": {"none": 1}}, ConfigError, "no column 'none'"),
        (rows(ROWS[0]), {"when_matched_update": "nothing = 1"}, InvalidFilterError, "nothing"),
        (
            rows(ROWS[0]),
            {"on": "none", "when_matched_delete": True},
            ConfigError,
            "on: the table has no column 'none'",
        ),
        (
            rows(ROWS[0], ("k0", "a", 11, "again")),
            {"when_matched_update": True},
            InvalidRecordError,
            "source rows 0 and 1 match the same row",
        ),
        (
            rows(("k9", "a", 1, "x"), ("k9", "a", 2, "y")),
            {"when_not_matched_insert": True},
            InvalidRecordError,
            "source rows 0 and 1 match nothing, and both would be inserted with the record key 'k9'",
        ),
        (
            pa.table({"part": ["a"]}),
            {"on": "part", "when_matched_delete": True},
            InvalidRecordError,
            "source row 0 matches several rows",
        ),
        (
            rows(("k0", "a", 90, "other")),
            {"on": "word", "when_not_matched_insert": True},
            InvalidRecordError,
            "source row 0 matches nothing by word, and would be inserted with the record key 'k0', which a row of the",
        ),
        (
            rows(("k9", "b", 90, "x"), ("k8", "b", 90, "y")),
            {
                "when_not_matched_insert": (
                    "source.word = 'y'",
                    {"id": "'k2'", "part": "source.part", "ms": "source.ms", "word": "source.word"},
                )
            },
            InvalidRecordError,
            "source row 1 matches nothing by id, part, and would be inserted with the record key 'k2', which a row of the",
        ),
        (
            rows(("k0", "c", 90, "zero")),
            {"on": "word", "when_matched_update": True},
            InvalidRecordError,
            r"key 'k0' would change its key or partition \('part=a' to 'part=c'\)",
        ),
        (
            rows(ROWS[0]).append_column("extra", pa.array([1])),
            {"when_matched_update": True},
            InvalidRecordError,
            "no column 'extra'",
        ),
        (
            rows(("k9", "a", 1, "x")).drop_columns(["word"]),
            {"when_not_matched_insert": True},
            InvalidRecordError,
            "without the column 'word'",
        ),
        (pa.table({"id": ["k0"]}), {"when_matched_delete": True}, InvalidRecordError, "without the column 'part'"),
        (
            pa.table({"id": ["k0"], "part": ["a"], "ms": ["soon"]}),
            {"when_matched_update": True},
            InvalidRecordError,
            "'ms' of type string does not fit",
        ),
    ],
)
def test_what_a_merge_cannot_mean_is_refused(
    source: pa.Table, words: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    table = filled(tmp_path / "t")
    with pytest.raises(error, match=message):
        table.merge(source, **words)
    assert seen(table) == sorted(ROWS)


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE"])
@pytest.mark.parametrize("change", ["insert", "update", "delete"])
def test_another_writer_in_between_is_a_conflict_and_loses_nothing(
    change: str, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(tmp_path / "t", index=index)
    read = Rows.to_arrow

    def beside_a_writer(self: Rows, *words: Any) -> pa.Table:
        chosen = read(self, *words)
        monkeypatch.undo()
        if change == "delete":
            table.delete(rows(ROWS[0]).select(["id", "part"]))
        else:
            table.upsert(rows(("k9" if change == "insert" else "k0", "a", 60, "theirs")))
        return chosen

    source = rows(("k0", "a", 70, "mine"), ("k9", "a", 50, "mine"))
    monkeypatch.setattr(Rows, "to_arrow", beside_a_writer)
    with pytest.raises(WriteConflictError, match=r"in the meantime.*write again"):
        table.merge(source, when_matched_update=True, when_not_matched_insert=True)
    theirs = {
        "insert": [*ROWS, ("k9", "a", 60, "theirs")],
        "update": [("k0", "a", 60, "theirs"), *ROWS[1:]],
        "delete": list(ROWS[1:]),
    }
    assert seen(table) == sorted(theirs[change])
    table.merge(source, when_matched_update=True, when_not_matched_insert=True)
    assert ("k0", "a", 70, "mine") in seen(table)


@pytest.mark.parametrize("version", [6, 9])
def test_an_upsert_of_some_columns_keeps_the_others(version: int, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", version)
    result = table.upsert(pa.table({"id": ["k0", "k2"], "part": ["a", "b"], "word": ["ZERO", None]}), columns="partial")
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (0, 2, 0)
    assert seen(table) == [("k0", "a", 10, "ZERO"), ("k1", "a", 20, "one"), ("k2", "b", 30, None)]
    new = pa.table({"id": ["k1", "k5"], "part": ["a", "b"], "ms": [START_MS + 60, START_MS + 70]})
    assert table.upsert(new, columns="partial").rows_inserted == 1
    assert seen(table)[1:] == [("k1", "a", 60, "one"), ("k2", "b", 30, None), ("k5", "b", 70, None)]


def test_an_upsert_of_some_columns_refuses_new_rows_that_lack_what_is_never_null(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    with pytest.raises(InvalidRecordError, match="ordering field 'ms' is null"):
        table.upsert(pa.table({"id": ["k5"], "part": ["a"], "word": ["x"]}), columns="partial")
    with pytest.raises(InvalidRecordError, match="no column 'wrd'"):
        table.upsert(pa.table({"id": ["k0"], "part": ["a"], "wrd": ["x"]}), columns="partial")
    with pytest.raises(ConfigError, match="columns='some': only 'partial'"):
        table.upsert(rows(ROWS[0]), columns="some")
    assert seen(table) == sorted(ROWS)


def test_partitions_that_are_times_match_by_their_directories(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path / "t",
        schema=SCHEMA,
        record_key="id",
        partition="ms:TIMESTAMP",
        options={
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
        },
    )
    table.upsert(rows(("k0", "a", 10, "zero")))
    result = table.merge(rows(("k0", "a", 20, "same day")), when_matched_update=True, when_not_matched_insert=True)
    assert (result.rows_inserted, result.rows_updated) == (0, 1)
    assert seen(table) == [("k0", "a", 20, "same day")]


@pytest.mark.parametrize("names", [("word", "word"), ("word", "Word")])
def test_two_source_columns_of_one_name_are_refused(names: tuple[str, str], tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    one = rows(("k0", "a", 11, "new"))
    source = one.append_column(names[1], one.column("word"))
    changes: list[Callable[[], object]] = [
        lambda: table.upsert(source),
        lambda: table.upsert(source, columns="partial"),
        lambda: table.merge(source, when_matched_update=True),
    ]
    for change in changes:
        with pytest.raises(InvalidColumnNameError, match=r"two columns 'word'|differ only in case"):
            change()


def test_a_source_column_that_differs_in_case_is_named_with_the_table_s(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    source = rows(("k0", "a", 11, "new")).rename_columns({"word": "Word"})
    with pytest.raises(InvalidColumnNameError, match="'word' and 'Word' differ only in case"):
        table.merge(source, when_matched_update=True)
