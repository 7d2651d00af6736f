"""Ordering values as a column: several fields compare one after another, and a null is less than any value."""

import itertools
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.slice.log_file.ordering_values import (
    common_ranks,
    ordering_of_fields,
    ordering_type,
    orderings_of,
    ranks,
)
from eventide_core.errors import UnsupportedTableError

PAIRS = st.none() | st.tuples(st.none() | st.integers(-2, 2), st.none() | st.sampled_from(["", "a", "ab", "b"]))
KIND = pa.struct([("seq", pa.int64()), ("name", pa.string())])


def _column(values: list[Any]) -> "pa.Array[Any]":
    return pa.array(
        [None if value is None else dict(zip(("seq", "name"), value, strict=True)) for value in values], KIND
    )


def _sort_key(value: Any) -> Any:
    """Python's order with nulls first."""
    if value is None:
        return ()
    return tuple((0, "") if part is None else (1, part) for part in value)


@given(st.lists(PAIRS, max_size=8), st.lists(PAIRS, max_size=8))
def test_several_fields_rank_as_their_tuples_do(one: list[Any], other: list[Any]) -> None:
    numbers = list(itertools.chain(*(part.tolist() for part in common_ranks(_column(one), _column(other)))))
    values = [_sort_key(value) for value in one + other]
    for (left, left_rank), (right, right_rank) in itertools.product(zip(values, numbers, strict=True), repeat=2):
        assert (left < right) == (left_rank < right_rank)
        assert (left == right) == (left_rank == right_rank)


def test_the_fields_of_records_make_one_column_and_come_apart_again() -> None:
    records = pa.RecordBatch.from_pydict({"k": ["x", "y"], "seq": [1, 2], "name": ["a", "b"]})
    types = {field.name: field.type for field in records.schema}
    for fields in ((), ("seq",), ("name", "seq")):
        orderings = orderings_of(records, fields)
        assert orderings.type == ordering_type(fields, types)
        for name in fields:
            assert ordering_of_fields(orderings, fields, name) == records.column(name)


def test_records_without_an_ordering_field_are_level() -> None:
    assert ranks(pa.nulls(3)).tolist() == [0, 0, 0]


def test_an_ordering_field_that_is_no_column_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="ordering field when is not a column"):
        ordering_type(("seq", "when"), {"seq": pa.int64()})


@pytest.mark.parametrize("path", ["a.c", "a.b.c", "b.b", "a.", ".b"])
def test_a_nested_ordering_field_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(UnsupportedTableError, match="is not a column"):
        ordering_type((path,), {"a": pa.struct([("b", pa.int64())])})


def test_a_nested_field_orders_records_as_a_column_does() -> None:
    """A record that is null has a null there."""
    kind = pa.struct([("b", pa.struct([("c", pa.int64())]))])
    values = [{"b": {"c": 2}}, None, {"b": None}, {"b": {"c": 1}}]
    records = pa.RecordBatch.from_arrays([pa.array(values, kind), pa.array([7, 5, 6, 8])], names=["a", "seq"])
    types = {field.name: field.type for field in records.schema}
    assert ordering_type(("a.b.c",), types) == pa.int64()
    assert orderings_of(records, ("a.b.c",)).to_pylist() == [2, None, None, 1]
    both = orderings_of(records, ("seq", "a.b.c"))
    assert both.type == ordering_type(("seq", "a.b.c"), types)
    assert ordering_of_fields(both, ("seq", "a.b.c"), "a.b.c").to_pylist() == [2, None, None, 1]


@given(st.lists(st.none() | st.floats(), min_size=2, max_size=8))
def test_floating_numbers_rank_in_javas_order(values: list[float | None]) -> None:
    """-0.0 before 0.0, and NaN, of which there is one, behind all others."""
    numbers = ranks(pa.array(values, pa.float64())).tolist()
    keys = [_javas(value) for value in values]
    for (left, left_rank), (right, right_rank) in itertools.product(zip(keys, numbers, strict=True), repeat=2):
        assert (left < right) == (left_rank < right_rank)


def _javas(value: float | None) -> tuple[int, float, float]:
    if value is None:
        return (0, 0.0, 0.0)
    return (2, 0.0, 0.0) if math.isnan(value) else (1, value, math.copysign(1.0, value))
