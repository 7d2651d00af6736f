"""DataFrames and other Arrow streams as the records of a write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from eventide import InvalidRecordError, Table
from support.small_table import make, rows, seen

_ROWS = (("k0", -9, "zero"), ("k1", -8, "one"), ("k2", -7, "two"))


def _polars(table: pa.Table) -> Any:
    return pl.DataFrame(table)


def _duckdb(table: pa.Table) -> Any:
    return duckdb.from_arrow(table)


def _pandas(table: pa.Table) -> Any:
    return table.to_pandas().iloc[::-1]  # an index that is not a range


@pytest.mark.parametrize("frame", [_polars, _duckdb, _pandas, pa.Table.to_reader])
def test_a_data_frame_is_written_as_its_arrow_table(frame: Any, tmp_path: Path) -> None:
    table, written = make(tmp_path / "t", 9), rows(*_ROWS)
    table.upsert(frame(written))
    assert seen(table.snapshot().to_arrow(written.column_names)) == seen(written)
    assert set(written.column_names) == {name for name in table.schema.names if not name.startswith("_hoodie")}
    table.delete(frame(written.slice(1).select(["id", "part"])))
    assert set(seen(table.snapshot().to_arrow())) == {"k0"}


def test_the_rows_of_a_query_are_records(tmp_path: Path) -> None:
    source, target = make(tmp_path / "source", 9), make(tmp_path / "target", 9)
    source.upsert(rows(*_ROWS))
    target.upsert(source.snapshot())
    assert seen(target.snapshot().to_arrow()) == seen(source.snapshot().to_arrow())


@pytest.mark.parametrize("records", [[{"id": "k0"}], pd.Series([1]), None])
def test_what_has_no_arrow_stream_of_columns_is_refused(records: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidRecordError, match=r"cannot write records of type .*pyarrow\.Table\.from_pylist"):
        make(tmp_path / "t", 9).upsert(records)


def test_a_path_opens_and_creates_a_table(tmp_path: Path) -> None:
    made = Table.create(tmp_path / "t", schema=rows(*_ROWS).schema, record_key="id")
    assert Table.open(tmp_path / "t").uri == made.uri == str(tmp_path / "t")


def test_a_delete_by_condition_leaves_what_another_writer_made_later(tmp_path: Path) -> None:
    """docs/guide/python.md: with the ordering column."""
    table = make(tmp_path / "t", 9)
    table.upsert(rows(*_ROWS))
    doomed = table.snapshot().to_arrow(["id", "part", "ms"], filter="word <> 'one'")
    table.upsert(rows(("k2", -1, "newer")))
    table.delete(doomed)
    assert {key: word for key, (_, word) in seen(table.snapshot().to_arrow()).items()} == {"k1": "one", "k2": "newer"}
    table.compact(data_latency_seconds=0)
    assert {key: word for key, (_, word) in seen(table.read_optimized().to_arrow()).items()} == {
        "k1": "one",
        "k2": "newer",
    }
