"""A storage that counts the bytes that are read of log files and of base files."""

import io
import threading
from collections import Counter
from typing import BinaryIO

from eventide_adapters.storage.memory import MemoryStorage


class ReadCounts(MemoryStorage):
    """Counts while `phase` is not None, by phase and kind of file ('log', 'base'); ranges and whole files alike."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.phase: str | None = None
        self.bytes_read: Counter[tuple[str, str]] = Counter()
        self.requests: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def read(self, path: str) -> bytes:
        data = super().read(path)
        self.count(path, len(data))
        return data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        data = super().read(path)[offset : offset + length]
        self.count(path, len(data))
        return data

    def open_input(self, path: str) -> BinaryIO:
        return _Counted(super().read(path), path, self)

    def copy_if_absent(self, source: str, target: str) -> bool:
        """Inside the storage, as S3 does it: no byte of it is read here."""
        phase, self.phase = self.phase, None
        try:
            return super().copy_if_absent(source, target)
        finally:
            self.phase = phase

    def count(self, path: str, size: int) -> None:
        if self.phase is None or path.startswith(".hoodie/"):
            return
        key = (self.phase, "log" if ".log." in path else "base")
        with self._lock:
            self.bytes_read[key] += size
            self.requests[key] += 1


class _Counted(io.BytesIO):
    """A stream whose reads are counted."""

    def __init__(self, data: bytes, path: str, counts: ReadCounts) -> None:
        super().__init__(data)
        self._path, self._counts = path, counts

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self._counts.count(self._path, len(data))
        return data

    def readinto(self, buffer: bytearray, /) -> int:  # type: ignore[override]
        count = super().readinto(buffer)
        self._counts.count(self._path, count)
        return count
