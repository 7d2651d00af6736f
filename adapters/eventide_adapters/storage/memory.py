"""Tables in memory, for tests and experiments. They end with the process, and are shared by name within it.

A directory exists as long as a file is below it.
"""

import hashlib
import io
import itertools
import posixpath
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from eventide_adapters.storage.paths import checked_directory, checked_path
from eventide_core.errors import MissingFileError, StorageError
from eventide_core.ports import Capability, FileInfo, OutputFile


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """One name: a file, or a symbolic link.

    `data` is a file's content, and empty for a link. `link_target` is a link's target as a path from the root; None for a
    file. `modified_ms` is the time of the write by the storage's clock: a counter from 1, unless the storage was given
    another one.
    """

    data: bytes
    modified_ms: int
    link_target: str | None = None


@dataclass(slots=True)
class _Directory:
    """A directory: its names, and the time when a file below it was last written."""

    names: set[str] = field(default_factory=set)
    modified_ms: int = 0


@dataclass(slots=True)
class _Files:
    """The state that all storages of one name share. `directories` includes the root.

    `infos` are of files that have been listed, and aren't links.
    """

    now_ms: Callable[[], int]
    by_path: dict[str, MemoryFile] = field(default_factory=dict)
    infos: dict[str, FileInfo] = field(default_factory=dict)
    directories: dict[str, _Directory] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def put(self, path: str, file: MemoryFile) -> None:
        """Adds or replaces a name."""
        self.by_path[path] = file
        self.infos.pop(path, None)
        while path:
            parent, _, name = path.rpartition("/")
            directory = self.directories.setdefault(parent, _Directory())
            directory.names.add(name)
            directory.modified_ms = max(directory.modified_ms, file.modified_ms)
            path = parent

    def remove(self, path: str) -> bool:
        """Removes the file, and directories that become empty. Returns whether it existed."""
        if self.by_path.pop(path, None) is None:
            return False
        self.infos.pop(path, None)
        while path:
            parent, _, name = path.rpartition("/")
            directory = self.directories[parent]
            directory.names.remove(name)
            if directory.names:
                break
            del self.directories[parent]
            path = parent
        return True


_files_by_name: dict[str, _Files] = {}


class MemoryStorage:
    """ports.Storage over a dictionary. Pickles its name: a copy in the same process sees the same files.

    `now_ms` gives files their time. Without it, each write is a millisecond later than the previous one.
    """

    is_remote = False
    capabilities = Capability.PUT_IF_ABSENT | Capability.SYMLINK | Capability.HARDLINK | Capability.SERVER_COPY

    def __init__(self, name: str, *, now_ms: Callable[[], int] | None = None) -> None:
        self._name = name
        if name not in _files_by_name or now_ms is not None:
            files = _files_by_name.setdefault(name, _Files(itertools.count(1).__next__))
            files.now_ms = now_ms or files.now_ms

    @classmethod
    def from_dump(
        cls, name: str, dump: Mapping[str, MemoryFile], *, now_ms: Callable[[], int] | None = None
    ) -> "MemoryStorage":
        """The storage of that name, with exactly the dumped content."""
        start = max((file.modified_ms for file in dump.values()), default=0) + 1
        files = _files_by_name[name] = _Files(now_ms or itertools.count(start).__next__)
        for path, file in dump.items():
            files.put(path, file)
        return cls(name)

    def dump(self) -> dict[str, MemoryFile]:
        """Every name with its current content."""
        files = self._files
        with files.lock:
            return dict(sorted(files.by_path.items()))

    def __reduce__(self) -> "tuple[Callable[[str], MemoryStorage], tuple[str]]":
        return _attach, (self._name,)

    @property
    def root(self) -> str:
        return f"memory://{self._name}"

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        checked_directory(directory)
        prefix = f"{directory}/" if directory else ""
        files = self._files
        with files.lock:
            listed = files.directories.get(directory)
            names = () if listed is None else sorted(listed.names)
            return tuple(self._info(files, prefix + name) for name in names)

    def stat(self, path: str) -> FileInfo | None:
        checked_directory(path)
        files = self._files
        with files.lock:
            file = files.by_path.get(path)
            if file is None:
                return self._info(files, path) if _is_directory(files, path) else None
            return self._info(files, path) if _resolve(files, path) is not None else None

    def read(self, path: str) -> bytes:
        checked_path(path)
        files = self._files
        with files.lock:
            resolved = _resolve(files, path)
            if resolved is None:
                raise MissingFileError(f"there is no file {path!r} in {self.root}")
            return files.by_path[resolved].data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        assert offset >= 0
        assert length >= 0
        return self.read(path)[offset : offset + length]

    def open_input(self, path: str) -> BinaryIO:
        return io.BytesIO(self.read(path))

    def open_output(self, path: str) -> OutputFile:
        return _Output(self, checked_path(path))

    def put(self, path: str, data: bytes) -> None:
        checked_path(path)
        files = self._files
        with files.lock:
            if _is_directory(files, path):
                raise StorageError(f"{path!r} in {self.root} is a directory and cannot become a file")
            self._write(files, path, bytes(data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        checked_path(path)
        files = self._files
        with files.lock:
            if _is_taken(files, path):
                return False
            self._write(files, path, bytes(data))
            return True

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        """Versions are distinguished by content, as in most stores."""
        try:
            data = self.read(path)
        except MissingFileError:
            return None
        return data, hashlib.md5(data, usedforsecurity=False).hexdigest()

    def replace_version(self, path: str, data: bytes, version: str) -> bool:
        with self._files.lock:
            current = self.read_version(path)
            if current is None or current[1] != version:
                return False
            self.put(path, data)
            return True

    def copy_if_absent(self, source: str, target: str) -> bool:
        files = self._files
        with files.lock:
            return self.put_if_absent(target, self.read(source))

    def link_if_absent(self, source: str, target: str, *, is_symbolic: bool) -> bool:
        files = self._files
        with files.lock:
            data = self.read(source)
            if not is_symbolic:
                return self.put_if_absent(target, data)
            checked_path(target)
            if _is_taken(files, target):
                return False
            self._write(files, target, b"", link_target=_resolve(files, source))
            return True

    def delete(self, path: str) -> bool:
        checked_path(path)
        files = self._files
        with files.lock:
            if _is_directory(files, path):
                raise StorageError(f"{path!r} in {self.root} is a directory that is not empty")
            return files.remove(path)

    @property
    def _files(self) -> _Files:
        files = _files_by_name.get(self._name)
        if files is None:
            raise StorageError(
                f"{self.root} exists only in the process that created it, and this is another one: use a storage "
                "that both can reach"
            )
        return files

    def _write(self, files: _Files, path: str, data: bytes, *, link_target: str | None = None) -> None:
        parent = posixpath.dirname(path)
        while parent:
            if parent in files.by_path:
                raise StorageError(f"{path!r} cannot be below {parent!r} in {self.root}, which is a file")
            parent = posixpath.dirname(parent)
        files.put(path, MemoryFile(data, files.now_ms(), link_target))

    def _info(self, files: _Files, path: str) -> FileInfo:
        known = files.infos.get(path)
        if known is not None:
            return known
        file = files.by_path.get(path)
        if file is None:
            newest = files.directories[path].modified_ms if path in files.directories else 0
            return FileInfo(path, 0, is_directory=True, modified_ms=newest)
        resolved = _resolve(files, path)
        size = len(files.by_path[resolved].data) if resolved is not None else 0
        info = FileInfo(path, size, is_directory=False, modified_ms=file.modified_ms, link_target=file.link_target)
        if file.link_target is None:
            files.infos[path] = info
        return info


class _Output:
    """ports.OutputFile that keeps the written content until it is published."""

    def __init__(self, storage: MemoryStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._data: bytearray | None = bytearray()

    def write(self, data: bytes | memoryview, /) -> int:
        assert self._data is not None, "the output is closed"
        self._data += data
        return memoryview(data).nbytes

    def commit(self) -> bool:
        assert self._data is not None, "the output is closed"
        data, self._data = bytes(self._data), None
        return self._storage.put_if_absent(self._path, data)

    def abort(self) -> None:
        self._data = None


def _attach(name: str) -> MemoryStorage:
    storage = MemoryStorage.__new__(MemoryStorage)
    storage._name = name
    return storage


def _is_directory(files: _Files, path: str) -> bool:
    return path == "" or path in files.directories


def _is_taken(files: _Files, path: str) -> bool:
    return path in files.by_path or _is_directory(files, path)


def _resolve(files: _Files, path: str) -> str | None:
    """The name that has the content. A link always leads to a file, never to a link, so one step is enough."""
    file = files.by_path.get(path)
    if file is None or file.link_target is None:
        return path if file is not None else None
    target = files.by_path.get(file.link_target)
    return file.link_target if target is not None and target.link_target is None else None
