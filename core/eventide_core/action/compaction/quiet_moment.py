"""The instants that a compaction may have beside writers that never pause (table version 8 and later).

A *span* of a write is [requested, completed]; it is open-ended while the write is pending. An instant time is *quiet*
if no span contains it: each write was requested after it, or had completed before it. A compaction at a quiet moment C
has the same result as one that was scheduled at C. Every log file that completed before C belongs to the old slice and
is merged or left over. Every log file that completes after C has an instant after C: it belongs to the new slice under
its own name, and sorts after the left-overs, which have C. A pending write that was requested after C does not matter.

1. If no write is pending, C is after everything that exists, and `AWAY_FROM_WRITERS_MS` ago if the table was quiet then. A
   writer that requests its instant right now uses the present millisecond. Two actions of one requested time hide each
   other, and share names of log files, heartbeats, and instants of the metadata table.
2. Otherwise, C is in the latest gap between spans: below the request of the oldest pending write, and of every completed
   write whose span reaches across that request, and so on. C is the first time in the gap, because a writer that has
   chosen its instant but not yet created its file has most likely chosen a later one.
3. C is not used by another instant, nor was by one that a rollback undid (its writer may be paused, and continue). C is
   a. after the last completion of a compaction whose left-overs still exist: they have that compaction's instant and
      count from its completion. Two compactions in one gap would put them into the later slice, on top of a base file that
      has merged them. A compaction without left-overs only has to be requested before C;
   b. after the last restore: the instants that it undid are not used again;
   c. not before the active timeline's start: Hudi considers the log files in between uncommitted;
   d. not before the earliest commit that cleaning retains: the next clean would remove the old slice that readers use;
   e. not before the last change of the schema: time travel reads with the schema that the table had then.

On version 6, where no completion time is recorded, Hudi 1.x takes the modification time of a completed file for it, and so
finds a log file in the latest slice from before that time. So C is after the time at which the completed file was put of
every instant that is in the name of a log file: of earlier compactions, and of writes that began file groups.

`open_at` is also the condition that the plan is checked against later: a write with an earlier instant may have become
visible only after the plan was made. Counterexamples, one for each condition: docs/invariants.md, Q1 to Q10.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from eventide_core.cure import Cure
from eventide_core.table.timeline.instant import (
    WRITE_ACTIONS,
    Action,
    Instant,
    instant_epoch_ms,
    instant_time,
    next_instant_time,
)
from eventide_core.table.timeline.timeline import Timeline

AWAY_FROM_WRITERS_MS = 10_000
"""Longer than a writer takes from choosing its instant to creating its file. No clock has to be as exact as this."""

_NEVER = "9" * 20
_NAMED_WRITES = 5
_NO_GAP = (
    "table version 6 is planned in a gap between writes; beside open writes only if "
    "eventide.table.exclusive=true declares that no other engine runs its plans"
)


@dataclass(frozen=True, slots=True)
class BackdatingFacts:
    """The limits for the instant of a back-dated compaction.

    `now` is an unused instant above every time of the timeline; `used_times` are all times that can't be used.
    `earliest_retained` is the earliest commit that cleaning keeps, None if it keeps all. `schema_since`: every write
    from there on has the table's schema. `logged`: the instants in the names of the existing log files. `put_at`: on
    version 6, when the completed file of each of these instants was put, by requested time.
    """

    timeline: Timeline
    now: str
    used_times: frozenset[str]
    earliest_retained: str | None = None
    schema_since: str = ""
    logged: frozenset[str] = frozenset()
    put_at: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class QuietMoment:
    """The instant that a compaction may have, or None and the reason.

    `why_not` is a clause that completes an error's sentence, empty if there is an instant. `beside` are the writes whose
    spans fill the time since.
    """

    instant: str | None
    why_not: str = ""
    beside: tuple[Instant, ...] = ()


def open_at(timeline: Timeline, time: str) -> tuple[Instant, ...]:
    """The writes, pending or completed, whose span contains the time; by requested time. Version 8 and later."""
    return tuple(w for w in _writes(timeline) if w.requested_time <= time <= (w.completion_time or _NEVER))


def quiet_moment(facts: BackdatingFacts) -> QuietMoment:
    """The latest quiet moment for a compaction."""
    timeline = facts.timeline
    if not timeline.pending_writes:
        return QuietMoment(_away_from_writers(facts))
    bound = min(write.requested_time for write in timeline.pending_writes)
    while True:
        across = [w.requested_time for w in open_at(timeline, bound) if w.requested_time < bound]
        if across:
            bound = min(across)
            continue
        before = max((time for time in facts.used_times if time < bound), default=None)
        instant = bound if before is None else next_instant_time(before)
        if before is None or instant < bound:
            break
        bound = before  # the two are adjacent: the gap is lower
    beside = tuple(w for w in _writes(timeline) if (w.completion_time or _NEVER) >= bound)
    why_not = why_not_at(instant, facts) if before is not None else "no write has completed before it was requested"
    return QuietMoment(None if why_not else instant, why_not=why_not, beside=beside)


def _away_from_writers(facts: BackdatingFacts) -> str:
    """An unused instant above every time of the timeline that no writer chooses at this moment."""
    earlier = instant_time(max(0, instant_epoch_ms(facts.now) - AWAY_FROM_WRITERS_MS))
    latest = max(facts.used_times, default=None)
    return min(facts.now, earlier if latest is None else max(earlier, next_instant_time(latest)))


def why_not_at(instant: str, facts: BackdatingFacts) -> str:
    """The condition of 3a to 3e that an instant breaks; empty for none."""
    for done in (*facts.timeline.completed, *facts.timeline.archived):
        is_compaction = done.action is Action.COMMIT
        put_at = facts.put_at.get(done.requested_time)
        if done.action is not Action.RESTORE and not is_compaction and put_at is None:
            continue
        counts_from = done.completion_time if not is_compaction or done.requested_time in facts.logged else None
        if instant <= (put_at or counts_from or done.requested_time):
            what = "compaction" if is_compaction else done.action
            return f"the {what} at {done.requested_time} completed after it"
    return why_not_back_to(instant, facts)


def why_not_back_to(instant: str, facts: BackdatingFacts) -> str:
    """The condition of 3c to 3e that an instant breaks; empty for none."""
    start = facts.timeline.start
    if start is not None and instant < start:
        return f"instants later than {instant} have been archived"
    if facts.earliest_retained is not None and instant < facts.earliest_retained:
        return f"the next clean keeps nothing before {facts.earliest_retained}, so readers of the old slice would fail"
    if instant < facts.schema_since:
        return f"the schema changed at {facts.schema_since}, and time travel uses the schema of its instant"
    return ""


def _writes(timeline: Timeline) -> Iterator[Instant]:
    """The writes that add rows. A completed `commit` of a merge-on-read table is a compaction."""
    yield from timeline.pending_writes
    yield from (i for i in (*timeline.writes, *timeline.archived) if i.action is not Action.COMMIT)


def gap_now(facts: BackdatingFacts) -> QuietMoment:
    """Version 6, where a log file's name states its slice: only the present moment, and only if no write is pending."""
    pending = facts.timeline.pending_writes
    if not pending:
        return QuietMoment(_away_from_writers(facts))
    return QuietMoment(None, why_not=_NO_GAP, beside=pending)


def before_open_writes(facts: BackdatingFacts) -> QuietMoment:
    """Version 6 without a gap: before the oldest open write. Its log files, and later ones, are left over.

    Only if no other engine runs plans of the table: an engine that runs the first version of the plan skips what the
    open writes still add to the old slices.
    """
    pending = facts.timeline.pending_writes
    bound = min((write.requested_time for write in pending), default=None)
    before = max((time for time in facts.used_times if bound is not None and time < bound), default=None)
    if bound is None or before is None:
        return gap_now(facts)
    instant = next_instant_time(before)
    why_not = "it was requested directly after another instant" if instant >= bound else why_not_at(instant, facts)
    return QuietMoment(None if why_not else instant, why_not=why_not, beside=pending)


def no_quiet_moment(quiet: QuietMoment) -> str:
    """The explanation for the user why there is no quiet moment, with the writes that prevent it."""
    named = ", ".join(f"{w.action} {w.requested_time}" for w in quiet.beside[:_NAMED_WRITES])
    more = "" if len(quiet.beside) <= _NAMED_WRITES else f" and {len(quiet.beside) - _NAMED_WRITES} more"
    return f"open and overlapping writes ({named}{more}) leave no quiet moment for a plan: {quiet.why_not}"


def note_on_savepoints(timeline: Timeline, instant: str) -> tuple[str, ...]:
    """What to know about a savepoint below a compaction at `instant`, if a write was requested after that.

    Hudi's restore undoes instants by their completion, and refuses to undo one while a write with a greater instant is left.
    """
    saved = [
        i.requested_time for i in timeline.completed if i.action is Action.SAVEPOINT and i.requested_time < instant
    ]
    is_overtaken = any(i.action in WRITE_ACTIONS and i.requested_time > instant for i in timeline.instants)
    if not saved or not is_overtaken:
        return ()
    last = max(saved)
    note = (
        f"this compaction has an earlier instant than a write that it leaves out, and the savepoint at {last} is below it: "
        'Hudi\'s own restore may then refuse ("please rollback greater commits first"); '
        f"{Cure.restore(last)} works"
    )
    return (note,)
