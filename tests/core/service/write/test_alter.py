"""Changes of a table's schema, through the public face."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.writer import incoming_records
from eventide_core.errors import (
    ConfigError,
    EventideError,
    InvalidColumnNameError,
    SchemaChangeError,
    UnsupportedTableError,
    WriteConflictError,
)
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from support.tables.append import SCHEMA, START_MS, make, rows


def _values(table: Table, *columns: str, as_of: str | None = None) -> dict[str, tuple[Any, ...]]:
    query = table.snapshot() if as_of is None else table.as_of(as_of)
    return {row["id"]: tuple(row[column] for column in columns) for row in query.to_arrow().to_pylist()}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_table_is_altered_read_written_and_compacted(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(path, version, "SIMPLE")
    written = table.upsert(rows(("k1", "a", 1, "one"), ("k2", "a", 2, "two")))
    table.upsert(rows(("k1", "a", 3, "late")))
    result = table.alter(add={"fare": "double after ms", "n": pa.int32()}, move={"word": "first"})
    assert result.columns == ("word", "id", "part", "ms", "fare", "n")
    assert result.changes.added == ("fare", "n")
    table.upsert(pa.table({"word": ["w"], "id": ["k2"], "part": ["a"], "ms": [START_MS + 9], "fare": [1.5], "n": [7]}))
    assert table.alter(widen={"n": "long"}, drop=["word"]).columns == ("id", "part", "ms", "fare", "n")
    expected = {"k1": (None, None), "k2": (1.5, 7)}
    assert _values(table, "fare", "n") == expected
    table.compact(before=START_MS + 5)
    table.upsert(pa.table({"id": ["k3"], "part": ["a"], "ms": [START_MS + 9], "fare": [0.5], "n": [2**40]}))
    table.compact(before=START_MS + 20)
    assert _values(table, "fare", "n") == expected | {"k3": (0.5, 2**40)}
    assert _values(table, "word", as_of=written.completion_time or written.instant) == {"k1": ("one",), "k2": ("two",)}
    assert table.verify(deep=True).ok


def test_nothing_is_written_by_a_dry_run_or_if_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(path)
    table.upsert(rows(("k1", "a", 1, "one")))
    files = sorted(path.rglob("*"))
    assert table.alter(add={"fare": "double"}, dry_run=True).instant is None
    assert table.alter(move={"part": "after id"}).instant is None
    assert sorted(path.rglob("*")) == files


REFUSED: list[tuple[dict[str, Any], type[EventideError], str]] = [
    ({"drop": ["id"]}, SchemaChangeError, "'id' cannot be dropped: it is a record key field"),
    ({"drop": ["part"]}, SchemaChangeError, "it is a partition field"),
    ({"widen": {"ms": "double"}}, SchemaChangeError, "'ms' cannot be widened: it is an ordering field"),
    ({"drop": ["wrd"]}, SchemaChangeError, "no column 'wrd'; did you mean 'word'"),
    ({"widen": {"word": "long"}}, SchemaChangeError, "of type string cannot become long"),
    (
        {"rename": {"word": "title"}},
        SchemaChangeError,
        "hudi-rs, would show null.*add the column 'title'.*state that option",
    ),
    ({"rename": {"id": "title"}}, SchemaChangeError, "'id' cannot be renamed: it is a record key field"),
    ({"add": {"word": "int"}}, SchemaChangeError, "already has a column 'word'"),
    ({"add": {"_hoodie_word": "int"}}, SchemaChangeError, "names that begin with _hoodie_ are Hudi's own"),
    ({"add": {"Word": "int"}}, InvalidColumnNameError, "only in case"),
    ({"add": {"trip id": "int"}}, InvalidColumnNameError, "trip id"),
    ({"add": {"word.x": "int"}}, SchemaChangeError, "change within a nested column"),
    ({"add": {"x": "strin"}}, ConfigError, "'strin' isn't a type"),
    ({"move": {"word": "last"}}, SchemaChangeError, "neither 'first' nor 'after COLUMN'"),
    ({"move": {"word": "after word"}}, SchemaChangeError, "cannot come after itself"),
    ({"drop": "word"}, ConfigError, "drop must be a list of names"),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSED, ids=[str(change) for change, _, _ in REFUSED])
def test_a_change_that_would_lose_something_is_refused_before_anything_is_written(
    change: dict[str, Any], error: type[EventideError], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    table = make(path)
    table.upsert(rows(("k1", "a", 1, "one")))
    files = sorted(path.rglob("*"))
    with pytest.raises(error, match=message):
        table.alter(**change)
    assert sorted(path.rglob("*")) == files


def test_the_name_of_a_dropped_column_is_not_used_again(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("k1", "a", 1, "one")))
    table.alter(drop=["word"])
    with pytest.raises(SchemaChangeError, match=r"'word' was dropped after .* would come back; choose another name"):
        table.alter(add={"word": "string"})
    with pytest.raises(SchemaChangeError, match="'word' was dropped after"):
        table.upsert(rows(("k1", "a", 2, "again")), schema_mode="merge")
    table.upsert(rows(("k1", "a", 3, "kept")).drop_columns(["word"]))
    assert table.verify(deep=True).ok


def test_a_column_that_is_never_null_stays(tmp_path: Path) -> None:
    avro = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "int"}],
    }
    table = Table.create(str(tmp_path / "t"), schema=json.dumps(avro), record_key="id")
    with pytest.raises(SchemaChangeError, match="it is never null"):
        table.alter(drop=["n"])
    assert table.alter(widen={"n": "double"}).changes.widened == ("n",)


def test_a_type_that_another_column_uses_by_its_name_stays_before_it(tmp_path: Path) -> None:
    place = {"type": "record", "name": "p", "fields": [{"name": "x", "type": "int"}]}
    fields = [("id", "string"), ("start", place), ("stop", "p")]
    avro = {"type": "record", "name": "r", "fields": [{"name": n, "type": ["null", k]} for n, k in fields]}
    table = Table.create(str(tmp_path / "t"), schema=json.dumps(avro), record_key="id")
    changes: list[dict[str, Any]] = [{"drop": ["start"]}, {"move": {"stop": "first"}}]
    for change in changes:
        with pytest.raises(UnsupportedTableError, match="the schema's type p is defined by a column"):
            table.alter(**change)
    assert table.alter(drop=["stop"]).columns == ("id", "start")


def test_a_pending_write_takes_over_the_altered_schema(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(path)
    table.upsert(rows(("k1", "a", 1, "one")))
    append = assemble(str(path), {}).append
    incoming = incoming_records(assemble(str(path), {}), WriteOperation.UPSERT, rows(("k2", "a", 2, "two")))
    begun = append.begin(WriteOperation.UPSERT, incoming, NoProgress())
    table.alter(add={"fare": "double"}, drop=["word"])
    append.complete(begun)
    assert _values(table, "fare") == {"k1": (None,), "k2": (None,)}
    assert "word" not in table.snapshot().to_arrow().column_names
    assert table.verify(deep=True).ok


def test_another_change_of_the_schema_meanwhile_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    table = make(path)
    table.upsert(rows(("k1", "a", 1, "one")))
    altering = assemble(str(path), {}).alter
    wide = rows(("k1", "a", 2, "two")).append_column("tip", pa.array([1.0]))
    complete = type(altering.append).complete

    def slow(self: Any, pending: Any) -> Any:
        monkeypatch.undo()
        table.upsert(wide, schema_mode="merge")
        return complete(self, pending)

    monkeypatch.setattr(type(altering.append), "complete", slow)
    with pytest.raises(WriteConflictError, match="has changed in the meantime"):
        Table.open(str(path)).alter(add={"fare": "double"})
    assert table.snapshot().to_arrow().column_names[-2:] == ["word", "tip"]
    assert table.verify(deep=True).ok


def test_columns_of_the_public_result(tmp_path: Path) -> None:
    result = make(tmp_path / "t").alter(add={"fare": "decimal(10,2) first"})
    assert result.columns == ("fare", *SCHEMA.names)
    assert result.instant is not None


def test_a_column_is_not_dropped_and_added_at_once(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("k1", "a", 1, "one")))
    with pytest.raises(SchemaChangeError, match="'word' is dropped and added at once"):
        table.alter(drop=["word"], add={"word": "int"})
    assert _values(table, "word") == {"k1": ("one",)}


_WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"add": 3}, "add=3"),
    ({"add": ["fare double"]}, "fare double"),
    ({"add": {3: "int"}}, "3: 'int'"),
    ({"widen": "word"}, "widen='word'"),
    ({"move": {"word": 3}}, r"move\['word'\] must be a string, not 3"),
    ({"drop": [None]}, "None"),
    ({"drop": None}, "None"),
    ({"drop": "word"}, "drop must be a list of names, not 'word'"),
    ({"rename": ["word"]}, "rename="),
)


@pytest.mark.parametrize(("wrong", "named"), _WRONG, ids=str)
def test_an_argument_of_a_wrong_type_is_named(wrong: dict[str, Any], named: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=named):
        make(tmp_path / "t").alter(**wrong)


def test_a_type_that_no_file_can_hold_is_refused_before_the_table_has_it(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    with pytest.raises(UnsupportedTableError, match="'x' has no fields"):
        table.alter(add={"x": pa.struct([])})
    table.upsert(rows(("k1", "a", 1, "one")))
    assert _values(table, "word") == {"k1": ("one",)}


def test_columns_of_one_vector_type_are_added_moved_and_dropped(tmp_path: Path) -> None:
    pair = pa.list_(pa.float32(), 2)
    path, schema = tmp_path / "t", pa.schema([("id", pa.string()), ("v", pair), ("w", pair)])
    table = Table.create(path, schema=schema, record_key="id")
    first_rows: list[Any] = [["k1"], [[1, 2]], [[3, 4]]]
    table.upsert(pa.table(first_rows, schema=schema))
    changes: list[dict[str, Any]] = [
        {"add": {"x": pair, "y": pair}},
        {"move": {"x": "first"}},
        {"drop": ["v"]},
        {"drop": ["x"]},
    ]
    kinds = [json.loads(table.alter(**change).schema)["fields"] for change in changes]
    for fields in kinds:  # the first one defines the type, and the others name it
        first, *others = [field["type"][1] for field in fields if field["name"] != "id"]
        assert first["name"] == "vector_float_2"
        assert set(others) == {"vector_float_2"}
    later = pa.schema([("id", pa.string()), ("w", pair), ("y", pair)])
    later_rows: list[Any] = [["k2"], [[5, 6]], [[7, 8]]]
    table.upsert(pa.table(later_rows, schema=later))
    assert _values(table, "w", "y") == {"k1": ([3.0, 4.0], None), "k2": ([5.0, 6.0], [7.0, 8.0])}
    assert table.verify(deep=True).ok


EVOLVES = {"hoodie.schema.on.read.enable": "true"}


def _titled(*values: tuple[str, str, int, str]) -> pa.Table:
    return rows(*values).rename_columns(["id", "part", "ms", "title"])


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_renamed_column_keeps_its_values(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(path, version, "SIMPLE")
    written = table.upsert(rows(("k1", "a", 1, "one"), ("k2", "a", 1, "two")))
    table.upsert(rows(("k1", "a", 2, "late")))
    table.upsert(rows(("k2", "a", 9, "left")))
    result = Table.open(str(path), EVOLVES).alter(rename={"word": "title"}, move={"title": "first"})
    assert result.changes.renamed == (("word", "title"),)
    assert (result.changes.added, result.changes.dropped) == ((), ())
    assert result.note is not None
    table = Table.open(str(path))  # the option is needed for the first rename alone
    expected = {"k1": ("late",), "k2": ("left",)}
    assert _values(table, "title") == expected
    assert _values(table, "word", as_of=written.completion_time or written.instant) == {"k1": ("one",), "k2": ("two",)}
    assert {row["title"] for row in table.incremental("0").to_arrow().to_pylist()} == {"late", "left"}
    assert table.snapshot().to_arrow(filter="title = 'late'").column("id").to_pylist() == ["k1"]

    table.compact(before=START_MS + 5)
    assert {row["id"]: row["title"] for row in table.read_optimized().to_arrow().to_pylist()} == {
        "k1": "late",
        "k2": "two",
    }
    table.upsert(_titled(("k3", "a", 9, "new")))
    expected["k3"] = ("new",)
    assert _values(table, "title") == expected
    assert table.alter(rename={"title": "name"}).instant is not None
    assert _values(table, "name") == expected
    assert table.verify(deep=True).ok
    table.compact(before=START_MS + 20)
    assert _values(table, "name") == expected
    with pytest.raises(SchemaChangeError, match="'word' was dropped"):
        table.alter(add={"word": "string"})


def test_left_overs_keep_the_names_of_their_blocks_when_every_older_file_is_cleaned(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(path, 6, "SIMPLE")
    table.upsert(rows(("k1", "a", 1, "one"), ("k2", "a", 1, "two")))
    table.upsert(rows(("k1", "a", 2, "late")))
    table.upsert(rows(("k2", "a", 9, "left")))
    altered = Table.open(str(path), EVOLVES).alter(rename={"word": "title"}).instant
    table.compact(before=START_MS + 5)
    for number in range(3):
        table.upsert(_titled(("k3", "b", number, "new")))
    table.clean(1)
    assert altered is not None
    assert min(file.parsed.instant for file in table.state().listing if file.parsed) > altered
    assert _values(table, "title")["k2"] == ("left",)
    table.compact(before=START_MS + 20)
    assert _values(table, "title") == {"k1": ("late",), "k2": ("left",), "k3": ("new",)}


def test_what_began_before_a_rename_conflicts_with_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(path, 9, "SIMPLE")
    table.upsert(rows(("k1", "a", 1, "one")))
    append = assemble(str(path), {}).append
    incoming = incoming_records(assemble(str(path), {}), WriteOperation.UPSERT, rows(("k1", "a", 2, "two")))
    begun = append.begin(WriteOperation.UPSERT, incoming, NoProgress())
    Table.open(str(path), EVOLVES).alter(rename={"word": "title"})
    with pytest.raises(WriteConflictError, match="has renamed columns in the meantime"):
        append.complete(begun)
    assert _values(table, "title") == {"k1": ("one",)}


def test_a_plan_from_before_a_rename_is_run_with_the_old_name(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(path, 9, "SIMPLE")
    table.upsert(rows(("k1", "a", 1, "one")))
    table.upsert(rows(("k1", "a", 2, "two")))
    planned = table.schedule(table.plan_compaction(START_MS + 5))
    Table.open(str(path), EVOLVES).alter(rename={"word": "title"})
    table.execute(planned.instant)
    assert _values(table, "title") == {"k1": ("two",)}
    assert table.verify(deep=True).ok
