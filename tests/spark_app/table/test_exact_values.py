"""Every way into a table refuses a value that its column cannot hold exactly, and leaves the columns' types alone."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import InvalidFilterError, InvalidRecordError

FIELDS: list[Any] = [
    pa.field("id", pa.string()),
    pa.field("n", pa.int32()),
    pa.field("share", pa.float32()),
    pa.field("rate", pa.float64()),
    pa.field("fare", pa.decimal128(10, 2)),
    pa.field("paid", pa.bool_()),
]
COLUMNS = pa.schema(FIELDS)
ROW = {"id": "a", "n": 7, "share": 0.5, "rate": 1.5, "fare": Decimal("1.25"), "paid": True}
LOSSES: dict[str, tuple[str, Any]] = {
    "a long for an int": ("n", 5_000_000_000),
    "a double for a float": ("share", 0.1234567891),
    "a decimal for a double": ("rate", Decimal("12345678901234567.89")),
    "a text for a double": ("rate", "1e400"),
    "a double for a decimal": ("fare", 1.005),
    "a number for a Boolean": ("paid", 2),
}


def _upserted_by(convert: Callable[[pa.Table], Any]) -> Callable[[Table, pa.Table], Any]:
    return lambda table, rows: table.upsert(convert(rows))


def _without_a_column(rows: pa.Table) -> pa.Table:
    """The rows without one whose value would fit."""
    return rows.drop_columns(["paid" if pa.types.is_boolean(rows.schema.field("paid").type) else "n"])


WAYS: dict[str, Callable[[Table, pa.Table], Any]] = {
    "upsert": lambda table, rows: table.upsert(rows),
    "insert": lambda table, rows: table.insert(rows),
    "bulk insert": lambda table, rows: table.bulk_insert(rows),
    "overwrite": lambda table, rows: table.insert_overwrite_table(rows),
    "partial": lambda table, rows: table.upsert(_without_a_column(rows), columns="partial"),
    "merge that updates": lambda table, rows: table.merge(rows, when_matched_update="*"),
    "merge that inserts": lambda table, rows: table.merge(
        rows.set_column(0, "id", pa.array(["b"])), when_not_matched_insert="*"
    ),
    "pandas": _upserted_by(lambda rows: pd.DataFrame(rows.to_pylist())),
    "polars": _upserted_by(pl.DataFrame),
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table.create(str(tmp_path / "t"), schema=COLUMNS, record_key="id")
    made.upsert(pa.Table.from_pylist([ROW], COLUMNS))
    return made


def _rows(name: str, value: Any) -> pa.Table:
    columns = {field.name: pa.array([ROW[field.name]], field.type) for field in COLUMNS}
    return pa.table({**columns, name: pa.array([value])})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", LOSSES)
def test_a_value_that_a_column_cannot_hold_is_refused_every_way_in(table: Table, case: str, way: str) -> None:
    name, value = LOSSES[case]
    with pytest.raises(InvalidRecordError, match=f"row 0: .*'{name}' of type .*does not fit the table's"):
        WAYS[way](table, _rows(name, value))
    assert table.snapshot().to_arrow(list(ROW)).to_pylist() == [ROW]


@pytest.mark.parametrize("way", WAYS)
def test_a_wider_column_whose_values_fit_leaves_the_type_as_it_is(table: Table, way: str) -> None:
    rows = _rows("share", 0.25).set_column(1, "n", pa.array([8], pa.int64()))
    WAYS[way](table, rows)
    found = table.snapshot().to_arrow(list(ROW))
    assert found.schema.types == COLUMNS.types
    assert found.column("share").to_pylist()[-1] == 0.25


def test_a_write_that_may_change_the_schema_widens_the_columns(table: Table) -> None:
    result = table.upsert(_rows("n", 5_000_000_000), schema_mode="merge")
    assert result.widened_columns == ("n",)
    assert table.snapshot().to_arrow(["n"]).to_pylist() == [{"n": 5_000_000_000}]


def test_a_wider_decimal_is_refused_with_what_stock_readers_read_instead(table: Table) -> None:
    price = Decimal("9999999999.25")
    with pytest.raises(InvalidRecordError, match=r"add a wider column by `alter`, .* Hudi before 1\.2 refuses"):
        table.upsert(_rows("fare", price), schema_mode="merge")
    table.alter(add={"price": "decimal(20,2)"})
    table.update({"price": "fare"}, all=True)
    table.alter(drop=["fare"])
    assert table.snapshot().to_arrow(["price"]).to_pylist() == [{"price": ROW["fare"]}]
    table.upsert(_rows("price", price).drop_columns("fare"))
    assert table.snapshot().to_arrow(["price"]).to_pylist() == [{"price": price}]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *LOSSES.values(),
        ("rate", "12345678901234567.89"),
        ("rate", "'1e400'"),
        ("fare", "1.005"),
        ("fare", "rate / 7"),
        ("share", "0.1234567891"),
        ("paid", "2"),
        ("n", "n + 5000000000"),
        ("rate", 2**53 + 1),
    ],
)
def test_an_update_refuses_a_value_that_the_column_cannot_hold(table: Table, name: str, value: Any) -> None:
    with pytest.raises((InvalidRecordError, InvalidFilterError), match=name):
        table.update({name: value}, all=True)
    assert table.snapshot().to_arrow(list(ROW)).to_pylist() == [ROW]
