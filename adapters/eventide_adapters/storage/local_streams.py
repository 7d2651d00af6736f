"""Files of a local file system while they are being read or written, every failure typed."""

import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from eventide_adapters.storage import local_names
from eventide_adapters.storage.local_folders import LocalFolders
from eventide_core.errors import EventideError, StorageError, UnsafePathError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


@contextmanager
def answering(what: str) -> Iterator[None]:
    """Turns a failure of the operating system into a StorageError that begins with these words."""
    try:
        yield
    except EventideError:
        raise
    except OSError as failure:
        cure = "; make room there, then do the same again" if failure.errno in _NO_ROOM else ""
        raise StorageError(f"{what}: {failure}{cure}") from failure


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
    """ports.OutputFile: `written` is the hidden file, `entry` the name that it is to get, both paths in the table."""

    def __init__(self, folders: LocalFolders, written: str, entry: str, what: str) -> None:
        self._folders = folders
        self._written = written
        self._entry = entry
        self._what = what
        with answering(what), folders.parent(written, creates=True) as (folder, name):
            local_names.remove_abandoned(folder)
            self._file = os.fdopen(os.open(name, _NEW_FILE, 0o666, dir_fd=folder), "wb")
        self._has_first_name = True

    def write(self, data: bytes | memoryview, /) -> int:
        with answering(self._what):
            return self._file.write(data)

    def commit(self) -> bool:
        assert not self._file.closed, "the output is closed"
        try:
            with self._named() as (written_in, written, folder, name):
                is_published = local_names.publish(written_in, written, folder, name)
                self._remove_first_name(written_in, written)
                return is_published
        finally:
            self.abort()

    def replace(self) -> None:
        try:
            with self._named() as (written_in, written, folder, name):
                local_names.replace(written_in, written, folder, name)
                self._has_first_name = False
        finally:
            self.abort()

    def abort(self) -> None:
        with suppress(OSError):
            self._file.close()
        if self._has_first_name:
            with suppress(OSError, UnsafePathError), self._folders.parent(self._written) as (folder, name):
                self._remove_first_name(folder, name)

    def _remove_first_name(self, folder: int, name: str) -> None:
        # What cannot be removed now is in nobody's way, and is removed as abandoned.
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        self._has_first_name = False

    @contextmanager
    def _named(self) -> Iterator[tuple[int, str, int, str]]:
        """Where the file lies, its content synced, and where it is to lie: handles of folders, and names."""
        with answering(self._what):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            with (
                self._folders.parent(self._written) as (written_in, written),
                self._folders.parent(self._entry, creates=True) as (folder, name),
            ):
                yield written_in, written, folder, name
