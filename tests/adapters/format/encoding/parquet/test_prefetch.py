"""Batches that are read one ahead of their use."""

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from eventide_adapters.format.encoding.parquet import threads as batches_ahead
from eventide_adapters.format.encoding.parquet.threads import prefetch
from eventide_core.errors import CorruptBaseFileError


def batch(number: int) -> pa.RecordBatch:
    return pa.record_batch({"number": [number] * 10})


def numbers(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [batch.column(0)[0].as_py() for batch in batches]


@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("said", [0, 1, 10, 11, 20, 35, 1000])
def test_all_batches_come_in_order_whatever_number_was_expected(count: int, said: int) -> None:
    assert numbers(prefetch(map(batch, range(count)), said)) == list(range(count))


def test_a_lone_batch_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(batches_ahead, "Threads")
    assert numbers(prefetch(map(batch, range(1)), 10)) == [0]


def test_the_next_batch_and_no_other_is_made_while_one_is_in_use() -> None:
    made: list[int] = []
    is_made = [threading.Event() for _ in range(4)]

    def make(number: int) -> pa.RecordBatch:
        made.append(number)
        is_made[number].set()
        return batch(number)

    batches = prefetch(map(make, range(4)), 40)
    next(batches)
    assert is_made[1].wait(60)
    assert made == [0, 1]
    next(batches)
    assert is_made[2].wait(60)
    assert made == [0, 1, 2]
    assert numbers(batches) == [2, 3]


def failing(last: int) -> Iterator[pa.RecordBatch]:
    yield from map(batch, range(last))
    raise CorruptBaseFileError("no page")


@pytest.mark.parametrize("last", range(3))
def test_an_error_comes_where_its_batch_is_asked_for(last: int) -> None:
    batches = prefetch(failing(last), 1000)
    assert [next(batches).column(0)[0].as_py() for _ in range(last)] == list(range(last))
    with pytest.raises(CorruptBaseFileError, match="no page"):
        next(batches)


def test_who_breaks_off_leaves_nothing_being_made() -> None:
    begun, go_on = threading.Event(), threading.Event()
    under_way: list[int] = []

    def make(number: int) -> pa.RecordBatch:
        under_way.append(number)
        if number == 1:
            begun.set()
            assert go_on.wait(60)
        under_way.remove(number)
        return batch(number)

    def broken_off() -> None:
        # As a consumer that fails: the generator is closed, however long the batch takes that is being made.
        batches = prefetch(map(make, range(3)), 30)
        next(batches)
        assert begun.wait(60)
        threading.Timer(0.01, go_on.set).start()
        batches.close()  # type: ignore[attr-defined]  # it is a generator

    threads = threading.active_count()
    broken_off()
    assert under_way == []
    assert threading.active_count() <= threads + 1  # the timer, which may be ending
