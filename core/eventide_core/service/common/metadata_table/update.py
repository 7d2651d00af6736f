"""Writes an action of the table to its metadata table: the log files with their records, and the delta commit.

eventide writes in this order, all below `.hoodie/metadata`:

1. Indexes that cannot follow the action are dropped.
2. `C.deltacommit.requested` and `.inflight`.
3. One log file for each file group with records.
4. The completed delta commit.

All of this comes before the table's commit at C, and readers ignore it until then. C and the state of the table determine
each name, so that a second run makes the same names. A log file that isn't committed is replaced.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from eventide_core.access.timeline_files import TimelineFiles
from eventide_core.action.metadata_table.compaction import end_of_update
from eventide_core.ports import MetadataCodec, MetadataLog, MetadataTable, MetadataUpdate, Storage
from eventide_core.service.common.metadata_table.drop import drop_indexes
from eventide_core.service.common.transaction.action import Transaction
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.table.settings.metadata_table import MetadataTableFacts
from eventide_core.table.timeline.contents.checksums import with_checksums
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat, by_partition
from eventide_core.table.timeline.instant import Action, State

_OPERATION: Final = "UPSERT_PREPPED"
"""Hudi's name for its writes to the metadata table."""


def write_update(
    storage: Storage, table: MetadataTable, codec: MetadataCodec, update: MetadataUpdate, completion_time: str
) -> None:
    """Writes the change and its own commit at the table's instant. Does nothing if that commit exists.

    `completion_time` is when the table's commit completed, which version 6 does not record. It must be the same in a
    second run.
    """
    if update.logs is None:
        return
    facts, logs = update.state.facts, update.logs
    timeline = TimelineFiles(storage, update.state.timeline_path)
    end = facts.layout.recorded_completion(end_of_update(facts, completion_time))
    transaction = Transaction(Kind.METADATA_UPDATE, Action.DELTA_COMMIT, update.instant, timeline)

    def commit(stats: Iterable[WriteStat], extra: Mapping[str, str]) -> bytes:
        return codec.encode_commit(CommitMetadata(by_partition(stats), extra, _OPERATION), facts.version)

    drop_indexes(storage, table, update.dropped)
    transaction.put(None, State.REQUESTED)
    transaction.put(None, State.INFLIGHT, commit((_stat(facts, update.instant, log, 0) for log in logs), {}))
    table.place(logs)
    stats = (_stat(facts, update.instant, log, log.size) for log in logs)
    extra = with_checksums(update.extra_metadata, (), {})  # shows that it is eventide's: if it is late, it is a stray
    transaction.put(None, State.COMPLETED, commit(stats, extra), completion=end)


def _stat(facts: MetadataTableFacts, instant: str, log: MetadataLog, size: int) -> WriteStat:
    file_slice, name = log.file_slice, str(log.name)
    base = file_slice.base_file
    before = [str(known.name) for known in file_slice.log_files if str(known.name) != name]
    is_shared = not facts.layout.names_logs_by_write
    return WriteStat(
        file_id=file_slice.file_id,
        path=log.path,
        partition=file_slice.partition,
        prev_commit=file_slice.base_instant if is_shared else instant,
        num_writes=log.count,
        num_update_writes=log.count,
        total_write_bytes=size,
        file_size_bytes=size,
        log_version=log.name.version,
        base_file=str(base.name) if is_shared and base is not None else "",
        log_files=(*before, name) if is_shared else (name,),
    )
