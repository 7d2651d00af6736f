"""The file groups of the pending plans."""

from collections.abc import Collection, Iterable, Mapping

from eventide_core.errors import BusyError
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.file_system_view import FileGroup
from eventide_core.table.timeline.instant import Action, Instant


def planned_groups(files: TableFiles, config: TableConfig, plans: Iterable[Instant]) -> Mapping[FileGroup, str]:
    """The file groups of pending plans, and by which instant each is taken. Raises what `groups_of_plan` does."""
    return {group: pending.requested_time for pending in plans for group in groups_of_plan(files, config, pending)}


def groups_of_plan(files: TableFiles, config: TableConfig, pending: Instant) -> Collection[FileGroup]:
    """Raises BusyError for a pending plan that does not name its file groups."""
    if pending.action is not Action.COMPACTION:
        raise BusyError(
            f"a {pending.action} is pending at {pending.requested_time}, and may use any file group; try "
            "again when it has completed"
        )
    return files.plan(config, pending.requested_time).file_groups
