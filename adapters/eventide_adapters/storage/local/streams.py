"""Files of a local file system that are being read or written. Every failure is typed."""

import errno
import io
import os
import posixpath
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from eventide_adapters.storage.local import names
from eventide_adapters.storage.local.directories import LocalDirectories
from eventide_adapters.storage.refusals import storage_error
from eventide_core.errors import EventideError, StorageFullError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def answering(what: str) -> Iterator[None]:
    """Converts a failure of the operating system to a StorageError that begins with these words."""
    try:
        yield
    except EventideError:
        raise
    except OSError as failure:
        if failure.errno in _NO_ROOM:
            raise StorageFullError(f"{what}: {failure}; free space there, then repeat the call") from failure
        raise storage_error(f"{what}: {failure}", failure) from failure


class LocalInput(io.FileIO):
    """A file that is being read. Its failures are typed."""

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
    """ports.OutputFile. `written` is the hidden file, `entry` its future name; both are paths in the table.

    Keeps the directory of the hidden file open until the end.
    """

    def __init__(self, directories: LocalDirectories, written: str, entry: str, what: str) -> None:
        self._directories = directories
        self._entry = entry
        self._what = what
        directory, self._written = posixpath.split(written)
        with answering(what), ExitStack() as failed:
            self._written_in = directories.open(directory, creates=True)
            failed.callback(os.close, self._written_in)
            names.remove_abandoned(self._written_in)
            self._file = os.fdopen(os.open(self._written, names.NEW_FILE, 0o666, dir_fd=self._written_in), "wb")
            failed.pop_all()
        self._has_first_name = self._is_open = True

    def write(self, data: bytes | memoryview, /) -> int:
        with answering(self._what):
            return self._file.write(data)

    def commit(self) -> bool:
        assert not self._file.closed, "the output is closed"
        try:
            with self._named() as (directory_fd, name):
                is_published = names.publish(self._written_in, self._written, directory_fd, name)
                self._remove_first_name()
                return is_published
        finally:
            self.abort()

    def replace(self) -> None:
        try:
            with self._named() as (directory_fd, name):
                names.replace(self._written_in, self._written, directory_fd, name)
                self._has_first_name = False
        finally:
            self.abort()

    def abort(self) -> None:
        with suppress(OSError):
            self._file.close()
        if self._has_first_name:
            self._remove_first_name()
        if self._is_open:
            self._is_open = False
            os.close(self._written_in)

    def _remove_first_name(self) -> None:
        # A file that cannot be removed now harms nobody, and is later removed as abandoned.
        with suppress(OSError):
            os.unlink(self._written, dir_fd=self._written_in)
        self._has_first_name = False

    @contextmanager
    def _named(self) -> Iterator[tuple[int, str]]:
        """The final directory and name of the file, whose content is already synced."""
        with answering(self._what):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            with self._directories.parent(self._entry, creates=True) as (directory_fd, name):
                yield directory_fd, name
