"""Reads back a write that has not completed yet, for the indexes over rows, which are updated when it completes."""

from dataclasses import replace
from itertools import chain, islice

from eventide_core.action.query.planner import plan_slices
from eventide_core.ports import AddedFile, FileChanges, WrittenRows
from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.slice_read import BlockFilter, SliceRead
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat

_LAST_WRITES = 3  # the number of last writes whose files are listed


def added_files(metadata: CommitMetadata) -> tuple[AddedFile, ...]:
    """The files that a write made."""
    return tuple(
        AddedFile(stat.partition, stat.path.rpartition("/")[2], stat.file_size_bytes) for stat in metadata.stats
    )


def written_changes(state: TableState, instant: str, metadata: CommitMetadata) -> FileChanges:
    """What the pending write at `instant` does to the files, with its rows; `state` is the table before it completes."""
    schema = metadata.schema or state.schema
    slices = _slices(state, instant, metadata)
    present = {file.path for file in state.listing}
    last = islice((state.commits[i.requested_time] for i in reversed(state.timeline.writes)), _LAST_WRITES)
    known = [(s.partition, s.path) for commit in last for s in commit.stats if s.path in present]
    own = {stat.path for stat in metadata.stats}
    for slice_read in slices:
        known += [(slice_read.partition, path) for path, _ in slice_read.log_paths if path not in own]
        known += (
            [(slice_read.partition, slice_read.base_path)]
            if slice_read.base_path and slice_read.base_path not in own
            else []
        )
    names = dict.fromkeys((partition, path.rpartition("/")[2]) for partition, path in known)
    replaced, replaced_bytes = _replaced(state, metadata)
    return FileChanges(
        RowChange.WRITTEN if schema == state.known_schema or not metadata.stats else RowChange.WIDENED,
        added_files(metadata),
        written=WrittenRows(state.shape_of(schema, None), slices, tuple(names), replaced, replaced_bytes),
    )


def _replaced(state: TableState, metadata: CommitMetadata) -> tuple[tuple[SliceRead, ...], int]:
    """The slices that a write replaces, and the bytes of their files."""
    groups = {(partition, file_id) for partition, ids in metadata.replaced_file_ids.items() for file_id in ids}
    slices = [file_slice for file_slice in state.view.latest_slices() if file_slice.file_group in groups]
    bases = sum(file_slice.base_file.size for file_slice in slices if file_slice.base_file is not None)
    logs = sum(log.size for file_slice in slices for log in file_slice.log_files)
    return plan_slices(slices, state.blocks()), bases + logs


def _slices(state: TableState, instant: str, metadata: CommitMetadata) -> tuple[SliceRead, ...]:
    """The slices that the write changed, as they will be."""
    blocks = state.blocks()
    blocks = replace(blocks, completed=blocks.completed | {instant})
    latest = {file_slice.file_group: file_slice for file_slice in state.view.latest_slices()}
    groups: dict[tuple[str, str], list[WriteStat]] = {}
    for stat in metadata.stats:
        groups.setdefault((stat.partition, stat.file_id), []).append(stat)
    return tuple(_after(latest.get(group), stats, blocks) for group, stats in groups.items())


def _after(before: FileSlice | None, stats: list[WriteStat], blocks: BlockFilter) -> SliceRead:
    partition, file_id = stats[0].partition, stats[0].file_id
    base = next((stat.path for stat in stats if stat.log_version is None), None)
    if base is not None:
        return SliceRead(partition, file_id, base, (), blocks)
    old_logs = () if before is None else ((log.path, log.size) for log in before.log_files)
    own_logs = ((stat.path, stat.file_size_bytes) for stat in sorted(stats, key=lambda s: s.log_version or 0))
    old_base = None if before is None or before.base_file is None else before.base_file.path
    return SliceRead(partition, file_id, old_base, tuple(chain(old_logs, own_logs)), blocks)
