"""The files of the consumers of windows, below `.hoodie/.aux/eventide/windows`, where Hudi's readers and writers don't look.

    <consumer>/<number>.json              the consumer's state (action/windows/progress.py), numbered without a gap
    <consumer>/<instant>_<runner>.view    the base files of a view that states name

Order of writes: first the view, then the state that names it, by put-if-absent under the next number. So of two runners
that go on from one state, one wins. After its put, a runner lists the states once more: if a later one is there, others
made steps before or after the put. Then its state may not have been the next one: it removes its state, and the latest one
shows whether its step counted. The winner removes the states before the last but one, and views that neither the old nor the
new state names and that are a day old.

A crash leaves a view that no state names, or states and views that the next winner removes.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from eventide_core.access.files import discard
from eventide_core.action.windows.progress import ConsumerProgress, ConsumerView, LedgerEntry, Marks, OpenWindow
from eventide_core.errors import ConfigError, CorruptTimelineError, MissingFileError
from eventide_core.ports import Storage
from eventide_core.table.files.own_file import decoded_own, encoded_own
from eventide_core.table.timeline.outcome_file import OUTCOME_DIRECTORY

WINDOWS_DIRECTORY: Final = f"{OUTCOME_DIRECTORY}/windows"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", re.ASCII)
_STATE = re.compile(r"(\d{20})\.json", re.ASCII)
_VIEW_SUFFIX: Final = ".view"
_STRAY_MS: Final = 24 * 60 * 60 * 1000  # no runner is paused for a day between its view and the state that names it
_READS_MAX: Final = 5  # between a listing and the read, another runner may have made two steps


@dataclass(frozen=True, slots=True)
class RecordedView:
    """A view as a file of the consumer has it, so that it can still be read when its instant has been archived.

    `paths` are its base files, from the table's root. `schema_as_of` is the requested time as of which its rows have their
    columns, which is the time of the last write that the view has.
    """

    schema_as_of: str
    paths: frozenset[str]


@dataclass(frozen=True, slots=True)
class ConsumerFiles:
    """The files of one consumer."""

    storage: Storage
    consumer: str

    def __post_init__(self) -> None:
        """Raises ConfigError for a name that can't name a directory on every storage."""
        if not _NAME.fullmatch(self.consumer):
            raise ConfigError(
                f"consumer {self.consumer!r}: use up to 100 letters, digits, hyphens, underscores and dots, no dot first"
            )

    @property
    def directory(self) -> str:
        return f"{WINDOWS_DIRECTORY}/{self.consumer}"

    def progress(self) -> ConsumerProgress | None:
        """The latest state; None for a new consumer. Raises CorruptTimelineError."""
        for _ in range(_READS_MAX - 1):
            try:
                return self._latest()
            except MissingFileError:
                continue  # another runner has made a step, and removed it
        return self._latest()

    def put(self, progress: ConsumerProgress) -> bool:
        """Whether this state is now the consumer's. False if another runner has made a step before it, or after it."""
        path, data = self._path(progress.number), _encoded(progress)
        if not self.storage.put_if_absent(path, data) and not self._is_same(path, data):
            return False
        numbers = self._numbers()
        if max(numbers, default=progress.number) > progress.number:
            discard(self.storage, path)
            return False
        for number in numbers:
            if number < progress.number - 1:
                discard(self.storage, self._path(number))
        return True

    def record(self, instant: str, runner: str, view: RecordedView) -> ConsumerView:
        """Records a view, before a state names it."""
        recorded = ConsumerView(instant, f"{instant}_{runner}{_VIEW_SUFFIX}")
        document = {"schema_as_of": view.schema_as_of, "base_files": sorted(view.paths)}
        self.storage.put_if_absent(f"{self.directory}/{recorded.name}", encoded_own(document, indent=1))
        return recorded

    def view(self, view: ConsumerView) -> RecordedView:
        """Raises MissingFileError, CorruptTimelineError."""
        path = f"{self.directory}/{view.name}"
        try:
            match decoded_own(self.storage.read(path), path):
                case {"schema_as_of": str(instant), "base_files": [*paths]} if all(isinstance(p, str) for p in paths):
                    return RecordedView(instant, frozenset(paths))
                case _:
                    pass
        except (ValueError, RecursionError):
            pass
        raise CorruptTimelineError(f"{path} cannot be read: {self._cure}")

    def remove_views(self, named: Collection[ConsumerView], dropped: Collection[ConsumerView], now_ms: int) -> None:
        """Removes the views that the consumer no longer needs, and old ones that no state names."""
        names, gone = {view.name for view in named}, {view.name for view in dropped}
        for entry in self.storage.list(self.directory):
            name = entry.path.rpartition("/")[2]
            is_old = name in gone or entry.modified_ms < now_ms - _STRAY_MS
            if name.endswith(_VIEW_SUFFIX) and name not in names and is_old:
                discard(self.storage, entry.path)

    def _latest(self) -> ConsumerProgress | None:
        numbers = self._numbers()
        if not numbers:
            return None
        number = max(numbers)
        path = self._path(number)
        try:
            return _decoded(number, decoded_own(self.storage.read(path), path))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise CorruptTimelineError(f"{path} cannot be read: {self._cure}") from None

    @property
    def _cure(self) -> str:
        return f"restore it from a copy, or remove {self.directory} and let the consumer begin again with `since`"

    def _is_same(self, path: str, data: bytes) -> bool:
        """Whether the file is this runner's own: the response to its first request was lost."""
        try:
            return self.storage.read(path) == data
        except MissingFileError:
            return False

    def _numbers(self) -> list[int]:
        names = (entry.path.rpartition("/")[2] for entry in self.storage.list(self.directory))
        return [int(match[1]) for name in names if (match := _STATE.fullmatch(name))]

    def _path(self, number: int) -> str:
        return f"{self.directory}/{number:020d}.json"


def consumers_of(storage: Storage) -> tuple[ConsumerFiles, ...]:
    """The consumers of the table's windows, by name."""
    names = (entry.path.rpartition("/")[2] for entry in storage.list(WINDOWS_DIRECTORY) if entry.is_directory)
    return tuple(ConsumerFiles(storage, name) for name in sorted(names) if _NAME.fullmatch(name))


def kept_for_consumers(storage: Storage, now_ms: int) -> frozenset[str]:
    """The base files that consumers still need: the files of the views that their states name, for as long as they ask."""
    kept: set[str] = set()
    for files in consumers_of(storage):
        progress = files.progress()
        if progress is not None and progress.keep_until_ms > now_ms:
            for view in progress.views:
                kept |= files.view(view).paths
    return frozenset(kept)


def _encoded(progress: ConsumerProgress) -> bytes:
    document = asdict(progress)
    del document["number"]
    return encoded_own(document, indent=1)


def _decoded(number: int, document: Mapping[str, Any]) -> ConsumerProgress:
    def view(stated: Mapping[str, Any] | None) -> ConsumerView | None:
        return None if stated is None else ConsumerView(str(stated["instant"]), str(stated["name"]))

    opened, marks = document["open"], document.get("marks")
    return ConsumerProgress(
        number=number,
        seconds=int(document["seconds"]),
        zone=str(document["zone"]),
        first_ms=_time(document["first_ms"]),
        next_ms=_time(document["next_ms"]),
        begun_ms=_time(document["begun_ms"]),
        closed_ms=_time(document["closed_ms"]),
        view=view(document["view"]),
        before=view(document["before"]),
        due=tuple(int(begin) for begin in document["due"]),
        open=None if opened is None else OpenWindow(**opened),
        ledger=tuple(LedgerEntry(**entry) for entry in document["ledger"]),
        keep_until_ms=int(document["keep_until_ms"]),
        taken_over=tuple(map(int, document.get("taken_over", ()))),
        marks=None if marks is None else _marks(**marks),
    )


def _marks(reopened: list[int], event: int, is_reopening: bool, doubtful: list[int]) -> Marks:
    return Marks(tuple(reopened), event, is_reopening, tuple(doubtful))


def _time(value: Any) -> int | None:
    return None if value is None else int(value)
