"""Removes the old slices of the metadata table. Each file group keeps its latest slice and the previous one.

A reader that began on the previous slice finds it until the next compaction. Neither Hudi nor eventide needs an older one:
the metadata table has no savepoints, and no query reads its past. So its timeline doesn't record the removal. If a crash
leaves files, the next removal removes them. The base file of a slice is removed first.
"""

from typing import Final

from eventide_adapters.format.metadata_table.reader import MetadataTableReader
from eventide_core.ports import Lease
from eventide_core.table.timeline.instant import Action

VERSIONS_KEPT: Final = 2


def earliest_needed(reader: MetadataTableReader) -> str:
    """The earliest instant on the metadata table's timeline that the kept slices need; empty if all instants are needed.

    1. Needed are the compaction below which all slices are old, and every write that completed since then. With fewer
       than VERSIONS_KEPT compactions, or while Hudi builds an index, all instants are needed.
    2. From version 8 on, a log file's delta commit is also needed if the log file's slice began after the delta commit was
       requested: without its completion time, the log file would belong to the previous slice.
    """
    compactions = [i.requested_time for i in reader.timeline.completed if i.action is Action.COMMIT]
    if len(compactions) < VERSIONS_KEPT or reader.building:
        return ""
    oldest = compactions[-VERSIONS_KEPT]
    since = [i.requested_time for i in reader.timeline.writes if (i.completion_time or i.requested_time) >= oldest]
    if not reader.layout.names_logs_by_write:
        return min(since)
    slices = [found for name in reader.partitions for kept in reader.view(name).slices.values() for found in kept]
    straddling = [
        log.name.instant for found in slices for log in found.log_files if log.name.instant < found.base_instant
    ]
    return min((*since, *straddling))


def remove_old_slices(reader: MetadataTableReader, lease: Lease) -> None:
    for partition in reader.partitions:
        for slices in reader.view(partition).slices.values():
            for old in slices[:-VERSIONS_KEPT]:
                bases = () if old.base_file is None else (old.base_file,)
                for file in (*bases, *old.log_files):
                    lease.check()
                    reader.storage.delete(file.path)
