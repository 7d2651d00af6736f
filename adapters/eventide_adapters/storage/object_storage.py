"""Tables in an object store: S3 and compatible stores, and others that fsspec supports.

A key is a file; a directory exists as long as a key is below it. Nothing is ever renamed. A file appears whole, by one
request, even if it was sent in parts before that. If two writers create it, the store decides which one succeeds
(objects/s3.py, google.py, azure.py).

A store that ignores the condition of a create lets two writers both succeed, so the first write tests the store: it
creates a key twice by each kind of request, and the second create must fail (remembered_trial.py). Such a store, or one
that answers a condition with an error, is refused, unless the option `eventide.storage.unsafe.writes` promises that
nobody else writes. Then each create checks first whether the key exists.

This test does not detect a store that checks for the key before it writes it, without locking. SeaweedFS 4 does that
for CompleteMultipartUpload, but not for PutObject. If two writers create one large file there at the same time, both
may get the response that they succeeded; the file is complete in any case. The files that eventide creates in parts are data
files, whose names belong to one task of one plan.

Some stores list a backslash in a key as a slash, so that nobody would find what was written. The first create of such a key
tests that, too.
"""

import uuid
from contextlib import suppress
from typing import BinaryIO

from eventide_adapters.storage.objects.contract import UNSAFE_WRITES, Objects, StoredObject, Upload, VersionedObjects
from eventide_adapters.storage.paths import TEMPORARY, check_whole, checked_directory, checked_path
from eventide_adapters.storage.remembered_trial import is_remembered, remember
from eventide_adapters.storage.remote_streams import StreamedOutput, in_pieces, open_ranges
from eventide_core.access.requests import responses
from eventide_core.errors import MissingFileError, RefusedError, StorageAccessError, StorageError
from eventide_core.ports import WHOLE_FILE_BYTES_MAX, Capability, FileInfo, OutputFile

# Below this size, a read and a create, which are two requests, are faster than the four requests of a copy inside the
# store.
_SMALL_COPY_BYTES = 1 << 20


class ObjectStorage:
    """ports.Storage and ports.KeyedFiles over the keys below `prefix` ("" or ending with `/`).

    `root` is the table's URI as the user wrote it.

    Pickles its configuration and the detected capabilities. An executor opens its own connections.
    """

    is_remote = True

    def __init__(self, root: str, prefix: str, objects: Objects, capabilities: Capability | None = None) -> None:
        assert prefix == "" or prefix.endswith("/")
        self._root = root
        self._prefix = prefix
        self._objects = objects
        self._capabilities = capabilities
        self._keeps_backslashes: bool | None = None

    def __reduce__(self) -> tuple[type["ObjectStorage"], tuple[str, str, Objects, Capability | None]]:
        return type(self), (self._root, self._prefix, self._objects, self._capabilities)

    @property
    def root(self) -> str:
        return self._root

    @property
    def capabilities(self) -> Capability:
        """Tested on first use, by creating and deleting a key."""
        if self._capabilities is None:
            keeps = self._objects.allows_unsafe_writes or self._keeps_conditions()
            self._capabilities = Capability.PUT_IF_ABSENT if keeps else Capability.NONE
            if self._objects.has_server_copy:
                self._capabilities |= Capability.SERVER_COPY
        return self._capabilities

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        """Omits keys that end with `/`, by which some tools mark a directory, and keys that aren't paths.

        A part of a key may be "", "." or "..". Hadoop's clients don't reach such keys, and a walk would leave the directory.
        """
        prefix = self._below(directory)
        objects, prefixes = self._objects.list_below(prefix)
        files = [self._info(stored) for stored in objects if _is_name(stored.key.removeprefix(prefix))]
        directories = [FileInfo(self._path(p), 0, True, 0) for p in prefixes if _is_name(p.removeprefix(prefix)[:-1])]
        return tuple(sorted(files + directories, key=lambda info: info.path))

    def stat(self, path: str) -> FileInfo | None:
        checked_directory(path)
        info = self.info_of_file(path) if path else None
        if info is not None:
            return info
        objects, prefixes = self._objects.list_below(self._below(path), limit=1)
        return FileInfo(path, 0, True, 0) if objects or prefixes else None

    def read(self, path: str) -> bytes:
        data = self._objects.read(self._key(path), 0, WHOLE_FILE_BYTES_MAX + 1)
        if data is None:
            raise self._missing(path)
        check_whole(len(data), path, self.root)
        return data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        if length == 0:
            self._require(path)
            return b""
        key = self._key(path)

        def read(start: int, size: int) -> bytes:
            data = self._objects.read(key, start, size)
            if data is None:
                raise self._missing(path)
            return data

        return in_pieces(read, offset, length)

    def open_input(self, path: str) -> BinaryIO:
        size = self._require(path).size
        return open_ranges(size, lambda offset, length: self.read_range(path, offset, length))

    def open_output(self, path: str) -> OutputFile:
        key = self._key(path)

        def begin() -> Upload | None:
            self._require_exclusive_creates()
            self._require_listed(key)
            return self._objects.upload(key)

        def publish(content: BinaryIO, upload: Upload | None) -> bool:
            if upload is None:
                return self._create(key, content.read())
            return self._may_create(key) and upload.complete(content, is_conditional=not self._is_unsafe)

        return StreamedOutput(begin, publish)

    def put(self, path: str, data: bytes) -> None:
        self._objects.replace(self._key(path), bytes(data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._create(self._key(path), bytes(data))

    def copy_if_absent(self, source: str, target: str) -> bool:
        stored, key = self._require(source), self._key(target)
        if stored.size <= _SMALL_COPY_BYTES:
            return self._create(key, self.read(source))
        return self._may_create(key) and self._objects.copy(stored, key, is_conditional=not self._is_unsafe)

    def link_if_absent(self, source: str, target: str, *, is_symbolic: bool) -> bool:
        checked_path(source)
        checked_path(target)
        kind = "symbolic" if is_symbolic else "hard"
        raise StorageError(f"{self.root} doesn't support {kind} links: copy {source!r} to {target!r} instead")

    def delete(self, path: str) -> bool:
        key = self._key(path)
        if self._objects.head(key) is None:
            # This may be a directory, of which only the key that marks it can be removed.
            objects, prefixes = self._objects.list_below(f"{key}/", limit=2)
            if prefixes or any(stored.key != f"{key}/" for stored in objects):
                raise StorageError(f"{path!r} in {self.root} is a directory that is not empty")
            if not objects:
                return False
            key = f"{key}/"
        self._objects.delete(key)
        return True

    def info_of_file(self, path: str) -> FileInfo | None:
        stored = self._objects.head(self._key(path))
        return None if stored is None else self._info(stored)

    def discard(self, path: str) -> None:
        self._objects.delete(self._key(path))

    def discard_tree(self, directory: str) -> None:
        prefix = f"{self._key(directory)}/"
        for _ in responses(self, self._objects.delete, self._objects.keys_below(prefix)):
            pass
        self._discard_empty(prefix)

    def _discard_empty(self, prefix: str) -> None:
        """Removes the directories that a store keeps without keys below them, as SeaweedFS does."""
        objects, prefixes = self._objects.list_below(prefix)
        for inner in prefixes:
            self._discard_empty(inner)
        if (objects or prefixes) and all(stored.key == prefix for stored in objects):
            self._objects.delete(prefix)

    @property
    def _is_unsafe(self) -> bool:
        return self._objects.allows_unsafe_writes

    def _create(self, key: str, data: bytes) -> bool:
        return self._may_create(key) and self._objects.create(key, data, is_conditional=not self._is_unsafe)

    def _may_create(self, key: str) -> bool:
        """Whether to send a create request for the key. Raises RefusedError if no create is exclusive."""
        self._require_exclusive_creates()
        self._require_listed(key)
        return not self._is_unsafe or self._objects.head(key) is None

    def _require_exclusive_creates(self) -> None:
        if Capability.PUT_IF_ABSENT not in self.capabilities:
            raise RefusedError(
                f"{self._objects.where} ignores or refuses the condition of a create, so two writers of {self.root} "
                f"could both succeed: use a store that supports it, or set {UNSAFE_WRITES}=true if nobody else ever "
                "writes to the table"
            )

    def _require_listed(self, key: str) -> None:
        """Raises RefusedError for a key with a backslash in a store that lists it as a slash."""
        if "\\" not in key:
            return
        if self._keeps_backslashes is None:
            start = f"{self._prefix}{TEMPORARY}/probe-{uuid.uuid4().hex}"
            probe = f"{start}\\"
            self._objects.replace(probe, b"1")
            listed, _ = self._objects.list_below(start)
            self._keeps_backslashes = any(stored.key == probe for stored in listed)
            self._objects.delete(probe)
        if not self._keeps_backslashes:
            raise RefusedError(
                f"{self._objects.where} lists a backslash as a slash, so {key!r} would not be found again: use partition "
                "values without backslashes, or another store"
            )

    def _keeps_conditions(self) -> bool:
        """Whether a second create of a key fails, both by PutObject and by CompleteMultipartUpload, as a trial has shown.

        Raises StorageAccessError if the store forbids to delete: a table could be begun there, and not be written to.
        That is tried each time, because it depends on who asks.
        """
        key = f"{self._prefix}{TEMPORARY}/probe-{uuid.uuid4().hex}"
        is_known = is_remembered(self._objects, self._prefix)
        try:
            keeps = is_known or self._refuses_a_second_create(key)
        except StorageError as failure:
            keeps = False
            if isinstance(failure, StorageAccessError) or not self._refuses_conditions(key):
                with suppress(StorageError):
                    self._objects.delete(key)
                raise
        try:
            self._objects.delete(key)
        except StorageError as failure:
            if isinstance(failure, StorageAccessError):
                raise  # otherwise, the next write shows whether the store can be reached
        if keeps and not is_known:
            remember(self._objects, self._prefix)
        return keeps

    def _refuses_a_second_create(self, key: str) -> bool:
        objects = self._objects
        if not objects.create(key, b"1") or objects.create(key, b"2"):
            return False
        stored = objects.head(key)
        return stored is not None and not objects.copy(stored, key)

    def _refuses_conditions(self, key: str) -> bool:
        """Whether a create without a condition succeeds, and one with a condition fails after it, by either request."""
        with suppress(StorageError):
            self._objects.create(key, b"1", is_conditional=False)
            stored = self._objects.head(key)
            try:
                self._objects.create(key, b"2")
                if stored is not None:
                    self._objects.copy(stored, key)
            except StorageError:
                return True
        return False

    def _key(self, path: str) -> str:
        return self._prefix + checked_path(path)

    def _below(self, directory: str) -> str:
        return f"{self._prefix}{checked_directory(directory)}/" if directory else self._prefix

    def _path(self, key: str) -> str:
        return key.removeprefix(self._prefix).rstrip("/")

    def _info(self, stored: StoredObject) -> FileInfo:
        return FileInfo(self._path(stored.key), stored.size, False, stored.modified_ms)

    def _require(self, path: str) -> StoredObject:
        stored = self._objects.head(self._key(path))
        if stored is None:
            raise self._missing(path)
        return stored

    def _missing(self, path: str) -> MissingFileError:
        return MissingFileError(f"there is no file {path!r} in {self.root}")


def _is_name(text: str) -> bool:
    """Whether what follows a directory's prefix names something in it."""
    return text not in ("", ".", "..") and "/" not in text


class VersionedObjectStorage(ObjectStorage):
    """An object storage with versions of files, by ETags. Callers must test whether the store keeps conditions on them."""

    def __init__(
        self, root: str, prefix: str, objects: VersionedObjects, capabilities: Capability | None = None
    ) -> None:
        super().__init__(root, prefix, objects, capabilities)
        self._versions = objects

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        return self._versions.read_version(self._key(path))

    def replace_version(self, path: str, data: bytes, version: str) -> bool:
        return self._versions.replace_version(self._key(path), bytes(data), version)
