"""What is done to files of a storage in several requests, or beside a write."""

from contextlib import suppress
from functools import partial

from eventide_core.access.requests import responses
from eventide_core.errors import MissingFileError
from eventide_core.ports import FileInfo, KeyedFiles, OutputFile, Storage
from eventide_core.table.files.checksum import RunningChecksum, checksum_of_stream
from eventide_core.table.files.own_file import decoded_own


class ChecksummedOutput:
    """An OutputFile that computes the checksum of what is written to it (table/files/checksum.py).

    `size` is what has been written, in bytes.
    """

    def __init__(self, output: OutputFile) -> None:
        self._output = output
        self._checksum = RunningChecksum()
        self.size = 0

    @property
    def checksum(self) -> str:
        return str(self._checksum)

    def write(self, data: bytes | memoryview, /) -> int:
        self._checksum.add(data)
        self.size += memoryview(data).nbytes
        return self._output.write(data)

    def commit(self) -> bool:
        return self._output.commit()

    def abort(self) -> None:
        self._output.abort()


def discard(storage: Storage, path: str) -> None:
    """Removes a file that may be absent, in as few requests as the storage needs."""
    if isinstance(storage, KeyedFiles):
        storage.discard(path)
    else:
        storage.delete(path)


def info_of_file(storage: Storage, path: str) -> FileInfo | None:
    """The file; None if it is absent. In as few requests as the storage needs."""
    return storage.info_of_file(path) if isinstance(storage, KeyedFiles) else storage.stat(path)


def is_marked(storage: Storage, path: str) -> bool:
    """Whether the mark exists, whatever bytes it has. Raises UnsupportedTableError for one of a later eventide."""
    try:
        with suppress(ValueError, RecursionError):
            decoded_own(storage.read(path), path)
    except MissingFileError:
        return False
    return True


def checksum_of_file(storage: Storage, path: str, size: int) -> str | None:
    """The checksum of a file's first `size` bytes; None if there are fewer. Raises MissingFileError."""
    with storage.open_input(path) as stream:
        return checksum_of_stream(stream, size)


def remove_tree(storage: Storage, directory: str) -> None:
    """Removes a directory and its content. Links in it are removed; their targets stay."""
    if isinstance(storage, KeyedFiles):
        storage.discard_tree(directory)
        return
    files: list[str] = []
    for entry in storage.list(directory):
        if entry.is_directory and entry.link_target is None:
            remove_tree(storage, entry.path)
        else:
            files.append(entry.path)
    for _ in responses(storage, partial(discard, storage), files):
        pass
    storage.delete(directory)
