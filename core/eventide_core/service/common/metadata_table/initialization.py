"""Makes a metadata table from nothing, as Hudi does at the first write of a table that has none.

`action/metadata_table/initialization.py` decides its instant, its file groups and its properties. eventide writes in this
order, below `.hoodie/metadata` except for the second step:

1. For each partition: its mark; for each of its file groups an empty log file, which makes the group exist; and a base
   file for each file group with records.
2. The definition of `column_stats`, beside the table's other definitions (8 and later).
3. `hoodie.properties`.
4. The requested, the inflight and the completed file of the delta commit.

No reader uses any of it until the table's own settings name the partitions, which the caller writes last. A run after a
crash begins with the removal of the whole directory.
"""

from typing import Final

from eventide_core.access.timeline_files import TimelineFiles
from eventide_core.action.metadata_table.initialization import first_properties, new_file_groups
from eventide_core.action.write.partition_forms import partition_mark
from eventide_core.ports import Lease, MetadataLog, NewMetadataTable
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.action import Transaction
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.table.files.table_path import INDEX_DEFINITIONS, METADATA_DIRECTORY
from eventide_core.table.settings.metadata_table import OWN_PROPERTIES_PATH
from eventide_core.table.timeline.contents.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from eventide_core.table.timeline.instant import Action, State
from eventide_core.table.timeline.layout import layout_of

_OPERATION: Final = "BULK_INSERT"


def make_metadata_table(
    files: TableFiles, new: NewMetadataTable, lease: Lease, *, name: str, completion_time: str
) -> None:
    """Writes a new metadata table. There must be no file of another one.

    `name` is the table's; `completion_time` is a time after every time of its timeline. Raises LockError, and what
    reading the data files raises.
    """
    storage, table, layout = files.storage, files.metadata_table, layout_of(new.version)
    content = table.content(new)
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for partition in new.partitions:
        lease.check()
        path, mark = partition_mark(partition, new.instant)
        storage.put(f"{METADATA_DIRECTORY}/{path}", mark)
        groups = new_file_groups(partition, new.instant, completion_time)
        table.place([MetadataLog(file_slice, log, 0, content.empty_logs[partition]) for file_slice, log, _ in groups])
        stats[partition] = tuple(content.write_bases(partition, [base for _, _, base in groups]))
    if content.definitions is not None:
        storage.put(INDEX_DEFINITIONS, content.definitions)
    lease.check()
    storage.put(OWN_PROPERTIES_PATH, first_properties(name, new.version).encode())
    timeline = TimelineFiles(storage, f"{METADATA_DIRECTORY}/{layout.timeline_path({})}")
    metadata = CommitMetadata(stats, {SCHEMA_KEY: content.schema.text}, _OPERATION)
    commit = files.codec.encode_commit(metadata, new.version)
    begun = Transaction(Kind.METADATA_TABLE, Action.DELTA_COMMIT, new.instant, timeline)
    completed = begun.at(State.COMPLETED, layout.recorded_completion(completion_time))
    begun.put_each(lease, (begun.at(State.REQUESTED), b""), (begun.at(State.INFLIGHT), b""), (completed, commit))
