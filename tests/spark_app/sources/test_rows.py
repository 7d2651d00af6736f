"""Rows of random CSV and JSON in blocks of a few bytes, compared with Python's own readers."""

import csv
import io
import json
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.sources.rows import read_rows
from eventide.sources.source import Dialect, Format, Source
from support.doubles.trickle import Trickle

CELLS = st.sampled_from(
    ["", "a", "NULL", "nan", "007", " x ", 'q"q', "l1\nl2", "é", "1", "2.5", "true", "2026-03-01", ",", "long " * 20]
)
ROWS = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=30)


def read(kind: Format, data: bytes, declared: Any) -> pa.Table:
    return read_rows([Source("x", kind, lambda: Trickle(data, 64))], lambda _: declared, Dialect()).rows


@settings(max_examples=60, deadline=None)
@given(ROWS, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_csv_gives_the_texts_that_were_written(rows: list[tuple[str, str]], end: str, quotes_all: bool) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL if quotes_all else csv.QUOTE_MINIMAL)
    writer.writerows([("a", "b", "last"), *((*row, "x") for row in rows)])
    data = text.getvalue().encode()
    found = read(Format.CSV, data, pa.string())
    kept = [tuple(cell or (cell if quotes_all else None) for cell in row) for row in rows]
    assert list(zip(*(found.column(name).to_pylist() for name in ("a", "b")), strict=True)) == kept
    inferred = read(Format.CSV, data, None)
    for place, name in enumerate(("a", "b")):
        written = [row[place] for row in kept]
        if pa.types.is_string(inferred.schema.field(name).type):
            assert inferred.column(name).to_pylist() == written
        else:  # a number, a Boolean or a date: null where nothing was written, and only there
            assert inferred.column(name).is_null().to_pylist() == [not (value or "").strip() for value in written]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), CELLS | st.none()), min_size=1, max_size=30))
def test_json_gives_the_texts_that_were_written(rows: list[dict[str, str | None]]) -> None:
    data = "".join(json.dumps({"id": 1, **row}) + "\n" for row in rows).encode()
    found = read(Format.JSON, data, None)
    for name in {name for row in rows for name in row}:
        column = found.column(name)
        written = [row.get(name) for row in rows]
        if pa.types.is_date(column.type):
            assert [value and value.isoformat() for value in column.to_pylist()] == written
        else:
            assert column.to_pylist() == written


def test_times_are_found_beside_chunks_of_nulls() -> None:
    lines = [{"at": None}] * 20 + [{"at": "2026-03-01T10:00:00Z"}] * 20
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    assert read(Format.JSON, data, None).schema.field("at").type == pa.timestamp("us", "UTC")


def test_an_object_may_be_null_whose_fields_never_are() -> None:
    values = [{"a": number} if number % 3 else None for number in range(40)]
    data = "".join(json.dumps({"s": value}) + "\n" for value in values).encode()
    declared = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    assert read(Format.JSON, data, declared).column("s").to_pylist() == values
