"""Files of a local file system while they are being read or written, every failure typed."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from eventide_adapters.storage import local_names
from eventide_core.errors import EventideError, StorageError


@contextmanager
def answering(what: str) -> Iterator[None]:
    """Turns a failure of the operating system into a StorageError that begins with these words."""
    try:
        yield
    except EventideError:
        raise
    except OSError as failure:
        raise StorageError(f"{what}: {failure}") from failure


class LocalInput(io.FileIO):
    """A file being read, whose failures are typed."""

    def __init__(self, handle: int, what: str) -> None:
        super().__init__(handle)
        self._what = what

    def readinto(self, buffer: Any, /) -> int | None:
        with answering(self._what):
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with answering(self._what):
            return super().readall()


class LocalOutput:
    """ports.OutputFile: `written` is the hidden file, `entry` the name that it is to get."""

    def __init__(self, written: str, entry: str, what: str) -> None:
        self._written = written
        self._entry = entry
        self._what = what
        with answering(what):
            folder = os.path.dirname(written)
            local_names.make_directories(folder)
            local_names.remove_abandoned(folder)
            self._file = open(written, "xb")  # noqa: SIM115  # closed by commit, replace or abort

    def write(self, data: bytes | memoryview, /) -> int:
        with answering(self._what):
            return self._file.write(data)

    def commit(self) -> bool:
        assert not self._file.closed, "the output is closed"
        try:
            with answering(self._what):
                self._sync()
                return local_names.publish(self._written, self._entry)
        finally:
            self.abort()

    def replace(self) -> None:
        try:
            with answering(self._what):
                self._sync()
                local_names.replace(self._written, self._entry)
        finally:
            self.abort()

    def abort(self) -> None:
        # What cannot be removed now is in nobody's way, and is removed as abandoned.
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            os.unlink(self._written)

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
