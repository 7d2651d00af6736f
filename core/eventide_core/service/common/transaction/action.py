"""Runs the steps of one action: puts each of its files as the table of steps says, and withdraws one that came too late.

`put` is the only place that puts a file of a timeline. It checks the lease before each file, and once more after the last
one (or the requested file, where others need no lock to undo the action). If the lock was lost by then, others may have
gone on while this process was paused: a file that they have undone, or completed and archived, is withdrawn, and LockError
raised. A process that dies before it can withdraw its file leaves a stray (table/timeline/strays.py).

`fate` answers what has become of an action that this process no longer owns: nothing of it may be removed before that is
known, from the timeline and from the archive.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from eventide_core.access.files import discard
from eventide_core.access.timeline_files import TimelineFiles
from eventide_core.errors import LockError
from eventide_core.ports import ArchivedTimeline, Lease
from eventide_core.service.common.transaction.outcome import is_undone
from eventide_core.service.common.transaction.steps import FENCES, Fence, Kind, first_state
from eventide_core.table.timeline.archived_timeline import END_OF_TIME
from eventide_core.table.timeline.instant import COMPLETED_ACTION, Action, Instant, State
from eventide_core.table.timeline.outcome_file import record_of

_ORDER = (State.REQUESTED, State.INFLIGHT, State.COMPLETED)


class Put(Enum):
    DONE = auto()
    EXISTED = auto()
    """Another process, or an earlier run, put the file."""
    LATE = auto()
    """Others have undone the action, or completed and archived it: the file was withdrawn."""


class Fate(Enum):
    PENDING = auto()
    COMPLETED = auto()
    ARCHIVED = auto()
    """Completed, and archived since."""
    UNDONE = auto()
    """Undone, or being undone."""
    GONE = auto()
    """Nothing is known of it: undone so long ago that no record is left, or never requested."""

    @property
    def has_completed(self) -> bool:
        return self in (Fate.COMPLETED, Fate.ARCHIVED)


@dataclass(frozen=True, slots=True)
class Transaction:
    """One action of `kind` at `instant` (a requested time), pending as `action`, on one timeline.

    `archive` opens the archived part of that timeline; None if it has none. `is_followed`: writers that see the request
    append to the slices that it will begin, so it is withdrawn only if nobody follows it: it was undone, or is archived.
    """

    kind: Kind
    action: Action
    instant: str
    timeline: TimelineFiles
    archive: Callable[[], ArchivedTimeline] | None = None
    is_followed: bool = False

    def at(self, state: State, completion: str | None = None) -> Instant:
        """The action in a state. `completion` is the completion time in the name of the file, from version 8 on."""
        if state is State.COMPLETED:
            return Instant(self.instant, COMPLETED_ACTION.get(self.action, self.action), state, completion)
        return Instant(self.instant, self.action, state)

    def put(self, lease: Lease | None, state: State, data: bytes = b"", *, completion: str | None = None) -> Put:
        """Puts the file of a state, if absent. `lease` is None for a step without the lock. Raises LockError."""
        return self.put_each(lease, (self.at(state, completion), data))

    def put_each(self, lease: Lease | None, *files: tuple[Instant, bytes]) -> Put:
        """Puts files one after another, up to the first that exists, and then looks whether they came too late."""
        put: list[Instant] = []
        for instant, data in files:
            self._check(lease, put)
            if not self.timeline.storage.put_if_absent(self.timeline.path(instant), data):
                return Put.EXISTED
            put.append(instant)
        match FENCES[self.kind, put[-1].state]:
            case Fence.LEASE:
                self._check(lease, put)
            case Fence.REQUEST:
                if not self.timeline.exists(self.at(State.REQUESTED)):
                    self._discard(put)
                    return Put.LATE
            case Fence.CALLER:
                pass
        return Put.DONE

    def replace_request(self, lease: Lease, data: bytes) -> None:
        """Replaces the plan of an action that nobody has begun. Raises LockError after it has withdrawn a late one."""
        requested = self.at(State.REQUESTED)
        lease.check()
        self.timeline.storage.put(self.timeline.path(requested), data)
        self._check(lease, [requested])

    def fate(self) -> Fate:
        """What has become of the action, by the timeline, the records of undone instants, and the archive."""
        states = {there.state for there in self._there()}
        if State.COMPLETED in states:
            return Fate.COMPLETED
        if is_undone(self.timeline.storage, record_of(self.instant, self.action)):
            return Fate.UNDONE
        if self._is_archived():
            return Fate.ARCHIVED
        return Fate.PENDING if states else Fate.GONE

    def _check(self, lease: Lease | None, put: list[Instant]) -> None:
        """Checks the lease. If it was lost, withdraws the files that came too late, and raises LockError."""
        if lease is None:
            return
        try:
            lease.check()
        except LockError:
            if put:
                self._withdraw(put)
            raise

    def _withdraw(self, put: list[Instant]) -> None:
        states = {other.state for other in self._there() if other not in put}
        first, last = first_state(self.kind), put[-1].state
        if put[0].state is first and self.is_followed:
            is_late = is_undone(self.timeline.storage, record_of(self.instant, self.action)) or self._is_passed()
        elif put[0].state is first:
            is_late = not any(_ORDER.index(state) > _ORDER.index(last) for state in states) or self._is_archived()
        elif last is State.COMPLETED:
            is_late = first not in states or last in states
        else:
            is_late = first not in states or self._is_archived()
        if is_late:
            self._discard(put)

    def _is_archived(self) -> bool:
        return self.archive is not None and self.archive().find(self.instant) is not None

    def _is_passed(self) -> bool:
        """Whether an archival has archived the instant, or gone past it: then its pending files are strays."""
        if self.archive is None:
            return False
        completed = {i.requested_time for i, _ in self.timeline.entries() if i.is_completed}
        later = self.archive().writes(self.instant, END_OF_TIME)
        return any(write.requested_time == self.instant or write.requested_time not in completed for write in later)

    def _discard(self, put: list[Instant]) -> None:
        for instant in reversed(put):
            discard(self.timeline.storage, self.timeline.path(instant))

    def _there(self) -> list[Instant]:
        """The files of the action. An instant of another action may have the same requested time."""
        actions = (self.action, COMPLETED_ACTION.get(self.action, self.action))
        entries = self.timeline.entries()
        return [i for i, _ in entries if i.requested_time == self.instant and i.action in actions]
