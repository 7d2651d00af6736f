"""The engines of this process."""

from __future__ import annotations

from threading import Barrier, Event

import pytest

from eventide.engine_local import LocalEngine, RequestEngine


@pytest.mark.parametrize("engine", [LocalEngine(3), RequestEngine(3)])
def test_results_come_in_the_order_of_the_items(engine: LocalEngine) -> None:
    done: list[None] = []
    assert engine.map(lambda item: 10 * item, range(50), on_done=lambda: done.append(None)) == [*range(0, 500, 10)]
    assert len(done) == 50
    assert engine.map(lambda item: item, []) == []


@pytest.mark.parametrize("engine", [LocalEngine(3), RequestEngine(3)])
@pytest.mark.parametrize("bad", [0, 7])
def test_the_first_error_ends_the_run(engine: LocalEngine, bad: int) -> None:
    with pytest.raises(ZeroDivisionError):
        engine.map(lambda item: 1 // (item - bad), range(9))


def test_requests_run_at_the_same_time_once_one_has_waited_for_its_response() -> None:
    never, together = Event(), Barrier(3)

    def request(item: int) -> int:
        if item == 0:
            never.wait(0.02)  # a response from a network
        else:
            together.wait(timeout=60)  # only three threads at a time get past it
        return item

    assert RequestEngine(3).map(request, range(7)) == [*range(7)]
