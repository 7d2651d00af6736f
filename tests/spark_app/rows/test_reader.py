"""A query's rows as Arrow: columns in the order requested, filters, batches; and how little is read for them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eventide import Table
from eventide_core.errors import InvalidFilterError
from support.pasts import golden

NAMES = ("v9_avro_types", "v9_no_deletes", "v6_parquet_defpay")


@pytest.fixture(params=NAMES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return Table.open(str(golden.unpack(request.param, tmp_path)))


def by_key(table: pa.Table) -> pa.Table:
    return table.sort_by("id")


def test_columns_come_in_the_order_asked_for(table: Table) -> None:
    rows = table.snapshot().to_arrow(["amount", "id"])
    assert rows.column_names == ["amount", "id"]
    assert by_key(rows).equals(by_key(table.snapshot().to_arrow()).select(["amount", "id"]))


def test_a_filter_gives_the_rows_that_it_gives_after_the_merge(table: Table) -> None:
    newest = pc.max(table.snapshot().to_arrow(["event_ts"]).column(0)).as_py()
    row_filter = (pc.field("event_ts") > newest - 3_000_000) & (pc.field("val") != "b0-1")
    everything = table.snapshot().to_arrow()
    rows = table.snapshot().to_arrow(["id", "amount"], row_filter)
    wanted = everything.filter(row_filter).select(["id", "amount"])
    assert 0 < rows.num_rows < everything.num_rows
    assert by_key(rows).equals(by_key(wanted))


def test_batches_hold_the_same_rows_as_the_whole(table: Table) -> None:
    batches = list(table.snapshot().to_batches(["id", "event_ts"]))
    assert len(batches) > 1
    assert by_key(pa.Table.from_batches(batches)).equals(by_key(table.snapshot().to_arrow(["id", "event_ts"])))


def test_a_filter_reads_the_columns_that_it_needs_and_no_others(table: Table) -> None:
    read = table.snapshot().reading(["id"], pc.field("amount") > 3.0)
    assert set(read.read_names) == {"id", "amount"}


def test_an_unknown_column_or_a_filter_that_does_not_fit_is_reported(table: Table) -> None:
    with pytest.raises(InvalidFilterError, match="nothing"):
        table.snapshot().to_arrow(["nothing"])
    with pytest.raises(InvalidFilterError, match="None is not one of"):
        table.snapshot().to_arrow(["id", None])  # type: ignore[list-item]
    with pytest.raises(InvalidFilterError, match="'id' is named twice"):
        table.snapshot().to_arrow(["id", "event_ts", "id"])
    with pytest.raises(InvalidFilterError):
        table.snapshot().to_arrow(None, pc.field("nothing") == 1)
