"""A compaction plan: which log files of which slice are merged, and how the left-overs stay visible.

On disk, it is Hudi's HoodieCompactionPlan. For an engine that doesn't know left-overs, `deltaFilePaths` defines a
correct compaction: all log files of the slice if left-overs get new names in the new slice, or only the merged ones if
the new base file is back-dated below the left-overs. eventide's additions are in `extraMetadata`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from eventide_core.bulk_dataclass import bulk_dataclass
from eventide_core.errors import PlanMismatchError
from eventide_core.table.files.file_group_write import marker_directory
from eventide_core.table.files.file_name import CHANGE_LOG_SUFFIX, BaseFileName, LogFileName, path_in
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.schema.avro_schema import AvroSchema


class LinkMode(StrEnum):
    """How left-over log files become visible in the new slice."""

    PREFIX = "prefix"  # creates no file: the base instant is below their completion time (version 8 and later)
    COPY = "copy"
    HARDLINK = "hardlink"
    SYMLINK = "symlink"


class CutMode(StrEnum):
    """What a compaction at T takes: whole log files (as in the RFC), or exactly the records before T."""

    FILE = "file"
    EXACT = "exact"


class FallbackReason(StrEnum):
    """Why a slice is compacted in full although some of its log files contain nothing before T."""

    ROLLBACK_BLOCK = "rollback-block"
    UNCOMMITTED_BLOCK = "uncommitted-block"
    TORN_BYTES = "torn-bytes"
    LOG_COMPACTION = "log-compaction"
    DIVIDED_WRITE = "divided-write"
    DELETE_REORDERED = "delete-reordered"
    LATE_RECORD_REORDERED = "late-record-reordered"
    PARTIAL_UPDATE_REORDERED = "partial-update-reordered"
    KEY_LEAVES_BASE_INDEX = "key-leaves-base-index"
    CUSTOM_MERGER = "custom-merger"
    TOO_MANY_LEFT_OVERS = "too-many-left-overs"
    CHANGED_AFTER_PLANNING = "changed-after-planning"
    CHANGE_CAPTURE = "change-capture"
    DOUBLED_KEY = "doubled-key"


@bulk_dataclass(frozen=True, slots=True)
class PlannedLog:
    """A log file as it was when the plan was made. `path` is relative to the table's root; `size` is in bytes.

    `event_times` is None if the plan did not need them, because it compacts the slice in full in any case.
    """

    path: str
    size: int
    event_times: EventTimeRange | None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@bulk_dataclass(frozen=True, slots=True)
class LeftOver:
    """A log file that stays. `new_name` is its name in the new slice; None if it needs none.

    It needs none if the new base file is back-dated below it (link mode prefix), or if it `is_above`, from version 8
    on. `is_above`: it completed after the compaction's instant, so none of its records are merged. Such log files come
    last. From version 8 on, they belong to the new slice under their own names.

    `threshold_ms` is T if the log file contains records before T, or without event time, which an exact cut merges.
    `delete_count` is its number of deletes; None if the plan does not state it, as plans of earlier versions of
    eventide.
    """

    log_file: PlannedLog
    new_name: str | None
    threshold_ms: int | None = None
    delete_count: int | None = None
    is_above: bool = False


@bulk_dataclass(frozen=True, slots=True)
class PlannedOperation:
    """The changes of one file slice.

    `base_instant` identifies the slice. `base_path` is its base file, relative to the table's root, and `base_size` the size
    of that in bytes; None and 0 if it has none. `compacted` and `left_overs` together are all its log files, in reader
    order. `new_base_name` is the new base file's name. `carried_name` is the name of the log file with carried tombstones,
    which precedes the left-overs; None if none is needed. `fallback` is set if it is compacted in full although less would
    reach T, and `reason` states for people why so much of it is compacted. `captures_changes`: the compaction writes a
    change log beside the base file. `rests_on_no_deletes`: the slice is split because, by what its files' writers state,
    nothing that is merged is a delete.
    """

    partition: str
    file_id: str
    base_instant: str
    base_path: str | None
    base_size: int
    compacted: tuple[PlannedLog, ...]
    new_base_name: str
    reason: str
    left_overs: tuple[LeftOver, ...] = ()
    carried_name: str | None = None
    fallback: FallbackReason | None = None
    captures_changes: bool = False
    rests_on_no_deletes: bool = False

    @property
    def new_base_path(self) -> str:
        return self.path_of(self.new_base_name)

    @property
    def carried_path(self) -> str | None:
        return None if self.carried_name is None else self.path_of(self.carried_name)

    @property
    def change_log_path(self) -> str | None:
        return None if self.change_log_name is None else self.path_of(self.change_log_name)

    @property
    def change_log_name(self) -> str | None:
        """The name of the change log, with the write token of the base file; None if the compaction writes none.

        A slice without a base file needs none: all its rows are inserts.
        """
        base = BaseFileName.parse(self.new_base_name)
        if not self.captures_changes or self.base_path is None or base is None:
            return None
        return str(LogFileName(base.file_id, base.instant, 1, base.write_token, CHANGE_LOG_SUFFIX))

    def marker_path(self, instant: str) -> str:
        """The base file's marker, by which Hudi finds the file when it rolls back the attempt of the plan at `instant`."""
        return f"{marker_directory(instant)}/{self.new_base_path}.marker.CREATE"

    @property
    def linked(self) -> Mapping[str, LeftOver]:
        """The left-overs that get a file in the new slice, by its path."""
        return {self.path_of(left.new_name): left for left in self.left_overs if left.new_name is not None}

    @property
    def new_log_names(self) -> tuple[str, ...]:
        """The names of the plan's log files in the new slice, in reader order."""
        carried = () if self.carried_name is None else (self.carried_name,)
        return carried + tuple(left.new_name for left in self.left_overs if left.new_name is not None)

    @property
    def made_paths(self) -> tuple[str, ...]:
        """The data files that an execution makes, in the order in which they may be removed: left-overs in order."""
        changes = () if self.change_log_name is None else (self.change_log_name,)
        return tuple(self.path_of(name) for name in (*self.new_log_names, self.new_base_name, *changes))

    @property
    def early(self) -> Mapping[str, int]:
        """T for each left-over that is merged early, by its path; without the others."""
        return {left.log_file.path: left.threshold_ms for left in self.left_overs if left.threshold_ms is not None}

    @property
    def read_logs(self) -> tuple[PlannedLog, ...]:
        """The log files of which all or some records go into the new base file, in reader order."""
        return self.compacted + tuple(left.log_file for left in self.left_overs if left.threshold_ms is not None)

    def path_of(self, name: str) -> str:
        """The path of a file of this slice's partition, relative to the table's root."""
        return path_in(self.partition, name)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A compaction at instant `instant`, as scheduled.

    `cut_ms`: everything before it that was committed before the plan will be in the read-optimized view. None if the plan
    can't guarantee such a time: its strategy has none, or omits slices that contain earlier records (action/freshness).
    `cut` is its cut mode: whole log files, or exactly the records before T. `link_mode` is how all its left-overs become
    visible, and `link_reason` states why, for people. `event_time_field` is None if the strategy uses no event time.
    `operations` are one for each slice, in the order in which they were chosen; there may be none, and the plan only
    publishes its cut. `schema` is the table's Avro schema, without Hudi's meta fields, with which the base files are
    written. `partitions_with_logs` still have log files after the plan has run: to plan its next compaction, Hudi 1.1 and
    later reads only these and the partitions that were written since.
    """

    instant: str
    operations: tuple[PlannedOperation, ...]
    schema: AvroSchema
    link_mode: LinkMode
    link_reason: str
    cut_ms: int | None = None
    cut: CutMode = CutMode.FILE
    event_time_field: str | None = None
    partitions_with_logs: tuple[str, ...] = ()

    @property
    def file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition, file id) of each slice, as in ForeignPlan."""
        return frozenset((op.partition, op.file_id) for op in self.operations)

    def without(self, groups: Collection[tuple[str, str]]) -> "CompactionPlan":
        """What is left of it without some file groups. It then guarantees no time."""
        if not groups:
            return self
        left = tuple(op for op in self.operations if (op.partition, op.file_id) not in groups)
        return replace(self, operations=left, cut_ms=None)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of its slices as it found them."""
        logs = [
            log.path for op in self.operations for log in (*op.compacted, *(left.log_file for left in op.left_overs))
        ]
        return (*logs, *(op.base_path for op in self.operations if op.base_path is not None))

    @property
    def new_log_paths(self) -> tuple[str, ...]:
        """The log files that the plan creates in the new slices: left-overs under new names, and carried deletes."""
        return tuple(op.path_of(name) for op in self.operations for name in op.new_log_names)

    @property
    def bytes_read(self) -> int:
        return sum(op.base_size + sum(log.size for log in op.read_logs) for op in self.operations)

    @property
    def bytes_copied(self) -> int:
        """The total size of the copies; 0 if new names are sufficient."""
        if self.link_mode is not LinkMode.COPY:
            return 0
        return sum(left.log_file.size for op in self.operations for left in op.linked.values())

    @property
    def fallbacks(self) -> Mapping[FallbackReason, int]:
        """The number of slices that fell back to full compaction, by reason."""
        counts: dict[FallbackReason, int] = {}
        for op in self.operations:
            if op.fallback is not None:
                counts[op.fallback] = counts.get(op.fallback, 0) + 1
        return counts


@dataclass(frozen=True, slots=True)
class ForeignOperation:
    """One file slice of a plan of another engine: the base file that it merges, and all log files on top of it.

    `base_instant` identifies the slice. `base_path` is None if it has no base file. `log_paths` are as the plan has them;
    both kinds of paths are relative to the table's root, made of the plan's file names.
    """

    partition: str
    file_id: str
    base_instant: str
    base_path: str | None
    log_paths: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the operation merges."""
        return self.log_paths if self.base_path is None else (*self.log_paths, self.base_path)


@dataclass(frozen=True, slots=True)
class ForeignPlan:
    """A plan of another engine, at `instant`, with `operations` in its order.

    Hudi's plans merge all log files of each slice, and don't name the files that they create.
    """

    instant: str
    operations: tuple[ForeignOperation, ...]

    @property
    def file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition, file id) of each slice."""
        return frozenset((op.partition, op.file_id) for op in self.operations)

    @property
    def paths(self) -> tuple[str, ...]:
        """The base and log files that the plan merges."""
        return tuple(path for op in self.operations for path in op.paths)


def require_ours(plan: "CompactionPlan | ForeignPlan") -> CompactionPlan:
    """The plan, if eventide made it. Raises PlanMismatchError otherwise."""
    if isinstance(plan, ForeignPlan):
        raise PlanMismatchError(
            f"the plan at {plan.instant} was not scheduled by eventide; run it with the engine that scheduled it"
        )
    return plan
