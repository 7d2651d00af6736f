"""Hudi's metadata table, and the changes of an action that it has to follow."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Protocol

from eventide_core.ports.locking import Lease
from eventide_core.ports.records import KeyIndex
from eventide_core.ports.timeline import ArchivedTimeline
from eventide_core.table.files.file_name import path_in
from eventide_core.table.files.slice_read import QueryPlan, SliceRead
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.settings.metadata_table import MetadataTableStatus
from eventide_core.table.timeline.timeline import Timeline


class RowChange(Enum):
    """An action's effect on the rows of a table, for indexes over rows."""

    NONE = auto()  # compaction, clean: every row stays, in its file group
    WRITTEN = auto()  # upsert, insert, delete
    WIDENED = auto()  # the same, of records with columns or types that the table did not have
    ROLLED_BACK = auto()  # rollback or restore of a completed write


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
    """An action's changes to the files of a table: those that it adds, and the names that it removes, by partition.

    `written` is set if `rows` are written.
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

    `completed`: its delta commit, None if absent. `pending`: its inflight and requested files.
    """

    completed: str | None
    log_paths: tuple[str, ...]
    pending: tuple[str, ...]


FileAnswers = Mapping[Any, Any]
"""What tasks have read of data files for the metadata table, by what they were asked; the core only passes it on."""


@dataclass(frozen=True, slots=True)
class MetadataTimeline:
    """The metadata table's own timeline. `path` leads to the directory of the active one from the table's root."""

    active: Timeline
    path: str
    archive: ArchivedTimeline


class MetadataUpdate(Protocol):
    """A prepared change of the metadata table, of which nothing is written yet."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """Its indexes that cannot follow the action, and so are dropped with it; they can be created again with Hudi."""
        ...

    def write(self, completion_time: str) -> None:
        """Writes the change and its own commit at the table's instant. Does nothing if that commit exists.

        Readers ignore it until the table's commit at that instant, so it is written first. `completion_time` is that of
        the table's commit, which version 6 does not record. It must be the same in a second run, which then writes the
        same names.
        """
        ...


class MetadataCompaction(Protocol):
    """A compaction of the metadata table: merges log files and base files into new base files in every partition."""

    def run(self, lease: Lease) -> bool:
        """Runs the compaction to its commit, or withdraws it if a writer that shares no lock was faster.

        Returns False if neither is possible (version 6): then the metadata table must be dropped.
        """
        ...


class MetadataTable(Protocol):
    """Hudi's metadata table of one table, which readers and writers of Hudi list and prune by.

    Written under the table lock. Corrupt files of it raise CorruptBaseFileError, CorruptLogBlockError or RecordDecodeError.
    A rebuild (`make`) is the cure for whatever makes a call fail.
    """

    def partitions(self) -> tuple[str, ...]:
        """The partitions in use, sorted; none without a metadata table."""
        ...

    def check(self, rows: RowChange) -> None:
        """Checks that an action of that kind can keep it up to date. Call it before anything else is written.

        Raises UnsupportedTableError for a partition that eventide can't update, BusyError while Hudi is building one,
        or (version 6) has a compaction of it pending.
        """
        ...

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

        Raises what `check` does, and UnsupportedTableError for column statistics of an unknown form.
        """
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

    def status(self) -> MetadataTableStatus:
        """Its partitions, its last compaction, and its delta commits since."""
        ...

    def begun_compaction(self) -> MetadataCompaction | None:
        """A compaction that eventide began and a crash interrupted.

        It has to run before anything else is written to the table.
        """
        ...

    def due_compaction(self, delta_commits_max: int, moment: str) -> MetadataCompaction | None:
        """Prepares a compaction if that many delta commits have completed since the last one. Writes nothing yet.

        None if it is not due, or not possible beside what is pending. `moment` is the completion time of the commit of
        the table that has just been made.
        """
        ...

    def remove_old_slices(self, lease: Lease) -> None:
        """Removes old slices: in each file group, the latest slice and the one before it stay."""
        ...

    def own_timeline(self) -> MetadataTimeline:
        """Its own timeline, empty where there is no metadata table."""
        ...

    def earliest_needed(self) -> str:
        """The first requested time on its timeline that its retained slices are found by; empty if all are needed.

        It stays, with all after it.
        """
        ...

    def files_of(self, instant: str) -> MetadataFiles | None:
        """The files that any engine wrote to it at an instant; None if there are none.

        Raises UnsupportedTableError if a log file holds that instant's records among others'.
        """
        ...
