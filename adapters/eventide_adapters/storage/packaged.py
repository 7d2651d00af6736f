"""A storage that a package opens: it must pass a trial before the first write, and executors need the package."""

import pickle
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, cast

from eventide_adapters.storage.guarantees import FIRST_TRIAL
from eventide_adapters.storage.paths import TEMPORARY
from eventide_core.access.files import discard, info_of_file, remove_tree
from eventide_core.errors import ConfigError, EventideError, RefusedError
from eventide_core.ports import Capability, FileInfo, KeyedFiles, OutputFile, Storage, VersionedFiles


class PackagedStorage:
    """ports.Storage of a package. A reader pays for no trial; an executor gets a copy that has passed it."""

    def __init__(self, inner: Storage, package: str, is_tried: bool = False) -> None:
        self._inner = inner
        self._package = package
        self._is_tried = is_tried

    def __reduce__(self) -> tuple[Callable[..., "PackagedStorage"], tuple[bytes, str, bool]]:
        return _unpickled, (pickle.dumps(self._inner), self._package, self._is_tried)

    @property
    def root(self) -> str:
        return self._inner.root

    @property
    def is_remote(self) -> bool:
        return self._inner.is_remote

    @property
    def capabilities(self) -> Capability:
        return self._inner.capabilities

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        return self._inner.list(directory)

    def stat(self, path: str) -> FileInfo | None:
        return self._inner.stat(path)

    def read(self, path: str) -> bytes:
        return self._inner.read(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self._inner.read_range(path, offset, length)

    def open_input(self, path: str) -> BinaryIO:
        return self._inner.open_input(path)

    def open_output(self, path: str) -> OutputFile:
        return self._tried().open_output(path)

    def put(self, path: str, data: bytes) -> None:
        self._tried().put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._tried().put_if_absent(path, data)

    def copy_if_absent(self, source: str, target: str) -> bool:
        return self._tried().copy_if_absent(source, target)

    def link_if_absent(self, source: str, target: str, *, is_symbolic: bool) -> bool:
        return self._tried().link_if_absent(source, target, is_symbolic=is_symbolic)

    def delete(self, path: str) -> bool:
        return self._tried().delete(path)

    def _tried(self) -> Storage:
        """The storage. Raises RefusedError if it breaks a guarantee."""
        if not self._is_tried:
            self._try_out()
            self._is_tried = True
        return self._inner

    def _try_out(self) -> None:
        directory = f"{TEMPORARY}/trial-{uuid.uuid4().hex}"
        try:
            for number, guarantee in enumerate(FIRST_TRIAL):
                broken = guarantee.broken_by(self._inner, f"{directory}/{number}")
                if broken is not None:
                    raise RefusedError(
                        f"the storage of {self.root}, from the package {self._package}, fails the check {guarantee.name!r}: "
                        f"{broken}; `eventide storage check` shows all checks"
                    )
        finally:
            with suppress(EventideError):
                remove_tree(self._inner, directory)


class _Keyed(PackagedStorage):
    def discard(self, path: str) -> None:
        discard(self._tried(), path)

    def info_of_file(self, path: str) -> FileInfo | None:
        return info_of_file(self._inner, path)

    def discard_tree(self, directory: str) -> None:
        remove_tree(self._tried(), directory)


class _Versioned(PackagedStorage):
    def read_version(self, path: str) -> tuple[bytes, str] | None:
        return cast(VersionedFiles, self._inner).read_version(path)

    def replace_version(self, path: str, data: bytes, version: str) -> bool:
        return cast(VersionedFiles, self._tried()).replace_version(path, data, version)


class _KeyedAndVersioned(_Keyed, _Versioned):
    pass


def packaged(inner: Storage, package: str, is_tried: bool = False) -> PackagedStorage:
    """The storage with the optional capabilities that it has."""
    if isinstance(inner, KeyedFiles):
        kind: type[PackagedStorage] = _KeyedAndVersioned if isinstance(inner, VersionedFiles) else _Keyed
    else:
        kind = _Versioned if isinstance(inner, VersionedFiles) else PackagedStorage
    return kind(inner, package, is_tried)


def untried(storage: Storage) -> Storage:
    """The storage itself, if it is one of a package."""
    return storage._inner if isinstance(storage, PackagedStorage) else storage


def _unpickled(inner: bytes, package: str, is_tried: bool) -> PackagedStorage:
    try:
        return packaged(pickle.loads(inner), package, is_tried)
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"the table's storage needs the package {package}, which is not installed on this executor (no module "
            f"{missing.name}): install it there, or send it with `spark-submit --py-files`"
        ) from missing
