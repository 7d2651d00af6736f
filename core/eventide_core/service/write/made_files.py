"""Which files a write has made: those that its file groups name beforehand, and no other's."""

from collections.abc import Iterable, Sequence

from eventide_core.ports import Storage
from eventide_core.service.facts.block_headers import is_of_one_write
from eventide_core.table.files.file_group_write import FileGroupWrite
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.timeline.file_system_view import DataFile


def made_files(storage: Storage, groups: Sequence[FileGroupWrite]) -> Iterable[str]:
    """The paths of the files that exist. Each partition is listed once."""
    for partition in sorted({group.partition for group in groups}):
        of_partition = [group for group in groups if group.partition == partition]
        for entry in storage.list(partition):
            file = DataFile(partition, entry.path, entry.size, entry.link_target)
            if any(_is_made(storage, file, group) for group in of_partition):
                yield file.path


def _is_made(storage: Storage, file: DataFile, group: FileGroupWrite) -> bool:
    match file.parsed:
        case BaseFileName():
            return file.name == group.base_name
        case LogFileName() as log if log.version >= group.first_log_version:
            if file.name != group.log_name(log.version - group.first_log_version):
                return False
            # On version 6 a write of another day may have the same token.
            return log.instant == group.instant or is_of_one_write(storage, file, group.instant)
        case _:
            return False
