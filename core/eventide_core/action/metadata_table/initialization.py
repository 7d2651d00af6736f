"""A metadata table that is made from nothing: its instant, its file groups, its properties, and what it was made with.

Hudi writes a delta commit for each partition of the metadata table. eventide writes one for all of them:

    version 6      at the last completed instant of the table, followed by "010"
    8 and later    at 00000000000000000
"""

from collections.abc import Callable, Collection
from typing import Final

from eventide_core.table import property_keys as keys
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.settings import metadata_table
from eventide_core.table.settings.metadata_table import MetadataTableFacts
from eventide_core.table.settings.properties import table_checksum
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.instant import Instant
from eventide_core.table.timeline.layout import layout_of

_FILE_GROUPS: Final = {
    metadata_table.FILES: ("files", 1),
    metadata_table.BLOOM_FILTERS: ("bloom-filters", 4),
    metadata_table.COLUMN_STATS: ("col-stats", 2),
    metadata_table.PARTITION_STATS: ("partition-stats", 1),
    metadata_table.RECORD_INDEX: ("record-index", 10),
}
"""The prefix of the file ids, and the number of file groups that Hudi makes by default."""

_FIRST_INSTANT: Final = "00000000000000000"
_BELOW_VERSION_8: Final = "010"
_NO_INSTANT: Final = "00000000000000"


def first_instant(version: int, completed: Collection[str]) -> str:
    """The requested time of its delta commit. `completed` are the requested times of the table's completed actions."""
    if layout_of(version).records_completion_times:
        return _FIRST_INSTANT
    return f"{max(completed, default=_NO_INSTANT)}{_BELOW_VERSION_8}"


def new_file_groups(
    partition: str, instant: str, completion_time: str
) -> tuple[tuple[FileSlice, LogFileName, BaseFileName], ...]:
    """The file groups of one of its partitions, by number: a slice without a file yet, and the names of its first files.

    The time in their write tokens keeps the files of two metadata tables apart: a process that is paused while it removes
    the old one, or makes its own, doesn't touch that which others have made meanwhile.
    """
    token = f"0-{completion_time[:8]}-{completion_time[8:]}"
    prefix, count = _FILE_GROUPS[partition]
    file_ids = [f"{prefix}-{number:04d}-0" for number in range(count)]
    return tuple(
        (
            FileSlice(partition, file_id, instant, None, ()),
            LogFileName(file_id, instant, 1, token),
            BaseFileName(file_id, token, instant, ".hfile"),
        )
        for file_id in file_ids
    )


def first_properties(table_name: str, version: int) -> str:
    """The content of its `hoodie.properties`."""
    name = f"{table_name}_metadata"
    pairs = {
        keys.TABLE_NAME: name,
        keys.TABLE_TYPE: "MERGE_ON_READ",
        keys.TABLE_VERSION: str(version),
        keys.BASE_FILE_FORMAT: "HFILE",
        keys.RECORDKEY_FIELDS: "key",
        keys.TABLE_CHECKSUM: table_checksum({keys.TABLE_NAME: name}),
        keys.PAYLOAD_CLASS_NAME: "org.apache.hudi.metadata.HoodieMetadataPayload",
        keys.POPULATE_META_FIELDS: "false",
        keys.DROP_PARTITION_COLUMNS: "false",
    }
    if layout_of(version).needs_hudi_1:
        pairs |= {
            keys.INITIAL_VERSION: str(version),
            keys.TIMELINE_LAYOUT_VERSION: "2",
            keys.TIMELINE_PATH: "timeline",
            keys.TIMELINE_HISTORY_PATH: "history",
            keys.ARCHIVELOG_FOLDER: "history",
            keys.KEY_GENERATOR_TYPE: "HOODIE_TABLE_METADATA",
            keys.RECORD_MERGE_MODE: "CUSTOM",
            keys.RECORD_MERGE_STRATEGY_ID: "00000000-0000-0000-0000-000000000000",
        }
    else:
        pairs |= {
            keys.TIMELINE_LAYOUT_VERSION: "1",
            keys.ARCHIVELOG_FOLDER: "archived",
            keys.KEY_GENERATOR_CLASS_NAME: "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
            keys.RECORD_MERGER_STRATEGY: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        }
    return "".join(f"{key}={value}\n" for key, value in pairs.items())


def made_with(facts: MetadataTableFacts, commit: Callable[[Instant], CommitMetadata]) -> frozenset[str]:
    """The requested times of the table's actions whose files were listed when it was made. Empty if they are unknown.

    It needs no commit of them. Version 8 and later: those that completed before its first delta commit did. Version 6:
    those up to the instant that its first delta commit names. Unknown if that commit has been archived.
    """
    first = min(facts.timeline.completed, key=lambda i: i.requested_time, default=None)
    if first is None:
        return frozenset()
    completed, time = facts.data_timeline.completed, first.requested_time
    if facts.layout.records_completion_times:
        end = first.completion_time if time == _FIRST_INSTANT else None
        return frozenset(i.requested_time for i in completed if end is not None and (i.completion_time or "9") <= end)
    if (
        not time.endswith(_BELOW_VERSION_8)
        or len(time) <= len(_FIRST_INSTANT)
        or metadata_table.FILES not in commit(first).write_stats
    ):
        return frozenset()  # archived, or an index that was added later
    last = time.removesuffix(_BELOW_VERSION_8)
    return frozenset(i.requested_time for i in completed if i.requested_time <= last)
