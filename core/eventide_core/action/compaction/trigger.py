"""Whether a compaction may be planned now, and whether it is due: EVENT_TIME_TRIGGER and Hudi's trigger strategies.

No compaction may be planned (RFC-74 section 3) while a compaction, log compaction or clustering is pending: two plans
together would break the rule that everything before T is compacted. Nor may one while a write that was requested before the
compaction is pending: its log file would belong to the old slice, or sort after left-overs that are newer
(docs/invariants.md, S0).

A compaction is due by EVENT_TIME_TRIGGER, the RFC's, whenever it may be planned. Hudi's triggers count from the last
compaction, the last completed `commit` of the active timeline, or where there is none from the first delta commit:

    NUM_COMMITS                     delta commits completed since
    NUM_COMMITS_AFTER_LAST_REQUEST  delta commits requested since, completed or not
    TIME_ELAPSED                    seconds since it was requested
    NUM_AND_TIME, NUM_OR_TIME       both, or either

The request of a back-dated compaction lies before the commits that it left over; it counts from its completion.
"""

from collections.abc import Container
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from eventide_core import config as keys
from eventide_core.config import Options
from eventide_core.cure import Cure
from eventide_core.errors import BusyError, counted
from eventide_core.table.timeline.instant import Action, Instant, instant_epoch_ms
from eventide_core.table.timeline.timeline import Timeline


class Trigger(StrEnum):
    EVENT_TIME = "EVENT_TIME_TRIGGER"
    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


@dataclass(frozen=True, slots=True)
class TriggerRule:
    """A `trigger` with its limits.

    Both count from the last compaction, as the module says: `max_delta_commits` for the triggers NUM_...,
    `max_delta_seconds` for TIME_ELAPSED and the two that combine. EVENT_TIME uses neither.
    """

    trigger: Trigger
    max_delta_commits: int
    max_delta_seconds: int


@dataclass(frozen=True, slots=True)
class Due:
    """The answer of `trigger`: whether a compaction is due (`is_due`). `reason` gives the figures, either way."""

    trigger: Trigger
    is_due: bool
    reason: str


def check_trigger(timeline: Timeline) -> None:
    """Raises BusyError while something pending excludes any new plan."""
    for instant in timeline.pending_plans:
        raise BusyError(
            f"a {instant.action} is pending at {instant.requested_time}, which excludes a second plan; "
            f"{cure_of(instant)}"
        )
    check_undoing(timeline)


def cure_of(pending: Instant) -> str:
    """The cure for a pending plan that blocks another: eventide runs compactions, and no other plans."""
    if pending.action is Action.COMPACTION:
        return f"run it ({Cure.execute(pending.requested_time)}), roll it back, or try again when it has completed"
    return (
        "only the engine that planned it can run it; try again when it has completed or, if that engine is dead, undo "
        f"it with {Cure.rollback(pending.requested_time, force=True)}, which loses no row"
    )


def check_undoing(timeline: Timeline) -> None:
    """Raises BusyError while a rollback or restore is under way."""
    for instant in timeline.pending:
        if instant.is_undoing:
            is_restore = instant.action is Action.RESTORE
            again = "run the restore again" if is_restore else f"run {Cure.rollback(instant.requested_time)}"
            raise BusyError(
                f"a {instant.action} is in progress at {instant.requested_time}; try again when it has completed, or if its "
                f"process is dead, {again} to complete it"
            )


def check_pending_writes(timeline: Timeline, instant: str) -> None:
    """Raises BusyError while a write that was requested before the compaction's instant is pending."""
    for write in timeline.pending_writes:
        if write.requested_time < instant:
            raise BusyError(
                f"a {write.action} requested at {write.requested_time} has not completed, and the compaction "
                "would misplace its records; try again when it has completed, or roll it back if its writer is "
                "dead"
            )


def trigger_rule(options: Options, default: Trigger) -> TriggerRule:
    """The trigger of `hoodie.compact.inline.trigger.strategy`. Raises ConfigError for one that is not known."""
    name = options.get(keys.TRIGGER)
    return TriggerRule(
        default if name is None else Trigger(name),
        options.get(keys.MAX_DELTA_COMMITS),
        options.get(keys.MAX_DELTA_SECONDS),
    )


def due(rule: TriggerRule, timeline: Timeline, now: str, backdated: Container[str]) -> Due:
    """Whether a compaction is due at `now`, an instant time. `backdated` has the requested times of such compactions."""
    if rule.trigger is Trigger.EVENT_TIME:
        return Due(rule.trigger, is_due=True, reason="no pending action excludes a plan")
    delta_commits = [i for i in timeline.instants if i.action is Action.DELTA_COMMIT]
    last = next((i for i in reversed(timeline.completed) if i.action is Action.COMMIT), None)
    if last is None and not any(i.is_completed for i in delta_commits):
        return Due(rule.trigger, is_due=False, reason="there is no delta commit yet")
    if last is None:
        start = delta_commits[0].requested_time
        requested = len(delta_commits)
        completed = sum(i.is_completed for i in delta_commits)
        since = f"since the first delta commit at {start}"
    else:
        start = _start_of_count(last, backdated)
        requested = sum(i.requested_time > start for i in delta_commits)
        completed = sum((i.completion_time or i.requested_time) > start for i in delta_commits if i.is_completed)
        since = f"since the commit at {last.requested_time}"
    seconds = instant_epoch_ms(now) // 1000 - instant_epoch_ms(start) // 1000
    in_number = (
        completed >= rule.max_delta_commits,
        f"{completed} of {counted(rule.max_delta_commits, 'delta commit')}",
    )
    in_time = (seconds >= rule.max_delta_seconds, f"{seconds} of {counted(rule.max_delta_seconds, 'second')}")
    match rule.trigger:
        case Trigger.NUM_COMMITS:
            is_due, figures = in_number
        case Trigger.NUM_COMMITS_AFTER_LAST_REQUEST:
            is_due = requested >= rule.max_delta_commits
            figures = f"{requested} of {counted(rule.max_delta_commits, 'delta commit')} requested"
        case Trigger.TIME_ELAPSED:
            is_due, figures = in_time
        case Trigger.NUM_AND_TIME:
            is_due, figures = in_number[0] and in_time[0], f"{in_number[1]} and {in_time[1]}"
        case Trigger.NUM_OR_TIME:
            is_due, figures = in_number[0] or in_time[0], f"{in_number[1]} or {in_time[1]}"
        case _:
            assert_never(rule.trigger)
    return Due(rule.trigger, is_due, f"{figures} {since}")


def _start_of_count(last: Instant, backdated: Container[str]) -> str:
    if last.requested_time in backdated and last.completion_time is not None:
        return last.completion_time
    return last.requested_time
