"""Work that is handed over where threads can't start, die before their first line, or die beside it."""

from _thread import start_new_thread
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from eventide.engine_local import LocalEngine
from eventide_adapters.format.encoding.parquet.threads import prefetch
from eventide_adapters.lock.renewal import Renewal
from eventide_adapters.storage.remote_streams import in_pieces
from eventide_core.access import threads
from eventide_core.access.requests import responses
from eventide_core.access.threads import Future, Threads
from eventide_core.ports import NoProgress
from eventide_core.service.compaction.merge_tasks import merges_ahead

pytestmark = pytest.mark.slow

Start = Callable[..., int]


class Remote:
    is_remote = True


def _engine() -> list[int]:
    return LocalEngine(3).map(lambda item: item, range(7))


def _responses() -> list[int]:
    storage: Any = Remote()
    return list(responses(storage, lambda item: item, range(7)))


def _prefetch() -> list[int]:
    batches = (pa.record_batch({"n": [item]}) for item in range(7))
    return [batch.column(0)[0].as_py() for batch in prefetch(batches, 7)]


def _pieces() -> list[int]:
    data = bytes(range(7))
    return [*in_pieces(lambda offset, size: data[offset : offset + size], 0, 7, piece_bytes=1)]


HAND_OVERS = pytest.mark.parametrize("hand_over", [_engine, _responses, _prefetch, _pieces])


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int, Start], Start]], None]:
    """Replaces the start of each thread, by its number."""

    def replace(choose: Callable[[int, Start], Start]) -> None:
        real, number = start_new_thread, iter(range(10**6))
        monkeypatch.setattr(threads, "start_new_thread", lambda *given: choose(next(number), real)(*given))
        monkeypatch.setattr(threads, "_PATIENCE_S", 0.001)

    return replace


def _refused(*_: object) -> int:
    raise RuntimeError("can't start new thread")


def _dead(*_: object) -> int:
    return 0  # as a thread without memory for its first line


@HAND_OVERS
@pytest.mark.parametrize("number", range(8))
def test_a_thread_that_cant_start_is_an_error_and_none_waits(
    hand_over: Callable[[], list[int]], number: int, start: Callable[[Callable[[int, Start], Start]], None]
) -> None:
    begun: list[int] = []

    def choose(at: int, real: Start) -> Start:
        begun.append(at)
        return _refused if at == number else real

    start(choose)
    try:
        assert hand_over() == [*range(7)]
        assert number not in begun
    except RuntimeError:
        assert number in begun


@HAND_OVERS
@pytest.mark.parametrize("number", [*range(8), None])
def test_what_a_dead_thread_leaves_is_done_by_who_waits_for_it(
    hand_over: Callable[[], list[int]], number: int | None, start: Callable[[Callable[[int, Start], Start]], None]
) -> None:
    start(lambda at, real: _dead if number in (at, None) else real)
    assert hand_over() == [*range(7)]


@HAND_OVERS
@pytest.mark.parametrize("number", range(7))
def test_a_thread_that_dies_beside_its_work_leaves_it_to_who_waits(
    hand_over: Callable[[], list[int]], number: int, start: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    start(lambda _, real: real)
    real, count, numbers = Future.run, iter(range(10**6)), {number}

    def run(work: Future[Any]) -> None:
        if next(count) in numbers:
            raise MemoryError
        real(work)

    monkeypatch.setattr(Future, "run", run)
    with suppress(MemoryError):  # raised to who waited
        assert hand_over() == [*range(7)]


def test_each_call_for_a_result_raises_the_error_and_cancelled_work_never_runs() -> None:
    with Threads(1) as pool:
        failed = pool.submit(lambda: 1 // 0)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                failed.result()
    ran: list[bool] = []
    work = Future(lambda: ran.append(True))
    work.cancel()
    work.run()
    with pytest.raises(CancelledError):
        work.result()
    assert ran == []


@pytest.mark.parametrize("number", range(3))
def test_merges_ahead_end_where_a_thread_cant_start(
    number: int, start: Callable[[Callable[[int, Start], Start]], None]
) -> None:
    """The tasks that have begun wait to write until the process that owns them says no."""
    started: list[Future[Any]] = []

    def compact_slice(_: object, *, may_write: Callable[[], None]) -> Any:
        may_write()

    class Engine(LocalEngine):
        def _begin(self, begun: Any, function: Any, items: Any, on_done: Any) -> None:
            try:
                super()._begin(begun, function, items, on_done)
            finally:
                started.extend(begun)

    start(lambda at, real: _refused if at == number else real)
    merge: Any = compact_slice
    tasks: Any = (1, 2, 3)
    with pytest.raises(RuntimeError, match="can't start"), merges_ahead(Engine(3), merge, tasks, NoProgress()):
        pass
    for work in started:
        with pytest.raises(CancelledError):
            work.result()
    assert len(started) == number


def test_a_renewal_whose_thread_has_died_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventide_adapters.lock.renewal.start_new_thread", _dead)
    renewal = Renewal(lambda: True, 0.001)
    renewal.stop()
    renewal.stop()
