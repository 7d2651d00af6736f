"""A write whose files exist, and what its commit says once it has completed."""

from dataclasses import dataclass

from eventide_core.action.write_conflict import WrittenGroups
from eventide_core.table.commit_metadata import CommitMetadata


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A completed write. `rows` counts upserts and deletes; a delete of a key that the table never had may not count."""

    instant: str
    rows: int
    upserts: int
    deletes: int
    files: int
    bytes_written: int


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write whose files exist and that has not completed: nobody sees it yet. `seen` is what it builds on."""

    instant: str
    metadata: CommitMetadata
    written: WrittenGroups
    seen: frozenset[str]
