"""How a compaction ends exactly once: the first process to claim its outcome decides it.

From version 8 on, the name of a completed instant contains its completion time, so two processes could complete one
plan under two names. Before it completes or rolls back a plan, a process claims the outcome under a fixed name by
put-if-absent. A later process reads the decision and does the same, or stops. The file stays, because it also states
that this instant must never be used again.
"""

import json
from dataclasses import dataclass

from eventide_core.errors import CorruptTimelineError
from eventide_core.ports import Storage

OUTCOME_DIRECTORY = ".hoodie/.aux/eventide"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of the compaction at `instant`: completed at a time, or (None) rolled back."""

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
    names = (entry.path.rpartition("/")[2] for entry in storage.list(OUTCOME_DIRECTORY))
    return frozenset(name.removesuffix(".outcome") for name in names if name.endswith(".outcome"))


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
