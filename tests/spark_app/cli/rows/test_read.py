"""`eventide read`: the rows that Hudi reads, on a screen and in files."""

import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide.sources.source import ENDINGS
from support.pasts import golden
from support.run.command_line import content_of, run, run_json
from support.tables.append import filled, make, rows, seen

TABLES = ("v6_no_deletes", "v9_no_deletes", "v9_event_bucket")


def _rows(document: Any, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in columns) for row in document["data"])


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("query", ["snapshot", "read_optimized"])
def test_a_query_prints_the_rows_that_hudi_reads(name: str, query: str, tmp_path: Path) -> None:
    table, told = golden.unpack(name, tmp_path), golden.expected(name)
    document = run_json("read", table, "--all", "--query", query)
    expected = sorted(told.read(query))
    assert _rows(document, told.columns) == expected
    assert document["rows"] == len(expected)
    assert document["file"] is None


def test_time_travel_and_incremental_print_the_rows_that_hudi_reads(tmp_path: Path) -> None:
    table, told = golden.unpack("v9_no_deletes", tmp_path), golden.expected("v9_no_deletes")
    as_of = next(r for r in told.readings if r.as_of and r.judge == told.bundle)
    document = run_json("read", table, "--all", "--as-of", as_of.as_of)
    assert _rows(document, told.columns) == sorted(as_of.rows)
    since = next(r for r in told.readings if r.begin and r.judge == told.bundle)
    document = run_json("read", table, "--all", "--query", "incremental", "--begin", since.begin)
    assert _rows(document, told.columns) == sorted(since.rows)


def test_a_failure_after_the_first_rows_is_a_member_of_their_document(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(*((f"k{at}", "a", at, "x") for at in range(1_100)), ("z", "b", 1, "x")))
    damaged = next(path for path in (tmp_path / "t").rglob("*.parquet") if path.parent.name.endswith("b"))
    content = bytearray(damaged.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[4:footer] = bytes(footer - 4)
    damaged.write_bytes(content)
    answer = run("read", table.uri, "--all", "--columns", "id", "--output", "json")
    assert answer.exit_code == 2
    assert list(answer.document) == ["file", "data", "rows", "error"]
    assert answer.document["rows"] == len(answer.document["data"]) == 1_100
    assert answer.document["error"]["type"] == "CorruptBaseFileError"
    assert run("read", tmp_path / "none", "--output", "json").document.keys() == {"error"}


def test_hudis_query_type_option_chooses_the_query(tmp_path: Path) -> None:
    table, told = golden.unpack("v9_no_deletes", tmp_path), golden.expected("v9_no_deletes")
    document = run_json("read", table, "--all", "--option", "hoodie.datasource.query.type=read_optimized")
    assert document["rows"] == len(told.read("read_optimized")) != len(told.read("snapshot"))


def test_a_view_as_of_a_watermark_stays_the_same_under_its_tag(tmp_path: Path) -> None:
    table, before = golden.unpack("v9_no_deletes", tmp_path), ("--before", 1_700_002_204_000)
    compacted = run_json("compact", table, *before, "--cut", "exact", "--engine", "local")
    as_of = ("--query", "read_optimized", "--as-of-watermark", compacted["watermark_ms"])
    shown = run_json("read", table, "--all", *as_of)
    assert shown == run_json("read", table, "--all", "--query", "read_optimized")
    kept = run_json("tag", table, "day/1", "--as-of-watermark", compacted["watermark_ms"], "--comment", "the books")
    assert (kept["tag"], kept["instant"]) == ("day/1", compacted["instant"])
    later = run_json("compact", table, "--before", 1_700_900_000_000, "--cut", "exact", "--engine", "local")
    assert run_json("savepoint", table, later["instant"], "--tag", "now")["tag"] == "now"
    assert [(t["tag"], t["comment"]) for t in run_json("tag", table)["tags"]] == [("day/1", "the books"), ("now", "")]
    assert (
        shown
        == run_json("read", table, "--all", *as_of)
        == run_json("read", table, "--all", *as_of[:2], "--tag", "day/1")
    )
    assert shown["rows"] < run_json("read", table, "--all", "--tag", "now")["rows"]
    assert run_json("tag", table, "day/1", "--delete")["instant"] == compacted["instant"]
    gone = run("read", table, "--tag", "day/1")
    assert gone.exit_code == 2
    assert "there is now" in gone.stderr


def test_columns_come_in_the_order_asked_for_and_rows_by_filter_and_limit(tmp_path: Path) -> None:
    table = golden.unpack("v9_no_deletes", tmp_path)
    document = run_json("read", table, "--all", "--columns", "val,id", "--filter", "part = 'b' and amount > 3")
    wanted = [row for row in run_json("read", table, "--all")["data"] if row["part"] == "b" and row["amount"] > 3]
    assert document["data"] == [{"val": row["val"], "id": row["id"]} for row in wanted]
    assert [list(row) for row in document["data"][:1]] == [["val", "id"]]
    assert run_json("read", table, "--limit", 5)["data"] == run_json("read", table, "--all")["data"][:5]
    assert run_json("read", table, "--limit", 0)["rows"] == 0


def test_rows_on_a_screen_leave_hudis_own_columns_out_unless_named(tmp_path: Path) -> None:
    table = golden.unpack("v9_no_deletes", tmp_path)
    answer = run("read", table, "--limit", 2)
    assert answer.stdout.splitlines()[0].split() == ["id", "part", "event_ts", "val", "amount"]
    assert answer.stdout.splitlines()[-1] == "2 rows"
    named = run("read", table, "--limit", 2, "--columns", "_hoodie_record_key,id")
    assert named.stdout.splitlines()[0].split() == ["_hoodie_record_key", "id"]


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden.unpack("v9_avro_types", tmp_path_factory.mktemp("typed"))


def test_a_parquet_file_holds_every_value_in_its_own_type(typed: Path, tmp_path: Path) -> None:
    told = golden.expected("v9_avro_types")
    file = tmp_path / "rows.parquet"
    assert run_json("read", typed, "--to", file) == {"rows": len(told.read()), "file": str(file)}
    expected = {row[1]: dict(zip(told.columns, row, strict=True)) for row in told.read()}
    rows = pq.read_table(file).to_pylist()
    assert {row["id"] for row in rows} == set(expected)
    for row in rows:
        wanted = expected[row["id"]]
        assert (row["fare"], row["place"], row["tags"], row["seats"]) == (
            None if wanted["fare"] is None else Decimal(wanted["fare"]),
            wanted["place"],
            wanted["tags"],
            wanted["seats"],
        )


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_nested_and_exact_values_come_out_as_text_files_can_hold_them(typed: Path, tmp_path: Path, kind: str) -> None:
    told = golden.expected("v9_avro_types")
    file = tmp_path / f"rows.{kind}"
    assert run("read", typed, "--to", file).exit_code == 0
    if kind == "json":
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    else:
        with file.open(newline="") as lines:
            rows = [
                {
                    name: _cell(name, value)
                    for name, value in row.items()
                    if name in ("id", "fare", "place", "tags", "day")
                }
                for row in csv.DictReader(lines)
            ]
    expected = {row[1]: dict(zip(told.columns, row, strict=True)) for row in told.read()}
    assert len(rows) == len(expected)
    for row in rows:
        wanted = expected[row["id"]]
        assert [row[name] for name in ("fare", "place", "tags", "day")] == [
            wanted[name] for name in ("fare", "place", "tags", "day")
        ]


def test_texts_that_a_spreadsheet_takes_for_formulas_are_escaped_on_request(tmp_path: Path) -> None:
    texts = ["=cmd|' /C calc'!A0", "+1", "-1", "@sum", "\tx", "plain", "a=b", "'", None]
    columns: list[pa.Field[Any]] = [pa.field("id", pa.int64()), pa.field("word", pa.string())]
    schema = pa.schema(columns)
    table = Table.create(str(tmp_path / "t"), schema=schema, record_key="id")
    table.insert(pa.table({"id": range(len(texts)), "word": texts}, schema=schema))
    for flags, escape in (([], ""), (["--csv-escape-formulas"], "'")):
        file = tmp_path / "rows.csv"
        assert run("read", table.uri, "--to", file, "--columns", "id,word", *flags).exit_code == 0
        with file.open(newline="") as lines:
            found = {int(row["id"]): row["word"] for row in csv.DictReader(lines)}
        assert [found[n] for n in range(5)] == [f"{escape}{text}" for text in texts[:5]]
        assert [found[n] for n in range(5, 9)] == ["plain", "a=b", "'", ""]


def _cell(name: str, value: str) -> Any:
    if value == "":
        return None
    return json.loads(value) if name in ("place", "tags") else value


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--query", "read_optimized", "--as-of", "20261121"], "--as-of"),
        (["--as-of-watermark", "100000000000"], "read_optimized"),
        (["--query", "read_optimized", "--as-of-watermark", "yesterday"], "'yesterday'"),
        (["--query", "read_optimized", "--as-of-watermark", "100000000000"], "can be read: none"),
        (["--query", "incremental", "--begin", "1", "--tag", "day"], "--tag"),
        (["--as-of", "20261121", "--tag", "day"], "one of"),
        (["--tag", "day"], "there is none"),
        (["--query", "incremental"], "--begin"),
        (["--begin", "20261121"], "incremental"),
        (["--query", "incremental", "--begin", "soon"], "'soon'"),
        (["--columns", "id,nothing"], "'nothing'"),
        (["--filter", "nothing > 1"], "'nothing'"),
        (["--limit", "-1"], "--limit"),
        (["--query", "newest"], "newest"),
        (["--to", "rows.txt"], ".parquet"),
        (["--to", "rows.json", "--csv-escape-formulas"], "--to FILE.csv"),
        (["--to", "no/such/directory/rows.csv"], "no/such/directory"),
        (["--option", "hoodie.datasource.query.type=newest"], "newest"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused_in_one_sentence(words: list[str], said: str, tmp_path: Path) -> None:
    answer = run("read", golden.unpack("v9_no_deletes", tmp_path), *words)
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert answer.stderr.startswith("error: ")
    assert answer.stderr.count("\n") == 1
    assert said in answer.stderr


def test_a_file_appears_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    table = golden.unpack("v9_no_deletes", tmp_path)
    (directory := tmp_path / "out").mkdir()
    (directory / "rows.csv").write_text("of yesterday")
    before = content_of(directory)
    bases = sorted(table.glob("part=*/*.parquet"))
    bases[-1].write_bytes(bases[-1].read_bytes()[:-4])  # the last one is read after rows have been written
    answer = run("read", table, "--to", directory / "rows.csv")
    assert answer.exit_code == 2
    assert bases[-1].name in answer.stderr
    assert content_of(directory) == before


def test_twenty_rows_are_shown_unless_more_are_asked_for(tmp_path: Path) -> None:
    table = golden.unpack("v9_no_deletes", tmp_path)
    total = len(golden.expected("v9_no_deletes").read())
    assert total > 20
    shown = run("read", table)
    assert shown.stdout.splitlines()[-1] == "20 rows"
    assert "--all shows all" in shown.stderr
    assert len(run_json("read", table)["data"]) == 20
    whole = run("read", table, "--all")
    assert whole.stdout.splitlines()[-1] == f"{total} rows"
    assert "--all" not in whole.stderr
    assert run_json("read", table, "--limit", total + 1)["rows"] == total
    assert run("read", table, "--all", "--limit", 3).exit_code == 2


def test_rows_beyond_a_thousand_are_printed_as_they_come(tmp_path: Path) -> None:
    fields: list[pa.Field[Any]] = [pa.field("id", pa.string()), pa.field("ms", pa.int64())]
    schema = pa.schema(fields)
    table = Table.create(str(tmp_path / "t"), schema=schema, record_key="id", event_time="ms")
    table.upsert(pa.table({"id": [f"k{n}" for n in range(2_500)], "ms": [1_700_000_000_000] * 2_500}, schema))
    lines = run("read", table.uri, "--all").stdout.splitlines()
    assert lines[-1] == "2,500 rows"
    assert sum(line.startswith("k") for line in lines) == 2_500
    assert sum(line.split() == ["id", "ms"] for line in lines) == 3
    assert len(run_json("read", table.uri, "--all")["data"]) == 2_500


@pytest.mark.parametrize("ending", list(ENDINGS))
def test_rows_leave_by_each_ending_that_ingest_reads(ending: str, tmp_path: Path) -> None:
    table, file = filled(tmp_path / "t"), tmp_path / f"rows{ending}"
    run_json("read", table.uri, "--to", file, "--columns", "id,part,ms,word")
    run_json(
        "ingest", tmp_path / "u", file, "--create", "--record-key", "id", "--partition", "part", "--ordering", "ms"
    )
    assert seen(Table.open(tmp_path / "u")) == seen(table)


def test_an_instant_that_no_commit_can_have_is_refused(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    for words in (("--as-of", "99"), ("--query", "incremental", "--begin", "2", "--end", "20261332")):
        answer = run("read", table.uri, *words)
        assert answer.exit_code == 2
        assert "cannot read the instant" in answer.stderr
