"""The files that record how an instant ended, below `.hoodie/.aux/eventide`, where Hudi's readers and writers don't look.

    <record>.outcome      {"completion_time": "<time>", "version": 1}   completed, or to be completed, at that time
                          {"completion_time": null, "version": 1}       undone before it completed
    <record>.undone       empty                                         undone after it had completed; a savepoint: deleted
    <instant>.<n>.attempt empty                           attempt n of eventide at a compaction plan of Hudi has begun

A record is the instant of a compaction, or `<instant>.write` of any other write: a writer without the lock may have taken
the instant of a plan in the same millisecond. A savepoint has `<instant>.savepoint`, until the commit is kept again. An
outcome is put if absent and never replaced, so that the first claim counts. Its size alone shows an undone instant, so
that no listing has to read it. A record of a later version has none of the sizes that one of this version has.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from eventide_core.errors import MissingFileError
from eventide_core.table.files.own_file import decoded_own, encoded_own
from eventide_core.table.timeline.instant import Action

OUTCOME_DIRECTORY: Final = ".hoodie/.aux/eventide"
_OUTCOME, _UNDONE, _ATTEMPT, _WRITE, _SAVEPOINT = ".outcome", ".undone", ".attempt", ".write", ".savepoint"


def record_of(instant: str, action: Action) -> str:
    """The name of the record of an action, pending or completed."""
    match action:
        case Action.COMPACTION | Action.COMMIT:
            return instant
        case Action.SAVEPOINT:
            return f"{instant}{_SAVEPOINT}"
        case _:
            return f"{instant}{_WRITE}"


def is_of_compaction(record: str) -> bool:
    return not record.endswith((_WRITE, _SAVEPOINT))


def outcome_path(record: str) -> str:
    return f"{OUTCOME_DIRECTORY}/{record}{_OUTCOME}"


def undone_path(record: str) -> str:
    return f"{OUTCOME_DIRECTORY}/{record}{_UNDONE}"


def record_in(path: str) -> str:
    """The record of an outcome, or of what was undone."""
    return path.rpartition("/")[2].removesuffix(_OUTCOME).removesuffix(_UNDONE)


def attempt_path(instant: str, number: int) -> str:
    return f"{OUTCOME_DIRECTORY}/{instant}.{number}{_ATTEMPT}"


def is_attempt(path: str) -> bool:
    return path.endswith(_ATTEMPT)


def instant_of(path: str) -> str | None:
    """The instant whose end, or attempt, the file records; None for any other file."""
    name = path.rpartition("/")[2]
    return name.partition(".")[0] if name.endswith((_OUTCOME, _UNDONE, _ATTEMPT)) else None


def encoded_outcome(completion_time: str | None) -> bytes:
    return encoded_own({"completion_time": completion_time})


_VERSION_BYTES: Final = len(', "version": 1')
_UNDONE_BYTES: Final = (len(encoded_outcome(None)) - _VERSION_BYTES, len(encoded_outcome(None)))
"""Without the version, as first builds wrote it, and with it. No time of 14 or 17 digits makes these sizes."""
_COMPLETED_BYTES: Final = tuple(
    size - len("null") + len('""') + digits for size in _UNDONE_BYTES for digits in (14, 17)
)


def check_record(path: str, size: int, read: Callable[[str], bytes]) -> None:
    """Reads a record if its size isn't of this version. Raises UnsupportedTableError for one of a later version."""
    if instant_of(path) and size not in ((*_UNDONE_BYTES, *_COMPLETED_BYTES) if path.endswith(_OUTCOME) else (0,)):
        with suppress(ValueError, RecursionError, MissingFileError):  # a damaged one is reported where it is needed
            decoded_own(read(path), path)


def is_of_undone(path: str, size: int) -> bool:
    """Whether the file records that its instant was undone."""
    return path.endswith(_UNDONE) or (path.endswith(_OUTCOME) and size in _UNDONE_BYTES)


@dataclass(frozen=True, slots=True)
class RecordedEnds:
    """The `instants` whose end is recorded, which must never be used again, and the records of those that were `undone`."""

    instants: frozenset[str]
    undone: frozenset[str]

    @classmethod
    def of(cls, files: Iterable[tuple[str, int]]) -> "RecordedEnds":
        """By the paths and sizes of the files in the directory."""
        known = [(instant, path, size) for path, size in files if (instant := instant_of(path))]
        undone = [record_in(path) for _, path, size in known if is_of_undone(path, size)]
        return cls(frozenset([instant for instant, _, _ in known]), frozenset(undone))
