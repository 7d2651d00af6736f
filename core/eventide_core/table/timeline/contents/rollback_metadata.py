"""The plan and the metadata of a rollback: the files that it removes, and those that it has removed.

A request is for one file group of one partition, and does one of two things: it deletes files, or it rolls back the
blocks of the target instant by a command block in a new log file. The latter applies to table version 6, where a log
file may contain blocks of several writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eventide_core.table.files.file_name import path_in
from eventide_core.table.timeline.instant import Action


@dataclass(frozen=True, slots=True)
class RollbackTarget:
    """The instant that is undone, and its `action` on the timeline, which for a completed compaction is `commit`."""

    instant: str
    action: Action


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """`deleted` are file names in the partition; `log_blocks` are log files whose blocks are rolled back, with sizes.

    `base_instant` is the instant of the log files' slice: the command block goes into its next log file.
    `rolls_back_blocks`: it is due although the plan names no log file, because the target had not recorded which ones it
    wrote.
    """

    partition: str
    file_id: str
    base_instant: str
    deleted: tuple[str, ...] = ()
    log_blocks: Mapping[str, int] = field(default_factory=dict[str, int])
    rolls_back_blocks: bool = False

    def path_of(self, name: str) -> str:
        return path_in(self.partition, name)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """What the rollback requested at `instant` does: undo `target`, by `requests` in this order."""

    instant: str
    target: RollbackTarget
    requests: tuple[RollbackRequest, ...]

    @property
    def deleted_paths(self) -> tuple[str, ...]:
        return tuple(request.path_of(name) for request in self.requests for name in request.deleted)


@dataclass(frozen=True, slots=True)
class RolledBackPartition:
    """What a rollback did in one partition, by names of files in it.

    `deleted` were removed. `rollback_logs` are the log files with the command blocks, `failed_logs` those rolled back; both
    with sizes in bytes. eventide leaves both empty from version 8 on, where it removes log files whole.
    """

    deleted: tuple[str, ...] = ()
    rollback_logs: Mapping[str, int] = field(default_factory=dict[str, int])
    failed_logs: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """What the rollback requested at `instant` did.

    `targets` are the instants that it undid: one, if eventide made it. `partitions` has what it did in each that it touched.
    """

    instant: str
    targets: tuple[RollbackTarget, ...]
    partitions: Mapping[str, RolledBackPartition]

    @classmethod
    def of_plan(cls, plan: RollbackPlan) -> "RollbackMetadata":
        """What a completed rollback did, by its plan; but not in which log files its command blocks are."""
        partitions: dict[str, RolledBackPartition] = {}
        for request in plan.requests:
            known = partitions.get(request.partition, RolledBackPartition())
            partitions[request.partition] = RolledBackPartition(
                known.deleted + request.deleted, {}, {**known.failed_logs, **request.log_blocks}
            )
        return cls(plan.instant, (plan.target,), partitions)


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The restore requested at `instant`. `savepoint` is None if an early Hudi planned it.

    `targets` are the writes to undo, the newest first.
    """

    instant: str
    savepoint: str | None
    targets: tuple[RollbackTarget, ...]


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """What the restore requested at `instant` did: `rollbacks` has one for each write that it undid, the newest first."""

    instant: str
    rollbacks: tuple[RollbackMetadata, ...]
