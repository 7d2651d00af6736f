"""The listing of Hudi's metadata table, where it has all files of the table's completed actions."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from eventide_core.access.timeline_files import TimelineFiles
from eventide_core.action.metadata_table.initialization import made_with
from eventide_core.ports import MetadataCodec, MetadataTableState, Storage
from eventide_core.service.common.state.table_files import UNREADABLE_METADATA_TABLE, TableFiles
from eventide_core.table.files.file_name import path_in
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Action
from eventide_core.table.timeline.timeline import Timeline


def committed_files(files: TableFiles, config: TableConfig, timeline: Timeline) -> tuple[DataFile, ...] | None:
    """The base and log files that the metadata table lists, for callers that need no file of a pending action.

    None if that may not be all, and while a rollback or restore is pending: the metadata table names the command blocks that
    it has written only once it has completed. Then the directories are listed.
    """
    if any(i.is_undoing for i in timeline.pending):
        return None
    files.listed = listing = metadata_listing(files, config, timeline)
    if listing is None:
        return None
    return tuple(
        DataFile(partition, path_in(partition, name), listing[partition][name])
        for partition in sorted(listing)
        for name in sorted(listing[partition])
    )


def metadata_listing(
    files: TableFiles, config: TableConfig, timeline: Timeline
) -> Mapping[str, Mapping[str, int]] | None:
    """The sizes of the files that the metadata table lists, by partition and name; None if these may not be all.

    There is no metadata table, it has not followed each completed action of the active timeline since it was made (a writer
    continued without it), or it cannot be read.
    """
    if config.metadata_partitions:
        followed = {i.requested_time for i in timeline.completed if i.action is not Action.SAVEPOINT}
        with suppress(*UNREADABLE_METADATA_TABLE):
            return files.metadata_table.listing(followed, partial(actions_made_with, files.storage, files.codec))
    return None


def actions_made_with(storage: Storage, codec: MetadataCodec, state: MetadataTableState) -> frozenset[str]:
    """The requested times of the actions with which the metadata table was made (`made_with`)."""
    timeline = TimelineFiles(storage, state.timeline_path)
    return made_with(state.facts, lambda instant: codec.decode_commit(timeline.read(instant), timeline.path(instant)))
