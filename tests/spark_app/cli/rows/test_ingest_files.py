"""`eventide ingest` of files as users have them: endings, compressions, dialects of CSV, encodings, and bad ones."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from eventide import Table
from eventide.cli import eventide
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from support.run.command_line import Answer, content_of, run, run_json
from support.tables.backends import backend
from support.values.columns import schema_of

pytestmark = pytest.mark.slow

NEW = ("--create", "--record-key", "id")
CSV = "id,name,fare\na,Oslo,1.5\nb,Lima,2\n"


def gz(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)  # the time would be in the names of the tests


def ingested(path: Path, *words: object) -> list[dict[str, Any]]:
    """The rows of a new table, by key."""
    run_json("ingest", path, *words, *NEW)
    return rows_of(path)


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows = Table.open(str(path)).snapshot().to_arrow()
    return rows.select([n for n in rows.column_names if not n.startswith("_hoodie")]).sort_by("id").to_pylist()


def types_of(path: Path) -> dict[str, str]:
    schema = Table.open(str(path)).schema
    return {field.name: str(field.type) for field in schema if not field.name.startswith("_hoodie")}


def refused(path: Path, *words: object) -> str:
    """What one line says of a run that must be refused with exit code 2, and that writes nothing."""
    before = content_of(path) if path.exists() else None
    answer = run("ingest", path, *words)
    assert answer.exit_code == 2, answer
    assert answer.stderr.startswith("error: ")
    assert len(answer.stderr.splitlines()) == 1
    assert (content_of(path) if path.exists() else None) == before
    return answer.stderr


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def fed(data: bytes, *words: object) -> Answer:
    """A run with this standard input."""
    result = CliRunner().invoke(eventide, [str(word) for word in words], input=data)
    return Answer(result.exit_code, result.stdout, result.stderr)


JSON = '{"id":"a","name":"Oslo","fare":1.5}\n{"id":"b","name":"Lima","fare":2}\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", CSV.encode()),
        ("x.CSV", CSV.encode()),
        ("x.tsv", CSV.replace(",", "\t").encode()),
        ("x.csv.gz", gz(CSV.encode())),
        ("x.csv.gz", gz(CSV[:9].encode()) + gz(CSV[9:].encode())),
        ("x.csv.zst", zstd(CSV.encode())),
        ("x.json", JSON.encode()),
        ("x.jsonl", JSON.encode()),
        ("x.ndjson.gz", gz(JSON.encode())),
        ("x.jsonl.zst", zstd(JSON.encode())),
        ("crlf.csv", CSV.replace("\n", "\r\n").encode()),
        ("bom.csv", b"\xef\xbb\xbf" + CSV.encode()),
        ("bom.jsonl", b"\xef\xbb\xbf" + JSON.encode()),
        ("empty_lines.csv", CSV.replace("\n", "\n\n").encode()),
        ("empty_lines_first.csv", b"\xef\xbb\xbf\r\n\n" + CSV.encode()),
        ("empty_lines.jsonl", b"\n" + JSON.replace("\n", "\r\n\r\n").encode()),
        ("no_last_newline.csv", CSV.rstrip().encode()),
        ("no_last_newline.jsonl", JSON.rstrip().encode()),
        ("quoted.csv", b'"id","name","fare"\n"a","Oslo","1.5"\n"b","Lima","2"\n'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_ending_and_its_variants_give_the_same_rows(name: str, content: bytes, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    assert ingested(tmp_path / "t", source) == [
        {"id": "a", "name": "Oslo", "fare": 1.5},
        {"id": "b", "name": "Lima", "fare": 2.0},
    ]


def test_a_german_spreadsheet(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_bytes('id;Straße\r\n1;Köln\r\n2;"a;b"\r\n'.encode("cp1252"))
    assert "--encoding latin-1" in refused(tmp_path / "t", source, *NEW, "--delimiter", ";")
    rows = ingested(tmp_path / "t", source, "--delimiter", ";", "--encoding", "cp1252", "--sanitize")
    assert rows == [{"id": 1, "Stra__e": "Köln"}, {"id": 2, "Stra__e": "a;b"}]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_other_encodings_of_unicode(encoding: str, tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_bytes("id,name\n1,Ærø\n".encode(encoding))
    assert ingested(tmp_path / "t", source, "--encoding", encoding) == [{"id": 1, "name": "Ærø"}]
    if encoding == "utf-16":
        assert "--encoding utf-16" in refused(tmp_path / "u", source, *NEW)


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("utf-32", "UTF-32: add --encoding utf-32"),
        ("utf-16-le", "UTF-16: add --encoding utf-16-le"),
        ("utf-16-be", "-be"),
    ],
)
@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_a_wide_encoding_is_named_also_without_a_mark(written: str, named: str, name: str, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_bytes((CSV if name == "x.csv" else JSON).encode(written))
    assert named in refused(tmp_path / "t", source, *NEW)
    ingested(tmp_path / "t", source, "--encoding", written)


def test_utf_16_without_a_mark_is_refused_with_the_encodings_that_need_none(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_bytes(CSV.encode("utf-16-le"))
    assert "utf-16-le" in refused(tmp_path / "t", source, *NEW, "--encoding", "utf-16")


@pytest.mark.parametrize("encoding", ["klingon", "", "rot13", "hex", "zip", "punycode", "undefined"])
def test_an_encoding_that_decodes_no_text_is_refused(encoding: str, tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text(CSV)
    assert f"--encoding {encoding!r} is unknown" in refused(tmp_path / "t", source, *NEW, "--encoding", encoding)


@pytest.mark.parametrize("header", ["id,name", '"id","na\nme"\n'])
def test_a_header_without_rows_makes_an_empty_table_of_stated_types(header: str, tmp_path: Path) -> None:
    source, schema = tmp_path / "x.csv", tmp_path / "schema"
    source.write_text(header)
    schema.write_text("id long\n" + ("name" if "name" in header else "na__me") + " string\n")
    assert ingested(tmp_path / "t", source, "--sanitize", "--schema", schema) == []


def test_a_header_of_two_lines_is_no_row(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text('id,"na\nme"\n1,a\n')
    assert ingested(tmp_path / "t", source, "--sanitize") == [{"id": 1, "na__me": "a"}]


@pytest.mark.parametrize(
    ("value", "digits"),
    [
        ("12345678901234567890", "12345678901234567890"),
        ('{"a":[{"b":-12345678901234567890}]}', "-12345678901234567890"),
        ("[1.5, 9007199254740993]", "9007199254740993"),
        ("[9007199254740993, 10000000000000000, 1.5]", "9007199254740993"),
        ("[[1.5], [9007199254740993]]", "9007199254740993"),
    ],
)
def test_a_whole_number_that_a_double_would_round_is_refused(value: str, digits: str, tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text(f'{{"id":0,"v":null,"w":1e20}}\n{{"id":1,"v":{value},"w":2}}\n')
    said = refused(tmp_path / "t", source, *NEW)
    assert "row 2" in said
    assert f"{digits} has more digits than a double holds" in said


@pytest.mark.parametrize(
    "row",
    [
        '{"id":2,"v":10000000000000000}',
        '{"id":2,"x":[1.5,9007199254740992]}',
        '{"id":2,"v":1.5,"inner":{"v":9007199254740993}}',
    ],
)
def test_a_whole_number_that_is_not_rounded_is_read(row: str, tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text(f'{{"id":1,"v":1e20}}\n{row}\n')
    assert json.loads(row) in [
        {name: value for name, value in one.items() if value is not None} for one in ingested(tmp_path / "t", source)
    ]


def test_whole_numbers_of_many_digits_beside_great_fractions_are_read(tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text('{"id":1,"at":1767225600000000,"w":1e20}\n')
    assert ingested(tmp_path / "t", source) == [{"id": 1, "at": 1767225600000000, "w": 1e20}]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"id":1,"id":2}', "twice: remove one"),
        ('{"id":1,"v":1e999}', "write it in quotes"),
        ('{"id":1,"v":"\\ud800"}', "correct the text"),
        ('{"id":1,"v":[1}', "one object per line"),
        ('{"id":1,"v":[]}', "column 'v' has no type"),
        ('{"id":1,"v":{}}', "column 'v' has no fields"),
    ],
)
def test_each_fault_of_json_has_its_cure(row: str, said: str, tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text(row + "\n")
    answer = run("ingest", tmp_path / "t", source, *NEW)
    assert answer.exit_code in (2, 3)
    assert said in answer.stderr
    assert not (tmp_path / "t").exists()


def test_a_wrong_delimiter_is_recognized(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text("id;name\n1;a\n")
    assert "add --delimiter ';'" in refused(tmp_path / "t", source, *NEW)
    source.write_text("id\tname\n1\ta\n")
    assert "add --delimiter tab" in refused(tmp_path / "t", source, *NEW)
    assert ingested(tmp_path / "t", source, "--delimiter", "tab") == [{"id": 1, "name": "a"}]


@pytest.mark.parametrize("size", [10, 1 << 20, 9 << 20])
def test_a_text_in_quotes_has_newlines_at_any_size(size: int, tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    text = "line\n" * (size // 5)
    source.write_text(f'id,note\n1,"first"\n2,"{text}"\n3,"a ""quoted"" word"\n')
    rows = ingested(tmp_path / "t", source)
    assert [len(row["note"]) for row in rows] == [5, len(text), len('a "quoted" word')]
    assert rows[1]["note"] == text


def test_only_empty_cells_or_declared_words_are_null(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text("id,name,fare\n1,NULL,1.5\n2,NaN,\n3,,2\n4,n/a,NaN\n")
    rows = ingested(tmp_path / "t", source)
    assert [row["name"] for row in rows] == ["NULL", "NaN", None, "n/a"]
    assert [row["fare"] for row in rows][:3] == [1.5, None, 2.0]
    assert rows[3]["fare"] != rows[3]["fare"]
    rows = ingested(tmp_path / "u", source, "--null", "NULL", "--null", "")
    assert [row["name"] for row in rows] == [None, "NaN", None, "n/a"]


def test_a_declared_word_is_null_in_a_column_of_numbers(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text("id,count\n1,7\n2,NULL\n")
    assert [row["count"] for row in ingested(tmp_path / "t", source)] == ["7", "NULL"]
    assert [row["count"] for row in ingested(tmp_path / "u", source, "--null", "NULL")] == [7, None]
    assert (
        "row 2: column 'count': 'NULL' isn't of type int64; correct the value, or declare it as null with --null"
        in refused(tmp_path / "u", source)
    )


@pytest.mark.parametrize("value", ["007", "+4712345678", "-01", "0x1F", "12345678901234567890"])
def test_a_number_that_would_not_come_back_is_a_text(value: str, tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text(f"id,code\n1,{value}\n2,8\n")
    assert [row["code"] for row in ingested(tmp_path / "t", source)] == [value, "8"]


def test_a_text_of_the_table_or_the_schema_stays_one(tmp_path: Path) -> None:
    schema, source = tmp_path / "schema.txt", tmp_path / "x.csv"
    schema.write_text("# of the stops\nid string\nzip string\n\nfare decimal(9, 2)\nseen timestamp\n")
    source.write_text("id,zip,fare,seen\n1,7,1.50,2026-03-01T10:00:00+01:00\n")
    (row,) = ingested(tmp_path / "t", source, "--schema", schema)
    assert (row["id"], row["zip"], str(row["fare"])) == ("1", "7", "1.50")
    assert row["seen"].isoformat() == "2026-03-01T09:00:00+00:00"
    source.write_text("id,zip,fare,seen\n2,007,2,\n")
    run_json("ingest", tmp_path / "t", source)
    assert [row["zip"] for row in rows_of(tmp_path / "t")] == ["7", "007"]


def test_types_are_found_in_all_rows_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text(
        "id,n,f,b,d,t,z,s\n1,1,1,true,2026-03-01,2026-03-01 10:00,2026-03-01T10:00Z,1\n"
    )
    (tmp_path / "in" / "2.csv").write_text(
        "id,n,f,b,d,t,z,s\n2, 2,2.5,,2026-03-02,2026-03-02,2026-03-01T11:00+01:00,x\n"
    )
    ingested(tmp_path / "t", tmp_path / "in")
    assert types_of(tmp_path / "t") == {
        "id": "int64",
        "n": "int64",
        "f": "double",
        "b": "bool",
        "d": "date32[day]",
        "t": "timestamp[us]",
        "z": "timestamp[us, tz=UTC]",
        "s": "string",
    }


def test_nested_json_with_missing_keys(tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text(
        '{"id":1,"stop":{"name":"a"},"at":"2026-03-01T10:00:00Z"}\n'
        '{"id":2,"tags":["x","y"]}\n'
        '{"id":3,"stop":{"name":"b","lat":1.5},"zip":"007","at":null}\n'
    )
    assert [{**row, "at": row["at"] and row["at"].isoformat()} for row in ingested(tmp_path / "t", source)] == [
        {"id": 1, "stop": {"name": "a", "lat": None}, "at": "2026-03-01T10:00:00+00:00", "tags": None, "zip": None},
        {"id": 2, "stop": None, "at": None, "tags": ["x", "y"], "zip": None},
        {"id": 3, "stop": {"name": "b", "lat": 1.5}, "at": None, "tags": None, "zip": "007"},
    ]


def test_a_key_that_appears_late_in_a_large_json_file_is_read(tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    filler = "x" * 1000
    with source.open("w") as file:
        for number in range(20_000):
            file.write(f'{{"id":{number},"filler":"{filler}"}}\n')
        file.write('{"id":20000,"late":1.5}\n')
    rows = ingested(tmp_path / "t", source)
    assert len(rows) == 20_001
    assert [row["late"] for row in rows[-2:]] == [None, 1.5]


def test_a_column_of_the_table_that_json_lacks_is_refused_but_not_one_of_nulls(tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text('{"id":1,"name":"a"}\n')
    ingested(tmp_path / "t", source)
    source.write_text('{"id":2}\n')
    assert "without the column 'name'" in refused(tmp_path / "t", source)
    source.write_text('{"id":2,"name":null}\n')
    run_json("ingest", tmp_path / "t", source)


def test_directories_and_globs(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    (inside / "deep").mkdir(parents=True)
    for name, key in (("1.csv", "a"), ("2.csv.gz", "b"), ("deep/3.csv", "c"), ("x[1].csv", "d")):
        data = f"id,n\n{key},1\n".encode()
        (inside / name).write_bytes(gz(data) if name.endswith("gz") else data)
    (inside / "_SUCCESS").write_text("")
    (inside / ".part").write_text("")
    (inside / "notes.txt").write_text("")
    answer = run("ingest", tmp_path / "t", inside, *NEW)
    assert "left out of" in answer.stderr
    assert "notes.txt" in answer.stderr
    assert [row["id"] for row in rows_of(tmp_path / "t")] == ["a", "b", "d"]
    for number, (pattern, keys) in enumerate(
        {"*.csv": ["a", "d"], "*.csv*": ["a", "b", "d"], "**/*.csv": ["a", "c", "d"], "x[1].csv": ["d"]}.items()
    ):
        rows = ingested(tmp_path / f"t{number}", f"{inside}/{pattern}")
        assert [row["id"] for row in rows] == keys


@pytest.mark.parametrize("name", ["memory", "moto", pytest.param("hdfs", marks=pytest.mark.broad)])
def test_sources_on_a_store(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    store = backend(name, request, tmp_path)
    for path, key in (("a/1.csv", "a"), ("a/2.csv.gz", "b"), ("a/deep/3.csv", "c")):
        data = f"id,n\n{key},1\n".encode()
        directory, _, file = path.rpartition("/")
        # Storages in memory are by name, without a hierarchy between them.
        below = open_storage(f"{store.uri}/{directory}", Options(store.options)) if name == "memory" else store.storage
        below.put(file if name == "memory" else path, gz(data) if file.endswith(".gz") else data)
    for number, (source, keys) in enumerate(
        {"a/1.csv": ["a"], "a/*.csv*": ["a", "b"], "a": ["a", "b"], "a/**/*.csv": ["a", "c"]}.items()
    ):
        if name == "memory" and number > 1:
            continue
        rows = ingested(tmp_path / f"t{number}", f"{store.uri}/{source}", *store.words())
        assert [row["id"] for row in rows] == keys
    missing = refused(tmp_path / "u", f"{store.uri}/a/9.csv", *NEW, *store.words())
    assert "does not exist" in missing
    assert "matches no file" in refused(tmp_path / "u", f"{store.uri}/a/*.json", *NEW, *store.words())


def test_uris_of_files_and_of_unknown_schemes(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,n\nd,1\n")
    assert [row["id"] for row in ingested(tmp_path / "w", f"file://{tmp_path}/x.csv")] == ["d"]
    message = refused(tmp_path / "v", "ftp://lake/in/9.csv", *NEW)
    assert (
        "source 'ftp://lake/in/9.csv' cannot be opened: the directory 'ftp://lake/in' has an unknown scheme" in message
    )
    secret = refused(tmp_path / "v", "s3://key:secret@lake/9.csv", *NEW)
    assert "key:secret" not in secret
    assert "a source has no name" in refused(tmp_path / "v", "", *NEW)


@pytest.mark.parametrize("kind", ["csv", "json", "gz", "parquet"])
def test_standard_input_is_recognized(kind: str, tmp_path: Path) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": ["a", "b"], "name": ["Oslo", "Lima"], "fare": [1.5, 2.0]}), out)
    data = {"csv": CSV.encode(), "json": JSON.encode(), "gz": gz(JSON.encode()), "parquet": out.getvalue()}
    answer = fed(b"id,name,fare\nc,Oslo,1.5\n", "ingest", tmp_path / "t", "-", *NEW, "--format", "csv")
    assert answer.exit_code == 0, answer
    answer = fed(data[kind], "ingest", tmp_path / "t", "-")
    assert answer.exit_code == 0, answer
    assert [row["id"] for row in rows_of(tmp_path / "t")] == ["a", "b", "c"]


def test_standard_input_once_and_with_a_format_for_a_new_table(tmp_path: Path) -> None:
    assert "named twice" in refused(tmp_path / "t", "-", "-", *NEW, "--format", "csv")
    assert "needs --format csv, json or parquet" in refused(tmp_path / "t", "-", *NEW)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.txt", b"id\n1\n", "unknown ending: name the format with --format"),
        ("x.csv", b"", "is empty: it needs a header"),
        ("x.csv", b"id,n\n1,2\n3\n", "row 2: 1 cell instead of 2: '3'"),
        ("x.csv", b"id,n\n1,2\n3,4,5\n", "row 2: 3 cells instead of 2: '3,4,5'"),
        ("x.csv", b'id,n\n1,"open\n2,x\n', 'a quote (") is not closed'),
        ("x.csv", b"id,id\n1,2\n", "the column 'id' twice"),
        ("x.csv", b"id,\n1,2\n", "a column has no name"),
        ("x.csv", b"id,n\n1,a\n2,\xff\n", "row 2: column 'n': b'\\xff' is not UTF-8"),
        ("x.csv", b"\xff,n\n1,a\n", "name the encoding"),
        ("x.csv.gz", gz(CSV.encode() * 1000)[:-20], "damaged or was not copied completely"),
        ("x.csv.zst", zstd(CSV.encode() * 1000)[:-4], "damaged or was not copied completely"),
        ("x.parquet", b"PAR1junk", "cannot be read"),
        ("x.json", b'[{"id":1}]', "array instead of an object: write one object per line, as `jq -c '.[]'`"),
        ("x.json", b'{\n "id": 1\n}\n{\n', "write one object per line"),
        ("x.json", b'{"id":1}\n{"id":"x"}\n', "row 2: column 'id' is string instead of number"),
        ("x.json", b'{"id":1}\n{"id":\n', "row 2: "),
        ("x.json", b'{"id":1}\n{"id":1,"id":2}\n', "specified twice"),
        ("x.json", b'{"id":"\xff"}\n', "not UTF-8"),
        ("x.json", b"\n", "the sources have no rows"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    message = refused(tmp_path / "t", source, *NEW)
    assert said in message
    assert name in message or "no rows" in message


def test_a_source_that_names_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert "does not exist" in refused(tmp_path / "t", tmp_path / "no.csv", *NEW)
    assert "no file in it ends in" in refused(tmp_path / "t", tmp_path / "in", *NEW)
    assert "matches no file" in refused(tmp_path / "t", tmp_path / "in" / "*.csv", *NEW)
    (tmp_path / "in" / "a.csv").write_text(CSV)
    (tmp_path / "in" / "b.json").write_text(JSON)
    assert "several formats" in refused(tmp_path / "t", tmp_path / "in", *NEW)
    assert "several formats" in refused(tmp_path / "t", tmp_path / "in" / "*", *NEW)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--delimiter", ";;"), "is not one character"),
        (("--encoding", "latin-99"), "is unknown"),
        (("--no-header",), "--no-header needs --schema"),
        (("--format", "json"), "write one object per line"),
    ],
)
def test_a_wrong_option_is_refused(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text(CSV)
    assert said in refused(tmp_path / "t", source, *NEW, *words)


def test_options_of_csv_are_refused_for_other_formats(tmp_path: Path) -> None:
    source = tmp_path / "x.json"
    source.write_text(JSON)
    assert "are of CSV" in refused(tmp_path / "t", source, *NEW, "--null", "NULL")


def test_a_file_without_a_header_and_without_quotes(tmp_path: Path) -> None:
    schema, source = tmp_path / "schema.txt", tmp_path / "x.csv"
    schema.write_text("id int\nsize string\n")
    source.write_text('1,"5\n2,a\n')
    assert "is not closed" in refused(tmp_path / "t", source, *NEW, "--no-header", "--schema", schema)
    words = ("--no-header", "--schema", schema, "--quote", "")
    assert ingested(tmp_path / "t", source, *words) == [{"id": 1, "size": '"5'}, {"id": 2, "size": "a"}]
    source.write_text("3,b,c\n")
    assert "3 columns, and without a header 2 are expected: id, size" in refused(tmp_path / "t", source, "--no-header")


@pytest.mark.parametrize("is_new", [True, False])
def test_a_first_row_that_looks_like_data_is_named_with_the_cure(is_new: bool, tmp_path: Path) -> None:
    table = tmp_path / "t"
    (tmp_path / "rows.csv").write_text("a,1,x\nb,2,y\n", encoding="utf-8")
    if not is_new:
        (tmp_path / "first.csv").write_text(CSV, encoding="utf-8")
        run_json("ingest", table, tmp_path / "first.csv", *NEW)
    refused = run("ingest", table, tmp_path / "rows.csv", *NEW)
    assert refused.exit_code in (2, 3)
    assert "'1' looks like a value: if the first row is data, add --no-header and --schema" in refused.stderr


def test_what_is_no_parquet_has_a_cure(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_text(CSV, encoding="utf-8")
    refused = run("ingest", tmp_path / "t", tmp_path / "rows.parquet", *NEW)
    assert refused.exit_code == 2
    assert "cannot be read as Parquet" in refused.stderr
    assert "copy it again, or name its format with --format csv or json" in refused.stderr


def test_sources_of_several_formats_agree_on_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "n": ["1"]}), tmp_path / "x.parquet")
    (tmp_path / "y.csv").write_text("id,n\nb,7\n")
    (tmp_path / "z.json").write_text('{"id":"c","n":8}\n')
    rows = ingested(tmp_path / "t", tmp_path / "y.csv", tmp_path / "x.parquet")
    assert [row["n"] for row in rows] == ["1", "7"]
    rows = ingested(tmp_path / "u", tmp_path / "y.csv", tmp_path / "z.json")
    assert [row["n"] for row in rows] == [7, 8]
    assert "column 'n' is int64, and string before" in refused(
        tmp_path / "v", tmp_path / "x.parquet", tmp_path / "z.json", *NEW
    )


def test_an_empty_text_of_json_is_no_null(tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    source.write_text('{"id":1,"at":"2026-03-01T10:00:00Z"}\n{"id":2,"at":""}\n')
    assert [row["at"] for row in ingested(tmp_path / "t", source)] == ["2026-03-01T10:00:00Z", ""]
    schema = tmp_path / "schema"
    schema.write_text("id int\nat timestamp\n")
    assert "row 2: column 'at': '' isn't of type timestamp" in refused(tmp_path / "u", source, *NEW, "--schema", schema)


def test_a_text_of_json_does_not_become_a_number_of_another_source(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "n": [1]}), tmp_path / "x.parquet")
    (tmp_path / "y.json").write_text('{"id":"b","n":"7"}\n')
    message = refused(tmp_path / "t", tmp_path / "x.parquet", tmp_path / "y.json", *NEW)
    assert "column 'n' is string, and int64 before" in message


OPERATION = "hoodie.datasource.write.operation"


def test_the_option_of_the_operation_says_what_the_rows_are_for(tmp_path: Path) -> None:
    path, source = tmp_path / "t", tmp_path / "rows.csv"
    source.write_text("id,word\na,first\nb,first\n")
    assert run("ingest", path, source, "--create", "--record-key", "id").exit_code == 0
    source.write_text("id\na\n")
    assert run("ingest", path, source, "--option", f"{OPERATION}=delete").stdout.startswith("delete at ")
    assert Table.open(str(path)).snapshot().to_arrow()["id"].to_pylist() == ["b"]
    source.write_text("id,word\nb,second\n")
    refused = run("ingest", path, source, "--op", "upsert", "--option", f"{OPERATION}=delete")
    assert (refused.exit_code, f"option {OPERATION}=delete contradicts upsert" in refused.stderr) == (2, True)
    table = Table.open(str(path), {OPERATION: "insert_overwrite"})
    rows = table.snapshot().to_arrow().select(["id", "word"])
    for write in (table.upsert, table.insert, table.bulk_insert):
        with pytest.raises(ConfigError, match="contradicts"):
            write(rows)
    table.delete(rows)
    assert Table.open(str(path)).snapshot().to_arrow().num_rows == 0


def test_an_epoch_of_another_unit_is_refused_by_its_year(tmp_path: Path) -> None:
    source, schema = tmp_path / "rows.csv", schema_of(id=pa.string(), at=pa.timestamp("us", "UTC"))
    table = Table.create(str(tmp_path / "t"), schema=schema, record_key="id")
    source.write_text("id,at\na,1772500000000\n")
    refused = run("ingest", tmp_path / "t", source, "--epochs", "s")
    assert (refused.exit_code, "row 1: column 'at': 1772500000000 s isn't" in refused.stderr) == (2, True)
    assert not table.state().timeline.writes
    assert run("ingest", tmp_path / "t", source, "--epochs", "ms").exit_code == 0


@pytest.mark.parametrize("to", [None, "x.csv", "x.json"])
def test_a_time_beyond_the_years_of_texts_is_named_where_it_cannot_be_shown(to: str | None, tmp_path: Path) -> None:
    at: Any = pa.array([1_772_500_000_000 * 10**6], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": ["a"], "at": at})
    table = Table.create(str(tmp_path / "t"), schema=rows.schema, record_key="id")
    table.upsert(rows)
    shown = run("read", tmp_path / "t", *(() if to is None else ("--to", tmp_path / to)))
    assert (shown.exit_code, "column 'at' has a time outside of the years 1 to 9999" in shown.stderr) == (2, True)
    assert table.snapshot().to_arrow()["at"].combine_chunks().equals(at)
    assert run("read", tmp_path / "t", "--to", tmp_path / "x.parquet").exit_code == 0
