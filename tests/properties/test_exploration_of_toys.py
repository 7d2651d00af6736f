"""The exploration of pauses itself, with actors so small that all their schedules are known."""

from collections.abc import Hashable, Sequence

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import Bench, Protocol
from eventide.testing.schedules.pauses import Counted, Dying, Found, Other, Pauses, at_changes, attempted, in_words
from eventide.testing.schedules.replay import replay
from eventide_core.errors import LockError, LockLostError

COUNTER = "counter"


def adds_one(application: Application) -> None:
    """Under the lock, which it checks before it writes."""
    with application.rollback.lock.acquire() as lease:
        before = int(application.storage.read(COUNTER))
        lease.check()
        application.storage.put(COUNTER, str(before + 1).encode())


def adds_one_if_unchanged(application: Application) -> None:
    with application.rollback.lock.acquire() as lease:
        before = int(application.storage.read(COUNTER))
        lease.check()
        application.storage.put_if_absent(f"{COUNTER}{before + 1}", b"")


def waits(application: Application) -> None:
    before = application.clock.now_ms()
    application.clock.sleep(5)
    application.clock.sleep(5)
    application.storage.put("waited", str(application.clock.now_ms() - before).encode())


def others(*actions: Protocol) -> dict[str, Sequence[Other]]:
    return {action.__name__: (attempted(action),) for action in actions}


def pauses(actors: Sequence[Protocol], names: dict[str, Sequence[Other]] | None = None) -> Pauses:
    bench = Bench("toys")
    bench.storage.put(COUNTER, b"0")
    return Pauses(bench, bench.moment(), actors, names or {})


def left(found: Sequence[Found], path: str = COUNTER) -> set[bytes]:
    return {end.world.files[path].data for end in found}


def test_one_actor_has_a_schedule_for_each_operation_that_it_sleeps_before() -> None:
    """Five operations: it never sleeps, or before one of the last four."""
    counted = Counted()
    assert left(list(pauses([adds_one]).all(counted, dying=Dying.NOBODY))) == {b"0", b"1"}
    assert counted.schedules == 5


def test_others_act_while_somebody_sleeps_and_at_no_other_time() -> None:
    counted = Counted()
    found = list(pauses([adds_one], others(adds_one)).all(counted, most_others=1, dying=Dying.NOBODY))
    assert counted.schedules == 9
    assert left(found) == {b"0", b"1", b"2"}


def test_an_update_that_a_sleeper_makes_after_its_check_is_found_and_replayed() -> None:
    """It fell asleep between its check and its put: others added one meanwhile, and that is lost."""
    here = pauses([adds_one], others(adds_one))
    found = list(here.all(Counted(), most_others=1, dying=Dying.NOBODY))
    (lost,) = (
        end
        for end in found
        if end.points[0].failure is None
        and end.world.files[COUNTER].data == b"1"
        and any(move.other for move in end.schedule)
    )
    assert (
        in_words(lost.schedule)
        == "0: 3 operations\n0: falls asleep\nothers: adds_one\n0: 2 operations\n    put counter"
    )
    assert here.follow(lost.schedule).number == lost.number
    bench = here.worlds.bench
    moment, _, failures = replay(here.actors, here.worlds.moment(0), lost.schedule, others(adds_one), None, None)
    assert moment.files[COUNTER].data == b"1"
    assert failures == (None,)
    assert bench.clock.time_ms > here.worlds.time_ms


@pytest.mark.parametrize(("names", "error"), [({}, LockError), (others(adds_one), LockLostError)])
def test_a_lease_that_expired_is_lost_once_somebody_took_the_lock(
    names: dict[str, Sequence[Other]], error: type[LockError]
) -> None:
    here = pauses([adds_one], names)
    failures = [end.points[0].failure for end in here.all(Counted(), most_others=1, dying=Dying.NOBODY)]
    assert error in {type(failure) for failure in failures}


def test_an_exclusive_put_loses_no_update_whenever_its_process_sleeps() -> None:
    found = list(pauses([adds_one_if_unchanged, adds_one_if_unchanged]).all(Counted(), naps=2, dying=Dying.NOBODY))
    done = [end for end in found if any(point.step is None and point.failure is None for point in end.points)]
    assert len(done) > 1
    assert all(f"{COUNTER}1" in end.world.files for end in done)


def test_an_actor_sees_the_time_that_passed_while_it_slept_and_waited() -> None:
    found = list(pauses([waits]).all(Counted(), dying=Dying.NOBODY))
    assert left(found, "waited") == {b"10", b"600010"}


def test_who_may_die_anywhere_leaves_every_state() -> None:
    states = [len(list(pauses([adds_one]).all(Counted(), dying=dying))) for dying in Dying]
    assert states == sorted(states)
    assert len(set(states)) > 1


def test_a_process_that_sleeps_at_changes_alone_has_fewer_schedules() -> None:
    everywhere, at_some = Counted(), Counted()
    list(pauses([adds_one]).all(everywhere))
    list(pauses([adds_one]).all(at_some, at=at_changes))
    assert at_some.schedules == everywhere.schedules - 1, "not before the read"


def test_notes_follow_the_changes_of_actors_and_others() -> None:
    def note(notes: Hashable, before: object, after: object) -> Hashable:
        assert before != after
        assert isinstance(notes, int)
        return notes + 1

    bench = Bench("toys")
    bench.storage.put(COUNTER, b"0")
    here = Pauses(bench, bench.moment(), [adds_one], others(adds_one), notes=note, first=0)
    found = list(here.all(Counted(), most_others=1, dying=Dying.NOBODY))
    assert {end.world.notes for end in found} == {0, 1, 2}
