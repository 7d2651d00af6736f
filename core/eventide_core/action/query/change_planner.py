"""The changes that a write made, as reads of its file groups before and after it: the query of format `cdc`.

1. A log file lies on the slice that it belongs to. Before it were the slice's base file and the log files that
   completed earlier; on version 6, where writes may append to one log file, the blocks of earlier instants.
2. A base file that is the first of its file group holds inserts alone; another one was made of the slice below it.
3. A file group that a write replaced loses all its rows.
4. Compactions, log compactions and clusterings change no row.

Hudi reads some of this from change logs (`.cdc`), which hold the same, or a part of it in its sparser modes of supplemental
logging. They aren't needed here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eventide_core.action.query.planner import plan_slices
from eventide_core.errors import CleanedHistoryError
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.slice_read import BlockFilter, ChangeRead, SliceRead
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.timeline.file_system_view import FileGroup, FileSystemView
from eventide_core.table.timeline.instant import Instant
from eventide_core.table.timeline.layout import Layout
from eventide_core.table.timeline.timeline import Timeline

_CHANGE_NO_ROW = ("COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX", "ALTER_SCHEMA")


@dataclass(frozen=True, slots=True)
class ChangePlanner:
    """Plans reads of the changes of writes.

    `view` has to have all slices, because a change is read from the slice below as well, until a clean removes that.
    """

    timeline: Timeline
    view: FileSystemView
    layout: Layout

    def plan(self, write: Instant, commit: CommitMetadata) -> Iterator[ChangeRead]:
        """The changes of one write, a read for each file group. Raises CleanedHistoryError."""
        if commit.operation_type.upper() in _CHANGE_NO_ROW or commit.is_compacted:
            return
        instant = write.requested_time
        groups: dict[FileGroup, list[WriteStat]] = {}
        for stat in commit.stats:
            groups.setdefault((stat.partition, stat.file_id), []).append(stat)
        for group, stats in groups.items():
            base = next((stat for stat in stats if stat.log_version is None), None)
            yield self._of_logs(group, stats, write) if base is None else self._of_base(group, base, instant)
        for partition, file_ids in commit.replaced_file_ids.items():
            for file_id in file_ids:
                group = (partition, file_id)
                older = [file_slice for file_slice in self._slices(group) if file_slice.base_instant < instant]
                if not older:
                    raise _cleaned(f"the file group {file_id} of {partition!r}", instant)
                (before,) = plan_slices(older[-1:], self._blocks(instant, is_after=False))
                yield ChangeRead(*group, None, (), before.blocks, instant=instant, before=before)

    def _of_base(self, group: FileGroup, stat: WriteStat, instant: str) -> ChangeRead:
        slices = self._slices(group)
        if not any(s.base_file is not None and s.base_file.path == stat.path for s in slices):
            raise _cleaned(stat.path, instant)
        before = None
        if stat.has_slice_below:
            below = next((file_slice for file_slice in slices if file_slice.base_instant == stat.prev_commit), None)
            if below is None:
                raise _cleaned(f"the slice of {stat.prev_commit} below {stat.path}", instant)
            (before,) = plan_slices([below], self._blocks(instant, is_after=False))
        return ChangeRead(*group, stat.path, (), self._blocks(instant, is_after=True), instant=instant, before=before)

    def _of_logs(self, group: FileGroup, stats: Sequence[WriteStat], write: Instant) -> ChangeRead:
        instant, paths = write.requested_time, {stat.path for stat in stats}
        for file_slice in self._slices(group):
            if paths <= {log.path for log in file_slice.log_files}:
                break
        else:
            raise _cleaned(min(paths), instant)
        logs = file_slice.log_files
        if self.layout.names_logs_by_write:
            logs = tuple(log for log in logs if log.path in paths or self._is_earlier(log.name.instant, write))
        below = tuple(log for log in logs if log.path not in paths or not self.layout.names_logs_by_write)
        base = None if file_slice.base_file is None else file_slice.base_file.path
        blocks = [self._blocks(instant, is_after=is_after) for is_after in (False, True)]
        before = SliceRead(*group, base, tuple((log.path, log.size) for log in below), blocks[0])
        after = tuple((log.path, log.size) for log in logs)
        return ChangeRead(*group, base, after, blocks[1], instant=instant, before=before)

    def _slices(self, group: FileGroup) -> tuple[FileSlice, ...]:
        return self.view.slices.get(group, ())

    def _is_earlier(self, instant: str, write: Instant) -> bool:
        completed, own = self.timeline.completion_time(instant), write.completion_time
        return completed is not None and own is not None and completed < own

    def _blocks(self, instant: str, *, is_after: bool) -> BlockFilter:
        """The blocks that count before the write, or right after it."""
        completed = {done.requested_time for done in self.timeline.completed}
        if not self.layout.names_logs_by_write:
            completed = {time for time in completed if time <= instant}
        own = {instant}
        counting = frozenset(completed | own if is_after else completed - own)
        return BlockFilter(counting, self._start(instant), undone=self.timeline.undone)

    def _start(self, instant: str) -> str | None:
        """Before which all that has been archived counts: on version 6 the write itself may have been."""
        start = self.timeline.start
        return start if start is None or self.layout.names_logs_by_write else min(start, instant)


def _cleaned(what: str, instant: str) -> CleanedHistoryError:
    return CleanedHistoryError(
        f"the changes of {instant} can no longer be read: cleaning has removed {what}; use a later begin"
    )
