"""Hudi's metadata table, and the changes of an action that it has to follow."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from eventide_core.ports.records import KeyIndex
from eventide_core.ports.timeline import ArchivedTimeline
from eventide_core.table.files.file_name import LogFileName, path_in
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.slice_read import QueryPlan, SliceRead
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.settings.metadata_table import MetadataTableFacts, RowChange
from eventide_core.table.timeline.commit_metadata import WriteStat
from eventide_core.table.timeline.file_system_view import FileSystemView
from eventide_core.table.timeline.plans import PlannedOperation


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that a commit adds to the table, and the file names whose records it holds.

    `sources`: of a base file the base and the log files that were merged into it; of a left-over's link the left-over;
    none where the records come from elsewhere (carried tombstones, a write).
    """

    partition: str
    name: str
    size: int
    sources: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The file's path, relative to the table's root."""
        return path_in(self.partition, self.name)


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """How to read back the rows of a write before its commit.

    `slices`: the changed slices with the write's own files, whose log blocks count. `known_files`: other files of the
    table, as (partition, name), those of the last writes first. `replaced`: the slices that the write replaces, with
    `replaced_bytes` in their files.
    """

    shape: RecordShape
    slices: tuple[SliceRead, ...]
    known_files: tuple[tuple[str, str], ...]
    replaced: tuple[SliceRead, ...] = ()
    replaced_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FileChanges:
    """An action's changes to the files of a table.

    `added` are the files that it adds, left-overs and carried tombstones among them; `removed` the names that it removes, by
    partition. `rows` is what it does to rows, which decides about indexes. `written` is set if `rows` are written.
    """

    rows: RowChange
    added: tuple[AddedFile, ...] = ()
    removed: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    written: WrittenRows | None = None


@dataclass(frozen=True, slots=True)
class NewMetadataTable:
    """A metadata table to make from nothing, for a table of that name and version.

    `partitions` are those that the metadata table is to have. `files` are the sizes of the table's base and log files, by
    partition and name; a partition may have none. `rows` are the current slices. `last_instant` is the last completed
    instant of the table, "" if there is none; `completion_time` is a time after every time of its timeline.
    `has_utc_instants`: it takes instants in UTC as the table does; otherwise, in local time.
    """

    name: str
    version: int
    partitions: tuple[str, ...]
    files: Mapping[str, Mapping[str, int]]
    rows: QueryPlan
    last_instant: str
    completion_time: str
    has_utc_instants: bool


@dataclass(frozen=True, slots=True)
class MetadataFiles:
    """What an action has written to the metadata table, as paths from the table's root.

    `completed`: its delta commit, None if absent. `log_paths`: the log files with its records, in every partition.
    `pending`: its inflight and requested files, whether they are there or not.
    """

    completed: str | None
    log_paths: tuple[str, ...]
    pending: tuple[str, ...]


FileAnswers = Mapping[Any, Any]
"""What tasks have read of data files for the metadata table, by what they were asked; the core only passes it on."""


class MetadataTableState(Protocol):
    """The metadata table at one moment. Raises what `MetadataTable` raises."""

    @property
    def facts(self) -> MetadataTableFacts: ...

    @property
    def timeline_path(self) -> str:
        """The directory of its active timeline, from the table's root."""
        ...

    @property
    def archive(self) -> ArchivedTimeline:
        """Its archived timeline. Reads nothing yet."""
        ...

    def slices(self, partition: str, completed_before: str | None = None) -> tuple[FileSlice, ...]:
        """The latest slice of each file group in one of its partitions, ordered by file group number.

        With `completed_before`, leaves out the log files that completed at that moment or later (version 8 and later).
        """
        ...

    def view(self, partition: str) -> FileSystemView:
        """All slices of one of its partitions."""
        ...

    def schema(self, found: FileSlice) -> str | None:
        """The Avro schema of the latest values in a slice; None if it never had one."""
        ...

    def can_merge(self, partition: str) -> bool:
        """Whether eventide knows how versions of a record are merged in that partition."""
        ...

    def can_read(self, found: FileSlice) -> bool:
        """Whether eventide can read all blocks of a slice. Hudi has to compact one with a log compaction, for instance."""
        ...


@dataclass(frozen=True, slots=True)
class StagedLog:
    """A log file in the staging directory of a write: its path, and its size in bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class MetadataLog:
    """A log file to be written to the metadata table: its slice and name, and its content.

    `count` is the number of records in it. `content` may be in the staging directory already.
    """

    file_slice: FileSlice
    name: LogFileName
    count: int
    content: bytes | StagedLog

    @property
    def path(self) -> str:
        """The path from the metadata table's root."""
        return path_in(self.file_slice.partition, str(self.name))

    @property
    def size(self) -> int:
        return self.content.size if isinstance(self.content, StagedLog) else len(self.content)


@dataclass(frozen=True, slots=True)
class MetadataUpdate:
    """A prepared change of the metadata table, of which nothing is written yet.

    `state` is the one that it was prepared in. `logs` is None if the delta commit is completed already. `extra_metadata` of
    the delta commit is the schema of the last write, which each write repeats. `dropped` are the indexes that cannot follow
    the action, and so are dropped with it; they can be created again with Hudi.
    """

    state: MetadataTableState
    instant: str
    logs: tuple[MetadataLog, ...] | None
    extra_metadata: Mapping[str, str]
    dropped: tuple[str, ...] = ()


class MetadataTable(Protocol):
    """Hudi's metadata table of one table, which readers and writers of Hudi list and prune by.

    Written under the table lock. Corrupt files of it raise CorruptBaseFileError, CorruptLogBlockError or RecordDecodeError.
    A rebuild (`make`) is the cure for whatever makes a call fail.
    """

    def listing(self, instants: Collection[str]) -> Mapping[str, Mapping[str, int]] | None:
        """The files of each partition with their sizes, of completed actions only; None if they may be incomplete.

        They are incomplete if it has no completed commit for one of `instants`, or while Hudi is building it.
        """
        ...

    def made_with(self) -> frozenset[str]:
        """The requested times of the table's actions that had completed when it was made from nothing.

        It needs no commit of them. Empty if they are unknown.
        """
        ...

    def record_index(self, instants: Collection[str], moving: Collection[str] = ()) -> KeyIndex | None:
        """The record index over the whole table; None if there is none, or if it lacks one of `instants`.

        It needs a commit of those that it was not made with (`made_with`), and of all that are `moving`.
        """
        ...

    def read_ahead(self, instant: str, changes: FileChanges) -> FileAnswers:
        """What `prepare` will have to know of the content of the added files, read by tasks of the engine.

        It includes what is made of that content and takes long, so that `prepare` under the lock does not. What is made of a
        large write lies in the staging directory of its instant (`table/files/file_group_write.py`).

        It takes no lock. Raises what `prepare` does.
        """
        ...

    def prepare(self, instant: str, changes: FileChanges, known: FileAnswers = MappingProxyType({})) -> MetadataUpdate:
        """Prepares the update for the table's action at that instant. Every added file must exist.

        `known` was read ahead: tasks of the engine read what is not in it.

        Raises UnsupportedTableError for column statistics of an unknown form. Whether every index can follow was checked.
        """
        ...

    def drop_indexes(self, partitions: Sequence[str]) -> None:
        """Drops these indexes. A second call drops the rest."""
        ...

    def place(self, logs: Sequence[MetadataLog]) -> None:
        """Writes log files, each whole, over files of their names, which no commit names."""
        ...

    def drop_indexes_over_rows(self) -> None:
        """Drops the indexes that cannot follow a rollback of rows. A second call drops the rest.

        Raises MetadataTableBusyError, before it drops anything, while a plan is pending that may include a part of them.
        """
        ...

    def make(self, new: NewMetadataTable) -> None:
        """Writes a new metadata table, which nobody reads before the table's settings name its partitions.

        There must be no file of another one. Raises ConfigError for a partition that eventide cannot make.
        """
        ...

    def reflects(self, changes: FileChanges) -> bool:
        """Whether it names all added files, and no removed one. Call it after the table's commit.

        A compaction of the metadata table that ran between the two has lost the files, and then it must be dropped.
        """
        ...

    def load(self) -> MetadataTableState:
        """The metadata table as it is now; without partitions and instants if the table has none."""
        ...

    def base_file_writer(self, schema: str) -> Callable[[PlannedOperation], WriteStat | None]:
        """What writes the base file of an operation of a compaction; picklable.

        It returns the write stat; None if no record is left, and then there is no file. A second run writes the same bytes.
        """
        ...

    def files_of(self, instant: str) -> MetadataFiles | None:
        """The files that any engine wrote to it at an instant; None if there are none.

        Raises UnsupportedTableError if a log file holds that instant's records among others'.
        """
        ...
