"""A query plan: the slices to read, their files, and which of their blocks and rows count."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from eventide_core.errors import UnsupportedTableError
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.column_names import FileColumns

KeyForms: TypeAlias = tuple[str, ...]
"""The record keys that the same values of the key fields may have: `1`, or `id:1`."""


@dataclass(frozen=True, slots=True)
class LogWriters:
    """What the timeline states about the writers of a slice's log files. A damaged block header contradicts it.

    `instants` are those on the timeline, in any state; None if the log files are a part of a slice, in which the command
    block that rolls back a block may be missing. `of_logs` has for a log file, by path, how many blocks each completed write
    of the active timeline put into it at least, `ends` how many bytes it had then. `is_final`: from version 8 on, nothing
    in a log file is later than `instants`. On version 6 a writer may have appended to a log file since the timeline was
    read.
    """

    instants: frozenset[str] | None
    of_logs: Mapping[str, Mapping[str, int]]
    is_final: bool
    ends: Mapping[str, int] = field(default_factory=dict[str, int])

    def knows(self, instant: str) -> bool:
        """Whether the instant is on the timeline, or may be by now."""
        if self.instants is None or instant in self.instants:
            return True
        return not self.is_final and instant > max(self.instants, default="")


@dataclass(frozen=True, slots=True)
class BlockFilter:
    """Which blocks of a log file count: blocks of completed instants, up to `until`.

    An instant before `timeline_start` has been archived, hence completed. One at or after it that is not among the
    `completed` is pending or was rolled back, and does not count. With `writers`, the reader checks the instants of the
    blocks against them. `undone` are instants that were undone: none of their blocks counts.
    """

    completed: frozenset[str]
    timeline_start: str | None
    until: str | None = None
    writers: LogWriters | None = None
    undone: frozenset[str] = frozenset()

    def accepts(self, instant: str) -> bool:
        if self.until is not None and instant > self.until:
            return False
        return instant in self.completed or self._is_archived(instant)

    def explains(self, instant: str) -> bool:
        """Whether there may be a block of the instant that no command block rolls back."""
        return self.writers is None or self._is_archived(instant) or self.writers.knows(instant)

    def of_logs(self, paths: Iterable[str]) -> "BlockFilter":
        """The filter for these log files alone, which is what a task takes along."""
        if self.writers is None or not self.writers.of_logs:
            return self
        known, ends = self.writers.of_logs, self.writers.ends
        named = [path for path in paths if path in known]
        of_named = {path: known[path] for path in named}
        ends_of_named = {path: ends[path] for path in named if path in ends}
        return replace(self, writers=replace(self.writers, of_logs=of_named, ends=ends_of_named))

    def is_abandoned(self, log_path: str, offset: int) -> bool:
        """Whether no completed write can have put the bytes from here on there, so that an append broke off in them.

        They are behind all that completed writes of the active timeline have left, and archived ones have left nothing
        there: the name of a log file states the first instant that can have written to it.
        """
        if self.writers is None or self.until is not None:
            return False
        end = self.writers.ends.get(log_path)
        if end is not None:
            return offset >= end
        name = LogFileName.parse(log_path.rpartition("/")[2])
        return name is not None and not self.writers.is_final and not self._is_archived(name.instant)

    def _is_archived(self, instant: str) -> bool:
        return self.timeline_start is not None and instant < self.timeline_start and instant not in self.undone


@dataclass(frozen=True, slots=True)
class SliceRead:
    """One slice to read: base and log files, merged, and only commits of `commit_times` where given.

    `base_path` is None if no base file is read. `log_paths` are in reader order, each with how many of its bytes are read.
    Paths are relative to the table's root. `blocks` decides which blocks of the log files count.

    `is_plain`: its rows are its base file's, with the query's columns and types, so that any Parquet reader can read
    them. `null_fields` are columns that the query shows as null, whatever the files hold. `whole`, of an increment: the
    slice as of its end, which has the columns that partial updates lack; None if that slice has been cleaned.
    """

    partition: str
    file_id: str
    base_path: str | None
    log_paths: tuple[tuple[str, int], ...]
    blocks: BlockFilter
    commit_times: frozenset[str] | None = None
    is_plain: bool = False
    null_fields: tuple[str, ...] = ()
    whole: "SliceRead | None" = None


@dataclass(frozen=True, slots=True)
class ChangeRead(SliceRead):
    """What the write at `instant` changed in a file group: the slice as it left it, and as it was `before`; None: new.

    A slice without files is empty: the write replaced the file group.
    """

    instant: str = ""
    before: SliceRead | None = None


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The `slices` that a query reads, in no particular order of rows, and the shape of their records.

    `note`: what a later query of the same kind will not show, or why there are no rows, if anything. `completed`: the
    requested times of all actions of the active timeline whose latest rows are read, if an index may have the places of
    keys; None: they have to be searched in files.
    """

    slices: tuple[SliceRead, ...]
    shape: RecordShape
    note: str | None = None
    completed: frozenset[str] | None = None

    @property
    def paths(self) -> frozenset[str]:
        """The files that are read."""
        earlier = (one.before for one in self.slices if isinstance(one, ChangeRead) and one.before is not None)
        slices = (*self.slices, *earlier)
        logs = (path for read in slices for path, _ in read.log_paths)
        return frozenset((*logs, *(read.base_path for read in slices if read.base_path is not None)))


def columns_in_base(shape: RecordShape, path: str) -> FileColumns | None:
    """The columns of a base file; None if they have the names of the schema."""
    if shape.column_names is None:
        return None
    name = BaseFileName.parse(path.rpartition("/")[2])
    if name is None:
        raise UnsupportedTableError(f"base file {path}: its name states no instant, so its columns can't be known")
    return shape.column_names.in_base(name.instant, f"base file {path}")
