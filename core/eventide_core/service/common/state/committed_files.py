"""Each file that a completed write put into a slice that is still live must be there, and be whole.

1. A commit of the active timeline names its files with their sizes; on version 6, also the base file below a log file.
2. Of archived writes, the metadata table lists the files, if it has followed each completed action.
3. Without it, data files in a directory without Hudi's mark of a partition are suspect and, on version 6, slices without a
   base file: the archived commit of their instant says whether anything is lost.
4. No base file is empty, and on version 8 and later no log file.

What else is lost of archived writes, only the whole archived timeline shows, which `verify` reads: a file group or a
partition of which nothing is left, a base file above an older one, a log file above a base file and, on version 8 and
later, a base file below log files.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Final, NamedTuple, Protocol, TypeVar

from eventide_core.action.compaction.trigger import check_undoing
from eventide_core.cure import Cure
from eventide_core.errors import CorruptBaseFileError, CorruptLogBlockError, EventideError, MissingFileError
from eventide_core.ports import ArchivedTimeline
from eventide_core.table.files.file_name import BaseFileName, parse_data_file, path_in, refuse_native_log
from eventide_core.table.files.file_slice import FileSlice, LogFile
from eventide_core.table.files.table_path import PARTITION_MARK
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.checksums import CHECKSUMS_KEY
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.file_system_view import DataFile, FileGroup, FileSystemView
from eventide_core.table.timeline.timeline import Timeline

_WHOLE: Final = 1 << 62  # more bytes than any file has
T = TypeVar("T")
READS_MAX: Final = 5
"""The number of reads of the table before a missing file counts as missing: a busy archival interfered with one read in
sixty.
"""
NOT_WHOLE: Final = (MissingFileError, CorruptBaseFileError, CorruptLogBlockError)
_WITHOUT: Final = (
    "to go on without its rows, compact its slice with Hudi, or rebuild the metadata table "
    f"({Cure.rebuild_metadata_table()}) if nothing of its file group is left"
)
Listing = Mapping[str, Mapping[str, int]]
"""What the metadata table lists: the sizes of files in bytes, by partition and name."""


def looked_again(look: Callable[[], T]) -> T:
    """What `look` finds; it looks again while others remove the files that it has just listed."""
    for _ in range(READS_MAX - 1):
        with suppress(*NOT_WHOLE):
            return look()
    return look()


class Committed(Protocol):
    """What of a table's state shows which of its files have lost bytes."""

    @property
    def config(self) -> TableConfig: ...
    @property
    def timeline(self) -> Timeline: ...
    @property
    def archive(self) -> ArchivedTimeline: ...
    @property
    def commits(self) -> Mapping[str, CommitMetadata]: ...
    @property
    def listing(self) -> tuple[DataFile, ...]: ...
    @property
    def view(self) -> FileSystemView: ...


class _Need(NamedTuple):
    """A file as the write at `time` left it: at least `size` bytes of it, where that is known for sure."""

    path: str
    size: int
    time: str


def require_files(state: Committed, listed: Listing | None, unmarked: Iterable[DataFile]) -> None:
    """Raises MissingFileError, and CorruptBaseFileError or CorruptLogBlockError for a file that has lost bytes.

    BusyError instead while a rollback or restore is under way. `listed` is what the metadata table lists, None if that may
    not be all. `unmarked` are the data files in directories that are not marked as partitions.

    Its rows are unknown, so nothing may be said of the table: neither what is complete, nor up to which time. One with
    some of its bytes is left to who reads it if another engine recorded its size, which may be wrong.
    """
    # Any byte of a link's target is enough: another file's commit names its size.
    sizes = {f.path: f.size if f.link_target is None or not f.size else _WHOLE for f in state.listing}
    # By base files, not by slices: without its base file a slice would go by its first log file's later instant.
    live = {s.file_group: s.base_instant for s in state.view.latest_base_files()}
    archived = _of_archive(state, unmarked) if listed is None else _of_listing(state, listed, sizes)
    for need in chain(_of_commits(state, sizes), archived):
        size = sizes.get(need.path)
        if (size is None or size < need.size) and _is_live(state, need, live):
            check_undoing(state.timeline)  # a restore that isn't complete shows slices that were cleaned
            raise _not_whole(state, need, size)
    _require_bytes(state)


def _of_commits(state: Committed, sizes: Mapping[str, int]) -> Iterator[_Need]:
    """What commits of the active timeline name, and the base files below."""
    for time, metadata in state.commits.items():
        is_own = CHECKSUMS_KEY in metadata.extra_metadata
        for stat in metadata.stats:
            least = stat.file_size_bytes if is_own else min(stat.file_size_bytes, 1)
            if sizes.get(stat.path, -1) < least:
                yield _Need(stat.path, least, time)
            if stat.base_file and path_in(stat.partition, stat.base_file) not in sizes:
                yield from _of_base(state, stat.partition, stat.base_file)


def _of_base(state: Committed, partition: str, name: str) -> Iterator[_Need]:
    """The base file, unless its compaction is pending: a repair runs it again, and writers have already followed it."""
    base = BaseFileName.parse(name)
    if base is not None and state.timeline.is_completed(base.instant):
        yield _Need(path_in(partition, name), 0, base.instant)


def _of_listing(state: Committed, listed: Listing, sizes: Mapping[str, int]) -> Iterator[_Need]:
    """What the metadata table lists of archived writes.

    Its size of a log file may come from a write that was rolled back.
    """
    for partition, files in listed.items():
        for name, size in files.items():
            if sizes.get(path := path_in(partition, name), -1) >= size:
                continue
            parsed = parse_data_file(name)
            if parsed is not None and state.timeline.is_archived(parsed.instant):
                is_base = isinstance(parsed, BaseFileName)
                yield _Need(path, size if is_base else _size_of_log(state, path, parsed.instant), parsed.instant)


def _size_of_log(state: Committed, path: str, instant: str) -> int:
    commit = state.archive.commit(instant) if state.config.layout.names_logs_by_write else None
    if commit is None or CHECKSUMS_KEY not in commit.extra_metadata:
        return 0
    return max((stat.file_size_bytes for stat in commit.stats if stat.path == path), default=0)


def _of_archive(state: Committed, unmarked: Iterable[DataFile]) -> Iterator[_Need]:
    """What archived commits name, of the slices and directories that are suspect."""
    for one in state.view.latest_slices():
        if one.base_file is None:
            yield from _of_slice(state, one)
    decided: set[str] = set()
    for file in unmarked:
        if file.partition in decided or file.parsed is None or not state.timeline.is_archived(file.parsed.instant):
            continue
        commit = state.archive.commit(file.parsed.instant)
        if commit is not None:
            decided.add(file.partition)
            if any(stat.partition == file.partition for stat in commit.stats):
                yield _Need(file.path, 0, file.parsed.instant)


def _of_slice(state: Committed, one: FileSlice) -> Iterator[_Need]:
    """The base file of a slice of log files alone. On version 8 and later, no commit says whether there was one."""
    if not state.config.layout.names_logs_by_write and state.timeline.is_archived(one.base_instant):
        commit = state.archive.commit(one.base_instant)
        for stat in () if commit is None else commit.stats:
            if (stat.partition, stat.file_id) == one.file_group:
                yield from _of_base(state, stat.partition, stat.path.rpartition("/")[2])


def _is_live(state: Committed, need: _Need, live: Mapping[FileGroup, str]) -> bool:
    """Whether the file is of a slice that readers read."""
    partition, _, name = need.path.rpartition("/")
    parsed = parse_data_file(name)
    if parsed is None:
        refuse_native_log(need.path)
        return False
    if state.view.is_replaced((partition, parsed.file_id)):
        return False
    timeline = state.timeline
    if timeline.is_archived(need.time) and (write := state.archive.find(need.time)) is not None:
        timeline = timeline.with_archived((write,))
    base_instant = live.get((partition, parsed.file_id), "")
    slice_instant = state.config.layout.slice_of(need.path, (base_instant,), timeline)
    return slice_instant is not None and slice_instant >= base_instant


def _require_bytes(state: Committed) -> None:
    """Raises CorruptBaseFileError or CorruptLogBlockError for an empty file in a live slice, of an archived write.

    Not for a log file of version 6, which a writer that died may have left.
    """
    has_logs = state.config.layout.names_logs_by_write
    for one in state.view.latest_slices():
        bases = () if one.base_file is None else (one.base_file,)
        for file in (*bases, *(one.log_files if has_logs else ())):
            if file.size or any(stat.path == file.path for commit in state.commits.values() for stat in commit.stats):
                continue
            check_undoing(state.timeline)
            kind = CorruptLogBlockError if isinstance(file, LogFile) else CorruptBaseFileError
            raise kind(f"{file.path} is empty: it has lost its records; restore the file from a copy")


def _not_whole(state: Committed, need: _Need, size: int | None) -> EventideError:
    is_base = BaseFileName.parse(need.path.rpartition("/")[2]) is not None
    kind = MissingFileError if size is None else CorruptBaseFileError if is_base else CorruptLogBlockError
    problem = "is missing" if size is None else f"has {size} of its {need.size} bytes" if size else "is empty"
    partition = need.path.rpartition("/")[0]
    is_unmarked = size is None and not any(file.partition == partition for file in state.listing)
    mark = f"if {path_in(partition, PARTITION_MARK)} is missing, {Cure.repair()} writes it again; otherwise, "
    cure = "restore the file, or restore the table to an instant before it"
    if state.timeline.is_archived(need.time):
        cure = f"restore the file from a copy; {_WITHOUT}"
    return kind(
        f"{need.path} {problem}: the commit {need.time} wrote it and its file slice is still in use; "
        f"{mark if is_unmarked else ''}{cure}"
    )
