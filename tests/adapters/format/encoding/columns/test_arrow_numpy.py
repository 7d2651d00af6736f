"""What passes between Arrow and NumPy by buffers is what Arrow itself makes of it."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.encoding.columns.arrow_numpy import (
    empty_array,
    null_flags,
    of_list,
    to_arrow,
    to_flags,
    to_numbers,
    to_texts,
)

VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.uint64(): st.integers(0, (1 << 64) - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.text(max_size=6),
}


def _lists(kind: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | VALUES[kind], max_size=20)


def _columns() -> st.SearchStrategy[tuple[Any, list[Any]]]:
    return st.sampled_from([*VALUES]).flatmap(lambda kind: st.tuples(st.just(kind), _lists(kind)))


@given(_columns(), st.integers(0, 20))
def test_an_arrow_array_passes_to_numpy_from_any_place_on(column: tuple[Any, list[Any]], start: int) -> None:
    kind, values = column
    array, given_ = pa.array(values, kind).slice(start), values[start:]
    assert null_flags(array).tolist() == [value is None for value in given_]
    if kind == pa.bool_():
        assert to_flags(array).tolist() == [bool(value) for value in given_]
    elif kind != pa.string():
        assert to_numbers(array, 7).tolist() == [7 if value is None else value for value in given_]


@given(_columns())
def test_a_list_becomes_the_array_that_arrow_makes_of_it(column: tuple[Any, list[Any]]) -> None:
    kind, values = column
    array = of_list(values, kind)
    array.validate(full=True)
    assert array.equals(pa.array(values, kind))
    if kind == pa.string():
        assert to_texts(values).equals(array)


@given(_columns())
def test_numbers_and_flags_of_numpy_become_an_arrow_array(column: tuple[Any, list[Any]]) -> None:
    kind, values = column
    if kind == pa.string():
        return
    plain = np.array([0 if value is None else value for value in values], kind.to_pandas_dtype())
    is_null = np.array([value is None for value in values], np.bool_)
    assert to_arrow(plain, is_null).equals(pa.array(values, kind))
    assert to_arrow(plain[::2]).equals(pa.array(plain.tolist()[::2], kind))


def test_nulls_have_no_number_unless_one_is_given() -> None:
    with pytest.raises(AssertionError):
        to_numbers(pa.array([1, None]))


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1 << 40], pa.int32()), (["5"], pa.int64()), ([5], pa.string()), ([True], pa.int64())],
)
def test_what_does_not_fit_the_type_is_refused(values: list[Any], kind: Any) -> None:
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError, OverflowError)):
        of_list(values, kind)


@pytest.mark.parametrize("kind", [*VALUES, pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.int64())])
def test_an_empty_array_has_the_type(kind: Any) -> None:
    assert empty_array(kind).equals(pa.array([], kind))
