"""Removes the old slices of the metadata table: of each file group the latest stays, and the one before it.

A reader that began on the one before finds it until the next compaction. Nothing else needs an older one, neither in
Hudi nor here: the metadata table has no savepoints, and no query goes back in it. So nothing on its timeline records the
removal. A crash leaves files that the next removal takes. Of a slice the base goes first.
"""

from __future__ import annotations

from typing import Final

from eventide_adapters.format.metadata_table.reader import MetadataTableReader
from eventide_core.ports import Lease

VERSIONS_KEPT: Final = 2


def remove_old_slices(reader: MetadataTableReader, lease: Lease) -> None:
    for partition in reader.partitions:
        for slices in reader.view(partition).slices.values():
            for old in slices[:-VERSIONS_KEPT]:
                bases = () if old.base_file is None else (old.base_file,)
                for file in (*bases, *old.log_files):
                    lease.check()
                    reader.storage.delete(file.path)
