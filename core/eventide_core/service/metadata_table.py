"""What becomes of Hudi's metadata table when a compaction commits."""

from eventide_core.ports import Storage
from eventide_core.table.table_config import PROPERTIES_PATH

METADATA_FOLDER = ".hoodie/metadata"
_PARTITION_KEYS = ("hoodie.table.metadata.partitions=", "hoodie.table.metadata.partitions.inflight=")


def drop_metadata_table(storage: Storage) -> None:
    """Drops the metadata table: readers list the folders again, and the next Hudi write builds it anew.

    First the property, in one replacement of hoodie.properties, so that from then on nobody reads it; then its files. A
    crash in between leaves files that nobody reads and that the next Hudi write removes.
    """
    lines = storage.read(PROPERTIES_PATH).decode().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(_PARTITION_KEYS)]
    storage.put(PROPERTIES_PATH, "".join(kept).encode())
    _delete_tree(storage, METADATA_FOLDER)


def _delete_tree(storage: Storage, directory: str) -> None:
    for entry in storage.list(directory):
        if entry.is_directory:
            _delete_tree(storage, entry.path)
        else:
            storage.delete(entry.path)
    storage.delete(directory)
