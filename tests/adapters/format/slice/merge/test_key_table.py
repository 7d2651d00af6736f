"""The key index agrees with a Python dict."""

import itertools
import random
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.slice.merge import key_table
from eventide_adapters.format.slice.merge.key_table import KeyTable

pytestmark = pytest.mark.slow

LONG = "x" * 600  # more than is looked at of a key

TEXTS = st.text(max_size=20) | st.integers(0, 40).map(lambda number: f"{LONG}{number}")


def _expected(keys: list[str], asked: list[str | None]) -> list[int]:
    place_of: dict[str | None, int] = {key: place for place, key in enumerate(keys)}
    return [place_of.get(key, -1) for key in asked]


@given(st.lists(TEXTS, unique=True), st.lists(st.lists(TEXTS | st.none(), max_size=30), max_size=3), st.data())
def test_keys_are_found_where_they_lie_and_others_and_nulls_are_not(
    keys: list[str], questions: list[list[str | None]], data: st.DataObject
) -> None:
    index = KeyTable(pa.array(keys, pa.string()))
    for others in questions:
        known = data.draw(st.lists(st.sampled_from(keys), max_size=30)) if keys else []
        asked = data.draw(st.permutations([*others, *known]))
        places = index.find(pa.array(["before", *asked, "after"], pa.string()).slice(1, len(asked)))
        assert places.tolist() == _expected(keys, asked)


@given(st.integers(1, 30), st.integers(0, 40), st.randoms(use_true_random=False))
def test_keys_of_one_length_are_found_among_keys_of_several(length: int, others: int, draw: random.Random) -> None:
    def key(size: int) -> str:
        return "".join(draw.choices("abé", k=size))

    same = [text.encode()[:length].decode("utf-8", "replace") for text in (key(length) for _ in range(60))]
    keys = list(dict.fromkeys([*same, *(key(draw.randrange(40)) for _ in range(others))]))
    asked: list[str | None] = [*same]
    assert KeyTable(pa.array(keys)).find(pa.array(asked)).tolist() == _expected(keys, asked)
    mixed: list[str | None] = [*keys, "more"]
    alike = list(dict.fromkeys(same))
    assert KeyTable(pa.array(alike)).find(pa.array(mixed)).tolist() == _expected(alike, mixed)


MANY = 20_000
"""So many keys are numbered without Arrow's dictionary."""


def test_prints_of_keys_of_one_length_are_those_that_they_have_among_others() -> None:
    """Otherwise a base file whose keys have one length would seem to have none of the log files' keys."""
    for length in range(1, 1000, 7):
        keys = [f"{number:x}".rjust(length, "k")[-length:] for number in range(50)]
        alike = key_table._prints_of(pa.array(["x", *keys]).slice(1))
        among = key_table._prints_of(pa.array(["x" * 1001, *keys]))[1:]
        assert alike.tolist() == among.tolist()


@pytest.mark.parametrize("weak", [0, 1, 1 << 63, (1 << 64) - 1])
def test_prints_that_many_keys_share_make_no_key_another(monkeypatch: pytest.MonkeyPatch, weak: int) -> None:
    """Every other print is the same, so that half of the keys want one place."""
    real: Any = key_table._prints_of

    def prints(keys: Any) -> Any:
        hashes = real(keys)
        hashes[::2] = np.uint64(weak)
        return hashes

    keys = [f"key-{number}" for number in range(300)]
    asked: list[str | None] = [None, *(f"key-{number}" for number in range(200, 400))]
    monkeypatch.setattr(key_table, "_prints_of", prints)
    assert KeyTable(pa.array(keys)).find(pa.array(asked)).tolist() == _expected(keys, asked)


@given(
    st.lists(TEXTS, max_size=60).flatmap(
        lambda texts: st.lists(st.sampled_from(texts), max_size=90) if texts else st.just([])
    ),
    st.data(),
)
def test_keys_are_numbered_in_order_of_their_first_appearance(keys: list[str], data: st.DataObject) -> None:
    keys = keys * data.draw(st.sampled_from([1, MANY // max(len(keys), 1)]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(keys)), max_size=3)))
    borders = [0, *cuts, len(keys)]
    chunks = [pa.array(keys[start:end], pa.string()) for start, end in itertools.pairwise(borders)]
    index, numbers = KeyTable.numbered(pa.chunked_array(chunks, pa.string()))
    distinct = list(dict.fromkeys(keys))
    assert index.keys.to_pylist() == distinct
    assert numbers.tolist() == _expected(distinct, list(keys))
    assert index.find(pa.array(["other", *keys], pa.string())).tolist() == [-1, *numbers.tolist()]


@pytest.mark.parametrize("weak", [0, 1, 1 << 63, (1 << 64) - 1])
def test_prints_that_many_keys_share_give_no_key_the_number_of_another(
    monkeypatch: pytest.MonkeyPatch, weak: int
) -> None:
    real: Any = key_table._prints_of

    def prints(keys: Any) -> Any:
        hashes = real(keys)
        hashes[::2] = np.uint64(weak)
        return hashes

    monkeypatch.setattr(key_table, "_prints_of", prints)
    keys = [f"key-{number % 70}" for number in range(MANY)]
    index, numbers = KeyTable.numbered(pa.chunked_array([pa.array(keys)]))
    assert [index.keys[int(number)].as_py() for number in numbers] == keys
    assert len(index.keys) == 70


def test_keys_that_were_numbered_are_found_by_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [str(number % (MANY - 100)) for number in range(MANY)]
    index, _ = KeyTable.numbered(pa.chunked_array([pa.array(keys)]))
    made = mock.Mock(side_effect=AssertionError("made again"))
    monkeypatch.setattr(key_table._Slots, "of", made)
    asked = [str(number) for number in range(500, 1500)]
    assert index.find(pa.array(asked)).tolist() == _expected(list(dict.fromkeys(keys)), list(asked))


def test_a_table_that_few_distinct_keys_do_not_need_is_not_kept() -> None:
    index, _ = KeyTable.numbered(pa.chunked_array([pa.array([str(number % 10) for number in range(MANY)])]))
    assert index._table is None
    assert index.find(pa.array(["7", "x", "0"])).tolist() == [7, -1, 0]


def test_the_table_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real: Any = key_table._Slots.of

    def of(prints: Any) -> Any:
        made.append(len(prints))
        return real(prints)

    monkeypatch.setattr(key_table._Slots, "of", of)
    index = KeyTable(pa.array([str(number) for number in range(1000)]))
    for start in range(0, 2000, 500):
        asked = [str(number) for number in range(start, start + 500)]
        assert index.find(pa.array(asked)).tolist() == _expected([str(number) for number in range(1000)], list(asked))
    assert made == [1000]
