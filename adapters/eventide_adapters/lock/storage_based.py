"""Hudi's StorageBasedLockProvider, for storages that can replace a file only if nobody has changed it.

These are S3, Google Cloud Storage and Azure.

1. The lock is the content of `.hoodie/.locks/table_lock.json`: its owner, the end of its validity, and whether it was
   released. Hudi allows additional fields; eventide adds the identity of its process.
2. A contender that finds no file, a released lock, or a lock whose validity has ended (by more than the clocks may
   differ) replaces that version by its own lock. If several do, the store lets one succeed.
3. The holder renews the lock in time, each time replacing its own last version, and releases it in the same way.
4. A lock of a dead process of this machine counts as released. On other machines, it ends with its validity.

A store that ignored the condition would let any number of contenders hold the lock. Therefore, each new holder tries
once to replace a version that never existed by the current content. If that succeeds, it refuses to continue.

The lock does not protect against a holder that pauses for longer than the lock is valid, between `Lease.check` and the
next write. In that case, put-if-absent still protects the table.
"""

import json
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

from eventide_adapters.lock.processes import is_dead, this_process
from eventide_adapters.lock.renewal import Renewal
from eventide_core.config import LOCK_RENEWAL_SECONDS, LOCK_VALIDITY_SECONDS, LOCK_WAIT_MS, Options
from eventide_core.errors import (
    ConfigError,
    LockError,
    LockLostError,
    RefusedError,
    StorageAccessError,
    StorageError,
    format_timestamp,
)
from eventide_core.ports import Clock, Storage, VersionedFiles

PATH: Final = ".hoodie/.locks/table_lock.json"

_CLOCKS_DIFFER_MS: Final = 500  # the maximum in Hudi
_LEAST_RENEWALS: Final = 10  # within the validity of the lock; Hudi also refuses fewer
_POLL_MS: Final = 1000  # as in Hudi


@dataclass(frozen=True, slots=True)
class _LockFile:
    """An observed lock. `version` identifies it in a replacement."""

    content: bytes
    version: str
    owner: str
    valid_until_ms: int
    is_released: bool

    @property
    def until(self) -> str:
        return format_timestamp(self.valid_until_ms // 1000 * 1000)

    def is_over(self, now_ms: int) -> bool:
        return self.is_released or now_ms > self.valid_until_ms + _CLOCKS_DIFFER_MS or is_dead(self.content)


class StorageBasedLock:
    """ports.TableLock. `owner` identifies the holder in messages.

    Raises ConfigError for times that contradict each other.
    """

    def __init__(self, storage: Storage, options: Options, clock: Clock, owner: str) -> None:
        self._storage = storage
        self._clock = clock
        self._owner = owner
        self._wait_ms = options.get(LOCK_WAIT_MS)
        self._validity_ms = 1000 * options.get(LOCK_VALIDITY_SECONDS)
        self.renewal_seconds = options.get(LOCK_RENEWAL_SECONDS)
        if not 0 < 1000 * self.renewal_seconds * _LEAST_RENEWALS <= self._validity_ms:
            raise ConfigError(
                f"option {LOCK_VALIDITY_SECONDS}={self._validity_ms // 1000} must be at least {_LEAST_RENEWALS} times "
                f"{LOCK_RENEWAL_SECONDS}={self.renewal_seconds}, and that at least 1"
            )

    def acquire(self) -> "StorageBasedLease":
        deadline_ms = self._clock.now_ms() + self._wait_ms
        # The number distinguishes two locks of one owner.
        owner = f"{self._owner} {uuid.uuid4().hex}"
        while True:
            file = self.look()
            if file is None or file.is_over(self._clock.now_ms()):
                taken = self._take(owner, file)
                if taken is not None:
                    return StorageBasedLease(self, taken)
            remaining_ms = deadline_ms - self._clock.now_ms()
            if remaining_ms <= 0:
                raise LockError(self._why_not_taken(file))
            self._clock.sleep(min(_POLL_MS, remaining_ms))

    def check(self, owner: str) -> None:
        """Raises LockError if this owner does not hold the lock now."""
        file = self.look()
        if file is None or file.owner != owner:
            now = "is gone" if file is None else f"is now held by {file.owner!r}"
            raise LockLostError(f"the table lock {self.place} was lost: it {now}; nothing was written after that")
        if self._clock.now_ms() > file.valid_until_ms:
            raise LockError(
                f"the table lock {self.place} was not renewed in time, and expired at {file.until}: the process "
                "was suspended, or could not reach the storage; nothing was written after that"
            )

    def look(self) -> _LockFile | None:
        current = self._files.read_version(PATH)
        return None if current is None else _parse(*current, self.place)

    def write(self, owner: str, over: _LockFile | None, *, is_released: bool) -> _LockFile | None:
        """Replaces `over` by the owner's lock and returns that lock; None if another contender was faster."""
        until_ms = over.valid_until_ms if over and is_released else self._clock.now_ms() + self._validity_ms
        content = _document(owner, until_ms, is_released=is_released)
        failure = None
        try:
            if over is None:
                self._storage.put_if_absent(PATH, content)
            else:
                self._files.replace_version(PATH, content, over.version)
        except StorageError as lost:
            failure = lost
        # Reads the lock again, because the response may have been lost, or belong to a repeated request.
        file = self.look()
        if file is not None and file.content == content:
            return file
        if failure is not None:
            raise failure
        return None

    @property
    def place(self) -> str:
        return f"{self._storage.root}/{PATH}"

    @property
    def _files(self) -> VersionedFiles:
        if not isinstance(self._storage, VersionedFiles):
            raise ConfigError(
                f"{self._storage.root} cannot replace a file only if nobody has changed it, which a "
                "storage-based lock needs: it is for tables on S3, Google Cloud Storage and Azure; set "
                "hoodie.write.lock.provider to file-system-based for every writer of the table"
            )
        return self._storage

    def _take(self, owner: str, over: _LockFile | None) -> _LockFile | None:
        """The lock; None if another contender was faster. Raises RefusedError if the store can't replace on condition."""
        try:
            taken = self.write(owner, over, is_released=False)
            keeps = taken is None or not self._files.replace_version(PATH, taken.content, f'"{uuid.uuid4().hex}"')
        except StorageAccessError:
            raise
        except StorageError:
            if not self._refuses_replacements():
                raise
            taken, keeps = self.look(), False
        if keeps:
            return taken
        if taken is not None and taken.owner == owner:
            with suppress(StorageError):
                self._storage.delete(PATH)  # nobody else can take it, either
        raise RefusedError(
            f"the store of {self._storage.root} ignores or refuses the condition of a replacement (If-Match), which a "
            "storage-based lock needs: use a store that supports it, or set another hoodie.write.lock.provider for every "
            "writer of the table, such as file-system-based"
        )

    def _refuses_replacements(self) -> bool:
        """Whether a file can be created, read and deleted, but not replaced on condition."""
        probe = f"{PATH}.probe-{uuid.uuid4().hex}"
        with suppress(StorageError):
            self._storage.put_if_absent(probe, b"1")
            created = self._files.read_version(probe)
            try:
                if created is not None:
                    self._files.replace_version(probe, b"2", created[1])
            except StorageError:
                self._storage.delete(probe)
                return True
            self._storage.delete(probe)
        return False

    def _why_not_taken(self, file: _LockFile | None) -> str:
        waited = f"the table lock {self.place} was not free within {self._wait_ms} ms"
        if file is None or file.is_over(self._clock.now_ms()):
            return f"{waited}: other writers were faster each time; try again"
        return (
            f"{waited}: {file.owner!r} holds it until {file.until}, and longer if it renews it; try again, "
            "or if that process is dead, wait until then"
        )


class StorageBasedLease:
    """ports.Lease.

    A thread renews it until it is released or lost. Without a renewal it expires, and `check` reports it.
    """

    def __init__(self, lock: StorageBasedLock, taken: _LockFile) -> None:
        self._lock = lock
        self._file = taken
        self._one_at_a_time = threading.Lock()
        self._renewal = Renewal(self.renew, lock.renewal_seconds)

    def check(self) -> None:
        self._lock.check(self._file.owner)

    def renew(self) -> bool:
        """Restarts the lease now. Returns False if the lock was lost."""
        with self._one_at_a_time:
            renewed = self._lock.write(self._file.owner, self._file, is_released=False)
            self._file = renewed or self._file
            return renewed is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._renewal.stop()
        # A lock that cannot be released expires. The work under it is complete.
        with self._one_at_a_time, suppress(StorageError):
            self._lock.write(self._file.owner, self._file, is_released=True)


def _document(owner: str, until_ms: int, *, is_released: bool) -> bytes:
    lock_data = {"expired": is_released, "validUntil": until_ms, "owner": owner, **this_process()}
    return json.dumps(lock_data, separators=(",", ":")).encode()


def _parse(content: bytes, version: str, place: str) -> _LockFile:
    try:
        document: dict[str, Any] = json.loads(content)
        released, until_ms, owner = document["expired"], document["validUntil"], document["owner"]
    except (ValueError, KeyError, TypeError, RecursionError):
        released = until_ms = owner = None
    if not isinstance(released, bool) or type(until_ms) is not int or not isinstance(owner, str):
        raise LockError(
            f"the table lock {place} is not a lock of Hudi's: make sure that nobody works on the table, then "
            "delete the file"
        )
    return _LockFile(content, version, owner, until_ms, released)
