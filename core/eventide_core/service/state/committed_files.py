"""Each file that a commit wrote into a slice that is still live must be there, and be whole."""

from collections.abc import Mapping
from typing import Final, Protocol

from eventide_core.action.compaction.trigger import check_undoing
from eventide_core.cure import Cure
from eventide_core.errors import CorruptBaseFileError, CorruptLogBlockError, EventideError, MissingFileError
from eventide_core.table.files.file_name import BaseFileName, path_in
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.table_path import PARTITION_MARK
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.checksums import CHECKSUMS_KEY
from eventide_core.table.timeline.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.timeline.file_system_view import DataFile, FileSystemView
from eventide_core.table.timeline.timeline import Timeline

NOT_WHOLE: Final = (MissingFileError, CorruptBaseFileError, CorruptLogBlockError)


class Committed(Protocol):
    """What of a table's state shows which of its files have lost bytes."""

    @property
    def config(self) -> TableConfig: ...
    @property
    def timeline(self) -> Timeline: ...
    @property
    def commits(self) -> Mapping[str, CommitMetadata]: ...
    @property
    def listing(self) -> tuple[DataFile, ...]: ...
    @property
    def view(self) -> FileSystemView: ...


def require_files(state: Committed) -> None:
    """Raises MissingFileError, and CorruptBaseFileError or CorruptLogBlockError for a file that has lost bytes.

    BusyError instead while a rollback or restore is under way.

    Its rows are unknown, so nothing may be said of the table: neither what is complete, nor up to which time. One with
    some of its bytes is left to who reads it if another engine recorded its size, which may be wrong.
    """
    present = {file.path: file.size for file in state.listing}
    linked = {file.path for file in state.listing if file.link_target is not None}
    # By base files, not by slices: without its base file a slice would go by its first log file's later instant.
    live = {s.file_group: s.base_instant for s in state.view.latest_base_files()}
    for time, metadata in state.commits.items():
        is_own = CHECKSUMS_KEY in metadata.extra_metadata
        for stat in metadata.stats:
            size = present.get(stat.path)
            least = stat.file_size_bytes if is_own and stat.path not in linked else min(stat.file_size_bytes, 1)
            if size is not None and size >= least:
                continue
            group = (stat.partition, stat.file_id)
            if state.view.is_replaced(group):
                continue
            base_instant = live.get(group, "")
            slice_instant = state.config.layout.slice_of(stat.path, (base_instant,), state.timeline)
            if slice_instant is not None and slice_instant >= base_instant:
                check_undoing(state.timeline)  # a restore that isn't complete shows slices that were cleaned
                is_unmarked = not any(file.partition == stat.partition for file in state.listing)
                raise _not_whole(stat, present.get(stat.path), time, is_unmarked=is_unmarked)
    _require_bytes(state)


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


def _not_whole(stat: WriteStat, size: int | None, time: str, *, is_unmarked: bool) -> EventideError:
    is_base = BaseFileName.parse(stat.path.rpartition("/")[2]) is not None
    kind = MissingFileError if size is None else CorruptBaseFileError if is_base else CorruptLogBlockError
    problem = "is missing" if size is None else f"has {size} of its {stat.file_size_bytes} bytes"
    mark = path_in(stat.partition, PARTITION_MARK)
    unmarked = f"if {mark} is missing, {Cure.repair()} writes it again; otherwise, " if is_unmarked else ""
    return kind(
        f"{stat.path} {problem}: the commit {time} wrote it and its file slice is still in use; "
        f"{unmarked}restore the file, or restore the table to an instant before it"
    )
