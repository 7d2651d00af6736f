"""Which instants may leave the active timeline, and what holds each back."""

import pytest

from eventide_core.action.maintenance.archive_planner import ArchiveFacts, ArchiveTerms, instants_to_archive
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.timeline import Timeline

COMPACTED = 40


def t(number: int) -> str:
    return f"202611210000000{number:02d}"


def done(number: int, action: Action = Action.DELTA_COMMIT) -> Instant:
    return Instant(t(number), action, State.COMPLETED)


WRITES = tuple(done(n, Action.COMMIT if n == COMPACTED else Action.DELTA_COMMIT) for n in range(10, 60, 5))
TERMS = ArchiveTerms(min_commits=3, max_commits=6, is_beyond_savepoint=False, max_delta_commits=2)


def archived(
    *others: Instant,
    terms: ArchiveTerms = TERMS,
    bounds: tuple[int, ...] = (),
    strays: tuple[int, ...] = (),
    writes: int = 10,
) -> list[int]:
    facts = ArchiveFacts(
        Timeline.of([*WRITES[:writes], *others]), [t(n) for n in bounds], [t(COMPACTED)], [t(n) for n in strays]
    )
    return [int(i.requested_time[-2:]) for i in instants_to_archive(facts, terms)]


def test_nothing_is_archived_until_there_are_more_than_the_most() -> None:
    assert archived(writes=6) == []
    assert archived(writes=7) == [10, 15, 20, 25]


def test_all_but_the_least_are_archived_then() -> None:
    assert archived() == [10, 15, 20, 25, 30, 35, 40]


@pytest.mark.parametrize(
    "other",
    [
        Instant(t(22), Action.COMPACTION, State.REQUESTED),
        Instant(t(22), Action.DELTA_COMMIT, State.INFLIGHT),
        Instant(t(22), Action.CLEAN, State.INFLIGHT),
        done(22, Action.SAVEPOINT),
    ],
)
def test_what_is_pending_or_saved_holds_back_all_after_it(other: Instant) -> None:
    assert archived(other) == [10, 15, 20]


def test_a_savepoint_holds_nothing_back_where_that_is_asked_for() -> None:
    beyond = ArchiveTerms(3, 6, is_beyond_savepoint=True, max_delta_commits=2)
    assert archived(done(22, Action.SAVEPOINT), terms=beyond) == [10, 15, 20, 25, 30, 35, 40]


@pytest.mark.parametrize("stray", range(9, 40))
def test_the_timeline_never_starts_after_a_stray_left_over(stray: int) -> None:
    """Whatever lies before the start counts as completed: the left-over would be read."""
    gone = archived(strays=(stray,))
    left = [instant for instant in WRITES if int(instant.requested_time[-2:]) not in gone]
    start = Timeline.of(left).start
    assert start is not None
    assert not gone or start < t(stray)
    assert len(gone) == max(0, sum(int(i.requested_time[-2:]) < stray for i in WRITES) - 1)


def test_a_bound_of_cleaning_stays_itself() -> None:
    assert archived(bounds=(20, 30)) == [10, 15]
    assert archived(bounds=(5,)) == []


def test_delta_commits_that_the_next_compaction_counts_stay() -> None:
    assert archived(terms=ArchiveTerms(1, 2, False, max_delta_commits=2)) == [10, 15, 20, 25, 30, 35, 40, 45]
    assert archived(terms=ArchiveTerms(1, 2, False, max_delta_commits=5)) == [10, 15, 20, 25, 30, 35]


def test_cleans_and_rollbacks_go_with_the_writes_around_them_but_the_last_clean() -> None:
    others = (
        done(12, Action.CLEAN),
        done(13, Action.ROLLBACK),
        done(14, Action.CLEAN),
        done(16, Action.RESTORE),
        done(58, Action.ROLLBACK),
    )
    assert archived(*others) == [10, 12, 13, 15, 20, 25, 30, 35, 40]
