"""The name of a log file in a file group.

    version 6     the instant of its slice, and the version after the last existing one under it, committed or not. If a
                  compaction of the group is pending, it has already begun a slice: then it is the compaction's instant,
                  unless a later slice exists, because a paused process put the plan late
    8 and later   the instant of the write, which is unique, and version 1

Left-overs of a planned compaction never conflict with these names, whether they exist or not. On version 6, they have
version 0, which no writer uses. Later, their names contain the compaction's instant, which no write has.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.timeline.file_system_view import DataFile, FileGroup
from eventide_core.table.timeline.layout import Layout


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where a write's first log file in a file group goes.

    `slice_instant` is the instant in its name: its slice's on version 6, the write's own later. `version` is 1 from
    version 8 on. `earlier` are the names of the log files of that slice, on version 6, in reader order.
    """

    slice_instant: str
    version: int
    earlier: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogNames:
    """The log files that exist, for the name of the next one.

    `listing` has the names of all log files of a file group, in no order, also of uncommitted writes and of earlier
    slices. `planned` has the requested time of the pending compaction that plans a file group.
    """

    listing: Mapping[FileGroup, tuple[LogFileName, ...]]
    planned: Mapping[FileGroup, str]

    @classmethod
    def of(cls, listing: Iterable[DataFile], planned: Mapping[FileGroup, str]) -> "LogNames":
        by_group: dict[FileGroup, list[LogFileName]] = {}
        for file in listing:
            name = file.parsed
            if isinstance(name, LogFileName):
                by_group.setdefault((file.partition, name.file_id), []).append(name)
        return cls({group: tuple(names) for group, names in by_group.items()}, planned)

    def next_log(self, file_slice: FileSlice, write_instant: str, layout: Layout) -> LogPlace:
        """The place of a write's first log file in that file group."""
        if layout.names_logs_by_write:
            return LogPlace(write_instant, 1, ())
        group = file_slice.file_group
        instant = max(self.planned.get(group, ""), file_slice.base_instant)
        earlier = sorted(
            (name for name in self.listing.get(group, ()) if name.instant == instant),
            key=lambda name: name.reader_order,
        )
        version = 1 + max((name.version for name in earlier), default=0)
        return LogPlace(instant, version, tuple(str(name) for name in earlier))
