"""Whether a write conflicts with what completed since it loaded the table: Hudi's optimistic concurrency.

A write loads the table after its instant is on the timeline, so it has seen what completed before. Of the actions that
completed or were scheduled since:

1. A write of the same file group, or (bucket index) of the same bucket of a partition: conflict. Both created a file
   group for the bucket, or one merged into a base file what the other did not see.
2. A write that inserted into a partition into which this one inserts keys that an index has not found (a global index:
   into any partition): both may have inserted the same key. Does not apply if this write doesn't look up keys (insert,
   bulk insert).
3. A compaction of its file groups that was scheduled later: the log file would go to the wrong slice. The write has
   seen a compaction that was scheduled earlier, and its log file is in the right place, whether or not that compaction
   has completed since.
4. For an overwrite, also a write into a partition that it overwrites: the overwrite would replace rows that it did not
   load, or keep them by chance.

In addition, of all completed actions, a write of the same batch of a stream, or of a later one (`check_batch`):
conflict.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from eventide_core.action.write.index import Index, IndexType
from eventide_core.errors import WriteConflictError
from eventide_core.table.files.bucket import bucket_of_file_id
from eventide_core.table.settings.stream_batch import batches_of
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.file_system_view import FileGroup


@dataclass(frozen=True, slots=True)
class Overwrite:
    """What a write replaces: the file groups of some `partitions`, or (None) of all.

    `groups` are those that existed when it loaded the table.
    """

    partitions: frozenset[str] | None
    groups: frozenset[FileGroup]

    @property
    def file_ids(self) -> dict[str, tuple[str, ...]]:
        """The replaced file groups by partition. A partition that had none is there, too, as in Hudi."""
        file_ids = {partition: list[str]() for partition in self.partitions or ()}
        for partition, file_id in sorted(self.groups):
            file_ids.setdefault(partition, []).append(file_id)
        return {partition: tuple(file_ids[partition]) for partition in sorted(file_ids)}

    def covers(self, partition: str) -> bool:
        return self.partitions is None or partition in self.partitions


def overwrite_of(operation: WriteOperation, partitions: Iterable[str], existing: Iterable[FileGroup]) -> Overwrite:
    """What an overwrite with records in `partitions` replaces of the existing file groups."""
    whole = operation is WriteOperation.INSERT_OVERWRITE_TABLE
    places = frozenset(partitions)
    return Overwrite(None if whole else places, frozenset(g for g in existing if whole or g[0] in places))


@dataclass(frozen=True, slots=True)
class WrittenGroups:
    """The changes of a write, for the comparison with others'.

    `groups` are its file groups, including those that an overwrite replaces. `index` is that by which it placed its records.
    `partitions_with_new_keys` are those into which it put keys that it had not found; empty if it didn't look any up.
    `overwrite` is None for any other write.
    """

    instant: str
    index: Index
    groups: frozenset[FileGroup]
    partitions_with_new_keys: frozenset[str]
    overwrite: Overwrite | None = None


def check_write(written: WrittenGroups, other_instant: str, other: CommitMetadata) -> None:
    """Raises WriteConflictError if the other write, which completed since this one loaded the table, excludes it."""
    if other.is_compacted and other_instant < written.instant:
        return
    others = {(stat.partition, stat.file_id) for stat in other.stats}
    others |= {(partition, file_id) for partition, ids in other.replaced_file_ids.items() for file_id in ids}
    kind = written.index.type
    common = _conflict_keys(kind, written.groups) & _conflict_keys(kind, others)
    if common:
        partition, place = min(common)
        raise _conflict(written, other_instant, f"{partition or 'the table'}, file group {place}")
    if written.overwrite is not None and not other.is_compacted:
        touched = sorted(p for p in {*other.write_stats, *other.replaced_file_ids} if written.overwrite.covers(p))
        if touched:
            raise _conflict(written, other_instant, touched[0] or "the table")
    inserted = {stat.partition for stat in other.stats if stat.num_inserts or stat.log_version is None}
    new = written.partitions_with_new_keys
    shared = inserted if written.index.is_global and new else new & inserted
    if shared and kind is not IndexType.BUCKET and not other.is_compacted:
        raise _conflict(written, other_instant, f"new keys of {min(shared) or 'the table'}")


def check_plan(written: WrittenGroups, plan_instant: str, planned: Iterable[FileGroup]) -> None:
    """Raises WriteConflictError if a plan made since this write loaded the table compacts its file groups."""
    is_below = plan_instant < written.instant and written.overwrite is None
    if not is_below and not written.groups.isdisjoint(planned):
        raise _conflict(written, plan_instant, "the slices in a plan")


def check_batch(instant: str, written: CommitMetadata, others: Iterable[CommitMetadata]) -> None:
    """Raises WriteConflictError if another write, according to `written`, has already written a batch of a stream."""
    for batch in batches_of(written.extra_metadata):
        for other in (known for metadata in others for known in batches_of(metadata.extra_metadata)):
            if other.sink == batch.sink and other.number >= batch.number:
                raise WriteConflictError(
                    f"the write at {instant} was not committed: batch {batch.number} of the stream {batch.sink} was "
                    "written by another write"
                )


def _conflict_keys(index: IndexType, groups: Iterable[FileGroup]) -> set[tuple[str, str]]:
    if index is not IndexType.BUCKET:
        return set(groups)
    return {(partition, str(bucket_of_file_id(file_id))) for partition, file_id in groups}


def _conflict(written: WrittenGroups, other: str, place: str) -> WriteConflictError:
    return WriteConflictError(
        f"the write at {written.instant} was not committed: {other} changed the same data in the meantime "
        f"({place}); write again"
    )
