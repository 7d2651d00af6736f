"""Which files of a timeline don't count."""

from dataclasses import replace

import pytest

from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.strays import Evidence, timeline_of

WRITES = [f"2026092114132{number:04}" for number in range(6)]
NOTHING = Evidence(lambda _: None, lambda _: False, frozenset, lambda _: False, lambda _: False)
WRITE = Instant("20260101000000000", Action.DELTA_COMMIT, State.COMPLETED, "20260101000000001")


def _files(time: str, *states: str) -> list[str]:
    return [f"{time}{state}" for state in states]


def _whole(time: str) -> list[str]:
    return _files(time, ".deltacommit.requested", ".deltacommit.inflight", ".deltacommit")


def _strays(names: list[str], archived: list[str]) -> set[str]:
    evidence = Evidence(
        lambda completed: max((time for time in archived if time not in completed), default=None),
        lambda time: time in archived,
        lambda: frozenset(),
        lambda _: False,
        lambda _: False,
    )
    timeline = timeline_of([found for name in names if (found := Instant.parse(name))], evidence)
    return {stray.file_name for stray in timeline.strays}


@pytest.mark.parametrize("late", [".deltacommit.inflight", ".deltacommit"])
def test_a_late_file_before_archived_writes_does_not_count(late: str) -> None:
    assert _strays([f"{WRITES[0]}{late}", *_whole(WRITES[4])], WRITES[:4]) == {f"{WRITES[0]}{late}"}


def test_a_late_inflight_file_of_the_last_archived_compaction_does_not_count() -> None:
    late = f"{WRITES[3]}.compaction.inflight"
    assert _strays([late, *_whole(WRITES[4])], WRITES[:4]) == {late}


@pytest.mark.parametrize("late", [".compaction.requested", ".compaction.inflight", ".commit"])
def test_a_late_file_behind_a_write_that_a_savepoint_keeps_does_not_count(late: str) -> None:
    """Archival went beyond the savepoint: the timeline starts after what it keeps."""
    kept = [*_whole(WRITES[0]), *_files(WRITES[0], ".savepoint.inflight", ".savepoint")]
    names = [*kept, f"{WRITES[2]}{late}", *_whole(WRITES[5])]
    assert _strays(names, WRITES[1:5]) == {f"{WRITES[2]}{late}"}


def test_writes_that_were_archived_since_the_listing_count_in_either_place() -> None:
    first = _files(WRITES[0], ".deltacommit")  # the archival has removed two of its files
    listed = [*first, *(name for time in WRITES[1:4] for name in _whole(time))]
    assert _strays(listed, WRITES[:2]) == set()


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


@pytest.mark.parametrize(("are_plans_followed", "is_stray"), [(True, False), (False, True)])
def test_an_undone_plan_counts_while_writers_may_follow_it(are_plans_followed: bool, is_stray: bool) -> None:
    plan = Instant("20260101000000002", Action.COMPACTION, State.REQUESTED)
    evidence = replace(NOTHING, undone=lambda: frozenset({plan.requested_time}), are_plans_followed=are_plans_followed)
    timeline = timeline_of([WRITE, plan], evidence)
    assert (plan in timeline.strays) is is_stray
    assert (timeline.pending_plans == (plan,)) is not is_stray


def test_a_late_inflight_file_of_an_undone_plan_is_a_stray_without_its_plan() -> None:
    late = Instant("20260101000000002", Action.COMPACTION, State.INFLIGHT)
    evidence = replace(NOTHING, undone=lambda: frozenset({late.requested_time}), are_plans_followed=True)
    assert timeline_of([WRITE, late], evidence).strays == (late,)


@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK])
@pytest.mark.parametrize("exists", [False, True], ids=["gone", "listed too late"])
def test_an_inflight_service_is_a_stray_if_its_requested_file_is_gone(action: Action, exists: bool) -> None:
    late = Instant("20260101000000002", action, State.INFLIGHT)
    evidence = replace(NOTHING, exists=lambda file: exists and file == replace(late, state=State.REQUESTED))
    timeline = timeline_of([WRITE, late], evidence)
    assert timeline.strays == (() if exists else (late,))
    assert timeline.pending == ((late,) if exists else ())


@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK])
@pytest.mark.parametrize("other", [State.REQUESTED, State.COMPLETED])
def test_an_inflight_service_with_another_file_counts(action: Action, other: State) -> None:
    """An archival that dies leaves a completed action without its request."""
    service = Instant("20260101000000002", action, State.INFLIGHT)
    assert not timeline_of([WRITE, service, replace(service, state=other)], NOTHING).strays
