"""Java's hash codes by columns equal the plain rule's."""

import sys
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.encoding.columns.java_hash import buckets_of, java_hashes
from eventide_core.table.files.bucket import bucket_of, java_hash

TEXTS = st.lists(st.one_of(st.text("abz019-", max_size=40), st.text(max_size=8)), min_size=1, max_size=20)


@given(TEXTS, st.integers(0, 3))
def test_a_column_hashes_as_its_texts_do(texts: list[str], offset: int) -> None:
    column = pa.array(["x"] * offset + texts).slice(offset)
    assert java_hashes(column).tolist() == [java_hash(text) for text in texts]


@given(TEXTS, st.integers(1, 300))
def test_rows_go_to_the_bucket_of_their_key(texts: list[str], buckets: int) -> None:
    columns = [pa.array(texts), pa.array(texts[::-1])]
    expected = [bucket_of(pair, buckets) for pair in zip(texts, texts[::-1], strict=True)]
    assert buckets_of(columns, buckets).tolist() == expected


@pytest.mark.parametrize("length", [255, 4095, 4096, 4097, 20_000])
@pytest.mark.parametrize("letter", ["z", "ß", "😀"])
def test_long_texts_hash_as_their_letters_one_by_one(length: int, letter: str) -> None:
    texts = [letter * length, "short", letter * (length + 1) + "x"]
    assert java_hashes(pa.array(texts)).tolist() == [java_hash(text) for text in texts]


def test_a_long_text_costs_no_step_for_each_of_its_letters() -> None:
    steps = 0

    def count(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal steps
        steps += event == "line"
        return count

    column, before = pa.array(["x" * 100_000, "short"]), sys.gettrace()
    sys.settrace(count)
    try:
        java_hashes(column)
    finally:
        sys.settrace(before)
    assert 0 < steps < 1_000
