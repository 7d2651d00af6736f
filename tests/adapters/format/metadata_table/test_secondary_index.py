"""The texts of values in a secondary index, as Hudi writes them."""

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from eventide_adapters.format.metadata_table.secondary_index import index_texts


@pytest.mark.parametrize(
    ("values", "first", "second"),
    [
        (pa.array(["plain", "a$b\\c\0d", "", None]), ["plain", "a\\$b\\\\c\\\0d", "", None], "\0"),
        (pa.array([-7, 2**40, None]), ["-7", "1099511627776", None], "\0"),
        (pa.array([0, None], pa.int32()), ["0", None], "\0"),
    ],
)
def test_a_null_has_a_text_in_the_second_version_alone(values: Any, first: list[str | None], second: str) -> None:
    assert index_texts(values, is_of_second_version=False).to_pylist() == first
    assert index_texts(values, is_of_second_version=True).to_pylist() == [*first[:-1], second]


def test_a_date_is_a_day_in_the_first_version_and_a_number_in_the_second() -> None:
    days: Any = pa.array([date(1969, 12, 31), date(2026, 11, 21)])
    assert index_texts(days, is_of_second_version=False).to_pylist() == ["1969-12-31", "2026-11-21"]
    assert index_texts(days, is_of_second_version=True).to_pylist() == ["-1", "20778"]
