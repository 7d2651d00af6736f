"""When a compaction is due. The expectations are read off Hudi 1.1.1's ScheduleCompactionActionExecutor."""

from collections.abc import Iterable

import pytest

from eventide_core.action.compaction.trigger import (
    Trigger,
    TriggerRule,
    check_trigger,
    check_undoing,
    cure_of,
    due,
    trigger_rule,
)
from eventide_core.config import Options
from eventide_core.cure import Cure
from eventide_core.errors import BusyError, ConfigError
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.timeline import Timeline


def at(minute: int) -> str:
    return f"2026112112{minute:02d}00000"


def write(minute: int, completed: int | None, action: Action = Action.DELTA_COMMIT) -> Instant:
    """A write requested at one minute and completed at another; pending where that is None."""
    if completed is None:
        return Instant(at(minute), action, State.INFLIGHT)
    return Instant(at(minute), action, State.COMPLETED, at(completed))


def is_due(
    trigger: Trigger,
    instants: Iterable[Instant],
    *,
    commits: int = 3,
    seconds: int = 600,
    now: int = 30,
    back: str = "",
) -> bool:
    return due(TriggerRule(trigger, commits, seconds), Timeline.of(instants), at(now), {back}).is_due


THREE = (write(1, 2), write(3, 4), write(5, 6))
COMPACTION = write(4, 7, Action.COMMIT)


def test_commits_are_counted_from_the_first_where_nothing_was_compacted() -> None:
    assert is_due(Trigger.NUM_COMMITS, THREE)
    assert not is_due(Trigger.NUM_COMMITS, THREE[:2])
    assert not is_due(Trigger.NUM_COMMITS, [], commits=0)


def test_only_commits_completed_after_the_compactions_request_count() -> None:
    since = [*THREE, COMPACTION, write(8, 9), write(10, 11)]
    assert is_due(Trigger.NUM_COMMITS, since)  # the one completed at 6, too
    assert not is_due(Trigger.NUM_COMMITS, since, commits=4)
    assert not is_due(Trigger.NUM_COMMITS, [*THREE, COMPACTION, write(8, 9), write(10, None)])


def test_on_version_6_commits_go_by_their_requests() -> None:
    instants = [Instant(at(m), Action.DELTA_COMMIT, State.COMPLETED) for m in (1, 3, 5, 8)]
    compaction = Instant(at(4), Action.COMMIT, State.COMPLETED)
    assert is_due(Trigger.NUM_COMMITS, [*instants, compaction], commits=2)
    assert not is_due(Trigger.NUM_COMMITS, [*instants, compaction], commits=3)


def test_after_last_request_counts_what_was_requested_since_pending_or_not() -> None:
    since = [*THREE, COMPACTION, write(8, 9), write(10, None)]
    assert is_due(Trigger.NUM_COMMITS_AFTER_LAST_REQUEST, since)
    assert not is_due(Trigger.NUM_COMMITS_AFTER_LAST_REQUEST, since, commits=4)


def test_whole_seconds_count_from_the_last_compaction_else_the_first_delta_commit() -> None:
    assert is_due(Trigger.TIME_ELAPSED, THREE, seconds=60 * 29)
    assert not is_due(Trigger.TIME_ELAPSED, THREE, seconds=60 * 29 + 1)
    assert is_due(Trigger.TIME_ELAPSED, [*THREE, COMPACTION], seconds=60 * 26)
    assert not is_due(Trigger.TIME_ELAPSED, [*THREE, COMPACTION], seconds=60 * 26 + 1)


@pytest.mark.parametrize(
    ("commits", "seconds", "both", "either"),
    [(3, 60, True, True), (4, 60, False, True), (3, 6000, False, True), (4, 6000, False, False)],
)
def test_number_and_time_and_number_or_time(commits: int, seconds: int, both: bool, either: bool) -> None:
    assert is_due(Trigger.NUM_AND_TIME, THREE, commits=commits, seconds=seconds) is both
    assert is_due(Trigger.NUM_OR_TIME, THREE, commits=commits, seconds=seconds) is either


def test_a_back_dated_compaction_counts_from_its_completion() -> None:
    instants = [*THREE, write(2, 20, Action.COMMIT), write(21, 22)]
    assert not is_due(Trigger.NUM_COMMITS, instants, back=at(2))
    assert is_due(Trigger.NUM_COMMITS, instants, commits=1, back=at(2))
    assert not is_due(Trigger.TIME_ELAPSED, instants, seconds=601, back=at(2))
    assert is_due(Trigger.NUM_COMMITS, instants)  # another compaction, from its request


def test_the_event_time_trigger_is_always_due() -> None:
    assert is_due(Trigger.EVENT_TIME, [])


def test_a_trigger_comes_with_hudis_defaults_and_an_unknown_one_is_refused() -> None:
    assert trigger_rule(Options({}), Trigger.NUM_COMMITS) == TriggerRule(Trigger.NUM_COMMITS, 5, 3600)
    named = {
        "hoodie.compact.inline.trigger.strategy": "NUM_OR_TIME",
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.compact.inline.max.delta.seconds": "90",
    }
    assert trigger_rule(Options(named), Trigger.EVENT_TIME) == TriggerRule(Trigger.NUM_OR_TIME, 2, 90)
    with pytest.raises(ConfigError, match="NUM_AND_TIME"):
        trigger_rule(Options({"hoodie.compact.inline.trigger.strategy": "NEVER"}), Trigger.EVENT_TIME)


@pytest.mark.parametrize("action", [Action.LOG_COMPACTION, Action.CLUSTERING])
def test_a_pending_foreign_action_is_named_and_its_cure_neither_runs_nor_undoes_it(
    action: Action,
) -> None:
    pending = Instant("20261122000000000", action, State.REQUESTED)
    with pytest.raises(BusyError, match=f"{action} is pending at {pending.requested_time}") as busy:
        check_trigger(Timeline.of([pending]))
    assert str(busy.value).endswith(cure_of(pending))
    assert "only the engine that planned it can run it" in cure_of(pending)
    assert "roll it back" not in cure_of(pending)


@pytest.mark.parametrize(
    ("action", "cure"),
    [
        (Action.RESTORE, "if its process is dead, run the restore again to complete it"),
        (Action.ROLLBACK, f"if its process is dead, run {Cure.rollback(at(1))} to complete it"),
    ],
)
def test_waiting_for_a_dead_undo_names_the_cure(action: Action, cure: str) -> None:
    with pytest.raises(BusyError) as raised:
        check_undoing(Timeline.of([write(1, None, action)]))
    assert cure in str(raised.value)
