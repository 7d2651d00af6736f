"""`eventide ingest` of files whose columns are not the table's."""

from pathlib import Path

import pytest

from eventide import Table
from support.run.command_line import content_of, run, run_json


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "trips"
    first = tmp_path / "first.csv"
    first.write_text("trip,at,fare\na,1772496000000,3.5\n")
    run_json("ingest", path, first, "--create", "--record-key", "trip", "--event-time", "at")
    return path


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("trip,at,Fare", "rename it to 'fare'"),
        ("trip,at,fair", "did you mean 'fare'?"),
        ("trip,at", "without the column 'fare'"),
        ("trip,at", "`--columns partial`"),
        ("trip,at,fare,tip", "--add-columns"),
    ],
)
def test_a_wrong_header_is_refused_and_nothing_is_written(header: str, said: str, table: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(f"{header}\n" + ",".join(["a", "1772496000001", "4.5", "0.5"][: header.count(",") + 1]) + "\n")
    before = content_of(table)
    answer = run("ingest", table, wrong)
    assert answer.exit_code == 2
    assert said in answer.stderr
    assert content_of(table) == before


def test_added_columns_are_named_in_the_result_and_the_commit(table: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text("trip,at,fare,tip\na,1772496000001,4.5,0.5\n")
    result = run_json("ingest", table, more, "--add-columns")
    assert (result["added_columns"], result["widened_columns"]) == (["tip"], [])
    rows = Table.open(str(table)).snapshot().to_arrow().select(["trip", "fare", "tip"]).to_pylist()
    assert rows == [{"trip": "a", "fare": 4.5, "tip": 0.5}]
    again = run("ingest", table, more)
    assert again.exit_code == 0
    assert "added" not in again.stdout


def test_a_column_that_is_left_out_becomes_null_only_where_that_is_allowed(table: Path, tmp_path: Path) -> None:
    less = tmp_path / "less.csv"
    less.write_text("trip,at\na,1772496000001\n")
    run_json("ingest", table, less, "--option", "hoodie.write.set.null.for.missing.columns=true")
    assert Table.open(str(table)).snapshot().to_arrow().column("fare").to_pylist() == [None]


def test_a_writer_from_before_a_new_column_keeps_its_values(table: Path, tmp_path: Path) -> None:
    opened = Table.open(str(table))
    opened.alter(add={"tip": "double"})
    opened.update({"tip": "0.5"}, where="trip = 'a'")
    old = tmp_path / "old.csv"
    old.write_text("trip,at,fare\na,1772496000001,4.5\nb,1772496000002,5.5\n")
    assert "`--columns partial`" in run("ingest", table, old).stderr
    assert run_json("ingest", table, old, "--columns", "partial")["rows"] == 2
    rows = opened.snapshot().to_arrow().select(["trip", "fare", "tip"]).to_pylist()
    assert sorted(rows, key=lambda row: row["trip"]) == [
        {"trip": "a", "fare": 4.5, "tip": 0.5},
        {"trip": "b", "fare": 5.5, "tip": None},
    ]


@pytest.mark.parametrize("more", [("--op", "insert"), ("--add-columns",)])
def test_partial_columns_are_of_an_upsert_alone(more: tuple[str, ...], table: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.csv"
    old.write_text("trip,at\na,1772496000001\n")
    answer = run("ingest", table, old, "--columns", "partial", *more)
    assert answer.exit_code == 2
    assert "--columns partial is of an upsert" in answer.stderr


def test_a_json_number_in_a_text_column_is_refused_with_its_own_cure(table: Path, tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text('{"trip": 5, "at": 1772496000000, "fare": 1.5}\n')
    refused = run("ingest", table, source)
    assert refused.exit_code == 2
    assert (
        "column 'trip' is number, and string in the table, or as --schema states: write it in quotes" in refused.stderr
    )


def test_nested_names_are_sanitized_and_said(tmp_path: Path) -> None:
    source = tmp_path / "x.json"
    source.write_text('{"id": 1, "trip": {"unit price": 1.5, "stops": [{"a-b": 2}]}}\n')
    words = ("ingest", tmp_path / "t", source, "--sanitize")
    made = run(*words, "--create", "--record-key", "id")
    assert "column 'unit price' is named 'unit__price' in the table" in made.stderr
    assert run_json(*words)["renamed"] == {"unit price": "unit__price", "a-b": "a__b"}
    rows = Table.open(str(tmp_path / "t")).snapshot().to_arrow(["trip"]).to_pylist()
    assert rows == [{"trip": {"unit__price": 1.5, "stops": [{"a__b": 2}]}}]
