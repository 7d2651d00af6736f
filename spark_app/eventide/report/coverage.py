"""The event times of each file of each slice, and the file's role in a compaction."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from eventide_core.errors import EventideError
from eventide_core.ports import BaseContent
from eventide_core.table.files.file_slice import FileSlice, LogFile
from eventide_core.table.files.log_facts import LogFacts
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_shape import RecordShape


class Role(StrEnum):
    """A file's role in a compaction. The values are also CSS classes of the page."""

    BASE = "base"
    MERGED = "merged"
    REMAINING = "remaining"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """One file. `path` is relative to the table's root, `size` is in bytes.

    `role` is LATE for a log file with a record before the published cut that is in no base file, MERGED for one that a given
    plan merges, REMAINING for any other. `event_times` is None if they are unknown, and `problem` states why. `uncompacted`
    are the event times of its records that are in no base file yet: none for a base file, and only a part for a log file
    that an exact cut has partly merged.
    """

    path: str
    size: int
    role: Role
    event_times: EventTimeRange | None
    uncompacted: EventTimeRange | None
    problem: str | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "size": self.size,
            "role": str(self.role),
            "min_event_time_ms": self.event_times.min_ms if self.event_times else None,
            "max_event_time_ms": self.event_times.max_ms if self.event_times else None,
            "unknown_event_time_records": self.event_times.unknown_records if self.event_times else None,
            "unreadable_event_time_records": self.event_times.unreadable_records if self.event_times else None,
            "waiting_from_ms": self.uncompacted.min_ms if self.uncompacted else None,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class SliceCoverage:
    """One slice. `files` has the base file first, if it was read, then the log files in reader order."""

    partition: str
    file_id: str
    files: tuple[FileCoverage, ...]

    @property
    def late(self) -> tuple[FileCoverage, ...]:
        """The log files with records before the cut that are in no base file."""
        return tuple(file for file in self.files if file.role is Role.LATE)

    @property
    def uncompacted_from_ms(self) -> int | None:
        """The earliest event time that is in no base file yet; None if there is none, or if none is known."""
        known = (file.uncompacted.min_ms for file in self.files if file.uncompacted is not None)
        return min((ms for ms in known if ms is not None), default=None)

    def to_json(self) -> dict[str, Any]:
        return {
            "partition": self.partition,
            "file_id": self.file_id,
            "waiting_from_ms": self.uncompacted_from_ms,
            "files": [file.to_json() for file in self.files],
        }


@dataclass(frozen=True, slots=True)
class CoverageReader:
    """Computes the coverage of slices. `facts` and `problems` are of their log files, by path.

    `bases` reads the footers of base files, which state the range of the event-time field that `shape` names; it is None
    if the field is unknown. `cut_ms` is
    the published cut, before which a log file is late; None without one. `merged` has the paths of log files that a plan
    merges. It determines their role.
    """

    bases: BaseContent
    shape: RecordShape | None
    cut_ms: int | None
    facts: Mapping[str, LogFacts]
    problems: Mapping[str, str]
    merged: frozenset[str] = frozenset()

    def of_logs(self, file_slice: FileSlice) -> SliceCoverage:
        """The coverage of the slice's log files only. Opens no file."""
        return SliceCoverage(file_slice.partition, file_slice.file_id, tuple(map(self._log, file_slice.log_files)))

    def of(self, file_slice: FileSlice) -> SliceCoverage:
        """The coverage of the slice, including its base file, whose footer is read."""
        file = file_slice.base_file
        base = () if file is None else (self._base(file.path, file.size),)
        return SliceCoverage(file_slice.partition, file_slice.file_id, base + self.of_logs(file_slice).files)

    def _log(self, log: LogFile) -> FileCoverage:
        fact = self.facts.get(log.path)
        if fact is None:
            return FileCoverage(log.path, log.size, Role.REMAINING, None, None, self.problems.get(log.path))
        role = Role.REMAINING
        if log.path in self.merged:
            role = Role.MERGED
        elif self.cut_ms is not None and fact.uncompacted.min_ms is not None and fact.uncompacted.min_ms < self.cut_ms:
            role = Role.LATE
        return FileCoverage(log.path, log.size, role, fact.event_times, fact.uncompacted)

    def _base(self, path: str, size: int) -> FileCoverage:
        nothing = EventTimeRange(None, None)
        if self.shape is None:
            return FileCoverage(path, size, Role.BASE, None, nothing, "the event-time field is unknown")
        try:
            times = self.bases.event_times(path, self.shape)
        except EventideError as error:
            return FileCoverage(path, size, Role.BASE, None, nothing, str(error))
        problem = "its footer contains no event times" if times is None else None
        return FileCoverage(path, size, Role.BASE, times, nothing, problem)
