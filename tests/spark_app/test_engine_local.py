"""The engines of this process."""

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


def test_tasks_that_have_begun_wait_for_what_their_process_does() -> None:
    go_on = Event()
    begun = LocalEngine(2).begin(lambda item: go_on.wait(timeout=60) and item, range(1, 4))
    assert begun is not None
    assert not any(task.done() for task in begun)
    go_on.set()
    assert [task.result() for task in begun] == [1, 2, 3]


def test_an_engine_of_one_thread_runs_tasks_on_that_of_the_caller() -> None:
    assert LocalEngine(1).begin(str, [1]) is None


def test_requests_run_at_the_same_time_once_one_has_waited_for_its_response() -> None:
    never, together = Event(), Barrier(3)

    def request(item: int) -> int:
        if item == 0:
            never.wait(0.02)  # a response from a network
        else:
            together.wait(timeout=60)  # only three threads at a time get past it
        return item

    assert RequestEngine(3).map(request, range(7)) == [*range(7)]
