"""Hudi's metadata table, and what an action changes that it has to follow."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Protocol

from eventide_core.ports.locking import Lease
from eventide_core.table.file_name import path_in
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import SliceRead


class RowChange(Enum):
    """What an action does to the rows of a table, as far as an index over them has to follow."""

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
        """Relative to the table's root."""
        return path_in(self.partition, self.name)


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """How the rows of a write are read back before anyone else sees them.

    `slices` are those that it changed, as they will be: its own files are in them, and its log blocks count. `known_files`
    are others of the table, (partition, name), those of its last writes first.
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


@dataclass(frozen=True, slots=True)
class MetadataFiles:
    """What an action has written to the metadata table, as paths from the table's root.

    `completed` is its delta commit, None if that is not there. `pending` are its inflight and requested files.
    """

    completed: str | None
    log_paths: tuple[str, ...]
    pending: tuple[str, ...]


FileAnswers = Mapping[Any, Any]
"""What tasks have read of data files for the metadata table, by what they were asked; the core only passes it on."""


class MetadataUpdate(Protocol):
    """A prepared change of the metadata table, of which nothing is written yet."""

    def write(self, completion_time: str) -> None:
        """Writes it, with a commit of its own at the table's instant; nothing if that exists already.

        Nobody sees it before the table's commit at that instant, so it goes first. `completion_time` is that of the table's
        commit, which version 6 does not record: it must be the same in a second run, which then writes the same names.
        """
        ...


class MetadataCompaction(Protocol):
    """A compaction of the metadata table: of its log files and bases, new bases in every partition."""

    def run(self, lease: Lease) -> bool:
        """Runs it to its commit, or withdraws it where a writer who shares no lock has overtaken it.

        False if that cannot be done any longer (version 6): then the metadata table must be dropped.
        """
        ...


class MetadataTable(Protocol):
    """Hudi's metadata table of one table, which readers and writers of Hudi list and prune by.

    Written under the table lock. Corrupt files of it raise CorruptBaseFileError, CorruptLogBlockError or RecordDecodeError.
    Dropping it is the cure for whatever makes a call fail: Hudi builds it again.
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
        """The files of each partition with their sizes, of completed actions alone; None if it may not tell them all.

        That is where it has no completed commit of its own for one of `instants`, or where Hudi is still building it.
        """
        ...

    def read_ahead(self, changes: FileChanges) -> FileAnswers:
        """What `prepare` will have to know of the content of the added files of a write, read by tasks of the engine.

        It takes no lock. Raises what `prepare` does.
        """
        ...

    def prepare(self, instant: str, changes: FileChanges, known: FileAnswers = MappingProxyType({})) -> MetadataUpdate:
        """What the table's action at that instant changes in it; every added file exists already.

        `known` was read ahead: tasks of the engine read what is not in it.

        Raises what `check` does, and UnsupportedTableError for column statistics of an unknown form.
        """
        ...

    def tells(self, changes: FileChanges) -> bool:
        """Whether it names all files that were added, and none that was removed. Asked after the table's commit: a
        compaction of the metadata table that ran between the two has lost them, and then it must be dropped."""
        ...

    def delta_commits_since_compaction(self) -> int:
        """How many of its delta commits no compaction of it has merged."""
        ...

    def begun_compaction(self) -> MetadataCompaction | None:
        """A compaction that eventide began and a crash interrupted.

        It has to run before anything else is written to the table.
        """
        ...

    def due_compaction(self, delta_commits_max: int, moment: str) -> MetadataCompaction | None:
        """A compaction where that many delta commits have completed since the last one; nothing is written yet.

        None if it is not due, or not possible beside what is pending. `moment` is the completion time of the commit of
        the table that has just been made.
        """
        ...

    def remove_old_slices(self, lease: Lease) -> None:
        """Of each of its file groups the latest slice stays, and the one before it."""
        ...

    def files_of(self, instant: str) -> MetadataFiles | None:
        """What was written to it at an instant, by whichever engine; None if nothing was.

        Raises UnsupportedTableError if a log file holds that instant's records among others'.
        """
        ...
