"""Every action by the files that it puts, and what shows that a file was put too late.

A process may be paused between any two of its requests until its lock and heartbeat have expired and others have gone on,
and it may die at any of them. What then holds of each file is in docs/reference/steps.md. `action` runs the table; the
exploration (`tests/properties/`) takes each of its fences out in turn.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from eventide_core.table.timeline.instant import State


class Kind(StrEnum):
    """The actions by the files that they put. `PLAN_OF_HUDI`: a compaction that another engine planned."""

    WRITE = "write"
    COMPACTION = "compaction"
    PLAN_OF_HUDI = "compaction of another engine's plan"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    METADATA_UPDATE = "update of the metadata table"
    METADATA_COMPACTION = "compaction of the metadata table"
    METADATA_TABLE = "new metadata table"


class Fence(StrEnum):
    """What shows, after the put, that the file came too late; then it is withdrawn."""

    LEASE = "the lock was lost, and others have undone or archived the action"
    REQUEST = "the requested file is gone"
    CALLER = "the next check of the caller"


FENCES: Final[Mapping[tuple[Kind, State], Fence]] = {
    (Kind.WRITE, State.REQUESTED): Fence.LEASE,
    (Kind.WRITE, State.INFLIGHT): Fence.LEASE,
    (Kind.WRITE, State.COMPLETED): Fence.CALLER,
    (Kind.COMPACTION, State.REQUESTED): Fence.LEASE,
    (Kind.COMPACTION, State.INFLIGHT): Fence.LEASE,
    (Kind.COMPACTION, State.COMPLETED): Fence.REQUEST,
    (Kind.PLAN_OF_HUDI, State.INFLIGHT): Fence.REQUEST,
    (Kind.PLAN_OF_HUDI, State.COMPLETED): Fence.REQUEST,
    (Kind.CLEAN, State.REQUESTED): Fence.LEASE,
    (Kind.CLEAN, State.INFLIGHT): Fence.REQUEST,
    (Kind.CLEAN, State.COMPLETED): Fence.LEASE,
    (Kind.ROLLBACK, State.REQUESTED): Fence.LEASE,
    (Kind.ROLLBACK, State.INFLIGHT): Fence.LEASE,
    (Kind.ROLLBACK, State.COMPLETED): Fence.LEASE,
    (Kind.RESTORE, State.REQUESTED): Fence.LEASE,
    (Kind.RESTORE, State.INFLIGHT): Fence.LEASE,
    (Kind.RESTORE, State.COMPLETED): Fence.LEASE,
    (Kind.SAVEPOINT, State.INFLIGHT): Fence.LEASE,
    (Kind.SAVEPOINT, State.COMPLETED): Fence.LEASE,
    (Kind.METADATA_UPDATE, State.REQUESTED): Fence.CALLER,
    (Kind.METADATA_UPDATE, State.INFLIGHT): Fence.CALLER,
    (Kind.METADATA_UPDATE, State.COMPLETED): Fence.CALLER,
    (Kind.METADATA_COMPACTION, State.REQUESTED): Fence.LEASE,
    (Kind.METADATA_COMPACTION, State.INFLIGHT): Fence.LEASE,
    (Kind.METADATA_COMPACTION, State.COMPLETED): Fence.LEASE,
    (Kind.METADATA_TABLE, State.REQUESTED): Fence.CALLER,
    (Kind.METADATA_TABLE, State.INFLIGHT): Fence.CALLER,
    (Kind.METADATA_TABLE, State.COMPLETED): Fence.LEASE,
}
"""The fence of each file that an action puts, if absent."""


def first_state(kind: Kind) -> State:
    """The state with which the action begins."""
    return State.INFLIGHT if kind is Kind.SAVEPOINT else State.REQUESTED
