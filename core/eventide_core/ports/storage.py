"""The port for the storage of a table's files."""

from enum import Flag, auto
from typing import BinaryIO, Final, Protocol, runtime_checkable

from eventide_core.bulk_dataclass import bulk_dataclass

WHOLE_FILE_BYTES_MAX: Final = 1024**3
"""The largest file that is read whole: a write stat takes up to a kilobyte, so a commit of a million files."""


class Capability(Flag):
    """The capabilities of a storage, as probed in its actual place and configuration.

    PUT_IF_ABSENT: if several writers create one name, one of them wins. SERVER_COPY: the bytes of a copy don't pass
    through this process.
    """

    NONE = 0
    PUT_IF_ABSENT = auto()
    SYMLINK = auto()
    HARDLINK = auto()
    SERVER_COPY = auto()


@bulk_dataclass(frozen=True, slots=True)
class FileInfo:
    """One entry of a listing. `path` is relative to the root of the storage.

    `size` is in bytes; for a link, the target's. `modified_ms` is when it was last written, in epoch milliseconds by the
    storage's clock. `is_directory`: then the size has no meaning. `link_target` is where a symbolic link leads, one hop;
    None for anything else.
    """

    path: str
    size: int
    is_directory: bool
    modified_ms: int
    link_target: str | None = None


class OutputFile(Protocol):
    """A file being written, which no reader sees until `commit`."""

    def write(self, data: bytes | memoryview, /) -> int: ...

    def commit(self) -> bool:
        """Publishes the whole content under its name. False: the name was taken, and nothing has changed."""
        ...

    def abort(self) -> None:
        """Discards the content. Does nothing after `commit`."""
        ...


class Storage(Protocol):
    """The files of one table. Picklable: an executor gets a copy and opens its own connections.

    A name appears with its whole content or not at all. A lost race is a result (False), not an exception.
    """

    @property
    def root(self) -> str:
        """The table's URI, for messages and for engines that read files themselves. Contains no secret."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether each request waits for a server, so that several are sent side by side. Sends none itself."""
        ...

    @property
    def capabilities(self) -> Capability: ...

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        """The entries of a directory, hidden ones too, by name; nothing if the directory is absent."""
        ...

    def stat(self, path: str) -> FileInfo | None:
        """The file or directory of that name; None if it is absent or a dangling link."""
        ...

    def read(self, path: str) -> bytes:
        """The whole file. Raises MissingFileError; ResourceLimitError above WHOLE_FILE_BYTES_MAX."""
        ...

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """The bytes of a range, fewer if the file ends before. Raises MissingFileError."""
        ...

    def open_input(self, path: str) -> BinaryIO:
        """A seekable stream over the file. Raises MissingFileError."""
        ...

    def open_output(self, path: str) -> OutputFile:
        """Begins a file that must not exist yet."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Creates or replaces the file, whole."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Creates the file, whole; False if the name is taken, and nothing has changed."""
        ...

    def copy_if_absent(self, source: str, target: str) -> bool:
        """Copies a file, whole; False if the target's name is taken. Raises MissingFileError."""
        ...

    def link_if_absent(self, source: str, target: str, *, is_symbolic: bool) -> bool:
        """Gives a file a second name; False if the target's name is taken. Raises MissingFileError."""
        ...

    def delete(self, path: str) -> bool:
        """Removes the name, never a link's target; an empty directory too. False if it is absent."""
        ...


@runtime_checkable
class VersionedFiles(Protocol):
    """An optional capability of storages: replaces a file on the condition that no one has changed it."""

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        """A small file, whole, and the version of its content; None if it is absent."""
        ...

    def replace_version(self, path: str, data: bytes, version: str) -> bool:
        """Replaces the file, whole; False if it is absent or of another version, and nothing has changed."""
        ...


@runtime_checkable
class KeyedFiles(Protocol):
    """An optional capability of storages that keep files by key and have no directories."""

    def discard(self, path: str) -> None:
        """Removes the file in one request. Does nothing if there is none, also if files are below that name."""
        ...

    def info_of_file(self, path: str) -> FileInfo | None:
        """The file, found by one request; None if there is none, also if files are below that name."""
        ...

    def discard_tree(self, directory: str) -> None:
        """Removes every file below a directory, at any depth, and what else marks it; one listing finds them."""
        ...
