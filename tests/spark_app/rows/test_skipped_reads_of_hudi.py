"""Filters on tables that Hudi wrote give the rows that they keep of a whole read, whatever its footers state."""

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from eventide import Table
from eventide_core.errors import EventideError
from support.pasts import golden


@pytest.mark.proof
@pytest.mark.parametrize("name", golden.names())
def test_a_filter_gives_the_rows_that_it_keeps_of_a_whole_read(name: str, tmp_path: Path) -> None:
    table = Table.open(str(golden.unpack(name, tmp_path)))
    for query in (table.snapshot(), table.read_optimized()):
        try:
            everything = query.to_arrow()
        except EventideError:
            continue  # a table that is refused
        for column in ("id", "_hoodie_record_key", "event_ts", "val", "part"):
            if column not in everything.column_names or not len(everything):
                continue
            kind = everything.schema.field(column).type
            values: list[Any] = [v for v in pc.unique(everything.column(column)).to_pylist() if v is not None]
            for value in sorted(values)[:: max(1, len(values) // 2)]:
                for condition in (
                    pc.field(column) == value,
                    pc.field(column) > value,
                    pc.field(column).isin([value]),
                    (pc.field(column) >= value) & (pc.field(column) <= value),
                ):
                    expected = sorted(map(repr, everything.filter(condition).to_pylist()))
                    kept = sorted(map(repr, query.to_arrow(None, condition).to_pylist()))
                    assert kept == expected, f"{condition} ({kind})"
