"""A cast keeps each value, or is refused with the column, the row, the value and a cure."""

import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.encoding.columns.exact_cast import cast_whole, keeps_digits
from eventide_core.errors import InvalidRecordError

D = pa.decimal128
STRUCT = pa.struct([("a", pa.int64()), ("in", pa.struct([("b", pa.int64())]))])
NEVER_NULL = pa.struct(
    [pa.field("a", pa.int64(), nullable=False), ("in", pa.struct([pa.field("b", pa.int32(), nullable=False)]))]
)
STRUCTS = [{"a": 1, "in": {"b": 2}}, None, {"a": 3, "in": None}]
LOST: dict[str, tuple[Any, Any, Any]] = {
    "digits of a decimal beyond a double": (Decimal("12345678901234567.89"), D(30, 2), pa.float64()),
    "digits of a double beyond a decimal": (1.005, pa.float64(), D(10, 2)),
    "digits of a decimal beyond another": (Decimal("1.005"), D(10, 3), D(10, 2)),
    "a double beyond the digits of a decimal": (1e20, pa.float64(), D(10, 2)),
    "a number for a Boolean": (2, pa.int64(), pa.bool_()),
    "a fraction for a Boolean": (0.5, pa.float64(), pa.bool_()),
    "a text beyond a double": ("1e400", pa.string(), pa.float64()),
    "a text below a double": ("1e-400", pa.string(), pa.float64()),
    "digits of a text beyond a double": ("99999999999999999.99", pa.string(), pa.float64()),
    "digits of a double beyond a float": (0.1234567891, pa.float64(), pa.float32()),
    "a double beyond a float": (1e300, pa.float64(), pa.float32()),
    "a text beyond a float": ("1e39", pa.string(), pa.float32()),
    "a long beyond an int": (5_000_000_000, pa.int64(), pa.int32()),
    "a long beyond a double": (2**53 + 1, pa.int64(), pa.float64()),
    "a long beyond a decimal": (2**62, pa.int64(), D(10, 2)),
    "an unsigned long beyond a long": (2**63, pa.uint64(), pa.int64()),
    "a fraction for a whole number": (1.5, pa.float64(), pa.int64()),
    "bytes for a text": (b"\xff", pa.binary(), pa.string()),
    "in a list": ([0.5, 1e300], pa.list_(pa.float64()), pa.list_(pa.float32())),
    "in a map": ([("a", 1e300)], pa.map_(pa.string(), pa.float64()), pa.map_(pa.string(), pa.float32())),
    "in a struct": ({"a": 1.005}, pa.struct([("a", pa.float64())]), pa.struct([("a", D(10, 2))])),
    "a null in a field that is never null": ({"a": None, "in": None}, STRUCT, NEVER_NULL),
    "a null in such a field further in": ({"a": 1, "in": {"b": None}}, STRUCT, NEVER_NULL),
    "a null in such a field in a list": ([None, {"a": None}], pa.list_(STRUCT), pa.list_(NEVER_NULL)),
    "in a list of structs": (
        [{"a": 2}],
        pa.list_(pa.struct([("a", pa.int32())])),
        pa.list_(pa.struct([("a", pa.bool_())])),
    ),
}
KEPT: dict[str, tuple[list[Any], Any, Any, list[Any]]] = {
    "decimals in a double": ([Decimal("1.10"), None], D(30, 2), pa.float64(), [1.1, None]),
    "doubles in a decimal": ([0.1, 1e20], pa.float64(), D(38, 10), [Decimal("0.1"), Decimal(10**20)]),
    "doubles in a float": (
        [0.1, float("inf"), None],
        pa.float64(),
        pa.float32(),
        [struct.unpack("f", struct.pack("f", 0.1))[0], float("inf"), None],
    ),
    "numbers in a Boolean": ([1, 0, None], pa.int8(), pa.bool_(), [True, False, None]),
    "longs in a decimal": ([7, -(10**7)], pa.int64(), D(10, 2), [Decimal(7), Decimal(-(10**7))]),
    "texts in a double": (
        ["0.10000000000000001", "-0", "1e308", "inf"],
        pa.string(),
        pa.float64(),
        [0.1, 0.0, 1e308, float("inf")],
    ),
    "dictionaries": (["a", None], pa.dictionary(pa.int8(), pa.string()), pa.string(), ["a", None]),
    "null structs whose fields are never null": (STRUCTS, STRUCT, NEVER_NULL, STRUCTS),
    "lists of them": ([STRUCTS, None, [], [None]], pa.list_(STRUCT), pa.list_(NEVER_NULL), [STRUCTS, None, [], [None]]),
    "maps": (
        [[("a", 0.5)], None, []],
        pa.map_(pa.string(), pa.float64()),
        pa.map_(pa.string(), pa.float32()),
        [[("a", 0.5)], None, []],
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_a_value_that_would_change_is_refused_with_its_row(case: str) -> None:
    value, own, kind = LOST[case]
    column = pa.chunked_array([pa.array([None, None], own), pa.array([None, value, None], own)])
    with pytest.raises(
        InvalidRecordError, match=r"^row 3: column 'x' of type .* does not fit the table's .*convert it"
    ):
        cast_whole(column, kind, "column 'x'")


@pytest.mark.parametrize("case", KEPT)
def test_values_that_fit_are_cast(case: str) -> None:
    values, own, kind, expected = KEPT[case]
    cast = cast_whole(pa.chunked_array([pa.array(values, own)]), kind, "column 'x'")
    assert (cast.type, cast.to_pylist()) == (kind, expected)


def test_a_wider_value_names_how_to_widen_the_column() -> None:
    with pytest.raises(InvalidRecordError, match="widen the column to long by `alter`"):
        cast_whole(pa.chunked_array([pa.array([2**40])]), pa.int32(), "column 'x'")


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 25))
def test_a_double_keeps_what_it_prints_in_any_number_of_digits(number: float, more: int) -> None:
    assert keeps_digits(f"{number:.{more}e}", number)
    assert keeps_digits(repr(number), number)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**12), max_value=10**12))
def test_fifteen_digits_fit_a_double(number: Decimal) -> None:
    assert keeps_digits(str(number), float(number))
