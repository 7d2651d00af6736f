"""How an instant ends exactly once: the first process to claim its outcome decides it.

From version 8 on, the name of a completed instant contains its completion time, so two processes could complete one
plan under two names. And a process that was paused may complete what another one is undoing. So before a plan is
completed, and before anything pending is undone, its outcome is claimed under a fixed name by put-if-absent
(`table/timeline/outcome_file`). A later process reads the decision and does the same, or stops. A write claims its outcome
only if it finds that somebody undoes it. The file also states that this instant must never be used again, that what is
left of it doesn't count, and which archived compaction published the cut. `settled_outcomes` finds the files that nothing
needs any longer.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from eventide_core.access.active_timeline import recorded_ends
from eventide_core.access.files import info_of_file
from eventide_core.errors import CorruptTimelineError
from eventide_core.ports import Storage
from eventide_core.table.files.own_file import decoded_own
from eventide_core.table.timeline.outcome_file import (
    OUTCOME_DIRECTORY,
    encoded_outcome,
    instant_of,
    is_attempt,
    is_of_compaction,
    is_of_undone,
    outcome_path,
    record_in,
    undone_path,
)
from eventide_core.table.timeline.timeline import Timeline

UNDONE_KEPT_MS = 24 * 60 * 60 * 1000
"""A process whose instant was undone reads the outcome when it continues. No process is paused for a day."""
_READ_AT_ONCE = 500  # each costs a read under the table lock; earlier versions kept all of them


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an action, by its `record` (`record_of`): completed at `completion_time`, or (None) undone.

    Its file has the time on version 6, too, although the timeline does not.
    """

    record: str
    completion_time: str | None

    @property
    def is_undone(self) -> bool:
        return self.completion_time is None


def claim_outcome(storage: Storage, wanted: Outcome) -> Outcome:
    """The claimed outcome: the wanted one, or the outcome of an earlier claim."""
    if storage.put_if_absent(outcome_path(wanted.record), encoded_outcome(wanted.completion_time)):
        return wanted
    return _read(storage, wanted.record)


def claimed_outcome(storage: Storage, record: str) -> Outcome | None:
    """The outcome of the action, if it has been claimed."""
    return None if info_of_file(storage, outcome_path(record)) is None else _read(storage, record)


def is_undone(storage: Storage, record: str) -> bool:
    """Whether the action was undone, or is being undone."""
    claimed = claimed_outcome(storage, record)
    return (claimed is not None and claimed.is_undone) or info_of_file(storage, undone_path(record)) is not None


def record_undone(storage: Storage, record: str) -> None:
    """Records that an action which had completed is being undone, before its completed file is removed."""
    storage.put_if_absent(undone_path(record), b"")


def instants_with_outcome(storage: Storage) -> frozenset[str]:
    """The instants whose end is recorded."""
    return recorded_ends(storage).instants


def settled_outcomes(
    storage: Storage,
    timeline: Timeline,
    in_use: Collection[str],
    now_ms: int,
    publishes: Callable[[str], bool],
) -> tuple[str, ...]:
    """The paths of the records that are no longer needed. All of their instants are before the active timeline.

    1. Completed: all but the last completed that published a cut, from which the archived cut is known. The archived
       timeline has the others.
    2. Attempts at it, and completed writes, which the archive has: all.
    3. Undone: as soon as no file bears the instant (`in_use` are the files'), and a day has passed.

    `publishes` returns whether an archived compaction published a cut. If there are very many outcomes, the ones of the
    earliest instants are judged, and the next call judges more.
    """
    completed: list[tuple[str, str]] = []
    settled: list[str] = []
    made = [(instant, entry) for entry in storage.list(OUTCOME_DIRECTORY) if (instant := instant_of(entry.path))]
    start = timeline.start or ""
    ended = ((instant, entry) for instant, entry in made if instant < start and timeline.find(instant) is None)
    for instant, entry in sorted(ended, key=lambda pair: (pair[0], pair[1].path))[:_READ_AT_ONCE]:
        if is_attempt(entry.path) or not (
            is_of_undone(entry.path, entry.size) or is_of_compaction(record_in(entry.path))
        ):
            settled.append(entry.path)
        elif is_of_undone(entry.path, entry.size):
            if instant not in in_use and entry.modified_ms <= now_ms - UNDONE_KEPT_MS:
                settled.append(entry.path)
        else:
            completed.append((_read(storage, instant).completion_time or "", instant))
    by_completion = [instant for _, instant in sorted(completed)]
    while len(by_completion) > 1 and not publishes(by_completion[-1]):
        settled.append(outcome_path(by_completion.pop()))
    return (*settled, *map(outcome_path, by_completion[:-1]))


def _read(storage: Storage, record: str) -> Outcome:
    path = outcome_path(record)
    try:
        match decoded_own(storage.read(path), path):
            case {"completion_time": None}:
                return Outcome(record, None)
            case {"completion_time": str(decided)} if decided.isascii() and decided.isdecimal():
                return Outcome(record, decided)
            case _:
                pass
    except (ValueError, RecursionError):
        pass
    raise CorruptTimelineError(f"{path} cannot be read; remove it if nobody works on {record}")
