"""The files of a table's active timeline, each by its instant.

A process that is paused between its check of the lock and a put cannot know that others have the lock now. They may have
undone, archived and cleaned beyond the file, and a timeline that starts at it again would not count what was archived. So
`put_fenced` checks the lock on the other side of the put, too.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from eventide_core.access.files import discard
from eventide_core.errors import LockError
from eventide_core.ports import FileInfo, Lease, Storage
from eventide_core.table.timeline.instant import Instant, State

_ORDER = (State.REQUESTED, State.INFLIGHT, State.COMPLETED)


@dataclass(frozen=True, slots=True)
class TimelineFiles:
    """`lease` is checked before a file is changed; None if the caller has done so, or owns the instant without the lock."""

    storage: Storage
    directory: str

    def path(self, instant: Instant) -> str:
        return f"{self.directory}/{instant.file_name}"

    def exists(self, instant: Instant) -> bool:
        return self.storage.stat(self.path(instant)) is not None

    def entries(self) -> list[tuple[Instant, FileInfo]]:
        """The files of instants, as they are listed."""
        listed = ((Instant.parse(entry.path.rpartition("/")[2]), entry) for entry in self.storage.list(self.directory))
        return [(instant, entry) for instant, entry in listed if instant is not None]

    def read(self, instant: Instant) -> bytes:
        """Raises MissingFileError."""
        return self.storage.read(self.path(instant))

    def put(self, instant: Instant, lease: Lease | None, data: bytes = b"") -> bool:
        """Whether the file was put; False if it existed. Raises LockError."""
        if lease is not None:
            lease.check()
        return self.storage.put_if_absent(self.path(instant), data)

    def put_fenced(self, instant: Instant, lease: Lease, data: bytes = b"") -> bool:
        """Whether the file was put; False if it existed. Raises LockError after it has withdrawn the file.

        The file stays if the action has a later state by then: the lock was lost after the put, and another process has
        gone on with the action.
        """
        if not self.put(instant, lease, data):
            return False
        try:
            lease.check()
        except LockError:
            time, step = instant.requested_time, _ORDER.index(instant.state)
            there = (other for other, _ in self.entries())
            if not any(other.requested_time == time and _ORDER.index(other.state) > step for other in there):
                discard(self.storage, self.path(instant))
            raise
        return True

    def delete(self, instant: Instant, lease: Lease | None) -> bool:
        """Whether the file existed. Raises LockError."""
        return bool(delete_each(self.storage, [self.path(instant)], lease))


def delete_each(storage: Storage, paths: Iterable[str], lease: Lease | None) -> list[str]:
    """Deletes the files in order, each under the lock; returns those that existed. Raises LockError."""
    deleted: list[str] = []
    for path in paths:
        if lease is not None:
            lease.check()
        if storage.delete(path):
            deleted.append(path)
    return deleted
