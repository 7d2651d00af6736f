"""The table lock for a commit to a table with a metadata table: acquired when no lock-free writer is starting.

Between its requested and its inflight file, a writer of Hudi lists the metadata table and plans a compaction of it from
that listing. If a commit comes after the listing, the write of Hudi 0.x fails, and from 1.0 on the compaction skips the
commit. A writer without a heartbeat expects to be the only one, and acquires no lock for this.
"""

from collections.abc import Generator
from contextlib import contextmanager

from eventide_core.ports import Clock, Lease, TableLock
from eventide_core.service.state.table import TableState
from eventide_core.service.state.table_files import TableFiles
from eventide_core.table.files.file_group_write import heartbeat_path
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.instant import State
from eventide_core.table.timeline.timeline import Timeline

POLL_MS = 20
WAIT_MS = 10_000
"""Longer than a write takes from its requested to its inflight file. A write that stays there longer has a dead writer.
"""


@contextmanager
def commit_lock(
    files: TableFiles, lock: TableLock, clock: Clock, config: TableConfig
) -> Generator[tuple[Lease, TableState]]:
    """The lock, and the table's state under it."""
    until_ms = clock.now_ms() + (WAIT_MS if config.metadata_partitions else 0)

    def is_write_beginning(timeline: Timeline) -> bool:
        return clock.now_ms() < until_ms and any(
            write.state is State.REQUESTED and files.storage.stat(heartbeat_path(write.requested_time)) is None
            for write in timeline.pending_writes
        )

    while True:
        while config.metadata_partitions and is_write_beginning(files.timeline(config)):
            clock.sleep(POLL_MS)
        with lock.acquire() as lease:
            state = TableState.load(files)
            if is_write_beginning(state.timeline):
                continue
            yield lease, state
            return
