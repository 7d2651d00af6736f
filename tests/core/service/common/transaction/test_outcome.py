"""Which outcomes of compactions are removed: none that anybody asks for."""

import pytest

from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.access.active_timeline import recorded_ends
from eventide_core.service.common.transaction import outcome
from eventide_core.service.common.transaction.outcome import (
    UNDONE_KEPT_MS,
    Outcome,
    claim_outcome,
    claimed_outcome,
    instants_with_outcome,
    is_undone,
    record_undone,
    settled_outcomes,
)
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.outcome_file import attempt_path, instant_of, outcome_path
from eventide_core.table.timeline.timeline import Timeline

NOW_MS = 10 * UNDONE_KEPT_MS


def t(number: int) -> str:
    return f"202611210000000{number:02d}"


def timeline(*writes: int) -> Timeline:
    return Timeline.of(Instant(t(n), Action.DELTA_COMMIT, State.COMPLETED) for n in writes)


def storage(*outcomes: tuple[int, int | None], age_ms: int = UNDONE_KEPT_MS) -> MemoryStorage:
    """The outcomes (instant, completion) as they were claimed so long ago."""
    made = MemoryStorage.from_dump("outcomes", {}, now_ms=lambda: NOW_MS - age_ms)
    for instant, completion in outcomes:
        claim_outcome(made, Outcome(t(instant), None if completion is None else t(completion)))
    return made


def settled(
    made: MemoryStorage, active: Timeline, *, in_use: tuple[int, ...] = (), published: tuple[int, ...] = ()
) -> set[int]:
    paths = settled_outcomes(
        made, active, {t(n) for n in in_use}, NOW_MS, lambda instant: int(instant[-2:]) in published
    )
    return {int(str(instant_of(path))[-2:]) for path in paths}


def test_the_last_completed_archived_compaction_with_a_cut_keeps_its_outcome() -> None:
    made = storage((10, 31), (20, 21), (30, 32), (40, 41))
    assert settled(made, timeline(50, 60), published=(10, 20)) == {20, 30, 40}  # 10 was back-dated
    assert settled(made, timeline(50, 60), published=(10, 20, 30, 40)) == {10, 20, 30}


def test_a_single_archived_compaction_keeps_its_outcome_unasked() -> None:
    made = storage((10, 11))
    assert settled(made, timeline(50)) == set()


def test_where_none_is_known_to_have_published_a_cut_the_first_stays() -> None:
    assert settled(storage((10, 11), (20, 21)), timeline(50)) == {20}


def test_what_is_on_the_active_timeline_or_after_its_start_stays() -> None:
    made = storage((10, None), (20, 21), (50, 51), (55, None))
    assert settled(made, timeline(20, 50, 60), published=(20, 50)) == {10}
    assert settled(made, timeline(), published=(20, 50)) == set()


def test_what_was_rolled_back_stays_for_a_day_and_while_a_file_bears_its_instant() -> None:
    assert settled(storage((10, None)), timeline(50)) == {10}
    assert settled(storage((10, None)), timeline(50), in_use=(10,)) == set()
    assert settled(storage((10, None), age_ms=UNDONE_KEPT_MS - 1), timeline(50)) == set()


def test_records_of_undone_instants_are_known_by_their_names_and_sizes() -> None:
    made = storage((10, None), (20, 21))
    record_undone(made, t(30))
    made.put_if_absent(attempt_path(t(40), 1), b"")
    assert instants_with_outcome(made) == {t(10), t(20), t(30), t(40)}
    assert recorded_ends(made).undone == {t(10), t(30)}
    assert [is_undone(made, t(n)) for n in (10, 20, 30, 40)] == [True, False, True, False]
    assert claimed_outcome(made, t(20)) == Outcome(t(20), t(21))
    assert claimed_outcome(made, t(30)) is None


def test_outcomes_without_a_version_are_known_by_their_sizes_too() -> None:
    made = storage()
    for instant, text in ((t(10), "null"), (t(20), f'"{t(21)}"'), (t(30), '"20261121000000"')):
        made.put_if_absent(outcome_path(instant), b'{"completion_time": %s}' % text.encode())
    assert recorded_ends(made).undone == {t(10)}
    assert [claimed_outcome(made, t(n)) for n in (10, 20)] == [Outcome(t(10), None), Outcome(t(20), t(21))]


def test_the_first_claim_of_an_outcome_decides() -> None:
    made = storage((10, None))
    assert claim_outcome(made, Outcome(t(10), t(11))).is_undone
    assert not claim_outcome(made, Outcome(t(20), t(21))).is_undone
    assert claim_outcome(made, Outcome(t(20), None)) == Outcome(t(20), t(21))


def test_an_attempt_at_an_archived_plan_is_no_longer_needed() -> None:
    made = storage()
    made.put_if_absent(attempt_path(t(10), 1), b"")
    assert settled(made, timeline(50)) == {10}
    assert settled(made, timeline(10, 50)) == set()


def test_of_very_many_the_earliest_are_judged_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome, "_READ_AT_ONCE", 3)
    made = storage((10, 11), (20, 21), (30, 31), (40, 41))
    assert settled(made, timeline(50), published=(10, 20, 30, 40)) == {10, 20}
    for gone in (10, 20):
        made.delete(outcome_path(t(gone)))
    assert settled(made, timeline(50), published=(10, 20, 30, 40)) == {30}
