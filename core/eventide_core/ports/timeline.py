"""The ports for the files of a timeline, active and archived."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from eventide_core.ports.locking import Lease
from eventide_core.table.timeline.archived_timeline import MergeLimits
from eventide_core.table.timeline.contents.clean_metadata import CleanPlan
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan
from eventide_core.table.timeline.contents.rollback_metadata import (
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
)
from eventide_core.table.timeline.contents.savepoint_metadata import SavepointMetadata
from eventide_core.table.timeline.instant import Instant


class MetadataCodec(Protocol):
    """Bytes of the timeline <-> values. Bad bytes raise CorruptTimelineError naming `path`."""

    def decode_commit(self, data: bytes, path: str) -> CommitMetadata: ...

    def encode_commit(self, metadata: CommitMetadata, table_version: int) -> bytes: ...

    def decode_plan(self, data: bytes, path: str, instant: str) -> CompactionPlan | ForeignPlan: ...

    def encode_plan(self, plan: CompactionPlan) -> bytes: ...

    def decode_rollback_plan(self, data: bytes, path: str, instant: str) -> RollbackPlan: ...

    def encode_rollback_plan(self, plan: RollbackPlan, root: str) -> bytes:
        """`root` is the table's URI: Hudi's plans and metadata of a rollback name absolute paths."""
        ...

    def decode_rollback(self, data: bytes, path: str) -> RollbackMetadata: ...

    def encode_rollback(self, metadata: RollbackMetadata, root: str) -> bytes: ...

    def decode_clean_plan(self, data: bytes, path: str, instant: str) -> CleanPlan: ...

    def encode_clean_plan(self, plan: CleanPlan, root: str) -> bytes: ...

    def decode_clean(self, data: bytes, path: str) -> CleanPlan: ...

    def encode_clean(self, plan: CleanPlan) -> bytes: ...

    def decode_savepoint(self, data: bytes, path: str) -> SavepointMetadata: ...

    def encode_savepoint(self, metadata: SavepointMetadata) -> bytes: ...

    def decode_restore_plan(self, data: bytes, path: str, instant: str) -> RestorePlan: ...

    def encode_restore_plan(self, plan: RestorePlan) -> bytes: ...

    def encode_restore(self, metadata: RestoreMetadata, root: str) -> bytes: ...


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """One file of the active timeline: the instant in its state, and its content (`data`).

    `modified_ms` is the modification time, in epoch milliseconds.
    """

    instant: Instant
    data: bytes
    modified_ms: int


@dataclass(frozen=True, slots=True)
class ArchivedAction:
    """A completed instant (`completed`) with all its `files`: requested, inflight, completed, as far as they are there."""

    completed: Instant
    files: tuple[ArchivedFile, ...]


class ArchivedTimeline(Protocol):
    """The completed writes that have left the active timeline. Nothing is read before it is requested.

    Archived instants never change, so answers are cached. After `refresh`, answers include what was archived since.
    Version 6 records no completion times, there or here. Torn files raise CorruptTimelineError.
    """

    def refresh(self) -> None: ...

    def find(self, requested_time: str) -> Instant | None:
        """The archived write of that requested time; None if there is none."""
        ...

    def writes(self, begin: str, end: str) -> Iterator[Instant]:
        """The archived writes requested in [begin, end], newest first. Reads only as far as the caller iterates."""
        ...

    def commit(self, requested_time: str) -> CommitMetadata | None:
        """The metadata of the archived write of that requested time; None if there is none.

        Version 6 does not archive everything: of a log file's write stat, its version and its slice's files are
        missing.
        """
        ...

    def undone(self, begin: str) -> frozenset[str]:
        """The instants that archived rollbacks requested at or after `begin` have undone. Restores are never archived.

        None on version 6, whose log files are not named by the write. A rollback that can't be read is ignored.
        """
        ...

    def lost_files(self) -> Mapping[str, str]:
        """The files of the archived timeline that are missing, and how that shows, by path."""
        ...

    def encode(self, actions: Sequence[ArchivedAction]) -> bytes:
        """A file of the archived timeline with these actions."""
        ...

    def append(self, actions: Sequence[ArchivedAction], lease: Lease) -> None:
        """Adds completed instants, all or none, under the table lock. Does not add an instant twice.

        Raises CorruptTimelineError for invalid content, BusyError if another writer was faster.
        """
        ...

    def merge(self, limits: MergeLimits, lease: Lease) -> None:
        """Merges small files into larger ones, and removes those that no reader needs any more, under the table lock.

        A crash loses no instant. What it leaves behind, the next `merge` removes. Raises CorruptTimelineError.
        """
        ...
