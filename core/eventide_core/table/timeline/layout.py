"""How a Hudi table is laid out on disk: as version 6 has it, or as version 8 and later have it.

                       version 6                                   8 and later
    completed file     `<requested>.<action>`                      `<requested>_<completed>.<action>`
    timeline           `.hoodie`, archived in `archived/`          `.hoodie/timeline`, archived in its `history/`
    name of a log      the base instant of its slice; several      the instant of its write, which nobody else
                       writes append to one log file               appends to
    slice of a log     the one in its name                         the last one that began before its write completed
    pending plan       writers that see it write to its new        writers don't read it
                       slices, the others to the old ones
    left-over          version 0, which no writer uses             the instant of the compaction, which no write has
    inflight clean     repeats the plan                            is empty
    formats            of Hudi 0.x: commits in JSON, an            of Hudi 1.x: commits in Avro, an archived
                       archived timeline of log files, HFiles      timeline that is an LSM tree, HFiles of its own,
                       as HBase has them                           positions in log blocks, statistics of partitions

Each row is a question of `Layout`; nobody else compares versions for it (`tests/architecture/test_layouts.py`).

What the versions have in common, or what only version 9 has, is not here, but in the settings (`table/settings/`).
"""

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from eventide_core.errors import CorruptTimelineError
from eventide_core.table.files.file_name import LogFileName, parse_data_file, refuse_native_log
from eventide_core.table.files.file_slice import BaseFile, FileSlice, LogFile
from eventide_core.table.property_keys import ARCHIVELOG_FOLDER, TIMELINE_HISTORY_PATH, TIMELINE_PATH
from eventide_core.table.timeline.instant import Action
from eventide_core.table.timeline.timeline import Timeline

_LEFT_OVER_VERSION: Final = 0  # of the log files that a compaction of eventide makes on version 6; Hudi begins at 1
_COMPACTIONS = (Action.COMPACTION, Action.LOG_COMPACTION)


class Layout(ABC):
    """One of the two layouts; `layout_of` has the layout of a version."""

    records_completion_times: ClassVar[bool]
    """Whether the timeline states when an action completed.

    Version 6: no. A span of writes is of requested times, and a write may appear in it later. 8 and later: yes, in the
    name of the completed file. Spans go by completion times, which rise from write to write.
    """

    names_logs_by_write: ClassVar[bool]
    """Whether the instant in the name of a log file is its write's, not its slice's.

    Version 6: no. Several writes may append to the file, and only the header of a block states whose it is; readers find the
    file in its slice even while that slice is only planned. An upgrade keeps these names. 8 and later: yes. Nobody else
    appends to the file, and the completion of its write decides whether it counts, and in which slice.
    """

    writers_follow_plans: ClassVar[bool]
    """Whether a writer that sees a pending compaction appends to the slice that it will begin.

    Version 6: yes. So a plan is made in a gap between writes, runs when the writes that may not have seen it have ended, and
    is not rolled back once writers may have used its slice. 8 and later: no. A plan only needs an instant that no write is
    open at, and can be rolled back.
    """

    needs_hudi_1: ClassVar[bool]
    """Whether only Hudi 1.x reads and writes the table, in the formats of Hudi 1.x.

    Version 6: no, Hudi 0.14 and later do. 8 and later: yes.
    """

    def recorded_completion(self, completion: str) -> str | None:
        """The completion time for the name of a completed file. Version 6: None. 8 and later: `completion`."""
        return completion if self.records_completion_times else None

    @abstractmethod
    def timeline_path(self, properties: Mapping[str, str]) -> str:
        """The directory of the active timeline of a table with these settings, below the table's root.

        Version 6: `.hoodie` itself. 8 and later: a directory in it, `timeline` unless `hoodie.timeline.path` names another.
        """

    @abstractmethod
    def archive_path(self, timeline_path: str, properties: Mapping[str, str]) -> str:
        """The directory of the archived timeline, which is in the directory of the active one.

        Version 6: `archived` unless `hoodie.archivelog.folder` names another; it may name the same directory. 8 and later:
        `history` unless `hoodie.timeline.history.path` does.
        """

    @abstractmethod
    def inflight_clean(self, plan: bytes) -> bytes:
        """What the inflight file of a clean holds. Version 6: the plan, as the requested one. 8 and later: nothing."""

    @abstractmethod
    def slices(
        self, group: tuple[str, str], bases: Mapping[str, BaseFile], logs: Iterable[LogFile], timeline: Timeline
    ) -> tuple[FileSlice, ...]:
        """The slices of a file group, by base instant: its base files by instant, and its log files in reader order.

        On version 8 and later, raises CorruptTimelineError for a log file of an archived instant whose completion time the
        timeline does not have.
        """

    @abstractmethod
    def slice_instant(self, log: LogFileName, bases: Iterable[str], timeline: Timeline) -> str | None:
        """The instant with which a log file's slice begins, if these are the instants of the group's base files.

        Version 6: the one in the name, whether the write has completed or not. 8 and later: the last base file that is not
        after the completion of the write, or else that completion; None if the write has not completed.
        """

    def slice_of(self, path: str, bases: Iterable[str], timeline: Timeline) -> str | None:
        """The instant with which the slice of a base or log file begins; None as in `slice_instant`, and for other files.

        Raises UnsupportedTableError for a native log file.
        """
        name = parse_data_file(path.rpartition("/")[2])
        if isinstance(name, LogFileName):
            return self.slice_instant(name, bases, timeline)
        if name is None:
            refuse_native_log(path)
            return None
        return name.instant

    @abstractmethod
    def is_in_slice_from(self, instant: str, log: LogFileName, timeline: Timeline) -> bool:
        """Whether the log file belongs, or will belong, to the slice that begins at the instant, the group's last.

        Version 6: if it has that instant in its name. 8 and later: if its write completed then or later.
        """

    @abstractmethod
    def left_over_name(self, file_id: str, instant: str, position: int, write_token: str | None = None) -> LogFileName:
        """The name of what a compaction at an instant leaves over: its log file number `position`, which counts from 0.

        Version 6: version 0, which no writer uses, with write tokens in ascending string order, so that it sorts below every
        log file that a writer appends to the new slice, planned or not. 8 and later: no write has the instant, so the
        versions count from 1; the log file keeps its own `write_token`, if it has one.
        """

    @abstractmethod
    def may_be_left_over(self, log: LogFileName) -> bool:
        """Whether the log file has the name of a left-over, if the instant in it is a compaction's.

        Version 6: if it has version 0; others are of writers that saw the plan. 8 and later: any, since no writer uses that
        instant.
        """


@dataclass(frozen=True, slots=True)
class Layout6(Layout):
    """Version 6, which Hudi 0.14 and later write."""

    records_completion_times = False
    names_logs_by_write = False
    writers_follow_plans = True
    needs_hudi_1 = False

    def timeline_path(self, properties: Mapping[str, str]) -> str:
        del properties
        return ".hoodie"

    def archive_path(self, timeline_path: str, properties: Mapping[str, str]) -> str:
        return f"{timeline_path}/{properties.get(ARCHIVELOG_FOLDER, 'archived').strip('/')}".rstrip("/")

    def inflight_clean(self, plan: bytes) -> bytes:
        return plan

    def slices(
        self, group: tuple[str, str], bases: Mapping[str, BaseFile], logs: Iterable[LogFile], timeline: Timeline
    ) -> tuple[FileSlice, ...]:
        by_instant: dict[str, list[LogFile]] = {instant: [] for instant in bases}
        for log in logs:
            by_instant.setdefault(log.name.instant, []).append(log)
        slices: list[FileSlice] = []
        for instant in sorted(by_instant):
            logs_of_instant = tuple(by_instant[instant])
            # The name has the delta commit's own instant only in a new file group, or before a downgrade from version 8.
            is_from_above = bool(slices) and instant not in bases and _is_delta_commit(timeline, instant)
            if not is_from_above and (instant in bases or timeline.is_completed(instant)):
                slices.append(FileSlice(*group, instant, bases.get(instant), logs_of_instant))
            elif is_from_above or _is_pending_compaction(timeline, instant):
                if slices:
                    below = slices[-1]
                    slices[-1] = FileSlice(
                        *group, below.base_instant, below.base_file, below.log_files + logs_of_instant
                    )
                else:
                    # A listing that has only the files of some commits, as for an incremental query: there is no slice
                    # below to merge with.
                    slices.append(FileSlice(*group, instant, None, logs_of_instant))
            # Otherwise, these are log files of a delta commit or compaction that is pending or was rolled back, or of a
            # bucket that a pending resize will make, whose rows lie in the old bucket, too. No reader uses them.
        return tuple(slices)

    def slice_instant(self, log: LogFileName, bases: Iterable[str], timeline: Timeline) -> str | None:
        del bases, timeline
        return log.instant

    def is_in_slice_from(self, instant: str, log: LogFileName, timeline: Timeline) -> bool:
        del timeline
        return log.instant == instant

    def left_over_name(self, file_id: str, instant: str, position: int, write_token: str | None = None) -> LogFileName:
        del write_token
        return LogFileName(file_id, instant, _LEFT_OVER_VERSION, f"{position:05d}-0-1")

    def may_be_left_over(self, log: LogFileName) -> bool:
        return log.version == _LEFT_OVER_VERSION


@dataclass(frozen=True, slots=True)
class Layout8(Layout):
    """Version 8 and later, which only Hudi 1.x reads and writes."""

    records_completion_times = True
    names_logs_by_write = True
    writers_follow_plans = False
    needs_hudi_1 = True

    def timeline_path(self, properties: Mapping[str, str]) -> str:
        return f".hoodie/{properties.get(TIMELINE_PATH, 'timeline').strip('/')}"

    def archive_path(self, timeline_path: str, properties: Mapping[str, str]) -> str:
        return f"{timeline_path}/{properties.get(TIMELINE_HISTORY_PATH, 'history').strip('/')}"

    def inflight_clean(self, plan: bytes) -> bytes:
        del plan
        return b""

    def slices(
        self, group: tuple[str, str], bases: Mapping[str, BaseFile], logs: Iterable[LogFile], timeline: Timeline
    ) -> tuple[FileSlice, ...]:
        instants = sorted(bases)
        by_instant: dict[str, list[LogFile]] = {instant: [] for instant in instants}
        for log in logs:
            completion = timeline.completion_time(log.name.instant)
            if completion is None:
                if timeline.is_archived(log.name.instant):
                    # A guess could put it into the wrong slice, where readers may never find it.
                    raise CorruptTimelineError(
                        f"{log.path}: its delta commit is older than the active timeline, and not in the archived one; "
                        "restore the archived timeline, or remove the file if its write was rolled back"
                    )
                continue  # pending or rolled back, so only its writer uses it
            place = bisect_right(instants, completion)
            # The first log file identifies a slice without a base file.
            instant = instants[place - 1] if place else log.name.instant
            if instant not in by_instant:
                insort(instants, instant)
                by_instant[instant] = []
            by_instant[instant].append(log)
        return tuple(FileSlice(*group, instant, bases.get(instant), tuple(by_instant[instant])) for instant in instants)

    def slice_instant(self, log: LogFileName, bases: Iterable[str], timeline: Timeline) -> str | None:
        completion = timeline.completion_time(log.instant)
        return max((i for i in bases if completion and i <= completion), default=completion)

    def is_in_slice_from(self, instant: str, log: LogFileName, timeline: Timeline) -> bool:
        completion = timeline.completion_time(log.instant)
        return completion is not None and completion >= instant

    def left_over_name(self, file_id: str, instant: str, position: int, write_token: str | None = None) -> LogFileName:
        return LogFileName(file_id, instant, position + 1, write_token or "0-0-1")

    def may_be_left_over(self, log: LogFileName) -> bool:
        del log
        return True


LAYOUT_6: Final = Layout6()
LAYOUT_8: Final = Layout8()


def layout_of(version: int) -> Layout:
    """The layout of tables of a version."""
    return LAYOUT_8 if version >= 8 else LAYOUT_6


def _is_pending_compaction(timeline: Timeline, instant: str) -> bool:
    write = timeline.find(instant)
    return write is not None and write.is_pending_plan and write.action in _COMPACTIONS


def _is_delta_commit(timeline: Timeline, instant: str) -> bool:
    write = timeline.find(instant)
    return write is not None and write.is_completed and write.action is Action.DELTA_COMMIT
