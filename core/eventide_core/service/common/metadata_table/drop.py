"""Drops indexes of Hudi's metadata table, or all of it.

eventide writes in Hudi's order:

1. The table's settings without them, so that no reader uses them any more.
2. The definitions of the indexes without those that are dropped; if all is dropped, the definitions stay.
3. Their files are removed.

A crash leaves what no reader uses. A second run removes it. If the lock was lost before the last file of a metadata table
was removed, the table's settings are written once more without it.

A rebuild that is killed, or paused, has left a mark. The first action that changes files without a metadata table removes
what the rebuild made, and the mark (`withdraw_unfinished`): if a rebuild that was paused names its metadata table after
that, there is none, and readers list the directories.
"""

from collections.abc import Collection
from typing import Final

from eventide_core.access.files import is_marked, remove_tree
from eventide_core.access.timeline_files import delete_each
from eventide_core.errors import LockError
from eventide_core.ports import Lease, MetadataTable, Storage
from eventide_core.service.common.transaction.settings_file import change_settings
from eventide_core.table.files.table_path import INDEX_DEFINITIONS, METADATA_DIRECTORY
from eventide_core.table.property_keys import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from eventide_core.table.settings.properties import names, parse_properties

BEING_MADE: Final = ".hoodie/.aux/eventide/metadata_table.being_made"
"""The mark of a rebuild: empty, there from before the first file of its metadata table until the settings name that."""


def drop_indexes(storage: Storage, table: MetadataTable, partitions: Collection[str]) -> None:
    """Drops these partitions of the metadata table."""
    if not partitions:
        return

    def without(text: str) -> dict[str, str | None]:
        used = names(parse_properties(text), METADATA_PARTITIONS)
        left = [name for name in used if name not in partitions]
        return {METADATA_PARTITIONS: ",".join(left)} if len(left) < len(used) else {}

    change_settings(storage, without, None)
    definitions = table.definitions_without(partitions)
    if definitions is not None:
        storage.put(INDEX_DEFINITIONS, definitions)
    for partition in partitions:
        remove_tree(storage, f"{METADATA_DIRECTORY}/{partition}")


def drop_metadata_table(storage: Storage, lease: Lease) -> None:
    """Removes the metadata table: readers list the directories, until a rebuild or the next write of Hudi makes it again.

    If the lock was lost meanwhile, others may have made another metadata table, of which files were removed: then nobody
    reads that one either. Raises LockError.

    The mark that a rebuild left goes last, if there is one: the next metadata table is not the one that it is of.
    """
    is_left = is_marked(storage, BEING_MADE)
    _unname_metadata_table(storage)
    try:
        remove_tree(storage, METADATA_DIRECTORY)
    finally:
        check_or_unname(storage, lease)
    if is_left:
        delete_each(storage, [BEING_MADE], lease)


def withdraw_unfinished(storage: Storage, lease: Lease) -> None:
    """Removes what an unfinished rebuild made. Call it before files change that the metadata table would not follow."""
    if is_marked(storage, BEING_MADE):
        lease.check()
        remove_tree(storage, METADATA_DIRECTORY)
        delete_each(storage, [BEING_MADE], lease)


def check_or_unname(storage: Storage, lease: Lease) -> None:
    """Raises LockError after it has made sure that nobody reads the metadata table, which others may not have followed."""
    try:
        lease.check()
    except LockError:
        _unname_metadata_table(storage)
        raise


def _unname_metadata_table(storage: Storage) -> None:
    """Removes the metadata table from the table's settings: from then on, nobody reads it."""
    without: dict[str, str | None] = dict.fromkeys((METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT))
    change_settings(storage, lambda _: without, None)
