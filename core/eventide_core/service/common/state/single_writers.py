"""Finds open writes of writers that expect to be the table's only one.

Hudi's writers keep a heartbeat where they clean failed writes up lazily, which several writers of one table have to do. One
that cleans up eagerly, Hudi's default for a single writer, keeps none.
"""

from eventide_core.access.files import info_of_file
from eventide_core.config import CONCURRENCY_MODE, FAILED_WRITES
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.table.files.file_group_write import heartbeat_path
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.instant import Instant
from eventide_core.table.timeline.timeline import Timeline


def writes_of_single_writers(files: TableFiles, config: TableConfig, timeline: Timeline) -> tuple[Instant, ...]:
    """The pending writes without a heartbeat. One that has ended since the timeline was listed is none of them."""
    writes = [
        w for w in timeline.pending_writes if info_of_file(files.storage, heartbeat_path(w.requested_time)) is None
    ]
    if not writes:
        return ()
    still_pending = {write.requested_time for write in files.timeline(config).pending_writes}
    return tuple(write for write in writes if write.requested_time in still_pending)


def single_writer_note(write: Instant) -> str:
    """A note for the user about such a write."""
    return (
        f"the open write at {write.requested_time} has no heartbeat: its writer expects to be the only one; it shares "
        f"the table with {CONCURRENCY_MODE}=OPTIMISTIC_CONCURRENCY_CONTROL and {FAILED_WRITES}=LAZY"
    )
