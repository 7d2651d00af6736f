"""What is cleaned, by each of Hudi's policies, and what stays anyway."""

import pytest

from eventide_core.action.maintenance.clean_planner import CleanFacts, CleanTerms, decide_clean, earliest_to_retain
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.file_slice import BaseFile, FileSlice, LogFile
from eventide_core.table.timeline.contents.clean_metadata import CleaningPolicy
from eventide_core.table.timeline.file_system_view import FileGroup
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.timeline import Timeline

GROUP: FileGroup = ("p", "f")


def t(number: int) -> str:
    return f"202611210000000{number:02d}"


def base(number: int) -> str:
    return f"p/f_0-1-0_{t(number)}.parquet"


def log(number: int, version: int) -> str:
    return f"p/.f_{t(number)}.log.{version}_0-1-0"


def a_slice(number: int, logs: int = 1) -> FileSlice:
    names = [LogFileName("f", t(number), version + 1, "0-1-0") for version in range(logs)]
    name = BaseFileName("f", "0-1-0", t(number))
    base = BaseFile(name, f"p/{name}", 10)
    return FileSlice("p", "f", t(number), base, tuple(LogFile(n, f"p/{n}", 5) for n in names))


def timeline(completed: int, pending: int | None = None) -> Timeline:
    """Compactions at 1, 11, 21, ... with three delta commits after each, of which `completed` writes have ended."""
    times = [10 * n + m for n in range(9) for m in range(1, 5)][:completed]
    done = [Instant(t(n), Action.COMMIT if n % 10 == 1 else Action.DELTA_COMMIT, State.COMPLETED) for n in times]
    waiting = [] if pending is None else [Instant(t(pending), Action.DELTA_COMMIT, State.INFLIGHT)]
    return Timeline.of([*done, *waiting])


def terms(policy: CleaningPolicy = CleaningPolicy.COMMITS, commits: int = 3, versions: int = 2) -> CleanTerms:
    return CleanTerms(policy, commits, versions, retained_since=t(15))


def facts(
    *slices: FileSlice,
    completed: int = 12,
    pending: int | None = None,
    replaced: int | None = None,
    needed: tuple[str, ...] = (),
    links: dict[str, str] | None = None,
    strays: tuple[str, ...] = (),
) -> CleanFacts:
    replaced_at = {} if replaced is None else {GROUP: t(replaced)}
    return CleanFacts(timeline(completed, pending), {GROUP: slices}, replaced_at, needed, links or {}, strays)


SLICES = (a_slice(1), a_slice(11), a_slice(21))


@pytest.mark.parametrize(("commits", "expected"), [(3, 22), (4, 21), (5, 14), (11, 2), (12, None), (20, None)])
def test_the_last_commits_are_retained(commits: int, expected: int | None) -> None:
    earliest = earliest_to_retain(timeline(12), terms(commits=commits))
    assert (earliest and earliest.requested_time) == (expected and t(expected))


def test_nothing_from_a_pending_write_on_is_given_up() -> None:
    assert earliest_to_retain(timeline(12, pending=15), terms(commits=1)) == Instant(
        t(14), Action.DELTA_COMMIT, State.COMPLETED
    )


def test_by_commits_the_slice_below_the_earliest_commit_stays_for_its_readers() -> None:
    assert decide_clean(facts(*SLICES), terms(commits=3)).deleted == (log(1, 1), log(11, 1), base(1), base(11))
    assert decide_clean(facts(*SLICES), terms(commits=4)).deleted == (log(1, 1), base(1))
    assert decide_clean(facts(*SLICES), terms(commits=5)).deleted == (log(1, 1), base(1))
    assert decide_clean(facts(*SLICES), terms(commits=9)).deleted == ()


def test_by_hours_the_slice_that_was_current_at_the_boundary_stays() -> None:
    # The earliest write of the retained hours is at 21, the boundary at 15: readers of 15 to 20 use the slice of 11.
    assert decide_clean(facts(*SLICES), terms(CleaningPolicy.HOURS)).deleted == (log(1, 1), base(1))
    assert decide_clean(facts(*SLICES[:2]), terms(CleaningPolicy.HOURS)).deleted == (log(1, 1), base(1))
    assert decide_clean(facts(SLICES[0], SLICES[2]), terms(CleaningPolicy.HOURS)).deleted == ()


def test_by_file_versions_the_latest_of_each_file_group_stay() -> None:
    by_versions = CleaningPolicy.FILE_VERSIONS
    assert decide_clean(facts(*SLICES), terms(by_versions, versions=2)).deleted == (log(1, 1), base(1))
    assert decide_clean(facts(*SLICES), terms(by_versions, versions=3)).deleted == ()
    kept = decide_clean(facts(*SLICES, needed=(base(21),)), terms(by_versions, versions=1))
    assert kept.deleted == (log(1, 1), base(1)), "a slice that a savepoint keeps anyway is not counted"


def test_a_replaced_file_group_goes_whole_once_its_readers_are_gone() -> None:
    everything = tuple(sorted((log(1, 1), log(11, 1), log(21, 1), base(1), base(11), base(21))))
    assert decide_clean(facts(*SLICES, replaced=21), terms(commits=3)).deleted == everything
    assert decide_clean(facts(*SLICES, replaced=23), terms(commits=3)).deleted != everything
    assert decide_clean(facts(*SLICES, replaced=23), terms(CleaningPolicy.FILE_VERSIONS)).deleted == everything


def test_a_slice_stays_whole_while_a_savepoint_or_a_plan_needs_a_part_of_it() -> None:
    assert decide_clean(facts(*SLICES, needed=(log(11, 1),)), terms()).deleted == (log(1, 1), base(1))


def test_what_a_link_leads_to_stays_through_any_chain() -> None:
    chain = {log(21, 1): log(11, 1), log(11, 1): log(1, 1)}
    decision = decide_clean(facts(*SLICES, links=chain), terms())
    assert decision.deleted == (base(1), base(11))
    assert decision.kept_targets == (log(1, 1), log(11, 1))


def test_a_link_that_goes_itself_keeps_nothing() -> None:
    decision = decide_clean(facts(*SLICES, links={log(11, 1): log(1, 1)}), terms())
    assert (len(decision.deleted), decision.kept_targets) == (4, ())


def test_links_that_lead_to_each_other_end_the_search() -> None:
    loop = {log(21, 1): log(11, 1), log(11, 1): log(21, 1)}
    assert decide_clean(facts(*SLICES, links=loop), terms()).kept_targets == (log(11, 1),)


def test_the_left_overs_of_a_compaction_that_was_rolled_back_go() -> None:
    assert decide_clean(facts(*SLICES, strays=("p/.f_x.log.0",)), terms(commits=12)).deleted == ("p/.f_x.log.0",)
