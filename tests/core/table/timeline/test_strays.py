"""What doesn't count on a timeline."""

from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.strays import Evidence, timeline_of

NOTHING = Evidence(lambda: None, lambda _: False, frozenset, lambda _: False)
WRITE = Instant("20260101000000000", Action.DELTA_COMMIT, State.COMPLETED, "20260101000000001")


def _savepoint(completion: str) -> Instant:
    return Instant(WRITE.requested_time, Action.SAVEPOINT, State.COMPLETED, completion)


def test_of_a_savepoint_that_completed_twice_the_earlier_completion_is_a_stray() -> None:
    late, counted = _savepoint("20260101000000002"), _savepoint("20260101000000003")
    timeline = timeline_of([WRITE, counted, late], NOTHING)
    assert timeline.strays == (late,)
    assert counted in timeline.completed
    assert late not in timeline.completed


def test_a_savepoint_that_completed_once_is_no_stray() -> None:
    assert not timeline_of([WRITE, _savepoint("20260101000000002")], NOTHING).strays
