"""Texts as numbers: each becomes the number that it spells, or stays a text, or is named."""

import pyarrow as pa
import pytest

from eventide.sources.text_columns import converted, inferred
from eventide_core.errors import InvalidRecordError


@pytest.mark.parametrize(("text", "kind"), [("1e400", pa.float64()), ("-1e400", pa.float64()), ("1e39", pa.float32())])
def test_digits_that_a_type_has_no_number_for_are_named_by_their_row(text: str, kind: pa.DataType) -> None:
    with pytest.raises(InvalidRecordError, match=rf"'rides.csv', row 13: column 'fare': '{text}' isn't of type {kind}"):
        converted(pa.array(["1.5", "inf", text]), kind, "fare", "rides.csv", 10)


def test_a_column_with_digits_that_a_double_has_no_number_for_stays_text() -> None:
    assert inferred([pa.array(["1.5", "1e400"])], [pa.int64(), pa.float64()]) == pa.string()
    assert inferred([pa.array(["1.5", "1e300"])], [pa.int64(), pa.float64()]) == pa.float64()


def test_the_word_for_infinity_is_a_number() -> None:
    found = converted(pa.array(["inf", "-inf", None]), pa.float64(), "fare", "rides.csv", 0)
    assert found.to_pylist() == [float("inf"), -float("inf"), None]
