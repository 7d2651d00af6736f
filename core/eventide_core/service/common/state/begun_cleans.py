"""The cleans that were begun and haven't removed all of their files yet.

Hudi's cleaner completes every pending clean. It deletes no file of one of eventide (its plan names them where Hudi doesn't
look), so the files are removed, and recorded by another clean, after that. Until then, the heartbeat of the clean is there.
"""

from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.table.files.file_group_write import HEARTBEATS
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.instant import Action, Instant
from eventide_core.table.timeline.timeline import Timeline


def begun_cleans(files: TableFiles, config: TableConfig, timeline: Timeline) -> tuple[Instant, ...]:
    """The pending cleans, and eventide's cleans that Hudi completed while their process was at work, or dead."""
    beating = {entry.path.rpartition("/")[2] for entry in files.storage.list(HEARTBEATS)}
    return tuple(
        clean
        for clean in timeline.instants
        if clean.action is Action.CLEAN
        and (not clean.is_completed or (clean.requested_time in beating and files.clean(config, clean).is_left))
    )
