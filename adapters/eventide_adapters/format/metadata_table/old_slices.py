"""Removes the old slices of the metadata table: of each file group the latest stays, and the one before it.

A reader that began on the one before finds it until the next compaction. Nothing else needs an older one, neither in
Hudi nor here: the metadata table has no savepoints, and no query goes back in it. So nothing on its timeline records the
removal. A crash leaves files that the next removal takes. Of a slice the base goes first.
"""

from __future__ import annotations

from typing import Final

from eventide_adapters.format.metadata_table.reader import MetadataTableReader
from eventide_core.ports import Lease
from eventide_core.table.instant import Action

VERSIONS_KEPT: Final = 2


def earliest_needed(reader: MetadataTableReader) -> str:
    """The first instant on the metadata table's timeline by which the slices that stay are found; empty if all are needed.

    1. The compaction below which all slices are old, and every delta commit that completed since. Without that many
       compactions, or while Hudi builds an index, all are needed.
    2. From version 8 on, the delta commit of each log file in a slice that began after it was requested: without its
       completion time, the log file would belong to the slice before.
    """
    compactions = [i.requested_time for i in reader.timeline.completed if i.action is Action.COMMIT]
    if len(compactions) < VERSIONS_KEPT or reader.building:
        return ""
    oldest = compactions[-VERSIONS_KEPT]
    since = [i.requested_time for i in reader.timeline.writes if (i.completion_time or i.requested_time) >= oldest]
    if not reader.slices_by_completion_time:
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
