"""Hudi's FileSystemBasedLockProvider, on any storage that can create a file exclusively.

1. The process that creates the file `lock` holds the lock. The file is in `hoodie.write.lock.filesystem.path`, by default
   in `.hoodie`, where Spark writers look for it (Flink writers: `.hoodie/.aux`).
2. Its content is Hudi's LockInfo as JSON, with the owner as the thread's name. Hudi itself leaves the file empty on
   file systems that show a file as soon as it is opened.
3. A contender that finds the name taken tries again, for at most `hoodie.write.lock.wait_time_ms`.
4. The holder deletes the file at the end, after it has checked that it is still the holder's.
5. When `hoodie.write.lock.filesystem.expire` minutes have passed since the file was modified, anyone may delete it and
   compete for the name again. With the default (0), a lock never expires.
6. The file of a dead process of this machine is deleted in the same way, whatever its age. On other machines, it stays
   until it expires.

Special case of 5 and 6, two processes that find the same expired lock: the slower one must not delete the lock that the
faster one has acquired in the meantime. Therefore, a process that deletes a lock that can expire, even its own, first
claims the file `lock.<digest of content and modification time>`, which only one process can hold at a time. Then it
checks whether the lock is still the same, deletes it, and releases the claim. A later process finds another lock, or
none, and deletes nothing. The claim of a process that died expires like a lock (5 and 6): another process claims the same
name with `.1` behind it, then `.2`, and so on. A claim whose lock is gone is of no use to anybody, so one that is left
behind by a kill between the two deletes does no harm.

The lock does not protect in three cases: a stock writer deletes an expired lock without a claim; a clock that differs
from the file system's makes a lock expire early; and a process that has claimed a lock pauses for longer than a lock lasts,
right before it deletes it. `Lease.check` then detects the loss, and put-if-absent still protects the table.
"""

import hashlib
import json
import posixpath
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from eventide_adapters.lock.processes import is_dead, this_process
from eventide_core.access.files import discard, info_of_file
from eventide_core.config import LOCK_EXPIRE_MINUTES, LOCK_PATH, LOCK_WAIT_MS, Options
from eventide_core.errors import ConfigError, LockError, LockLostError, MissingFileError, StorageError, format_timestamp
from eventide_core.ports import Capability, Clock, Storage

DEFAULT_DIRECTORY = ".hoodie"

# Much shorter than the seconds for which a compaction holds the lock, much longer than one request.
_POLL_MS = 100

_MS_PER_MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class _LockFile:
    """An observed lock file: no two acquired locks are equal."""

    content: bytes
    modified_ms: int

    @property
    def digest(self) -> str:
        return hashlib.sha256(b"%d " % self.modified_ms + self.content).hexdigest()[:16]


class FileSystemBasedLock:
    """ports.TableLock; `owner` identifies the holder in messages. Raises ConfigError for a lock outside the table."""

    def __init__(self, storage: Storage, options: Options, clock: Clock, owner: str) -> None:
        self._storage = storage
        self._clock = clock
        self._owner = owner
        self._path = _lock_path(storage.root, options.get(LOCK_PATH))
        self._wait_ms = options.get(LOCK_WAIT_MS)
        self._expire_ms = options.get(LOCK_EXPIRE_MINUTES) * _MS_PER_MINUTE

    def acquire(self) -> "FileSystemBasedLease":
        if Capability.PUT_IF_ABSENT not in self._storage.capabilities:
            self._check_writable()
            raise ConfigError(
                f"{self._storage.root} cannot create a file exclusively, which this lock needs: set "
                "hoodie.write.lock.provider to storage-based, or to a plug-in, MODULE:FACTORY"
            )
        content = self._content()
        deadline_ms = self._clock.now_ms() + self._wait_ms
        while True:
            failure = None
            try:
                if self._storage.put_if_absent(self._path, content):
                    return FileSystemBasedLease(self, content)
            except StorageError as lost:
                failure = lost
            file = self._read()
            # Only the reply was lost, or the storage's client repeated the request and found its own file.
            if file is not None and file.content == content:
                return FileSystemBasedLease(self, content)
            if failure is not None:
                raise failure
            if file is not None and self._is_over(file) and self._remove(file):
                continue
            remaining_ms = deadline_ms - self._clock.now_ms()
            if remaining_ms <= 0:
                raise LockError(self._why_not_taken(file))
            self._clock.sleep(min(_POLL_MS, remaining_ms))

    def _check_writable(self) -> None:
        """Raises StorageError where nothing can be written, as on a read-only mount, which has no capabilities either."""
        probe = f"{self._path}.{uuid.uuid4().hex}"
        self._storage.put(probe, b"probe")
        self._storage.delete(probe)

    def check(self, content: bytes) -> None:
        file = self._read_as_holder()
        if file is None or file.content != content:
            now = "is gone" if file is None else f"is now held by {_owner_in(file.content)}"
            raise LockLostError(f"the table lock {self._place} was lost: it {now}; nothing was written after that")
        if self._is_expired(file):
            raise LockError(
                f"the table lock {self._place} expired while it was held: set {LOCK_EXPIRE_MINUTES} to more "
                "minutes than the work takes"
            )

    def release(self, content: bytes) -> None:
        """Releases the lock, unless another owner has it now."""
        file = self._read_as_holder()
        if file is not None and file.content == content:
            if self._expire_ms:
                self._remove(file)
            else:
                discard(self._storage, self._path)

    def _read(self, path: str | None = None) -> _LockFile | None:
        """The lock, or the claim at `path`."""
        info = info_of_file(self._storage, path or self._path)
        if info is None:
            return None
        try:
            return _LockFile(self._storage.read(path or self._path), info.modified_ms)
        except MissingFileError:
            return None

    def _read_as_holder(self) -> _LockFile | None:
        """The lock, without its age if locks don't expire: one request less for each check."""
        if self._expire_ms:
            return self._read()
        try:
            return _LockFile(self._storage.read(self._path), 0)
        except MissingFileError:
            return None

    def _is_expired(self, file: _LockFile) -> bool:
        return 0 < self._expire_ms < self._clock.now_ms() - file.modified_ms

    def _is_over(self, file: _LockFile) -> bool:
        return self._is_expired(file) or is_dead(file.content)

    def _remove(self, file: _LockFile) -> bool:
        """Deletes exactly this lock. Returns False if another process is deleting it."""
        claims: list[str] = []
        while True:
            claims.append(f"{self._path}.{file.digest}" + (f".{len(claims)}" if claims else ""))
            if self._claim(claims[-1]):
                break
            other = self._read(claims[-1])
            if other is None or not self._is_over(other):
                return False
        try:
            if self._read() == file:
                self._storage.delete(self._path)
        finally:
            for claim in claims:
                discard(self._storage, claim)
        return True

    def _claim(self, claim: str) -> bool:
        content = self._content()
        try:
            if self._storage.put_if_absent(claim, content):
                return True
        except StorageError:
            # On a full disk, only an empty file can be made. It expires, but doesn't name a process that may be dead.
            if self._storage.put_if_absent(claim, b""):
                return True
        found = self._read(claim)
        return found is not None and found.content == content  # only the reply was lost

    def _content(self) -> bytes:
        created = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        lock_info = {
            "lockCreateTime": created.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3],
            # The number distinguishes two locks of one owner.
            "lockThreadName": f"{self._owner} {uuid.uuid4().hex}",
            "lockStacksInfo": [],
            **this_process(),
        }
        return json.dumps(lock_info).encode()

    @property
    def _place(self) -> str:
        return f"{self._storage.root}/{self._path}"

    def _why_not_taken(self, file: _LockFile | None) -> str:
        waited = f"the table lock {self._place} was not free within {self._wait_ms} ms"
        if file is None:
            return f"{waited}: other writers were faster each time; try again"
        since = format_timestamp(file.modified_ms // 1000 * 1000)
        return (
            f"{waited}: {_owner_in(file.content)} has held it since {since}; try again, or if that process "
            f"is dead, delete the file (and any beside it that begins with its name); {LOCK_EXPIRE_MINUTES}, "
            "in minutes, does so automatically"
        )


class FileSystemBasedLease:
    """ports.Lease. A lease that is taken outside a `with` block is held until the lock expires."""

    def __init__(self, lock: FileSystemBasedLock, content: bytes) -> None:
        self._lock = lock
        self._content = content

    def check(self) -> None:
        self._lock.check(self._content)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release(self._content)


def _lock_path(root: str, configured: str | None) -> str:
    """The lock's path relative to the table's root. `configured` is the path or URI of a directory, as in Hudi."""
    if configured is None:
        return f"{DEFAULT_DIRECTORY}/lock"
    table, directory = _without_scheme(root), _without_scheme(configured)
    if _scheme(configured) is None:
        directory = posixpath.join(table, directory)
    lock = posixpath.normpath(posixpath.join(directory, "lock"))
    if not lock.startswith(f"{table}/") or _scheme(configured) not in (None, _scheme(root)):
        raise ConfigError(
            f"option {LOCK_PATH}={configured!r} is outside the table {root}: name a directory of the table"
        )
    return lock.removeprefix(f"{table}/")


def _scheme(uri: str) -> str | None:
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", uri)
    return match[1] if match else None


def _without_scheme(uri: str) -> str:
    """The path of `file:///lake/trips` and `file:/lake/trips`; host and path of any other URI."""
    return re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:(//)?", "", uri)


def _owner_in(content: bytes) -> str:
    """The holder of a lock, for people. Hudi usually doesn't name it."""
    try:
        owner = json.loads(content)["lockThreadName"]
    except (ValueError, KeyError, TypeError, RecursionError):
        owner = None
    return repr(owner) if isinstance(owner, str) else "a writer that does not state its name"
