"""How a compaction ends exactly once: the first process to claim its outcome decides it.

From version 8 on, the name of a completed instant contains its completion time, so two processes could complete one
plan under two names. Before it completes or rolls back a plan, a process claims the outcome under a fixed name by
put-if-absent. A later process reads the decision and does the same, or stops. The file also states that this instant
must never be used again, whose left-overs are strays, and which archived compaction published the cut.
`settled_outcomes` finds the files that nothing needs any longer.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass

from eventide_core.errors import CorruptTimelineError
from eventide_core.ports import FileInfo, Storage
from eventide_core.table.timeline.timeline import Timeline

OUTCOME_DIRECTORY = ".hoodie/.aux/eventide"
ROLLED_BACK_KEPT_MS = 24 * 60 * 60 * 1000
"""A process that runs a plan that was rolled back reads the outcome when it continues. No process is paused for a day."""
_READ_AT_ONCE = 500  # each costs a read under the table lock; earlier versions kept all of them


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of the compaction at `instant`: completed at `completion_time`, or (None) rolled back.

    Its file has the time on version 6, too, although the timeline does not.
    """

    instant: str
    completion_time: str | None


def claim_outcome(storage: Storage, wanted: Outcome) -> Outcome:
    """The claimed outcome: the wanted one, or that of an earlier claim."""
    data = json.dumps({"completion_time": wanted.completion_time}).encode()
    if storage.put_if_absent(_path(wanted.instant), data):
        return wanted
    return _read(storage, wanted.instant)


def is_rolled_back(storage: Storage, instant: str) -> bool:
    """Whether the claimed outcome is a rollback."""
    return storage.stat(_path(instant)) is not None and _read(storage, instant).completion_time is None


def instants_with_outcome(storage: Storage) -> frozenset[str]:
    """The instants whose outcome has been claimed."""
    return frozenset(filter(None, map(_instant, storage.list(OUTCOME_DIRECTORY))))


def settled_outcomes(
    storage: Storage,
    timeline: Timeline,
    borne: Collection[str],
    now_ms: int,
    publishes: Callable[[str], bool],
) -> tuple[str, ...]:
    """The instants whose outcomes are no longer needed. All of them are before the active timeline.

    1. Completed: all but the last completed that published a cut, from which the archived cut is known. The archived
       timeline has the others.
    2. Rolled back: as soon as no file bears the instant (`borne` are those of the files), and a day has passed.

    `publishes` returns whether an archived compaction published a cut. If there are very many outcomes, those of the
    earliest instants are judged, and the next call judges more.
    """
    completed: list[tuple[str, str]] = []
    settled: list[str] = []
    made = {instant: entry for entry in storage.list(OUTCOME_DIRECTORY) if (instant := _instant(entry)) is not None}
    for instant in sorted(filter(timeline.is_archived, made))[:_READ_AT_ONCE]:
        time = _read(storage, instant).completion_time
        if time is not None:
            completed.append((time, instant))
        elif instant not in borne and made[instant].modified_ms <= now_ms - ROLLED_BACK_KEPT_MS:
            settled.append(instant)
    by_completion = [instant for _, instant in sorted(completed)]
    while len(by_completion) > 1 and not publishes(by_completion[-1]):
        settled.append(by_completion.pop())
    return (*settled, *by_completion[:-1])


def remove_outcome(storage: Storage, instant: str) -> None:
    storage.delete(_path(instant))


def _instant(entry: FileInfo) -> str | None:
    name = entry.path.rpartition("/")[2]
    return name.removesuffix(".outcome") if name.endswith(".outcome") else None


def _path(instant: str) -> str:
    return f"{OUTCOME_DIRECTORY}/{instant}.outcome"


def _read(storage: Storage, instant: str) -> Outcome:
    path = _path(instant)
    try:
        match json.loads(storage.read(path)):
            case {"completion_time": None}:
                return Outcome(instant, None)
            case {"completion_time": str(decided)} if decided.isascii() and decided.isdecimal():
                return Outcome(instant, decided)
            case _:
                pass
    except (ValueError, RecursionError):
        pass
    raise CorruptTimelineError(f"{path} cannot be read; remove it if no compaction at {instant} runs")
