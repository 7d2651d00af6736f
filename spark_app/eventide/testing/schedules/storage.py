"""A storage whose operations are steps, each with all that it depends on. Whoever performs them decides when, and if."""

import io
from collections.abc import Callable, Hashable
from typing import Any, BinaryIO, TypeVar

from eventide.testing.schedules.world import Step
from eventide_core.ports import Capability, FileInfo, Storage, VersionedFiles

T = TypeVar("T")


class StorageOfSteps:
    """ports.Storage whose operations `perform` does, each of them as a step. `like` has its root and capabilities."""

    def __init__(self, perform: Callable[[Step], Any], like: Storage) -> None:
        self._perform = perform
        self._root = like.root
        self._is_remote = like.is_remote
        self._capabilities = like.capabilities

    @property
    def root(self) -> str:
        return self._root

    @property
    def is_remote(self) -> bool:
        return self._is_remote

    @property
    def capabilities(self) -> Capability:
        return self._capabilities

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        return self._answer("list", directory, None, lambda s: s.list(directory))

    def stat(self, path: str) -> FileInfo | None:
        return self._answer("stat", path, None, lambda s: s.stat(path))

    def read(self, path: str) -> bytes:
        return self._answer("read", path, None, lambda s: s.read(path))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self._answer("read_range", path, (offset, length), lambda s: s.read_range(path, offset, length))

    def open_input(self, path: str) -> BinaryIO:
        """One read, of the whole file."""
        return io.BytesIO(self.read(path))

    def open_output(self, path: str) -> "_Output":
        return _Output(self, path)

    def put(self, path: str, data: bytes) -> None:
        held = bytes(data)
        self._answer("put", path, held, lambda s: s.put(path, held))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        held = bytes(data)
        return self._answer("put_if_absent", path, held, lambda s: s.put_if_absent(path, held))

    def copy_if_absent(self, source: str, target: str) -> bool:
        return self._answer("copy_if_absent", target, source, lambda s: s.copy_if_absent(source, target))

    def link_if_absent(self, source: str, target: str, *, is_symbolic: bool) -> bool:
        return self._answer(
            "link_if_absent",
            target,
            (source, is_symbolic),
            lambda s: s.link_if_absent(source, target, is_symbolic=is_symbolic),
        )

    def delete(self, path: str) -> bool:
        return self._answer("delete", path, None, lambda s: s.delete(path))

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        return self._answer("read_version", path, None, lambda s: _versioned(s).read_version(path))

    def replace_version(self, path: str, data: bytes, version: str) -> bool:
        held = bytes(data)
        return self._answer(
            "replace_version", path, (held, version), lambda s: _versioned(s).replace_version(path, held, version)
        )

    def _answer(self, kind: str, path: str, details: Hashable, act: Callable[[Storage], T]) -> T:
        answer: T = self._perform(Step(kind, path, details, act))
        return answer


class _Output:
    """ports.OutputFile whose commit is one operation."""

    def __init__(self, storage: StorageOfSteps, path: str) -> None:
        self._storage = storage
        self._path = path
        self._data = bytearray()

    def write(self, data: bytes | memoryview, /) -> int:
        self._data += data
        return memoryview(data).nbytes

    def commit(self) -> bool:
        return self._storage.put_if_absent(self._path, bytes(self._data))

    def abort(self) -> None:
        """Does nothing: the output was never visible."""


def _versioned(storage: Storage) -> VersionedFiles:
    assert isinstance(storage, VersionedFiles)
    return storage
