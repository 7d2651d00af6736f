"""Which log files hold blocks of a write although they don't have its instant.

They are version 6's, also after an upgrade.
"""

from eventide_core.access.block_headers import block_headers
from eventide_core.action.maintenance.rollback_planner import SharedLogs
from eventide_core.errors import RefusedError
from eventide_core.ports import Storage
from eventide_core.service.common.state.markers_and_heartbeats import marked_paths
from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.log_block import BlockType
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Instant


def logs_of_write(storage: Storage, state: TableState, write: Instant) -> SharedLogs:
    """The log files of a completed write, or of one that failed. Raises RefusedError."""
    logs_of = logs_of_completed_write if write.is_completed else logs_of_failed_write
    return logs_of(storage, state, write.requested_time)


def logs_of_failed_write(storage: Storage, state: TableState, instant: str) -> SharedLogs:
    """The log files that a write which never completed appended to, by their block headers and its markers."""
    if state.config.layout.names_logs_by_write:
        return SharedLogs()
    # A file with the size that its commit states was not appended to.
    known = {(stat.path, stat.file_size_bytes) for commit in state.commits.values() for stat in commit.stats}
    marked = marked_paths(storage, instant)
    with_blocks: list[DataFile] = []
    broken: list[DataFile] = []
    for file in state.listing:
        log = LogFileName.parse(file.name)
        if log is None or log.instant == instant or (file.path, file.size) in known:
            continue
        blocks = tuple(block_headers(storage, file.path, file.size))
        whole = tuple(block for block in blocks if block.block_type is not BlockType.CORRUPT)
        if any(block.instant_time == instant for block in whole if block.block_type is not BlockType.COMMAND):
            with_blocks.append(file)
        elif not whole and (file.path in marked or any(block.instant_time == instant for block in blocks)):
            broken.append(file)
    return SharedLogs(tuple(with_blocks), tuple(broken))


def logs_of_completed_write(storage: Storage, state: TableState, instant: str) -> SharedLogs:
    """The log files that a completed write states it appended to.

    On an upgraded table, they are removed as a whole. Raises RefusedError for one that also contains blocks of another
    write.
    """
    written = {stat.path for stat in state.commits[instant].stats}
    logs = (file for file in state.listing if file.path in written)
    shared = tuple(f for f in logs if (n := LogFileName.parse(f.name)) is not None and n.instant != instant)
    if not state.config.layout.names_logs_by_write:
        return SharedLogs(shared)
    for file in shared:
        for block in block_headers(storage, file.path, file.size):
            if block.instant_time not in (instant, None):
                raise RefusedError(
                    f"{file.path} holds records of {instant} and of {block.instant_time}: version 6 appended to it, and "
                    "from version 8 on, a rollback can't remove a part of a log file; downgrade the table to version 6 "
                    "with Hudi first"
                )
    return SharedLogs(broken=shared)
