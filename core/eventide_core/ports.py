"""What the core asks of the world: each port with its guarantees in words.

Every path is relative to the table's root, with forward slashes; an adapter refuses one that would leave the root with
UnsafePathError. An adapter answers a failing world with StorageError or EngineError, never with a foreign exception.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, Flag, auto
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self, TypeVar, runtime_checkable

from eventide_core.table.clean_metadata import CleanMetadata, CleanPlan
from eventide_core.table.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.content_audit import RepeatedKey, RowDifference, SliceAudit
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_group_write import FileGroupWrite, Placement
from eventide_core.table.file_name import path_in
from eventide_core.table.file_slice import LogFile
from eventide_core.table.instant import Instant
from eventide_core.table.key_history import KeyHistory
from eventide_core.table.plans import CompactionPlan, ForeignPlan
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.restore_metadata import RestoreMetadata, RestorePlan
from eventide_core.table.rollback_metadata import RollbackMetadata, RollbackPlan
from eventide_core.table.savepoint_metadata import SavepointMetadata
from eventide_core.table.slice_read import BlockFilter, SliceRead
from eventide_core.table.write_shape import WriteShape

T = TypeVar("T")
R = TypeVar("R")


class Capability(Flag):
    """What a storage was found to be able to do, where it is, as it is set up.

    PUT_IF_ABSENT: of many who create one name, one wins. SERVER_COPY: a copy's bytes don't travel through this process's
    network.
    """

    NONE = 0
    PUT_IF_ABSENT = auto()
    SYMLINK = auto()
    HARDLINK = auto()
    SERVER_COPY = auto()


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One entry of a listing. `size` in bytes is the target's where the entry is a link."""

    path: str
    size: int
    is_directory: bool
    modified_ms: int
    link_target: str | None = None


class OutputFile(Protocol):
    """A file being written that nobody sees until `commit`."""

    def write(self, data: bytes | memoryview, /) -> int: ...

    def commit(self) -> bool:
        """Publishes the whole content under its name. False: the name was taken, and nothing has changed."""
        ...

    def abort(self) -> None:
        """Throws the content away. Harmless after commit."""
        ...


class Storage(Protocol):
    """The files of one table. Picklable: an executor gets a copy and opens its own connections.

    A name appears with its whole content or not at all. A lost race is a result (False), not an exception.
    """

    @property
    def root(self) -> str:
        """The table's URI, for messages and for engines that read by themselves. Holds no secret."""
        ...

    @property
    def capabilities(self) -> Capability: ...

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        """The entries of a directory, hidden ones too, by name; nothing where the directory is absent."""
        ...

    def stat(self, path: str) -> FileInfo | None:
        """The file or directory of that name; None where absent, or where its link dangles."""
        ...

    def read(self, path: str) -> bytes:
        """The whole file. Raises MissingFileError."""
        ...

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """That range, shorter where the file ends before. Raises MissingFileError."""
        ...

    def open_input(self, path: str) -> BinaryIO:
        """A seekable stream over the file. Raises MissingFileError."""
        ...

    def open_output(self, path: str) -> OutputFile:
        """Begins a file that must not exist yet."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Creates or replaces the file, whole."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Creates the file, whole; False where the name is taken, and nothing has changed."""
        ...

    def copy_if_absent(self, source: str, target: str) -> bool:
        """Copies a file, whole; False where the target's name is taken. Raises MissingFileError."""
        ...

    def link_if_absent(self, source: str, target: str, *, is_symbolic: bool) -> bool:
        """Gives a file a second name; False where the target's name is taken. Raises MissingFileError."""
        ...

    def delete(self, path: str) -> bool:
        """Removes the name, never a link's target; an empty directory too. False where it is absent."""
        ...


class Lease(Protocol):
    """A held table lock, given up at the end of the `with` block."""

    def check(self) -> None:
        """Raises LockError when the lease has been lost. Called before every write of a step."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class TableLock(Protocol):
    def acquire(self) -> Lease:
        """Waits for the table lock, as long as configured. Raises LockError."""
        ...


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

    def decode_clean(self, data: bytes, path: str) -> CleanMetadata: ...

    def encode_clean(self, metadata: CleanMetadata) -> bytes: ...

    def decode_savepoint(self, data: bytes, path: str) -> SavepointMetadata: ...

    def encode_savepoint(self, metadata: SavepointMetadata) -> bytes: ...

    def decode_restore_plan(self, data: bytes, path: str, instant: str) -> RestorePlan: ...

    def encode_restore_plan(self, plan: RestorePlan) -> bytes: ...

    def encode_restore(self, metadata: RestoreMetadata, root: str) -> bytes: ...


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """One file of the active timeline: what it says, when it was written, and its content."""

    instant: Instant
    data: bytes
    modified_ms: int


@dataclass(frozen=True, slots=True)
class ArchivedAction:
    """A completed instant with all its files: requested, inflight, completed."""

    completed: Instant
    files: tuple[ArchivedFile, ...]


class ArchivedTimeline(Protocol):
    """The completed writes that have left the active timeline. Nothing is read before it is asked for.

    What has been archived stays as it is, so an answer is kept; `refresh` makes later ones tell what was archived since.
    Version 6 records no completion times, there or here. Torn files raise CorruptTimelineError.
    """

    def refresh(self) -> None: ...

    def find(self, requested_time: str) -> Instant | None:
        """The archived write of that requested time; None where there is none."""
        ...

    def writes(self, begin: str, end: str) -> Iterator[Instant]:
        """The archived writes requested in [begin, end], the newest first; no more is read than is iterated over."""
        ...

    def commit(self, requested_time: str) -> CommitMetadata | None:
        """The metadata of the archived write of that requested time; None where there is none.

        Version 6 does not archive everything: of a log's write stat, its version and its slice's files are missing.
        """
        ...

    def append(self, actions: Sequence[ArchivedAction]) -> None:
        """Adds completed instants, all of them or none, under the table lock; what it has already it does not add twice.

        Raises CorruptTimelineError for content that is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What one log file holds, as far as a planner asks.

    `instants` are those of its blocks. `delete_count` counts deletes of either kind, `has_rollback_block` says that a
    command block takes other blocks back, `has_torn_block` that a write broke off in it (its instant is among `instants`),
    `has_merged_block` that a log compaction wrote one.
    """

    path: str
    event_times: EventTimeRange
    instants: frozenset[str]
    delete_count: int
    has_rollback_block: bool
    has_torn_block: bool
    has_merged_block: bool


class LogContent(Protocol):
    """What log files hold, answered without handing out records. Picklable.

    Raises CorruptLogBlockError, RecordDecodeError, UnsupportedLogFormatError.
    """

    def summarize(self, log: LogFile, shape: RecordShape) -> LogSummary:
        """The summary of one log: by its block headers where they tell the range, else by one scan of its event times."""
        ...

    def check_blocks(self, logs: Sequence[LogFile], blocks: BlockFilter) -> None:
        """Whether a merge could read all of a slice's logs, by their headers alone; else it raises what a merge would.

        UnsupportedTableError: partial updates, change data, and what else eventide doesn't know. CorruptLogBlockError: a
        torn block that would count.
        """
        ...

    def count_before(self, log: LogFile, shape: RecordShape, threshold_ms: int, blocks: BlockFilter) -> int:
        """How many of its records have an event time before the threshold."""
        ...

    def key_histories(
        self,
        base_path: str | None,
        merged: Sequence[LogFile],
        remaining: Sequence[LogFile],
        shape: RecordShape,
        blocks: BlockFilter,
        *,
        only_deleted: bool,
        early_before_ms: int | None,
    ) -> tuple[KeyHistory, ...]:
        """The histories of the keys that both sides hold; `only_deleted`: of those, the ones with a delete in either.

        What lies before `early_before_ms` in `remaining` (None: nothing), or has no event time, belongs to both sides.
        """
        ...


class ContentAudit(Protocol):
    """Looks into data files to verify them. Picklable. What a file's own fault is comes as an answer where it can be told
    beside others, else as the error that reading it raises.
    """

    def row_count(self, base_path: str) -> int:
        """How many records a base file's footer says it has. Raises MissingFileError, CorruptBaseFileError."""
        ...

    def have_same_bytes(self, path: str, other: str) -> bool:
        """Whether two files hold the same. Raises MissingFileError."""
        ...

    def audit(self, slice_read: SliceRead, shape: RecordShape, watermark_ms: int | None) -> SliceAudit:
        """Reads all of a slice, every column of every record."""
        ...

    def repeated_keys(self, slices: Sequence[SliceRead], shape: RecordShape) -> tuple[RepeatedKey, ...]:
        """The keys that several of these slices show in a snapshot. Raises what reading a slice raises."""
        ...

    def differences(self, before: SliceRead, after: SliceRead, shape: RecordShape) -> RowDifference | None:
        """How the snapshots of two slices differ in anything but file names; None where they don't. Raises the same."""
        ...


class RowChange(Enum):
    """What an action does to the rows of a table, as far as an index over them has to follow."""

    NONE = auto()  # compaction, clean: every row stays, in its file group
    WRITTEN = auto()  # upsert, insert, delete
    WIDENED = auto()  # the same, of records with columns or types that the table did not have
    TAKEN_BACK = auto()  # rollback or restore of a completed write


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that a commit adds to the table, and the file names whose records it holds.

    `sources`: of a base file the base and the logs that were merged into it; of a left-over's link the left-over; none where
    the records come from elsewhere (carried tombstones, a write).
    """

    partition: str
    name: str
    size: int
    sources: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Relative to the table's root."""
        return path_in(self.partition, self.name)


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """How the rows of a write are read back before anyone else sees them.

    `slices` are those that it changed, as they will be: its own files are in them, and its log blocks count. `known_files`
    are others of the table, (partition, name), those of its last writes among them.
    """

    shape: RecordShape
    slices: tuple[SliceRead, ...]
    known_files: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What an action does to the files of a table: those it adds, and the names it takes away, by partition.

    `written` is there where `rows` are written.
    """

    rows: RowChange
    added: tuple[AddedFile, ...] = ()
    removed: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    written: WrittenRows | None = None


class MetadataUpdate(Protocol):
    """A prepared change of the metadata table, of which nothing is written yet."""

    def write(self, completion_time: str) -> None:
        """Writes it, with a commit of its own at the table's instant; nothing where that is there already.

        Nobody sees it before the table's commit at that instant, so it goes first. `completion_time` is that of the table's
        commit, which version 6 does not record: it must be the same in a second run, which then writes the same names.
        """
        ...


class MetadataTable(Protocol):
    """Hudi's metadata table of one table, which readers and writers of Hudi list and prune by.

    Written under the table lock. Corrupt files of it raise CorruptBaseFileError, CorruptLogBlockError or RecordDecodeError;
    `drop` is the cure for whatever makes another call fail: Hudi builds it anew.
    """

    def partitions(self) -> tuple[str, ...]:
        """Its partitions in use, sorted; none where the table has no metadata table."""
        ...

    def check(self, rows: RowChange) -> None:
        """Whether an action of that kind can keep it up to date; to be asked before anything else is written.

        Raises UnsupportedTableError for a partition that needs what eventide doesn't know, BusyError while Hudi is building
        one, or (version 6) has a compaction of it pending.
        """
        ...

    def listing(self, instants: Collection[str]) -> Mapping[str, Mapping[str, int]] | None:
        """The files of each partition with their sizes, of completed actions alone; None where it may not tell them all.

        That is where it has no completed commit of its own for one of `instants`, or where Hudi is still building it.
        """
        ...

    def prepare(self, instant: str, changes: FileChanges) -> MetadataUpdate:
        """What the table's action at that instant changes in it; every added file is there already.

        Raises what `check` does, and UnsupportedTableError for column statistics of an unknown form.
        """
        ...

    def tells(self, changes: FileChanges) -> bool:
        """Whether it names all files that were added, and none that was removed. Asked after the table's commit: a
        compaction of the metadata table that ran between the two has lost them, and then it must be dropped."""
        ...

    def withdraw(self, instant: str) -> None:
        """Takes back what was written at an instant that the table never committed, by whomever; before that instant leaves
        the table's timeline, since one that is no longer pending counts. Harmless where nothing was written.

        Raises UnsupportedTableError where a log holds that instant's records among others'.
        """
        ...

    def drop(self) -> None:
        """Removes it: readers list the folders again, and the next write of Hudi builds it anew.

        The property goes first, so that from then on nobody reads it; a crash leaves files that nobody reads.
        """
        ...


@dataclass(frozen=True, slots=True)
class MergeTask:
    """One slice to compact: merge `merged` into the base, and keep `left_overs` visible. Paths from the root.

    `left_overs` are (source, size, linked path) in reader order. Of those in `early`, by source, the records before a
    time are merged as well, and those without an event time. `carried_path` is the log that carries tombstones that
    beat a left-over record. `marker_path` is created before the base file. `codec` is a config.ParquetCodec.
    """

    partition: str
    file_id: str
    instant: str
    base_path: str | None
    merged: tuple[tuple[str, int], ...]
    left_overs: tuple[tuple[str, int, str | None], ...]
    early: Mapping[str, int]
    link_mode: str
    carried_path: str | None
    new_base_path: str
    marker_path: str
    shape: RecordShape
    blocks: BlockFilter
    codec: str


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What one slice's compaction wrote. Sizes in bytes, counts in records.

    `waiting_from_ms`, of each left-over in `early`: the least event time of its records that are not in the new base; None
    where all are.
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
    waiting_from_ms: Mapping[str, int | None] = field(default_factory=dict[str, int | None])


class RecordMerger(Protocol):
    """Compacts one slice. Picklable, re-runnable: a second run finds what the first one wrote and says the same."""

    def __call__(self, task: MergeTask, /) -> MergeResult: ...


class IncomingRecords(Protocol):
    """The records of one write, wherever they are: the core plans by counts, and never sees a row.

    Used in this order: `schema_after`, `prepare`, one of the `place_` calls, `write`. Until `write` nothing is written.
    Bad records raise InvalidRecordError, naming row and column.
    """

    def schema_after(self, table_schema: str) -> str:
        """The table's Avro schema when these records are in it: the same text where it does not change."""
        ...

    def prepare(self, shape: WriteShape, *, combines: bool) -> None:
        """Checks the records and makes their keys; `combines`: keeps one version of each key."""
        ...

    def place_by_bucket(self, buckets: int, hash_fields: Sequence[str]) -> tuple[Placement, ...]:
        """Places by Hudi's bucket index. Raises UnsupportedTableError for a key that Hudi versions hash differently."""
        ...

    def place_by_key(self, slices: Sequence[SliceRead], *, by_bloom: bool) -> tuple[Placement, ...]:
        """Places by the slices that hold the keys; `by_bloom`: passing over files whose footer excludes a key."""
        ...

    def place_by_global_key(self, slices: Sequence[SliceRead], *, by_bloom: bool, moves: bool) -> tuple[Placement, ...]:
        """Places by the slices, of whatever partition, in which the keys live.

        A record whose key lives in another partition goes to where that is, and bears that partition. With `moves` it
        stays in its own, and its key is deleted in the other one: unless the record there is later by its ordering value.
        """
        ...

    def place_nowhere(self) -> tuple[Placement, ...]:
        """Places that are new: the table is not asked for the keys."""
        ...

    def write(
        self, groups: Sequence[FileGroupWrite], *, on_done: Callable[[], None] | None = None
    ) -> list[tuple[WriteStat, ...]]:
        """Writes each group's files and says what they are. Re-runnable: the same groups make the same names.

        A record of a place without a group is left out. `on_done` is called once a group.
        """
        ...


class Heartbeats(Protocol):
    """Signs of life of a write, as Hudi's writers leave them: who finds none for long takes the write for dead."""

    def start(self, instant: str) -> None:
        """Begins to beat: the first one is there on return."""
        ...

    def stop(self, instant: str) -> None:
        """Ends it; the last beat stays, and grows old. Harmless where none was started."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Runs tasks that do not depend on each other, here or on a cluster."""

    def map(
        self, function: Callable[[T], R], items: Sequence[T], *, on_done: Callable[[], None] | None = None
    ) -> list[R]:
        """The results, in the items' order. A failed item may be run again. `on_done` is called once an item."""
        ...


class Clock(Protocol):
    def now_ms(self) -> int:
        """Epoch milliseconds."""
        ...

    def sleep(self, milliseconds: int) -> None: ...

    def local_offset_ms(self) -> int:
        """How far the local time zone is ahead of UTC now."""
        ...


class Progress(Protocol):
    """What a person watches. Every call is optional to heed."""

    def start(self, what: str, total: int) -> None: ...

    def advance(self) -> None: ...


Batches = Iterator[Any]
"""Record batches of the reader's own kind; the core only passes them on."""


class SliceReader(Protocol):
    """Reads one slice. Picklable."""

    def read(self, slice_read: SliceRead, shape: RecordShape, columns: Iterable[str] | None) -> Batches: ...
