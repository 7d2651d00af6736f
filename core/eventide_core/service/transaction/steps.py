"""The steps of every action: each file that it puts, and what happens to one that is put too late.

A process may be paused between any two of its requests until its lock and heartbeat have expired and others have gone on,
and it may die at any of them. The table says of each file what then holds. docs/architecture.md and docs/invariants.md show
it, generated from here; `action` runs it; the exploration (`tests/properties/`) takes each of its fences out in turn.

Words: *undone*, others have rolled the instant back; *executed*, they have completed it; *archived*, they have also
archived it. The rules named S1 to S3 are those of table/timeline/strays.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Step:
    """One file that an action puts, if absent.

    `file`: its name. `lock`: who may put it. `first`: the state with which the action begins. `late`: what a late put that
    isn't withdrawn, because its process died, would do to readers of eventide and of stock Hudi. `ended_by`: what removes
    it, or makes it harmless. `crash`: what a crash after the step leaves.
    """

    file: str
    lock: str
    fence: Fence
    late: str
    ended_by: str
    crash: str
    first: State = State.REQUESTED


_LOCK, _OWNER = "table lock", "owner, by its heartbeat"
_S1 = "a stray of rule 1 or 2; stock: what was archived since is missing"
_NEXT_ACTION = "the next action under the lock"
_NOTHING = "nothing: no reader counts it"

STEPS: Final[Mapping[tuple[Kind, State], Step]] = {
    (Kind.WRITE, State.REQUESTED): Step(
        "W.deltacommit.requested", _LOCK, Fence.LEASE, _S1, _NEXT_ACTION, "a pending write, rolled back once it is dead"
    ),
    (Kind.WRITE, State.INFLIGHT): Step(
        "W.deltacommit.inflight", _LOCK, Fence.LEASE, _S1, _NEXT_ACTION, "a pending write, rolled back once it is dead"
    ),
    (Kind.WRITE, State.COMPLETED): Step(
        "W.deltacommit",
        _LOCK,
        Fence.CALLER,
        "undone: a stray of rule 1; stock: a commit whose files are gone. Archived: a duplicate; stock: what was archived "
        "since is missing",
        "the outcome, which a write whose lock was lost claims after the put: undone, it withdraws the file; else "
        + _NEXT_ACTION,
        "the write is committed",
    ),
    (Kind.COMPACTION, State.REQUESTED): Step(
        "C.compaction.requested", _LOCK, Fence.LEASE, _S1, _NEXT_ACTION, "a plan, which any engine may run"
    ),
    (Kind.COMPACTION, State.INFLIGHT): Step(
        "C.compaction.inflight", _LOCK, Fence.LEASE, _S1, _NEXT_ACTION, "a plan, which the next run continues"
    ),
    (Kind.COMPACTION, State.COMPLETED): Step(
        "C.commit",
        _LOCK,
        Fence.REQUEST,
        "undone: cannot be, the outcome was claimed. Archived: a duplicate; stock: what was archived since is missing",
        _NEXT_ACTION,
        "the compaction is committed",
    ),
    (Kind.PLAN_OF_HUDI, State.INFLIGHT): Step(
        "C.compaction.inflight",
        _LOCK,
        Fence.REQUEST,
        _S1,
        _NEXT_ACTION,
        "eventide's attempt, which the next run continues; Hudi begins again",
    ),
    (Kind.PLAN_OF_HUDI, State.COMPLETED): Step(
        "C.commit",
        _LOCK,
        Fence.REQUEST,
        "archived: a duplicate; stock: what was archived since is missing",
        _NEXT_ACTION,
        "the compaction is committed",
    ),
    (Kind.CLEAN, State.REQUESTED): Step(
        "c.clean.requested",
        _LOCK,
        Fence.LEASE,
        _NOTHING,
        "the next clean, which ends it",
        "a clean, which the next one ends",
    ),
    (Kind.CLEAN, State.INFLIGHT): Step(
        "c.clean.inflight",
        _OWNER,
        Fence.REQUEST,
        _NOTHING,
        "the next clean, which ends it",
        "a clean, which the next one ends",
    ),
    (Kind.CLEAN, State.COMPLETED): Step(
        "c.clean", _LOCK, Fence.LEASE, _NOTHING, "the next archival", "the clean is complete"
    ),
    (Kind.ROLLBACK, State.REQUESTED): Step(
        "r.rollback.requested",
        _LOCK,
        Fence.LEASE,
        "nothing: what it undoes has an outcome, which decides",
        "the next write, clean or rollback, which ends it, or finds it void",
        "a rollback that others end",
    ),
    (Kind.ROLLBACK, State.INFLIGHT): Step(
        "r.rollback.inflight",
        _LOCK,
        Fence.LEASE,
        "nothing: what it undoes has an outcome, which decides",
        "the next write, clean or rollback, which ends it, or finds it void",
        "a rollback that others end",
    ),
    (Kind.ROLLBACK, State.COMPLETED): Step(
        "r.rollback", _LOCK, Fence.LEASE, _NOTHING, "the next archival", "the rollback is complete"
    ),
    (Kind.RESTORE, State.REQUESTED): Step(
        "s.restore.requested",
        _LOCK,
        Fence.LEASE,
        "a stray of rule 3; stock: no effect",
        _NEXT_ACTION,
        "nothing is undone yet: another run of the restore continues it, or the next action removes it",
    ),
    (Kind.RESTORE, State.INFLIGHT): Step(
        "s.restore.inflight", _LOCK, Fence.LEASE, _NOTHING, "another run of the restore", "another run completes it"
    ),
    (Kind.RESTORE, State.COMPLETED): Step(
        "s.restore", _LOCK, Fence.LEASE, _NOTHING, "stays on the timeline", "the restore is complete"
    ),
    (Kind.SAVEPOINT, State.INFLIGHT): Step(
        "W.savepoint.inflight",
        _LOCK,
        Fence.LEASE,
        "it pins files that may be gone: nothing relies on it",
        "the next action that keeps or deletes savepoints, cleans or archives: it completes or removes it",
        "a pin, with the list of files, which the next such action completes",
        State.INFLIGHT,
    ),
    (Kind.SAVEPOINT, State.COMPLETED): Step(
        "W.savepoint",
        _LOCK,
        Fence.LEASE,
        "none is late while its pin is there, for its files are; without the pin it is withdrawn",
        "`savepoint --delete`",
        "the savepoint is complete",
        State.INFLIGHT,
    ),
    (Kind.METADATA_UPDATE, State.REQUESTED): Step(
        "W.deltacommit.requested, of the metadata table",
        _LOCK,
        Fence.CALLER,
        _NOTHING,
        "the rollback of W",
        "nobody sees it",
    ),
    (Kind.METADATA_UPDATE, State.INFLIGHT): Step(
        "W.deltacommit.inflight, of the metadata table",
        _LOCK,
        Fence.CALLER,
        _NOTHING,
        "the rollback of W",
        "nobody sees it",
    ),
    (Kind.METADATA_UPDATE, State.COMPLETED): Step(
        "W.deltacommit, of the metadata table",
        _LOCK,
        Fence.CALLER,
        "nothing: the update by the rollback comes after it and removes the same names",
        "the rollback of W",
        "nobody sees it before the table's own commit",
    ),
    (Kind.METADATA_COMPACTION, State.REQUESTED): Step(
        "M.compaction.requested, of the metadata table",
        _LOCK,
        Fence.LEASE,
        _S1,
        _NEXT_ACTION,
        "a plan, which the next action of any engine runs",
    ),
    (Kind.METADATA_COMPACTION, State.INFLIGHT): Step(
        "M.compaction.inflight, of the metadata table",
        _LOCK,
        Fence.LEASE,
        _S1,
        _NEXT_ACTION,
        "a plan, which is run again",
    ),
    (Kind.METADATA_COMPACTION, State.COMPLETED): Step(
        "M.commit, of the metadata table",
        _LOCK,
        Fence.LEASE,
        "archived: a duplicate; stock lists what was archived since as uncommitted",
        _NEXT_ACTION,
        "the compaction is committed",
    ),
    (Kind.METADATA_TABLE, State.REQUESTED): Step(
        "0.deltacommit.requested, of a new metadata table",
        _LOCK,
        Fence.CALLER,
        _NOTHING,
        "the next rebuild",
        "nobody reads it",
    ),
    (Kind.METADATA_TABLE, State.INFLIGHT): Step(
        "0.deltacommit.inflight, of a new metadata table",
        _LOCK,
        Fence.CALLER,
        _NOTHING,
        "the next rebuild",
        "nobody reads it",
    ),
    (Kind.METADATA_TABLE, State.COMPLETED): Step(
        "0.deltacommit, of a new metadata table",
        _LOCK,
        Fence.LEASE,
        "nothing: the table's settings don't name it",
        "the next rebuild",
        "nobody reads it before the table's settings name it",
    ),
}
