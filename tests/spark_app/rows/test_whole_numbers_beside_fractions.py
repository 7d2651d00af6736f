"""Whole numbers beside fractions, in filters and in values: Arrow by itself computes with floats, which hold 24 bits."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eventide import InvalidFilterError, Table
from eventide.rows.value_expression import evaluated, parse_filter, parse_value
from support.values.columns import schema_of

ROWS = pa.table(
    {
        "ms": pa.array([-(2**63), -2, -1, 1, 2, 2**53 + 1, 2**63 - 1, None]),
        "ratio": pa.array([0.5, -2.0, -1.5, 1.5, 3.0, 0.0, float(2**63), 1.0], pa.float32()),
    }
)
SIXTEEN_MILLIONS = 16_000_001
NUMBERS = pa.table(
    {"n": pa.array([SIXTEEN_MILLIONS], pa.int32()), "ms": [1_700_000_000_001], "half": pa.array([0.5], pa.float32())}
)


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("ms > 1.5", [2, 2**53 + 1, 2**63 - 1]),
        ("ms <= -1.5", [-(2**63), -2]),
        ("-1.5 < ms and ms < 2.5", [-1, 1, 2]),
        ("ms = 1.5", []),
        ("ms in (1.5)", []),
        ("ms in (1, 1.5)", [1]),
        ("ms not in (1, 1.5) and ms > 0.1", [2, 2**53 + 1, 2**63 - 1]),
        ("ms > 9007199254740992.5", [2**53 + 1, 2**63 - 1]),
        ("ms < 1e-40", [-(2**63), -2, -1]),
        ("ms < ratio", [-(2**63), 1, 2]),
        ("ms = ratio", [-2, 2**63 - 1]),  # a double holds the last one nearly
    ],
)
def test_a_whole_number_of_any_size_compares_with_a_fraction(condition: str, kept: list[int]) -> None:
    assert ROWS.filter(parse_filter(condition, ROWS.schema))["ms"].to_pylist() == kept


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("n * 1.5", SIXTEEN_MILLIONS * 1.5),
        ("1.5 * n", SIXTEEN_MILLIONS * 1.5),
        ("ms + 0.5", 1_700_000_000_001.5),
        ("n * half", SIXTEEN_MILLIONS / 2),
        ("n + half - 1.5", SIXTEEN_MILLIONS - 1.0),
        ("coalesce(ms, 1.5)", 1_700_000_000_001.0),
        ("case when ms > 0.5 then ms else 1.5 end", 1_700_000_000_001.0),
        ("if(ms < half, 0.5, ms)", 1_700_000_000_001.0),
    ],
)
def test_a_value_of_whole_numbers_and_fractions_is_computed_as_doubles(value: str, found: float) -> None:
    field = pa.field("x", pa.float64())
    expression = parse_value(value, field, NUMBERS.schema)
    assert evaluated(NUMBERS, {"x": expression}, pa.schema([field]))["x"].to_pylist() == [found]


def test_an_expression_that_rows_do_not_fit_is_no_corrupt_file(tmp_path: Path) -> None:
    schema = schema_of(id=pa.string(), number=pa.int64(), part=pa.int64())
    table = Table.create(tmp_path / "t", schema=schema, record_key="id", partition="part")
    columns: list[Any] = [["a", "b"], [2**53, 1], [2**53, 1]]
    table.upsert(pa.table(columns, schema=schema))
    wrong: list[Any] = [pc.field("number") > 1.5, [("number", ">", 1.5)], pc.field("part") > 1.5]
    for given in wrong:
        with pytest.raises(InvalidFilterError, match=r"> 1.5\) can't be computed for a row: Integer value 9007"):
            table.snapshot().to_arrow(filter=given)
    assert table.snapshot().count("number > 1.5 and part > 1.5") == 1
    shown = (
        r"filter \(divide\(cast\(number as double\), cast\(0 as double\)\) == 1\) can't be .*: divide by zero; write "
    )
    with pytest.raises(InvalidFilterError, match=shown):
        table.snapshot().count("number / 0 = 1")
