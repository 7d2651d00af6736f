"""Opens a table's archived timeline, in the layout of its version."""

from eventide_adapters.format.timeline.archived_log import LogArchivedTimeline
from eventide_adapters.format.timeline.archived_lsm import LsmArchivedTimeline
from eventide_core.ports import ArchivedTimeline, Storage
from eventide_core.table.table_config import TableConfig

_FIRST_LSM_VERSION = 8


def open_archived_timeline(storage: Storage, config: TableConfig) -> ArchivedTimeline:
    """The archived timeline of the table; an empty one where nothing has been archived. Reads nothing yet."""
    if config.version >= _FIRST_LSM_VERSION:
        return LsmArchivedTimeline(storage, config.archive_path)
    return LogArchivedTimeline(storage, config.archive_path)
