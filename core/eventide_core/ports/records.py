"""The ports for reading, merging and writing records. The core plans these, but never sees a record."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from eventide_core.config import ParquetCodec
from eventide_core.ports.storage import OutputFile
from eventide_core.table.files.file_group_write import FileGroupWrite, Placement
from eventide_core.table.files.slice_read import BlockFilter, SliceRead
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.records.supplemental_logging import SupplementalLogging
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.write_shape import SchemaRules, WriteShape
from eventide_core.table.timeline.contents.commit_metadata import WriteStat
from eventide_core.table.timeline.contents.plans import LinkMode, PlannedOperation


@dataclass(frozen=True, slots=True)
class MergeTask:
    """One slice to compact, as `op` of the plan at `instant` says: a retry makes the same files.

    `link_mode` is how a left-over gets its new name. `blocks` decides which blocks of the merged log files count, `codec` is
    the new base file's, and `logged` is what a change log holds. A delete among what is merged raises
    PlanMismatchError if `op` rests on there being none: the plan can't have known of it.
    """

    instant: str
    op: PlannedOperation
    link_mode: LinkMode
    shape: RecordShape
    blocks: BlockFilter
    codec: ParquetCodec
    logged: SupplementalLogging = SupplementalLogging.DATA_BEFORE_AFTER


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What one slice's compaction wrote. Sizes in bytes, counts in records.

    `new_base_path`: the new base file, from the root, of `base_size`.
    `num_writes`: all rows of it.
    `num_inserts`: records of keys that the old base did not have.
    `num_updates`: those that replace a row of the old base.
    `num_deletes`: rows of the old base that it no longer has.
    `log_records`: records and deletes that were read from log files, before versions of one key were merged.
    `log_blocks`: the blocks that they were in.
    `merged_keys`: how many keys the log files hold.
    `carried_tombstones`: those in the carried log file, which has `carried_size`; None if there is none.
    `uncompacted_from_ms`, of each left-over that is merged early: the least event time of its records outside the new
        base; None if all are in it.
    `base_checksum`, `carried_checksum`: of the base file and of the carried log file, set once they are written.
    `change_log_size`: None if there is no change log.
    `began_ns`, `ended_ns`: when the task ran, by the clock of the machine that ran it.
    """

    new_base_path: str
    base_size: int
    num_writes: int
    num_deletes: int
    num_updates: int
    num_inserts: int
    log_records: int
    log_blocks: int
    carried_size: int | None
    carried_tombstones: int
    uncompacted_from_ms: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    merged_keys: int = 0
    base_checksum: str | None = None
    carried_checksum: str | None = None
    change_log_size: int | None = None
    began_ns: int = field(default=0, compare=False)
    ended_ns: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class MergedSlice:
    """A merged slice. `carried` is the content of the carried log file, empty if no tombstone has to be carried.

    `changes` is the content of the change log, empty if there is none. `result` has no checksums yet.
    """

    result: MergeResult
    carried: bytes
    changes: bytes = b""


class SliceMerger(Protocol):
    """Merges the records of one slice. Picklable. Writes only to the given output."""

    def merge(
        self, task: MergeTask, output: OutputFile, footer_of: Callable[[MergeResult], Mapping[str, str]]
    ) -> MergedSlice:
        """Writes the whole base file to `output` and leaves it uncommitted.

        `footer_of` returns the footer's pairs besides Hudi's own keys, from a result whose `base_size` is not set yet.
        The same task gives the same bytes. Raises what reading the slice raises: it skips no record.
        """
        ...

    def check(self, shape: RecordShape, /) -> None:
        """Raises ConfigError if this process can't merge such records: it lacks the user-defined merger."""
        ...

    def read_footer(self, base_path: str) -> Mapping[str, str]:
        """The footer's texts by key. Raises MissingFileError, CorruptBaseFileError."""
        ...


class KeyIndex(Protocol):
    """The record index of Hudi's metadata table at one moment: the file group of each key of the table. Picklable."""

    @property
    def file_groups(self) -> int:
        """The number of its own file groups. The hash code of a key in Java, without its sign, modulo it is the key's."""
        ...

    def number_of(self, key: str) -> int:
        """The number of the key's file group of the index."""
        ...

    def locate(self, number: int, keys: Collection[str]) -> Mapping[str, tuple[str, str]]:
        """The partition and file ID of each of the `keys` that the table has; all of them are of that file group.

        Reads only the blocks of the index that may have one of the keys.
        """
        ...

    def keys_of(self, number: int, groups: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], frozenset[str]]:
        """The keys of these file groups of the table, by partition and file ID, in that file group of the index.

        Reads all of it.
        """
        ...


class IncomingRecords(Protocol):
    """The records of one write, wherever they are: the core plans by counts, and never sees a row.

    Used in this order: `schema_after`, `prepare`, one of the `place_` calls, `write`. Until `write` nothing is written.
    Bad records raise InvalidRecordError, naming row and column.
    """

    def schema_after(self, table_schema: AvroSchema | None, table_name: str, rules: SchemaRules) -> AvroSchema:
        """The table's Avro schema after the write: the same one if it does not change.

        None: the table has no schema yet, because no write of it is left. Deletes always get a schema.
        """
        ...

    def prepare(self, shape: WriteShape, *, combines: bool) -> None:
        """Checks the records and computes their keys. `combines`: keeps one version of each key."""
        ...

    def place_by_bucket(self, buckets: int, hash_fields: Sequence[str]) -> tuple[Placement, ...]:
        """Places by Hudi's bucket index. Raises UnsupportedTableError for a key that Hudi versions hash differently."""
        ...

    def place_by_key(self, slices: Sequence[SliceRead], *, by_bloom: bool) -> tuple[Placement, ...]:
        """Places by the slices that hold the keys. `by_bloom`: skips files whose footer excludes a key."""
        ...

    def place_by_global_key(
        self, slices: Sequence[SliceRead], *, by_bloom: bool, moves: bool, index: KeyIndex | None = None
    ) -> tuple[Placement, ...]:
        """Places by the slices, of whatever partition, which have the keys.

        `index` gives these slices. Without it, or if it names a slice that is not among `slices`, because it is of a later
        moment than they are, all slices are searched.

        A record whose key is in another partition is written there, with that partition. With `moves` it
        stays in its own, and its key is deleted in the other one: unless the record there is later by its ordering value.
        """
        ...

    def place_nowhere(self) -> tuple[Placement, ...]:
        """Places that are new: the table is not searched for the keys."""
        ...

    def write(
        self, groups: Sequence[FileGroupWrite], *, on_done: Callable[[], None] | None = None
    ) -> list[tuple[WriteStat, ...]]:
        """Writes each group's files, and returns their write stats. Re-runnable: the same groups make the same names.

        A record of a place without a group is left out. `on_done` is called once a group.
        """
        ...
