"""A query plan: the slices to read, their files, and which of their blocks and rows count."""

from dataclasses import dataclass

from eventide_core.table.record_shape import RecordShape


@dataclass(frozen=True, slots=True)
class BlockFilter:
    """Which blocks of a log file count: those of completed instants, up to `until`.

    An instant before `timeline_start` has been archived, hence completed. One at or after it that is not among the
    `completed` is pending or was rolled back, and does not count.
    """

    completed: frozenset[str]
    timeline_start: str | None
    until: str | None = None

    def accepts(self, instant: str) -> bool:
        if self.until is not None and instant > self.until:
            return False
        return instant in self.completed or (self.timeline_start is not None and instant < self.timeline_start)


@dataclass(frozen=True, slots=True)
class SliceRead:
    """One slice to read: base and log files in reader order, merged, and only commits of `commit_times` where given.

    `is_plain`: its rows are those of its base file, with the query's columns and types, so that any Parquet reader can
    read them.
    """

    partition: str
    file_id: str
    base_path: str | None
    log_paths: tuple[tuple[str, int], ...]
    blocks: BlockFilter
    commit_times: frozenset[str] | None = None
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class ChangeRead(SliceRead):
    """What the write at `instant` changed in a file group: the slice as it left it, and as it was `before`; None: new.

    A slice without files is empty: the write replaced the file group.
    """

    instant: str = ""
    before: SliceRead | None = None


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The slices that a query reads, in no particular order of rows, and the shape of their records."""

    slices: tuple[SliceRead, ...]
    shape: RecordShape

    @property
    def paths(self) -> frozenset[str]:
        """The files that are read."""
        earlier = (one.before for one in self.slices if isinstance(one, ChangeRead) and one.before is not None)
        slices = (*self.slices, *earlier)
        logs = (path for found in slices for path, _ in found.log_paths)
        return frozenset((*logs, *(found.base_path for found in slices if found.base_path is not None)))
