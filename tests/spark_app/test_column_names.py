"""Columns whose names Avro cannot hold: refused before anything is written, or sanitized everywhere alike."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.config import SANITIZE_NAMES
from eventide_core.errors import InvalidColumnNameError
from support.judge import hudi_rs
from support.run.command_line import content_of, run

CSV = "trip id,code,2nd stop\n7,007,a\n8,010,b\n"
WORDS = ("--create", "--record-key", "trip id", "--option", "hoodie.bucket.index.num.buckets=1")


COLUMNS: "list[pa.Field[Any]]" = [pa.field("trip id", pa.int64()), pa.field("zip code", pa.string())]
SCHEMA = pa.schema(COLUMNS)


def rows(*values: tuple[int, str]) -> pa.Table:
    return pa.Table.from_pylist([{"trip id": number, "zip code": text} for number, text in values], schema=SCHEMA)


def test_a_header_that_avro_cannot_hold_makes_no_table(tmp_path: Path) -> None:
    source = tmp_path / "trips.csv"
    source.write_text(CSV)
    answer = run("ingest", tmp_path / "t", source, *WORDS)
    assert answer.exit_code == 2
    assert "'trip id' (trip__id), '2nd stop' (__nd__stop)" in answer.stderr
    assert "--sanitize" in answer.stderr
    assert list(tmp_path.iterdir()) == [source]


def test_sanitized_columns_are_named_and_read_by_hudi_rs_and_so_are_later_files(tmp_path: Path) -> None:
    path, source = tmp_path / "t", tmp_path / "trips.csv"
    source.write_text(CSV)
    answer = run("ingest", path, source, *WORDS, "--sanitize", "--output", "json")
    assert answer.exit_code == 0, answer.stderr
    assert answer.document["renamed"] == {"trip id": "trip__id", "2nd stop": "__nd__stop"}
    assert "column 'trip id' is named 'trip__id' in the table" in answer.stderr

    before = content_of(path)
    source.write_text("trip id,code,2nd stop\n9,011,c\n")
    assert run("ingest", path, source).exit_code == 2
    assert content_of(path) == before
    assert run("ingest", path, source, "--sanitize").exit_code == 0
    found = hudi_rs.read(path).select(["trip__id", "__nd__stop"]).sort_by("trip__id").to_pylist()
    assert found == [{"trip__id": n, "__nd__stop": s} for n, s in ((7, "a"), (8, "b"), (9, "c"))]


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_texts_of_a_sanitized_column_keep_the_tables_type(suffix: str, tmp_path: Path) -> None:
    path, source = tmp_path / "t", tmp_path / f"trips.{suffix}"
    Table.create(str(path), schema=SCHEMA, record_key="trip id", sanitize=True)
    source.write_text('{"trip id": 1, "zip code": "007"}\n' if suffix == "json" else "trip id,zip code\n1,007\n")
    assert run("ingest", path, source, "--sanitize").exit_code == 0
    assert Table.open(str(path)).snapshot().to_arrow().column("zip__code").to_pylist() == ["007"]


def test_python_refuses_or_sanitizes_alike(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    with pytest.raises(InvalidColumnNameError, match="'trip id'"):
        Table.create(uri, schema=SCHEMA, record_key="trip id")
    avro = '{"type": "record", "name": "t", "fields": [{"name": "trip id", "type": "long"}]}'
    with pytest.raises(InvalidColumnNameError, match="'trip id'"):
        Table.create(uri, schema=avro, record_key="trip id")
    assert not list(tmp_path.iterdir())

    table = Table.create(uri, schema=SCHEMA, record_key="trip id", sanitize=True)
    table.upsert(rows((1, "one"), (2, "two")))
    table.delete(rows((2, "")).select(["trip id"]))
    kept = table.snapshot().to_arrow().select(["trip__id", "zip__code"]).to_pylist()
    assert kept == [{"trip__id": 1, "zip__code": "one"}]


def test_a_write_adds_no_column_that_avro_cannot_hold(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    table = Table.create(uri, schema=pa.schema([("id", pa.int64())]), record_key="id")
    grown = pa.table({"id": [1], "tip %": [0.1]})
    before = content_of(tmp_path)
    with pytest.raises(InvalidColumnNameError, match="'tip %'"):
        table.upsert(grown, schema_mode="merge")
    assert content_of(tmp_path) == before
    Table.open(uri, {SANITIZE_NAMES: "true"}).upsert(grown, schema_mode="merge")
    assert table.snapshot().to_arrow().column("tip____").to_pylist() == [0.1]
