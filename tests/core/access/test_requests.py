"""Storage requests that don't depend on each other: sent together to a server, one after another to a disk."""

from threading import Barrier, get_ident
from types import SimpleNamespace
from typing import Any

import pytest

from eventide.engine_local import LocalEngine
from eventide_core.access.requests import Requests, responses

BUCKET: Any = SimpleNamespace(is_remote=True)
DISK: Any = SimpleNamespace(is_remote=False)


@pytest.mark.parametrize("where", [BUCKET, DISK], ids=["bucket", "disk"])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 40])
def test_responses_come_in_the_order_of_the_items(where: Any, count: int) -> None:
    assert list(responses(where, str, range(count))) == [str(item) for item in range(count)]


def test_a_server_gets_eight_requests_at_a_time() -> None:
    together = Barrier(8)
    assert list(responses(BUCKET, lambda _: together.wait(timeout=60) >= 0, range(16))) == [True] * 16


@pytest.mark.parametrize(("megabytes", "expected"), [(1, 8), (4, 5), (8, 3), (10, 2), (16, 2)])
def test_a_server_is_asked_for_so_many_bytes_ahead(megabytes: int, expected: int) -> None:
    asked: list[int] = []
    answers = responses(BUCKET, asked.append, range(20), lambda _: megabytes << 20)
    next(answers)
    assert len(asked) <= expected  # a thread may not have begun
    assert len([None, *answers]) == 20


def test_a_disk_gets_them_from_the_caller() -> None:
    assert {*responses(DISK, lambda _: get_ident(), range(9))} == {get_ident()}


@pytest.mark.parametrize("where", [BUCKET, DISK], ids=["bucket", "disk"])
def test_the_first_error_is_raised_after_the_responses_before_it(where: Any) -> None:
    asked = responses(where, lambda item: 6 // (3 - item), range(9))
    assert [next(asked), next(asked), next(asked)] == [2, 3, 6]
    with pytest.raises(ZeroDivisionError):
        next(asked)


def test_a_caller_that_stops_ends_the_requests() -> None:
    asked: list[int] = []

    def ask(item: int) -> int:
        asked.append(item)
        return item

    coming = responses(BUCKET, ask, iter(range(1_000)))
    assert next(coming) == 0
    coming.close()  # type: ignore[attr-defined] # a generator
    count = len(asked)
    assert count <= 8
    assert next(iter(responses(BUCKET, ask, [0]))) == 0
    assert len(asked) == count + 1


@pytest.mark.parametrize("threads", [1, 4])
def test_questions_of_different_kinds_get_their_responses_in_order(threads: int) -> None:
    requests = Requests(LocalEngine(threads))
    assert requests.both(lambda: 1, lambda: "b") == (1, "b")
    assert requests.all_of(lambda: 1, lambda: "b", lambda: None, lambda: 4.0) == (1, "b", None, 4.0)
    with pytest.raises(ZeroDivisionError):
        requests.all_of(lambda: 1, lambda: 1 // 0, lambda: int("no number"), lambda: 4)
    assert requests.each(str, []) == []


def test_questions_of_different_kinds_are_asked_together() -> None:
    together = Barrier(4)

    def ask() -> bool:
        return together.wait(timeout=60) >= 0

    assert Requests(LocalEngine(4)).all_of(ask, ask, ask, ask) == (True, True, True, True)
