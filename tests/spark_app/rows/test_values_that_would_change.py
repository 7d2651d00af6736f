"""What would change a value, or lose it, without a word is refused, and the table stays as it is."""

import datetime
import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars
import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import InvalidFilterError, InvalidRecordError
from support.run.command_line import run

INNER = pa.struct([pa.field("x", pa.int64())])
FIELDS: "list[pa.Field[Any]]" = [
    pa.field("k", pa.string()),
    pa.field("ts", pa.int64()),
    pa.field("a", pa.string()),
    pa.field("b", pa.int64()),
    pa.field("share", pa.float32()),
    pa.field("at", pa.timestamp("us", "UTC")),
    pa.field("st", INNER),
]
ROW = {"k": "1", "ts": 1, "a": "kept", "b": 5, "share": 0.5, "at": None, "st": {"x": 7}}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Table.create(str(tmp_path / "t"), schema=pa.schema(FIELDS), record_key="k", ordering="ts")
    table.insert(pa.Table.from_pylist([ROW], schema=pa.schema(FIELDS)))
    return table


def kept(table: Table) -> bool:
    return table.snapshot().to_arrow(list(ROW)).to_pylist() == [ROW]


def test_sources_of_different_columns_are_refused_together(table: Table, tmp_path: Path) -> None:
    """Each row would get a null for the column that only the other source has, also by `--columns partial`."""
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("k,ts,a\n1,2,new\n")
    other.write_text("k,ts,b\n2,2,9\n")
    answer = run("ingest", table.uri, one, other, "--columns", "partial")
    assert answer.exit_code == InvalidRecordError.exit_code
    assert "lacks the column 'b'" in answer.stderr
    assert kept(table)
    assert run("ingest", table.uri, one, "--columns", "partial").exit_code == 0


@pytest.mark.parametrize("length", [3, 9 << 20], ids=["in one chunk", "in several"])
@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_lines_of_different_keys_are_refused_with_partial_columns(
    order: tuple[str, str], length: int, table: Table, tmp_path: Path
) -> None:
    """A null that is written is one, and without `partial`, a key that a line lacks is null, as Spark reads JSON."""
    text = "x" * length
    lines = {"a": f'{{"k": "1", "ts": 2, "a": "{text}", "b": null}}\n', "b": '{"k": "1", "ts": 2, "b": 9}\n'}
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(lines[name] for name in order))
    answer = run("ingest", table.uri, file, "--columns", "partial")
    assert answer.exit_code == InvalidRecordError.exit_code
    assert f"row {1 + order.index('b')} lacks the column 'a'" in answer.stderr
    assert kept(table)
    file.write_text(lines["a"])
    assert run("ingest", table.uri, file, "--columns", "partial").exit_code == 0
    assert table.snapshot().to_arrow(["a", "b"]).to_pylist() == [{"a": text, "b": None}]


@pytest.mark.parametrize("number", ["16777217", "1e39", "0.123456789"])
def test_a_number_of_json_that_a_float_cannot_hold_is_refused(table: Table, tmp_path: Path, number: str) -> None:
    file = tmp_path / "rows.json"
    file.write_text(f'{{"k": "1", "ts": 2, "share": {number}}}\n')
    answer = run("ingest", table.uri, file, "--columns", "partial")
    assert answer.exit_code == InvalidRecordError.exit_code
    assert f"column 'share': {number}" in answer.stderr
    assert kept(table)


def test_a_nested_field_that_the_table_lacks_is_refused_in_an_update(table: Table) -> None:
    with pytest.raises(InvalidFilterError, match=r"'X': 8.* is not a value of column 'st'"):
        table.update({"st": {"X": 8}}, all=True)
    partial = pa.table({"k": ["1"], "ts": [2], "st": [{"x": 8, "y": 1}]})
    with pytest.raises(InvalidRecordError, match="has no field 'y' in the table"):
        table.upsert(partial, columns="partial")
    assert kept(table)


@pytest.mark.parametrize("text", ["'2026-03-29 02:30:00'", "timestamp '2026-03-29 02:30:00'", "'2026-03-29'"])
def test_a_text_without_a_zone_is_no_moment_in_an_update(table: Table, text: str) -> None:
    with pytest.raises(InvalidRecordError, match="has no zone"):
        table.update({"at": text}, all=True)
    assert kept(table)


_NAIVE, _ZONED = pd.Timestamp("2026-01-01 10:00"), pd.Timestamp("2026-01-01 10:00", tz="Europe/Berlin")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([_NAIVE, _ZONED], "row 1: column 'at' has Timestamp.*, a time with a zone, beside .*, a time without a zone"),
        ([pd.NaT, _ZONED, _NAIVE], "row 2: column 'at' has Timestamp.*, a time without a zone, beside"),
        ([datetime.date(2026, 1, 1), _NAIVE], "row 1: column 'at' has .*, a time without a zone, beside .*, a date"),
        ([[_NAIVE], [_NAIVE, _ZONED]], "row 1: column 'at' has Timestamp"),
        ([{"x": _ZONED}, {"x": _NAIVE}], "row 1: column 'at' has Timestamp"),
        ([_NAIVE, "2026-01-01"], "column at"),
        (
            pd.period_range("2026-01", periods=2, freq="M"),
            "column 'at' .* holds periods of pandas: write their beginning",
        ),
    ],
)
def test_times_of_several_kinds_in_pandas_are_refused(values: Any, said: str, table: Table) -> None:
    frame = pd.DataFrame({"k": [str(row) for row in range(len(values))], "ts": 2, "at": pd.Series(values)})
    with pytest.raises(InvalidRecordError, match=said):
        table.upsert(frame, columns="partial")
    assert kept(table)


def test_times_of_one_kind_in_objects_of_pandas_are_read(table: Table) -> None:
    other = _ZONED.tz_convert("US/Pacific")
    table.upsert(pd.DataFrame({"k": ["1", "2"], "ts": 2, "at": pd.Series([_ZONED, other])}), columns="partial")
    assert {row["at"] for row in table.snapshot().to_arrow(["at"]).to_pylist()} == {_ZONED.to_pydatetime()}


def test_objects_in_polars_are_refused(table: Table) -> None:
    frame = polars.DataFrame({"k": ["1"], "ts": [2], "a": polars.Series([object()], dtype=polars.Object)})
    with pytest.raises(InvalidRecordError, match="column 'a' of Polars holds objects of Python"):
        table.upsert(frame, columns="partial")
    assert kept(table)


@pytest.mark.parametrize("wrong", ["plain", "one", "many", "by"])
def test_a_text_that_is_not_a_symbol_of_an_enum_is_refused(wrong: str, tmp_path: Path) -> None:
    """No file shows it at first: in a base file an enum is a text, and Hudi fails where it reads it as Avro."""
    color = {"type": "enum", "name": "color", "symbols": ["red", "blue"]}
    kinds: dict[str, object] = {
        "plain": ["null", color],
        "one": {"type": "record", "name": "one", "fields": [{"name": "c", "type": "color"}]},
        "many": {"type": "array", "items": "color"},
        "by": {"type": "map", "values": "color"},
    }
    fields = [{"name": name, "type": kind} for name, kind in {"k": "string", **kinds}.items()]
    table = Table.create(
        str(tmp_path / "t"), schema=json.dumps({"type": "record", "name": "r", "fields": fields}), record_key="k"
    )
    row = {"k": "1", "plain": None, "one": {"c": "red"}, "many": ["red"], "by": [("x", "blue")]}
    other = {"plain": "green", "one": {"c": "green"}, "many": ["red", "green"], "by": [("x", "green")]}
    schema = table.snapshot().to_arrow(list(row)).schema
    with pytest.raises(InvalidRecordError, match=f"column '{wrong}'.* has 'green', which is not one of .*: red, blue"):
        table.upsert(pa.Table.from_pylist([row, {**row, "k": "2", wrong: other[wrong]}], schema=schema))
    table.upsert(pa.Table.from_pylist([row], schema=schema))
    assert table.snapshot().to_arrow(list(row)).to_pylist() == [row]
