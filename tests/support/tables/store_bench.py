"""A bench whose table is on a real store: each moment is copied to a new place there. Time passes only by its own clock."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from eventide.testing.crash_enumeration import Bench, Moment
from eventide.testing.histories import ManualClock
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_adapters.storage.memory import MemoryFile, MemoryStorage
from eventide_core.ports import FileInfo, Storage

_Answer = TypeVar("_Answer")


class TimedStorage(FaultyStorage):
    """A storage whose files have the times of a clock."""

    def __init__(self, inner: Storage, now_ms: Callable[[], int]) -> None:
        super().__init__(inner)
        self._now_ms = now_ms
        self._times: dict[str, int] = {}

    def load(self, moment: Moment) -> None:
        for path, file in moment.files.items():
            assert file.link_target is None
            self._inner.put(path, file.data)
            self._times[path] = file.modified_ms

    def dump(self) -> dict[str, MemoryFile]:
        """Every name with its current content."""
        found: dict[str, MemoryFile] = {}
        waiting = [""]
        while waiting:
            for entry in self.list(waiting.pop()):
                if entry.is_directory:
                    waiting.append(entry.path)
                else:
                    found[entry.path] = MemoryFile(self._inner.read(entry.path), entry.modified_ms)
        return dict(sorted(found.items()))

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        return tuple(map(self._timed, super().list(directory)))

    def stat(self, path: str) -> FileInfo | None:
        found = super().stat(path)
        return None if found is None else self._timed(found)

    def _timed(self, info: FileInfo) -> FileInfo:
        return replace(info, modified_ms=self._times.get(info.path, info.modified_ms))

    def _write(self, kind: str, path: str, write: Callable[[], _Answer]) -> _Answer:
        answer = super()._write(kind, path, write)
        written: object = answer
        if written is not False:
            self._times[path] = self._now_ms()
        return answer


@dataclass(slots=True)
class StoreBench(Bench):
    new_place: Callable[[], Storage] = field(default=lambda: MemoryStorage("a store"))

    def load(self, moment: Moment) -> None:
        self.clock = ManualClock(moment.time_ms)
        self.storage = TimedStorage(self.new_place(), self.clock.now_ms)  # type: ignore[assignment]
        self.storage.load(moment)  # type: ignore[attr-defined]
