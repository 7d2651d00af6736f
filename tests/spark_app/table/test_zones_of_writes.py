"""Writes never guess a zone: a local time in a column of moments, and the reverse, are refused, whichever way they come."""

import json
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide_core.errors import InvalidFilterError, InvalidRecordError
from support.run.command_line import run

MOMENT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
AT = datetime.fromisoformat("2026-03-03T08:05")
ZONED = datetime.fromisoformat("2026-03-03T08:05+01:00")
WHY = "does not fit the table's .*: nothing says in which zone; cast it before"


def _table(path: Path, kind: pa.DataType) -> Table:
    schema = pa.schema({"id": pa.string(), "at": kind, "n": pa.int64()})
    table = Table.create(str(path), schema=schema, record_key="id", options={"hoodie.bucket.index.num.buckets": "1"})
    table.upsert(pa.table({"id": ["a"], "at": pa.array([0], pa.int64()).cast(kind), "n": [1]}, schema=schema))
    return table


def _merged(table: Table, value: Any) -> None:
    table.merge(pa.table({"id": ["a"], "at": [value], "n": [2]}), when_matched_update=True)


WAYS: dict[str, Callable[[Table, Any], object]] = {
    "arrow": lambda table, value: table.upsert(pa.table({"id": ["a"], "at": [value], "n": [2]})),
    "batch": lambda table, value: table.upsert(pa.RecordBatch.from_pylist([{"id": "a", "at": value, "n": 2}])),
    "insert": lambda table, value: table.insert(pa.table({"id": ["b"], "at": [value], "n": [2]})),
    "pandas": lambda table, value: table.upsert(pd.DataFrame({"id": ["a"], "at": [value], "n": [2]})),
    "polars": lambda table, value: table.upsert(pl.DataFrame({"id": ["a"], "at": [value], "n": [2]})),
    "partial": lambda table, value: table.upsert(pa.table({"id": ["a"], "at": [value]}), columns="partial"),
    "merge": _merged,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("kind", "value"), [(MOMENT, AT), (MOMENT, date(2026, 3, 3)), (LOCAL, ZONED)], ids=["local", "date", "zoned"]
)
def test_no_way_in_guesses_a_zone(tmp_path: Path, way: str, kind: pa.DataType, value: object) -> None:
    table = _table(tmp_path / "t", kind)
    before = table.snapshot().to_arrow(["id", "at", "n"]).to_pylist()
    with pytest.raises(InvalidRecordError, match=f"'at' of type .*{WHY}"):
        WAYS[way](table, value)
    assert table.snapshot().to_arrow(["id", "at", "n"]).to_pylist() == before


@pytest.mark.parametrize(("kind", "value"), [(MOMENT, AT), (LOCAL, ZONED)], ids=["local", "zoned"])
@pytest.mark.parametrize("depth", ["", "list", "struct"])
def test_no_new_value_of_an_update_does_either(tmp_path: Path, kind: pa.DataType, value: datetime, depth: str) -> None:
    kinds = {"": kind, "list": pa.list_(kind), "struct": pa.struct([("of", kind)])}
    values: dict[str, Any] = {"": value, "list": [value], "struct": {"of": value}}
    schema = pa.schema({"id": pa.string(), "at": kinds[depth]})
    table = Table.create(str(tmp_path / "t"), schema=schema, record_key="id")
    table.upsert(pa.Table.from_pylist([{"id": "a", "at": None}], schema=schema))
    with pytest.raises(
        InvalidFilterError, match=r"is not a value of column 'at', which is of type .*convert it before"
    ):
        table.update({"at": values[depth]}, where="id = 'a'")
    with pytest.raises(InvalidFilterError, match=WHY):
        table.update({"at": pa.scalar(values[depth])}, where="id = 'a'")
    assert table.snapshot().to_arrow(["at"]).column("at").null_count == 1


def _file(directory: Path, ending: str, value: datetime | date) -> Path:
    path = directory / f"rows.{ending}"
    match ending:
        case "csv":
            path.write_text(f"id,at,n\na,{value},2\n")
        case "json":
            path.write_text(json.dumps({"id": "a", "at": str(value), "n": 2}))
        case _:
            pq.write_table(pa.table({"id": ["a"], "at": [value], "n": [2]}), path)
    return path


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
@pytest.mark.parametrize(
    ("kind", "value"), [(MOMENT, AT), (MOMENT, date(2026, 3, 3)), (LOCAL, ZONED)], ids=["local", "date", "zoned"]
)
def test_no_file_does_either(tmp_path: Path, ending: str, kind: pa.DataType, value: datetime | date) -> None:
    table = _table(tmp_path / "t", kind)
    refused = run("ingest", table.uri, str(_file(tmp_path, ending, value)))
    assert refused.exit_code == 2
    assert "zone" in refused.stderr
    assert "'at'" in refused.stderr
    assert table.snapshot().to_arrow(["n"]).column("n").to_pylist() == [1]


def test_what_states_its_zone_is_written_as_it_is(tmp_path: Path) -> None:
    """And a date is the midnight of a local column."""
    moments, locals_ = _table(tmp_path / "moments", MOMENT), _table(tmp_path / "locals", LOCAL)
    moments.upsert(pd.DataFrame({"id": ["a"], "at": [pd.Timestamp(AT, tz="Europe/Berlin")], "n": [2]}))
    assert moments.snapshot().to_arrow(["at"]).column("at").to_pylist() == [ZONED]
    locals_.upsert(pa.table({"id": ["a"], "at": [date(2026, 3, 3)], "n": [2]}))
    assert locals_.snapshot().to_arrow(["at"]).column("at").to_pylist() == [AT.replace(hour=0, minute=0)]
