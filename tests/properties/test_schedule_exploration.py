"""The exploration itself, with actors so small that all their outcomes are known."""

import random
from collections.abc import Sequence
from dataclasses import replace
from math import comb

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import Bench, Protocol
from eventide.testing.schedules.exploration import End, Explored, Schedules
from eventide.testing.schedules.world import Step, Worlds
from eventide_core.errors import MissingFileError

COUNTER = "counter"


def writes(name: str, times: int) -> Protocol:
    """Puts so many numbers under a name."""

    def act(application: Application) -> None:
        for number in range(times):
            application.storage.put(COUNTER, f"{name}{number}".encode())

    return act


def adds_one(application: Application) -> None:
    before = int(application.storage.read(COUNTER))
    application.storage.put(COUNTER, str(before + 1).encode())


def adds_one_alone(application: Application) -> None:
    with application.rollback.lock.acquire():
        adds_one(application)


def ends(actors: Sequence[Protocol], explored: Explored, most_switches: int | None = None) -> list[End]:
    return list(_schedules(actors).all(explored, most_switches))


def _schedules(actors: Sequence[Protocol]) -> Schedules:
    bench = Bench("toys")
    bench.storage.put(COUNTER, b"0")
    return Schedules(bench, bench.moment(), actors)


def _left(found: Sequence[End]) -> set[bytes]:
    return {end.moment.files[COUNTER].data for end in found}


@pytest.mark.parametrize("operations", [1, 2, 8])
def test_two_actors_have_as_many_orders_as_there_are_ways_to_deal_their_operations(operations: int) -> None:
    explored = Explored()
    found = ends([writes("a", operations), writes("b", operations)], explored)
    assert explored.interleavings == comb(2 * operations, operations)
    assert explored.runs == (1, 1), "who is always answered the same needs no second run"
    assert _left(found) == {f"{name}{operations - 1}".encode() for name in "ab"}


def test_three_actors_have_as_many_orders_as_there_are_ways_to_deal_their_operations() -> None:
    explored = Explored()
    ends([writes("a", 4), writes("b", 4), writes("c", 4)], explored)
    assert explored.interleavings == comb(12, 4) * comb(8, 4)


@pytest.mark.parametrize("switches", range(7))
def test_the_bounded_search_has_all_orders_of_so_few_switches(switches: int) -> None:
    """Counted one by one: a switch leaves an actor that could have continued."""
    explored = Explored()
    ends([writes("a", 3), writes("b", 3)], explored, switches)

    def count(left: tuple[int, int], last: int | None, switches_left: int) -> int:
        if left == (0, 0):
            return 1
        total = 0
        for actor in (0, 1):
            cost = int(last is not None and last != actor and left[last] > 0)
            if left[actor] and cost <= switches_left:
                rest = (left[0] - (actor == 0), left[1] - (actor == 1))
                total += count(rest, actor, switches_left - cost)
        return total

    assert explored.interleavings == count((3, 3), None, switches)
    assert switches < 5 or explored.interleavings == comb(6, 3)


def test_an_update_that_is_lost_in_some_orders_is_found_and_its_order_reported() -> None:
    explored = Explored()
    found = ends([adds_one, adds_one], explored)
    assert _left(found) == {b"1", b"2"}
    lost = next(end for end in found if end.moment.files[COUNTER].data == b"1")
    assert sorted(actor for actor, _ in lost.order) == [0, 0, 1, 1]
    assert {lost.order[0][0], lost.order[1][0]} == {0, 1}
    assert explored.interleavings == 6


def test_who_takes_the_lock_first_loses_no_update() -> None:
    explored = Explored()
    assert _left(ends([adds_one_alone, adds_one_alone], explored)) == {b"2"}
    assert explored.interleavings == 2, "no operation comes between two operations of the lock's owner"


def test_each_actor_sees_the_errors_of_its_own_operations() -> None:
    def removes(application: Application) -> None:
        application.storage.delete(COUNTER)

    found = ends([adds_one, removes], Explored())
    assert {type(end.failures[0]) for end in found} == {MissingFileError, type(None)}


def test_actors_of_whom_one_never_gives_the_lock_back_are_reported() -> None:
    def keeps(application: Application) -> None:
        application.rollback.lock.acquire()

    with pytest.raises(AssertionError, match="all wait"):
        ends([keeps, adds_one_alone], Explored())


def test_an_actor_that_does_another_thing_after_the_same_answers_is_reported() -> None:
    chance = iter(range(100))

    def is_moody(application: Application) -> None:
        application.storage.put(f"mood{next(chance)}", b"")
        application.storage.read(COUNTER)

    with pytest.raises(AssertionError, match="after the same answers"):
        ends([is_moody, adds_one], Explored())


def test_an_error_that_is_not_eventides_is_passed_on_with_the_order_that_led_to_it() -> None:
    def breaks(application: Application) -> None:
        assert application.storage.read(COUNTER) == b"0"

    with pytest.raises(AssertionError) as found:
        ends([breaks, adds_one], Explored())
    assert "1: put counter" in "\n".join(found.value.__notes__)


def test_drawn_orders_come_to_no_other_ends_than_all_orders() -> None:
    actors = [adds_one, adds_one_alone, writes("1", 2)]
    everything = {(end.moment.visible, str(end.failures)) for end in _schedules(actors).all(Explored())}
    schedules = _schedules(actors)
    drawn = [schedules.drawn(random.Random(number), number % 5) for number in range(200)]
    assert {(end.moment.visible, str(end.failures)) for end in drawn} <= everything
    assert len({end.moment.visible for end in drawn}) > 2


def test_inspecting_one_final_state_does_not_change_the_others() -> None:
    """Who looks loads what it sees into the same storage; every actor continues in its own world."""
    bench = Bench("toys")
    bench.storage.put(COUNTER, b"0")
    worlds = Worlds(bench, bench.moment())
    look = Step("read", COUNTER, act=lambda storage: storage.read(COUNTER))
    assert worlds.after(0, look, 0) == (0, b"0")
    bench.load(worlds.moment(0))
    bench.storage.put(COUNTER, b"77")
    assert worlds.after(0, replace(look, details="once more"), 0) == (0, b"0")
