"""The file slices of a table: its listing, interpreted by the timeline.

1. Base files of uncommitted instants don't count. On version 8 and later, nor do log files of pending delta commits.
2. Version 6: a log file belongs to the slice whose base instant is in its name. A log file with the name of its delta
   commit, as a downgrade from version 8 leaves them while a plan is pending, belongs to the slice below.
   8 and later: to the slice with the greatest base instant at or before the completion time of the instant in its name.
3. A slice is visible if its base instant has completed. For readers, log files of a slice under a pending compaction
   belong to the slice below it (Hudi's merged slices). The ones of a pending resize of buckets have the rows of the old
   buckets once more, and don't count.
4. Of two base files of one file group and instant, the one that the commit names counts. A lost attempt left the other.
5. A change log belongs to the slice of the instant in its name, or of the last one before it.
6. File groups that a completed replacecommit replaced no longer exist from its instant on.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from eventide_core.bulk_dataclass import bulk_dataclass
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.files.file_name import BaseFileName, LogFileName, parse_data_file, refuse_native_log
from eventide_core.table.files.file_slice import BaseFile, FileSlice, LogFile
from eventide_core.table.timeline.layout import Layout
from eventide_core.table.timeline.timeline import Timeline

FileGroup = tuple[str, str]

_READER_ORDER = attrgetter("name.reader_order")


@bulk_dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a partition's listing.

    `path` is relative to the table's root; `size` is in bytes, for a link the target's.

    `link_target` is the target of a link, one hop away. `sliced` is the file in the form of slices, None
    for any file that is neither a base nor a log file.
    """

    partition: str
    path: str
    size: int
    link_target: str | None = None
    sliced: BaseFile | LogFile | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sliced", _sliced(self.path, self.size))

    @property
    def parsed(self) -> BaseFileName | LogFileName | None:
        """The parts of a base or log file's name; None for any other."""
        return None if self.sliced is None else self.sliced.name

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class FileSystemView:
    """All file slices of committed data.

    `slices` are each file group's, by base instant; a group that was replaced is there until it is cleaned. File
    groups are in the order of partition and file ID. `overtaken` are base files of attempts that lost: the commit names
    another one of the same file group and instant.
    """

    slices: Mapping[FileGroup, tuple[FileSlice, ...]]
    _replaced_at: Mapping[FileGroup, str]
    overtaken: tuple[BaseFile, ...] = ()

    @classmethod
    def build(
        cls,
        timeline: Timeline,
        files: Iterable[DataFile],
        *,
        layout: Layout,
        replaced_at: Mapping[FileGroup, str],
        is_named: Callable[[str, str], bool] | None = None,
    ) -> "FileSystemView":
        """The view of a listing. `replaced_at` are the file groups that a completed instant replaced.

        `is_named` returns whether an instant's commit names the file at a path.

        Raises UnsupportedTableError for a native log file, and for two base files in one place, unless the commit names
        exactly one of them. On version 8 and later, raises CorruptTimelineError for a log file of an archived instant whose
        completion time the timeline does not have.
        """
        rivals: dict[tuple[FileGroup, str], list[BaseFile]] = {}
        bases: dict[FileGroup, dict[str, BaseFile]] = {}
        logs: dict[FileGroup, list[LogFile]] = {}
        changes: dict[FileGroup, list[LogFile]] = {}
        for file in files:
            match file.sliced:
                case LogFile() as log if log.name.suffix:
                    changes.setdefault((file.partition, log.name.file_id), []).append(log)
                case LogFile() as log:
                    logs.setdefault((file.partition, log.name.file_id), []).append(log)
                case BaseFile() as base if timeline.is_completed(base.name.instant):
                    of_group = bases.setdefault((file.partition, base.name.file_id), {})
                    instant = base.name.instant
                    if instant in of_group:
                        place = ((file.partition, base.name.file_id), instant)
                        rivals.setdefault(place, [of_group[instant]]).append(base)
                    of_group[instant] = base
                case BaseFile():
                    pass  # an uncommitted one
                case None:
                    refuse_native_log(file.path)
        overtaken: list[BaseFile] = []
        for (group, instant), candidates in rivals.items():
            bases[group][instant] = named = _named(candidates, instant, is_named)
            overtaken += (base for base in candidates if base is not named)
        slices = {
            group: layout.slices(group, bases.get(group, {}), sorted(logs.get(group, []), key=_READER_ORDER), timeline)
            for group in sorted({*bases, *logs})
        }
        for group, change_log_files in changes.items():
            if slices.get(group):
                slices[group] = _with_change_log_files(slices[group], change_log_files)
        return cls({group: own for group, own in slices.items() if own}, dict(replaced_at), tuple(overtaken))

    def is_replaced(self, group: FileGroup, as_of: str | None = None) -> bool:
        """Whether a completed replacecommit replaced this file group, now or as of an instant."""
        replaced = self._replaced_at.get(group)
        return replaced is not None and (as_of is None or replaced <= as_of)

    def latest_slices(self, as_of: str | None = None) -> tuple[FileSlice, ...]:
        """The slice of each file group that a snapshot reads, by partition and file id.

        With `as_of`, the slices as of that instant. Their log files may contain blocks of later instants, which the
        reader of the blocks has to skip.
        """
        latest: list[FileSlice] = []
        for group, slices in self.slices.items():
            if self.is_replaced(group, as_of):
                continue
            visible = [s for s in slices if as_of is None or s.base_instant <= as_of]
            if visible:
                latest.append(visible[-1])
        return tuple(latest)

    def latest_base_files(self) -> tuple[FileSlice, ...]:
        """The latest slice with a base file of each file group, without its log files: what a read-optimized query reads."""
        latest: list[FileSlice] = []
        for group, slices in self.slices.items():
            if self.is_replaced(group):
                continue
            based = [s for s in slices if s.base_file is not None]
            if based:
                last = based[-1]
                latest.append(FileSlice(last.partition, last.file_id, last.base_instant, last.base_file, ()))
        return tuple(latest)


def _named(rivals: Sequence[BaseFile], instant: str, is_named: Callable[[str, str], bool] | None) -> BaseFile:
    """The base file that the instant's commit names, of several base files of one file group and instant."""
    named = [] if is_named is None else [base for base in rivals if is_named(instant, base.path)]
    if len(named) != 1:
        raise UnsupportedTableError(
            f"{' and '.join(base.path for base in rivals)} belong to one file group and instant, and the "
            f"timeline does not state which of them the commit of {instant} names; move the other one out of "
            "the table"
        )
    return named[0]


def _sliced(path: str, size: int) -> BaseFile | LogFile | None:
    name = parse_data_file(path[path.rfind("/") + 1 :])
    if name is None:
        return None
    return LogFile(name, path, size) if isinstance(name, LogFileName) else BaseFile(name, path, size)


def _with_change_log_files(slices: Sequence[FileSlice], changes: Sequence[LogFile]) -> tuple[FileSlice, ...]:
    of_slice: dict[int, list[LogFile]] = {}
    instants = [file_slice.base_instant for file_slice in slices]
    for log in sorted(changes, key=_READER_ORDER):
        of_slice.setdefault(max(bisect_right(instants, log.name.instant) - 1, 0), []).append(log)
    return tuple(
        replace(file_slice, change_log_files=tuple(of_slice.get(place, ()))) for place, file_slice in enumerate(slices)
    )
