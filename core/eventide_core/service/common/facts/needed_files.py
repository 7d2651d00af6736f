"""The files that something other than a file slice needs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from eventide_core.action.maintenance.clean_planner import linked_targets
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.state.window_consumers import kept_for_consumers
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.savepoint_metadata import SavepointMetadata
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Action, Instant
from eventide_core.table.timeline.timeline import Timeline


class Listed(Protocol):
    """What of a table's state these questions need. It exists for a table whose file slices can't be determined, too."""

    @property
    def config(self) -> TableConfig: ...
    @property
    def timeline(self) -> Timeline: ...
    @property
    def listing(self) -> tuple[DataFile, ...]: ...


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table of which no more than that is known. `listing` are all base and log files, committed or not."""

    config: TableConfig
    timeline: Timeline
    listing: tuple[DataFile, ...]

    @classmethod
    def load(cls, files: TableFiles) -> "ListedTable":
        config, timeline = files.config_and_timeline()
        return cls(config, timeline, files.data_files())


def savepoints_of(files: TableFiles, state: Listed) -> Mapping[str, SavepointMetadata]:
    """The files that each savepoint keeps, by the requested time of its commit. Raises CorruptTimelineError."""
    return {
        instant.requested_time: files.savepoint(state.config, instant)
        for instant in state.timeline.completed
        if instant.action is Action.SAVEPOINT
    }


def needed_paths(files: TableFiles, state: Listed) -> frozenset[str]:
    """The files that savepoints keep, that pending compactions merge, and that consumers of windows still read."""
    needed = {path for savepoint in savepoints_of(files, state).values() for path in savepoint.paths}
    needed |= kept_for_consumers(files.storage, files.clock.now_ms())
    for pending in state.timeline.pending_plans:
        if pending.action is Action.COMPACTION:
            needed.update(merged_paths(files, state, pending))
    return frozenset(needed)


def still_needed(files: TableFiles, state: Listed, to_delete: Collection[str]) -> set[str]:
    """Of files that are to be removed, those that a savepoint, a pending compaction, or a link of a remaining file needs."""
    return {*needed_paths(files, state).intersection(to_delete), *linked_targets(to_delete, links_of(state))}


def merged_paths(files: TableFiles, state: Listed, compaction: Instant) -> tuple[str, ...]:
    """The files that a compaction's plan states it found. Raises InstantNotFoundError if there is no plan."""
    return files.plan(state.config, compaction.requested_time).paths


def links_of(state: Listed) -> Mapping[str, str]:
    """The links among the data files, each with its direct target."""
    return {file.path: file.link_target for file in state.listing if file.link_target is not None}


def is_left_over_of_pending(state: TableState, log: LogFileName) -> bool:
    """Whether a pending compaction made the log file.

    On version 6, it is already in the slice, and a rollback of the compaction removes it.
    """
    layout, compaction = state.config.layout, state.timeline.find(log.instant)
    is_of_slice = not layout.names_logs_by_write and layout.may_be_left_over(log)
    return is_of_slice and compaction is not None and not compaction.is_completed
