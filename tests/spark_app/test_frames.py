"""DataFrames and other Arrow streams as the records of a write."""

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eventide import ConfigError, InvalidFilterError, InvalidRecordError, Table
from eventide.rows.reader import Rows
from support.tables.small import make, rows, seen

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


@pytest.mark.parametrize("where", ["word <> 'one'", pc.field("word") != "one", [("word", "!=", "one")]])
def test_a_condition_names_the_rows_to_delete(where: Any, tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(*_ROWS))
    assert table.delete(where=where).deletes == 2
    assert set(seen(table.snapshot().to_arrow())) == {"k1"}
    assert table.delete(where=where).deletes == 0
    assert set(seen(table.snapshot().to_arrow())) == {"k1"}


def test_a_version_that_another_writer_makes_while_rows_are_chosen_survives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(*_ROWS))
    choose = Rows.to_arrow

    def beside_a_writer(self: Rows, *words: Any) -> pa.Table:
        chosen = choose(self, *words)
        table.upsert(rows(("k2", -1, "newer")))
        return chosen

    monkeypatch.setattr(Rows, "to_arrow", beside_a_writer)
    table.delete(where="word <> 'one'")
    monkeypatch.undo()
    left = {"k1": "one", "k2": "newer"}
    assert {key: word for key, (_, word) in seen(table.snapshot().to_arrow()).items()} == left
    table.compact(data_latency_seconds=0)
    assert {key: word for key, (_, word) in seen(table.read_optimized().to_arrow()).items()} == left


def test_a_delete_takes_records_or_a_condition(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(*_ROWS))
    neither: dict[str, Any] = {}
    for words in (neither, {"records": rows(*_ROWS), "where": "id = 'k0'"}):
        with pytest.raises(ConfigError, match="either records or a condition"):
            table.delete(**words)
    with pytest.raises(InvalidFilterError, match="nothing"):
        table.delete(where="nothing = 1")
    assert len(table.snapshot()) == 3
