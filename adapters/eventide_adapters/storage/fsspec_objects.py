"""The objects of one bucket in a store of fsspec, if its package creates by conditional requests (`mode="create"`).

For storages of other packages; examples/fsspec_store is one. Each object is created by one request from memory, and
copies go through the client. The packages repeat requests without reporting it, so a create whose first response was
lost may report that the name was taken. eventide treats that like a faster process.
"""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, cast

import fsspec

from eventide_adapters.storage.objects.cloud import answering
from eventide_adapters.storage.objects.contract import StoredObject
from eventide_core.errors import StorageError

# The packages' keys for the modification time.
_MODIFIED: Final = ("mtime", "last_modified", "created")


@dataclass(frozen=True, slots=True)
class FsspecObjects:
    """contract.Objects over a package of fsspec.

    `protocol` is the name by which fsspec finds the package, and the scheme of the URI; `bucket` is the first part of each
    path. `settings` are keywords of its file system, which may include secrets. `allows_unsafe_writes`: the user promises
    that nobody else writes, so the store need not support conditional requests.
    """

    protocol: str
    bucket: str
    settings: tuple[tuple[str, str], ...] = field(repr=False)
    allows_unsafe_writes: bool
    has_server_copy = False

    @property
    def where(self) -> str:
        return f"the store of {self.protocol}://{self.bucket}"

    @property
    def address(self) -> None:
        """Its package knows."""
        return None

    def head(self, key: str) -> StoredObject | None:
        with self._answering("look at", key):
            try:
                info = self._store.info(self._path(key))
            except FileNotFoundError:
                return None
            return self._object(info) if info["type"] == "file" else None

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes | None:
        end = None if length is None else offset + length
        with self._answering("read", key):
            try:
                return cast(bytes, self._store.cat_file(self._path(key), start=offset, end=end))
            except FileNotFoundError:
                return None
            except Exception:
                # Nothing follows the end of an object. Some stores report an error for that.
                stored = self.head(key)
                if stored is None or offset < stored.size:
                    raise
                return b""

    def list_below(self, prefix: str, *, limit: int | None = None) -> tuple[tuple[StoredObject, ...], tuple[str, ...]]:
        directory = self._path(prefix).rstrip("/")
        with self._answering("list", prefix):
            self._store.invalidate_cache(directory)
            try:
                entries: list[Mapping[str, Any]] = self._store.ls(directory, detail=True)
            except FileNotFoundError:
                return (), ()
            below = [entry for entry in entries if self._key(entry).startswith(prefix) and self._key(entry) != prefix]
            objects = tuple(self._object(entry) for entry in below if entry["type"] == "file")
            return objects[:limit], tuple(f"{self._key(entry)}/" for entry in below if entry["type"] == "directory")

    def keys_below(self, prefix: str) -> tuple[str, ...]:
        directory = self._path(prefix).rstrip("/")
        with self._answering("list", prefix):
            self._store.invalidate_cache(directory)
            return tuple(str(path).lstrip("/").removeprefix(f"{self.bucket}/") for path in self._store.find(directory))

    def delete(self, key: str) -> None:
        with self._answering("delete", key):
            try:
                self._store.rm_file(self._path(key))
            except FileNotFoundError:
                return

    def replace(self, key: str, data: bytes) -> None:
        with self._answering("write", key):
            self._store.pipe_file(self._path(key), data)

    def create(self, key: str, data: bytes, *, is_conditional: bool = True) -> bool:
        with self._answering("write", key):
            try:
                self._store.pipe_file(self._path(key), data, mode="create" if is_conditional else "overwrite")
            except FileExistsError:
                return False
        return True

    def upload(self, key: str) -> None:  # noqa: ARG002  # no package sends parts on a condition
        return None

    def copy(self, source: StoredObject, key: str, *, is_conditional: bool = True) -> bool:
        data = self.read(source.key)
        if data is None:
            raise StorageError(f"{source.key!r} in {self.where} was removed while it was copied")
        return self.create(key, data, is_conditional=is_conditional)

    @property
    def _store(self) -> Any:
        return _file_system(self.protocol, self.settings, os.getpid())

    def _path(self, key: str) -> str:
        return f"{self.bucket}/{key}"

    def _key(self, entry: Mapping[str, Any]) -> str:
        return str(entry["name"]).lstrip("/").removeprefix(f"{self.bucket}/")

    def _object(self, entry: Mapping[str, Any]) -> StoredObject:
        times = [entry[name] for name in _MODIFIED if isinstance(entry.get(name), datetime)]
        return StoredObject(self._key(entry), int(entry["size"]), int(times[0].timestamp() * 1000) if times else 0)

    def _answering(self, verb: str, key: str) -> AbstractContextManager[None]:
        return answering(verb, key, self.where, self.settings)


@lru_cache(maxsize=32)
def _file_system(protocol: str, settings: tuple[tuple[str, str], ...], process: int) -> Any:  # noqa: ARG001
    """One client per process, for all copies of a storage.

    A cached listing would not show later writes of other processes.
    """
    return fsspec.filesystem(protocol, use_listings_cache=False, skip_instance_cache=True, **dict(settings))
