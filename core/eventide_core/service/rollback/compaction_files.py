"""The files that a compaction makes besides its commit, and their removal."""

from contextlib import suppress

from eventide_core.errors import StorageError
from eventide_core.ports import KeyedFiles, Storage
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.table.files.file_group_write import marker_directory
from eventide_core.table.timeline.contents.plans import CompactionPlan


def made_files(plan: CompactionPlan) -> tuple[str, ...]:
    """The data files that an execution makes, in the order in which they may be removed: left-overs in order."""
    return tuple(path for op in plan.operations for path in op.made_paths)


def remove_markers(files: TableFiles, plan: CompactionPlan) -> None:
    """Removes the markers of the plan's base files, and their directories unless another process is at work there.

    A process that has not noticed the rollback yet removes its own files.
    """
    storage = files.storage
    files.delete_all([op.marker_path(plan.instant) for op in plan.operations])
    if isinstance(storage, KeyedFiles):
        return  # no directory remains
    for partition in dict.fromkeys(op.partition for op in plan.operations):
        parts = [part for part in partition.split("/") if part]
        while parts:
            _remove_empty(storage, f"{marker_directory(plan.instant)}/{'/'.join(parts)}")
            parts.pop()
    _remove_empty(storage, marker_directory(plan.instant))


def _remove_empty(storage: Storage, directory: str) -> None:
    with suppress(StorageError):  # a remaining directory is harmless
        storage.delete(directory)
