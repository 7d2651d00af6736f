"""Writes and plans whose files a paused process put after others had archived beyond them.

The timeline then starts at such a file, and for every reader the archived writes after it don't count. No archival passes a
pending write or plan. So a pending one is late, and nothing of it counts; a completed one is late if it is archived, too.
"""

from collections.abc import Mapping

from eventide_core.action.verification.facts import TableFacts
from eventide_core.table.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS, Instant, State

_WRITES = WRITE_ACTIONS | COMPLETED_ACTION.keys()
_ORDER = tuple(State)


def hidden_writes(facts: TableFacts) -> tuple[str, ...]:
    """The archived writes that don't count because the timeline starts before them, by requested time."""
    return tuple(sorted(time for time in facts.archived.since_start if facts.timeline.find(time) is None))


def late_instants(facts: TableFacts) -> Mapping[str, tuple[Instant, ...]]:
    """The files of each write or plan before a hidden write, in the order of its states, by requested time."""
    last = max(hidden_writes(facts), default="")
    late: dict[str, list[Instant]] = {}
    for instant in sorted(filter(None, map(Instant.parse, facts.timeline_names)), key=lambda i: _ORDER.index(i.state)):
        time = instant.requested_time
        if instant.action in _WRITES and time < last and not facts.timeline.has_savepoint(time):
            late.setdefault(time, []).append(instant)
    return {time: tuple(files) for time, files in sorted(late.items())}


def counts_for_nothing(facts: TableFacts, time: str, files: tuple[Instant, ...]) -> bool:
    """Whether a late instant is archived; or it never completed, and has left no data file."""
    if time in facts.archived.since_start:
        return True
    return not any(i.is_completed for i in files) and not any(time in facts.writers_of(f) for f in facts.data_files)
