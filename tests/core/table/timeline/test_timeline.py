"""The active timeline: which state an instant is in, what is pending, what has been archived."""

import itertools

import pytest

from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.timeline import Timeline


def _time(number: int) -> str:
    return f"202611210000000{number:02d}"


def test_an_instant_counts_in_its_latest_state_in_whatever_order_it_is_listed() -> None:
    names = ["20261121000000001.compaction.requested", "20261121000000001.compaction.inflight"]
    done = "20261121000000001_20261121000000009.commit"
    for listing in itertools.permutations([*names, done]):
        (instant,) = Timeline.of_file_names(listing).instants
        assert instant.file_name == done
    assert [i.file_name for i in Timeline.of_file_names(reversed(names)).pending_plans] == [names[1]]


def test_pending_writes_are_apart_from_pending_plans() -> None:
    timeline = Timeline.of_file_names(
        [
            f"{_time(1)}.deltacommit",
            f"{_time(2)}.deltacommit.inflight",
            f"{_time(3)}.compaction.requested",
            f"{_time(4)}.logcompaction.inflight",
            f"{_time(5)}.clustering.requested",
            f"{_time(6)}.replacecommit.requested",
            f"{_time(7)}.inflight",
            f"{_time(8)}.clean.requested",
        ]
    )
    assert [i.requested_time for i in timeline.pending_writes] == [_time(2), _time(7)]
    assert [i.requested_time for i in timeline.pending_plans] == [_time(n) for n in (3, 4, 5, 6)]
    assert [i.requested_time for i in timeline.writes] == [_time(1)]
    assert len(timeline.pending) == 7


def test_version_6_completes_when_it_was_requested_as_it_has_no_other_time() -> None:
    timeline = Timeline.of_file_names([f"{_time(1)}.deltacommit", f"{_time(2)}_{_time(5)}.deltacommit"])
    assert timeline.completion_time(_time(1)) == _time(1)
    assert timeline.completion_time(_time(2)) == _time(5)
    assert timeline.completion_time(_time(3)) is None


def test_what_lies_before_the_first_write_has_been_archived() -> None:
    timeline = Timeline.of_file_names([f"{_time(3)}.deltacommit", f"{_time(5)}.deltacommit.inflight"])
    assert timeline.start == _time(3)
    completed = [n for n in range(9) if timeline.is_completed(_time(n))]
    assert completed == [0, 1, 2, 3]
    assert timeline.completion_time(_time(1)) is None


@pytest.mark.parametrize("action", ["clean", "rollback", "savepoint", "restore", "indexing"])
def test_an_old_clean_does_not_make_an_archived_commit_unknown(action: str) -> None:
    """Hudi archives writes apart from the rest, so a clean from long ago may be the first file there is."""
    timeline = Timeline.of_file_names([f"{_time(1)}.{action}", f"{_time(5)}.deltacommit"])
    assert timeline.start == _time(5)
    assert timeline.is_completed(_time(3))


def test_a_pending_write_holds_archival_back() -> None:
    timeline = Timeline.of_file_names([f"{_time(2)}.deltacommit.inflight", f"{_time(5)}.deltacommit"])
    assert timeline.start == _time(2)
    assert not timeline.is_completed(_time(3))


def test_a_commit_that_a_savepoint_keeps_may_stay_behind_archived_ones() -> None:
    """hoodie.archive.beyond.savepoint leaves a hole: what lies in it has been archived, not rolled back."""
    kept = [f"{_time(2)}_{_time(3)}.deltacommit", f"{_time(2)}_{_time(4)}.savepoint"]
    timeline = Timeline.of_file_names([*kept, f"{_time(8)}_{_time(9)}.deltacommit"])
    assert timeline.start == _time(8)
    assert timeline.is_archived(_time(5))
    assert timeline.completion_time(_time(2)) == _time(3)
    assert Timeline.of_file_names(kept).start == _time(2)


def test_an_empty_timeline_contains_nothing() -> None:
    timeline = Timeline.of([])
    assert timeline.start is None
    assert not timeline.is_completed(_time(1))


@pytest.mark.parametrize("is_first", [True, False])
def test_a_savepoint_does_not_hide_the_commit_it_keeps(is_first: bool) -> None:
    commit, savepoint = f"{_time(1)}_{_time(2)}.commit", f"{_time(1)}_{_time(8)}.savepoint"
    listing = [savepoint, commit] if is_first else [commit, savepoint]
    timeline = Timeline.of_file_names(listing)
    assert timeline.completion_time(_time(1)) == _time(2)
    assert [i.file_name for i in timeline.writes] == [commit]
    assert {i.file_name for i in timeline.instants} == {commit, savepoint}


def test_a_savepoint_does_not_say_when_its_archived_commit_completed() -> None:
    timeline = Timeline.of_file_names([f"{_time(1)}_{_time(8)}.savepoint", f"{_time(5)}_{_time(6)}.commit"])
    assert timeline.is_completed(_time(1))
    assert timeline.completion_time(_time(1)) is None


def test_the_timeline_as_it_was_ends_at_the_instant() -> None:
    timeline = Timeline.of_file_names([f"{_time(n)}.deltacommit" for n in (1, 2, 3)])
    assert [i.requested_time for i in timeline.until(_time(2)).instants] == [_time(1), _time(2)]
    assert timeline.find(_time(3)) is not None
    assert timeline.until(_time(2)).find(_time(3)) is None


def test_archived_instants_have_a_completion_time_but_are_not_on_the_active_timeline() -> None:
    active = Timeline.of_file_names([f"{_time(5)}_{_time(6)}.deltacommit"])
    timeline = active.with_archived([Instant(_time(1), Action.DELTA_COMMIT, State.COMPLETED, _time(4))])
    assert timeline == active
    assert timeline.completion_time(_time(1)) == _time(4)
    assert timeline.completion_time(_time(2)) is None
    assert timeline.start == _time(5)
    assert timeline.find(_time(1)) is None


def test_what_is_older_than_the_active_timeline_and_not_on_it_is_archived() -> None:
    timeline = Timeline.of_file_names([f"{_time(3)}.deltacommit.inflight", f"{_time(5)}.deltacommit"])
    assert timeline.is_archived(_time(2))
    assert not any(map(timeline.is_archived, (_time(3), _time(4), _time(5), _time(6))))


@pytest.mark.parametrize("compaction", [".compaction.requested", ".compaction.inflight", f"_{_time(3)}.commit"])
@pytest.mark.parametrize("write", [".deltacommit.requested", ".deltacommit.inflight", f"_{_time(4)}.deltacommit"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_write_of_the_same_millisecond_does_not_hide_a_compaction(
    compaction: str, write: str, is_first: bool
) -> None:
    names = [_time(1) + compaction, _time(1) + write]
    timeline = Timeline.of_file_names(names if is_first else names[::-1])
    of_write, of_compaction = timeline.find(_time(1)), timeline.find_compaction(_time(1))
    assert [instant and instant.file_name for instant in (of_compaction, of_write)] == names
    assert [instant.file_name for instant in timeline.instants] == names
    assert timeline.shares_its_time(_time(1))


def test_a_compaction_alone_shares_its_time_with_nobody() -> None:
    timeline = Timeline.of_file_names([f"{_time(1)}.compaction.requested", f"{_time(2)}.deltacommit.requested"])
    assert not timeline.shares_its_time(_time(1))
    assert timeline.find_compaction(_time(2)) is None


def test_one_more_instant_is_as_if_it_had_been_listed() -> None:
    names = [f"{_time(1)}.deltacommit", f"{_time(2)}.deltacommit.inflight"]
    archived = Instant(_time(0), Action.DELTA_COMMIT, State.COMPLETED, _time(1))
    more = Instant(_time(3), Action.COMPACTION, State.REQUESTED)
    grown = Timeline.of_file_names(names).with_archived([archived]).with_instant(more)
    assert grown == Timeline.of_file_names([*names, more.file_name])
    assert list(grown.archived) == [archived]
