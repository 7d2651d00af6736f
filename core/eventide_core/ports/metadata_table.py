"""Hudi's metadata table, and the changes of an action that it has to follow."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from eventide_core.ports.records import KeyIndex
from eventide_core.ports.timeline import ArchivedTimeline
from eventide_core.table.files.file_name import BaseFileName, LogFileName, path_in
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.slice_read import QueryPlan, SliceRead
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.metadata_table import MetadataTableFacts, RowChange
from eventide_core.table.timeline.contents.commit_metadata import WriteStat
from eventide_core.table.timeline.contents.plans import PlannedOperation
from eventide_core.table.timeline.file_system_view import FileSystemView


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
    table, as (partition, name), the files of the last writes first. `replaced`: the slices that the write replaces, with
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
    """A metadata table to make from nothing at an instant of its own, for a table of that version.

    `partitions` are those that the metadata table is to have. `files` are the sizes of the table's base and log files, by
    partition and name; a partition may have none. `rows` are the current slices. `has_utc_instants`: it takes instants in
    UTC as the table does; otherwise, in local time.
    """

    version: int
    instant: str
    partitions: tuple[str, ...]
    files: Mapping[str, Mapping[str, int]]
    rows: QueryPlan
    has_utc_instants: bool


@dataclass(frozen=True, slots=True)
class NewMetadataContent:
    """The content of a new metadata table.

    `schema` is the Avro schema of its records, without Hudi's meta fields. `definitions` are the table's index definitions
    with the new metadata table's, None if it has none to define. `empty_logs` has a log file without records for each
    partition. `write_bases` takes a partition and the names of the base files of all its file groups, in their order;
    it writes those that have records, one after another, and yields their write stats.
    """

    schema: AvroSchema
    definitions: bytes | None
    empty_logs: Mapping[str, bytes]
    write_bases: Callable[[str, Sequence[BaseFileName]], Iterator[WriteStat]]


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

    def view(self, partition: str, completed_before: str | None = None) -> FileSystemView:
        """All slices of one of its partitions; the latest ones are ordered by file group number.

        With `completed_before`, leaves out the log files that completed at that moment or later (version 8 and later).
        """
        ...

    def schema(self, file_slice: FileSlice) -> AvroSchema | None:
        """The Avro schema of the latest values in a slice; None if it never had one."""
        ...

    def can_merge(self, partition: str) -> bool:
        """Whether eventide knows how versions of a record are merged in that partition."""
        ...

    def can_read(self, file_slice: FileSlice) -> bool:
        """Whether eventide can read all blocks of a slice. Hudi has to compact one with a log compaction, for instance."""
        ...

    def record_index(self) -> KeyIndex | None:
        """The record index over the whole table; None if there is none."""
        ...

    def logs_of(self, instant: str) -> tuple[str, ...]:
        """The paths of the log files that any engine wrote at an instant, from the table's root.

        Raises UnsupportedTableError if a log file holds that instant's records among others'.
        """
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
    A rebuild is the cure for whatever makes a call fail.
    """

    def listing(
        self, instants: Collection[str], made_with: Callable[[MetadataTableState], Collection[str]] = lambda _: ()
    ) -> Mapping[str, Mapping[str, int]] | None:
        """The files of each partition with their sizes, of completed actions only; None if they may be incomplete.

        They are incomplete if it has no completed commit for one of `instants` and was not `made_with` it, or while Hudi is
        building it.
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

    def definitions_without(self, partitions: Collection[str]) -> bytes | None:
        """The content of `INDEX_DEFINITIONS` without these indexes; None if it defines none of them."""
        ...

    def place(self, logs: Sequence[MetadataLog]) -> None:
        """Writes log files, each whole, over files of their names, which no commit names."""
        ...

    def indexes_over_rows(self) -> tuple[str, ...]:
        """The indexes that cannot follow a rollback of rows, and have to be dropped before it.

        Raises MetadataTableBusyError while a plan is pending that may include a part of them.
        """
        ...

    def content(self, new: NewMetadataTable) -> NewMetadataContent:
        """The content of a new metadata table, of which nothing is written yet.

        It raises what reading the data files raises.
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

    def base_file_writer(self, schema: AvroSchema) -> Callable[[PlannedOperation], WriteStat | None]:
        """What writes the base file of an operation of a compaction; picklable.

        It returns the write stat; None if no record is left, and then there is no file. A second run writes the same bytes.
        """
        ...
