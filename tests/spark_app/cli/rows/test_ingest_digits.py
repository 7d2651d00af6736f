"""`eventide ingest` keeps every digit, or refuses the value with its place."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from support.run.command_line import run, run_json

LONG = "99999999999999999.99"
NEW = ("--create", "--record-key", "id")


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["0.5", LONG], pa.decimal128(19, 2), [Decimal("0.5"), Decimal(LONG)]),
        (["7", "0.12345678901234567890"], pa.decimal128(21, 20), [Decimal(7), Decimal("0.12345678901234567890")]),
        (["1234567890123456", "0.5"], pa.float64(), [1234567890123456.0, 0.5]),
        (["0.10000000000000001", "-2"], pa.float64(), [0.1, -2.0]),
        (["nan", LONG], pa.string(), ["nan", LONG]),
        (["0.5", "1" * 38], pa.string(), ["0.5", "1" * 38]),
        (["9223372036854775808", "1"], pa.string(), ["9223372036854775808", "1"]),
    ],
)
def test_fractions_of_csv_beyond_a_double_are_decimals_or_texts(
    tmp_path: Path, cells: list[str], kind: Any, values: list[Any]
) -> None:
    source = tmp_path / "x.csv"
    source.write_text("id,fare\n" + "".join(f"k{row},{cell}\n" for row, cell in enumerate(cells)))
    run_json("ingest", tmp_path / "t", source, *NEW)
    rows = Table.open(str(tmp_path / "t")).snapshot().to_arrow(["id", "fare"]).sort_by("id")
    assert (rows.schema.field("fare").type, rows.column("fare").to_pylist()) == (kind, values)


@pytest.mark.parametrize("ending", ["csv", "json"])
@pytest.mark.parametrize("value", [LONG, "0.12345678901234567890", "9007199254740993", "1e-400"])
def test_digits_beyond_a_column_of_doubles_are_refused(tmp_path: Path, ending: str, value: str) -> None:
    Table.create(str(tmp_path / "t"), schema=pa.table({"id": ["a"], "fare": [1.5]}).schema, record_key="id")
    texts = {
        "csv": f"id,fare\na,1.5\nb,{value}\n",
        "json": f'{{"id": "a", "fare": 1.5}}\n{{"id": "b", "fare": {value}}}\n',
    }
    source = tmp_path / f"x.{ending}"
    source.write_text(texts[ending])
    answer = run("ingest", tmp_path / "t", source)
    assert answer.exit_code == 2
    assert f"source '{source}', row 2: column 'fare': " in answer.stderr
    assert value in answer.stderr
    assert not len(Table.open(str(tmp_path / "t")).snapshot().to_arrow())


@pytest.mark.parametrize("nested", ["{}", '{{"of": {}}}', "[1.5, {}]", '[{{"of": {}}}]'])
def test_fractions_of_json_beyond_a_double_are_refused(tmp_path: Path, nested: str) -> None:
    source = tmp_path / "x.json"
    source.write_text(f'{{"id": "a", "fare": {nested.format("0.5")}}}\n{{"id": "b", "fare": {nested.format(LONG)}}}\n')
    answer = run("ingest", tmp_path / "t", source, *NEW)
    assert (answer.exit_code, (tmp_path / "t").exists()) == (2, False)
    assert (
        f"{LONG} has more digits than a double holds: write the column in quotes, or state a decimal" in answer.stderr
    )


@pytest.mark.parametrize("written", [LONG, json.dumps(LONG)])
def test_json_fills_a_stated_decimal_with_every_digit(tmp_path: Path, written: str) -> None:
    source, schema = tmp_path / "x.json", tmp_path / "schema"
    source.write_text(f'{{"id": "a", "fare": {written}}}\n')
    schema.write_text("id string\nfare decimal(19,2)\n")
    run_json("ingest", tmp_path / "t", source, *NEW, "--schema", schema)
    assert Table.open(str(tmp_path / "t")).snapshot().to_arrow(["fare"]).to_pylist() == [{"fare": Decimal(LONG)}]


def test_a_header_alone_makes_no_table_of_texts(tmp_path: Path) -> None:
    source, schema = tmp_path / "x.csv", tmp_path / "schema"
    source.write_text("id,fare\n")
    answer = run("ingest", tmp_path / "t", source, *NEW)
    assert (answer.exit_code, (tmp_path / "t").exists()) == (2, False)
    assert (
        "the sources have no rows, which would show the types of the columns: state them with --schema" in answer.stderr
    )
    schema.write_text("id long\nfare double\n")
    run_json("ingest", tmp_path / "t", source, *NEW, "--schema", schema)
    assert Table.open(str(tmp_path / "t")).snapshot().schema.field("id").type == pa.int64()


def test_a_column_without_a_value_is_named(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text("id,fare,city\n1,,\n2,,Oslo\n")
    assert "a column without a value becomes a text: fare;" in run("ingest", tmp_path / "t", source, *NEW).stderr


@pytest.mark.parametrize(
    ("unit", "epoch"), [("s", 1764333000), ("ms", 1764333000001), ("us", 1764333000001002), ("ns", 10**18)]
)
@pytest.mark.parametrize("ending", ["csv", "json", "texts.json"])
def test_epochs_become_timestamps_by_a_stated_unit(tmp_path: Path, ending: str, unit: Any, epoch: int) -> None:
    schema = pa.table({"id": ["a"], "at": pa.array([0], pa.timestamp("us", "UTC"))}).schema
    Table.create(str(tmp_path / "t"), schema=schema, record_key="id")
    texts = {
        "csv": f"id,at\na,{epoch}\nb,\n",
        "json": f'{{"id": "a", "at": {epoch}}}\n{{"id": "b", "at": null}}\n',
        "texts.json": f'{{"id": "a", "at": "{epoch}"}}\n{{"id": "b"}}\n',
    }
    source = tmp_path / f"x.{ending}"
    source.write_text(texts[ending])
    answer = run("ingest", tmp_path / "t", source)
    assert (answer.exit_code, "state its unit" in answer.stderr or "state their unit" in answer.stderr) == (2, True)
    run_json("ingest", tmp_path / "t", source, "--epochs", unit)
    rows = Table.open(str(tmp_path / "t")).snapshot().to_arrow(["id", "at"]).sort_by("id")
    moment: Any = pa.timestamp(unit, "UTC")
    expected = [pa.scalar(epoch, moment).cast(pa.timestamp("us", "UTC")).as_py(), None]
    assert rows.column("at").to_pylist() == expected


@pytest.mark.parametrize(("ending", "value"), [("json", "1.5"), ("json", "1000001"), ("csv", "1000001")])
def test_an_epoch_that_a_timestamp_cannot_hold_is_refused(tmp_path: Path, ending: str, value: str) -> None:
    schema = pa.table({"id": ["a"], "at": pa.array([0], pa.timestamp("us", "UTC"))}).schema
    Table.create(str(tmp_path / "t"), schema=schema, record_key="id")
    source = tmp_path / f"x.{ending}"
    source.write_text(f"id,at\na,{value}\n" if ending == "csv" else f'{{"id": "a", "at": {value}}}\n')
    answer = run("ingest", tmp_path / "t", source, "--epochs", "ns")
    assert answer.exit_code == 2
    assert "column 'at'" in answer.stderr


def test_an_epoch_in_a_nested_value_is_refused(tmp_path: Path) -> None:
    kind = pa.struct([("at", pa.timestamp("us", "UTC"))])
    schema = pa.table({"id": ["a"], "x": pa.array([None], kind)}).schema
    Table.create(str(tmp_path / "t"), schema=schema, record_key="id")
    source = tmp_path / "x.json"
    source.write_text('{"id": "a", "x": {"at": 1764333000001}}\n')
    assert "nothing says in which unit" in run("ingest", tmp_path / "t", source).stderr
