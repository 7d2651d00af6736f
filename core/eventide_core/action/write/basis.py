"""What a write was computed from: rows that were read before it began.

An update, a merge or a partial upsert reads rows and writes what they become. If another writer changes such a row
between the read and the commit, the result would undo that change. So the write counts as one that loaded the table when
its rows were read:

1. What completed since then is checked as in `conflict`, also if it completed before the write's instant was requested.
2. A row that was read isn't a new key when the write looks keys up. If it is, another write has deleted or replaced the row.
3. A commit that was read is still there. If it is not, it was rolled back.
4. The active timeline still has all that completed since then. If it was archived that far, the write cannot know.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from eventide_core.errors import WriteConflictError
from eventide_core.table.files.file_group_write import Placement
from eventide_core.table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class ReadBasis:
    """The writes that had completed, or were pending, when the rows were read.

    `completed` and `pending` are their requested times; of completed ones, the active timeline's. `new_keys`: how
    many of the rows to write were not among them, and are inserts.
    """

    completed: frozenset[str]
    pending: frozenset[str]
    new_keys: int = 0

    @classmethod
    def of(cls, timeline: Timeline) -> "ReadBasis":
        return cls(
            frozenset(i.requested_time for i in timeline.writes),
            frozenset(i.requested_time for i in timeline.pending_writes),
        )

    def check_placed(self, instant: str, placements: Iterable[Placement]) -> None:
        """Raises WriteConflictError if a row that was read has no file group any more."""
        new = sum(placement.upserts for placement in placements if not placement.place)
        if new > self.new_keys:
            raise _conflict(instant, "rows that it changes were deleted or replaced")

    def check_kept(self, instant: str, timeline: Timeline, is_undone: Callable[[str], bool]) -> None:
        """Raises WriteConflictError if the timeline no longer has what happened to the rows since they were read.

        `is_undone`: whether a write that was pending then is recorded as undone.
        """
        gone = next((time for time in sorted(self.completed) if not timeline.is_completed(time)), None)
        if gone is not None:
            raise _conflict(instant, f"the commit {gone}, whose rows it read, was rolled back")
        is_behind = bool(self.completed) and timeline.find(max(self.completed)) is None
        if is_behind or any(timeline.is_archived(time) and not is_undone(time) for time in self.pending):
            raise _conflict(instant, "writes that completed since it read the rows have been archived")


def _conflict(instant: str, what: str) -> WriteConflictError:
    return WriteConflictError(f"the write at {instant} was not committed: {what} in the meantime; write again")
