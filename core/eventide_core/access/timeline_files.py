"""The files of a timeline, active or of the metadata table, each by its instant. A `Transaction` puts them."""

from collections.abc import Iterable
from dataclasses import dataclass

from eventide_core.access.files import info_of_file
from eventide_core.ports import FileInfo, Lease, Storage
from eventide_core.table.timeline.instant import Instant


@dataclass(frozen=True, slots=True)
class TimelineFiles:
    """`lease` is checked before a file is removed; None if the caller has done so, or owns the instant without the lock."""

    storage: Storage
    directory: str

    def path(self, instant: Instant) -> str:
        return f"{self.directory}/{instant.file_name}"

    def exists(self, instant: Instant) -> bool:
        return info_of_file(self.storage, self.path(instant)) is not None

    def entries(self) -> list[tuple[Instant, FileInfo]]:
        """The files of instants, as they are listed."""
        files = (entry for entry in self.storage.list(self.directory) if not entry.is_directory)
        listed = ((Instant.parse(entry.path.rpartition("/")[2]), entry) for entry in files)
        return [(instant, entry) for instant, entry in listed if instant is not None]

    def read(self, instant: Instant) -> bytes:
        """Raises MissingFileError."""
        return self.storage.read(self.path(instant))

    def delete(self, instant: Instant, lease: Lease | None) -> bool:
        """Whether the file existed. Raises LockError."""
        return bool(delete_each(self.storage, [self.path(instant)], lease))

    def sweep(self, strays: Iterable[Instant], lease: Lease) -> list[str]:
        """Removes files that don't count (table/timeline/strays.py), under the lock, in their order. Raises LockError."""
        return delete_each(self.storage, map(self.path, strays), lease)


def delete_each(storage: Storage, paths: Iterable[str], lease: Lease | None) -> list[str]:
    """Deletes the files in order, each under the lock; returns those that existed. Raises LockError."""
    deleted: list[str] = []
    for path in paths:
        if lease is not None:
            lease.check()
        if storage.delete(path):
            deleted.append(path)
    return deleted
