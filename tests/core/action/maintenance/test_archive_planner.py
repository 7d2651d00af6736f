"""Which instants may leave the active timeline, and what holds each back."""

from dataclasses import replace

import pytest

from eventide_core.action.maintenance.archive_planner import (
    ArchiveFacts,
    ArchiveTerms,
    bounds_of_metadata_table,
    instants_to_archive,
)
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
    earliest_retained: int | None = None,
    followed_until: str | None = None,
) -> list[int]:
    facts = ArchiveFacts(
        Timeline.of([*WRITES[:writes], *others]),
        [t(n) for n in bounds],
        [t(COMPACTED)],
        [t(n) for n in strays],
        None if earliest_retained is None else t(earliest_retained),
        followed_until,
    )
    return [int(i.requested_time[-2:]) for i in instants_to_archive(facts, terms)]


def test_nothing_is_archived_until_there_are_more_than_the_most() -> None:
    assert archived(writes=6) == []
    assert archived(writes=7) == [10, 15, 20, 25]


def test_all_but_the_least_are_archived_then() -> None:
    assert archived() == [10, 15, 20, 25, 30, 35, 40]


WRITE_STATES = [
    Instant(t(22), action, state)
    for action in (
        Action.COMMIT,
        Action.DELTA_COMMIT,
        Action.COMPACTION,
        Action.LOG_COMPACTION,
        Action.REPLACE_COMMIT,
        Action.CLUSTERING,
    )
    for state in (State.REQUESTED, State.INFLIGHT)
]


@pytest.mark.parametrize("pending", WRITE_STATES, ids=lambda instant: instant.file_name[18:])
def test_the_timeline_never_starts_after_a_pending_write_or_plan(pending: Instant) -> None:
    """Readers take whatever lies before the first completed write for committed: the files of the pending one, too."""
    assert archived(pending) == [10, 15]
    assert archived(pending, Instant(t(32), Action.DELTA_COMMIT, State.INFLIGHT)) == [10, 15]


def test_a_write_that_a_savepoint_keeps_is_no_start_before_a_pending_one() -> None:
    pending, saved = Instant(t(22), Action.CLUSTERING, State.INFLIGHT), done(20, Action.SAVEPOINT)
    beyond = replace(TERMS, is_beyond_savepoint=True)
    assert archived(pending, saved, terms=beyond) == [10]
    first = (done(n, Action.SAVEPOINT) for n in (10, 15, 20))
    assert archived(pending, *first, terms=beyond) == []


@pytest.mark.parametrize("number", [1, 7])
def test_a_pending_write_before_all_others_holds_everything_back(number: int) -> None:
    assert archived(Instant(t(number), Action.DELTA_COMMIT, State.REQUESTED)) == []


@pytest.mark.parametrize(
    "other",
    [
        Instant(t(22), Action.CLEAN, State.INFLIGHT),
        Instant(t(22), Action.INDEXING, State.REQUESTED),
        done(22, Action.SAVEPOINT),
    ],
)
def test_what_is_pending_or_saved_holds_back_all_after_it(other: Instant) -> None:
    assert archived(other) == [10, 15, 20]


def test_a_savepoint_holds_back_its_own_write_alone_where_that_is_asked_for() -> None:
    """Stock Hudi restores to a savepoint only while its commit is on the active timeline."""
    beyond = replace(TERMS, is_beyond_savepoint=True)
    assert archived(done(20, Action.SAVEPOINT), terms=beyond) == [10, 15, 25, 30, 35, 40]


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


def test_one_write_more_stays_than_cleaning_retains() -> None:
    assert archived(earliest_retained=50) == [10, 15, 20, 25, 30, 35, 40]
    assert archived(earliest_retained=45) == [10, 15, 20, 25, 30, 35]
    assert archived(earliest_retained=40) == [10, 15, 20, 25, 30]
    assert archived(earliest_retained=35) == [10, 15, 20, 25]
    assert archived(earliest_retained=25) == [], "of 10 writes, 8 stay, until there are 12"


@pytest.mark.parametrize(("until", "gone"), [("", []), (t(9), []), (t(10), [10]), (t(25) + "001", [10, 15, 20, 25])])
def test_what_the_metadata_table_has_not_compacted_stays(until: str, gone: list[int]) -> None:
    assert archived(followed_until=until) == gone


def test_a_write_that_completed_after_a_compaction_of_the_metadata_table_stays() -> None:
    """It was requested before: its log file of the metadata table lies above the compaction."""
    late = Instant(t(12), Action.DELTA_COMMIT, State.COMPLETED, t(27))
    assert archived(late, followed_until=t(25)) == [10]
    assert archived(late, followed_until=t(27)) == [10, 12, 15, 20, 25]


def test_a_rollback_that_the_metadata_table_has_not_compacted_stays() -> None:
    """It changes which files there are: readers leave out its log file once it has left the active timeline."""
    early, late = done(12, Action.ROLLBACK), done(28, Action.ROLLBACK)
    straddling = Instant(t(13), Action.CLEAN, State.COMPLETED, t(27))
    assert archived(early, straddling, late, done(29, Action.CLEAN), followed_until=t(26)) == [10, 12, 15, 20, 25]


@pytest.mark.parametrize("is_beyond_savepoint", [False, True])
def test_the_metadata_table_keeps_what_the_table_has_from_its_first_write_on(is_beyond_savepoint: bool) -> None:
    """Not from its first clean or restore, of which some stay for ever."""
    others = [done(3, Action.RESTORE), done(4, Action.CLEAN), done(10, Action.SAVEPOINT)]
    first = t(15 if is_beyond_savepoint else 10)
    assert bounds_of_metadata_table(Timeline.of([*WRITES, *others]), is_beyond_savepoint=is_beyond_savepoint) == [first]
    pending = Instant(t(5), Action.CLEAN, State.REQUESTED)
    found = bounds_of_metadata_table(Timeline.of([*WRITES, *others, pending]), is_beyond_savepoint=is_beyond_savepoint)
    assert found == [first, t(5)]


def test_cleans_and_rollbacks_go_with_the_writes_around_them_but_the_last_clean() -> None:
    others = (
        done(12, Action.CLEAN),
        done(13, Action.ROLLBACK),
        done(14, Action.CLEAN),
        done(16, Action.RESTORE),
        done(58, Action.ROLLBACK),
    )
    assert archived(*others) == [10, 12, 13, 15, 20, 25, 30, 35, 40]
