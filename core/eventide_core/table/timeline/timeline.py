"""The active timeline: what has happened to a table, and what is in progress."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from eventide_core.table.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS, Action, Instant, State
from eventide_core.table.timeline.observed_offset import ObservedOffset

_WRITES = WRITE_ACTIONS | COMPLETED_ACTION.keys()
# Actions that may share a requested time; `Timeline.find` prefers the first.
_COMPACTION, _WRITE, _SAVEPOINT = range(3)
_KINDS = {Action.COMPACTION: _COMPACTION, Action.COMMIT: _COMPACTION, Action.SAVEPOINT: _SAVEPOINT}
_STATE_RANK = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}


@dataclass(frozen=True, slots=True)
class Timeline:
    """The active timeline: `instants` are its instants, each in its latest state, by requested time.

    A pending action and its completed file share a requested time, and are one instant. A savepoint has the time of the
    commit that it keeps, and is a separate instant, which `_by_time` omits. The same applies to a compaction if a writer
    without a shared lock took its requested time in the same millisecond: `_by_time` has the writer's instant. `_archived`
    are instants that have left the active timeline; only their completion times are known here.

    `start` is the earliest requested time of a write; any earlier write has been archived, so it has ended. None if the
    timeline is empty. Cleans, rollbacks, and savepoints stay while the writes around them are archived, so they don't count.
    Nor does a write that a savepoint keeps, which may stay behind the archived ones (`hoodie.archive.beyond.savepoint`),
    unless there is no other. If the timeline was in doubt (strays.py), it starts after `boundary`.
    `strays` are files that don't count, and that the next action under the table lock removes, in this order. `undone`
    are instants that were undone: they have not ended before the start, whatever files are left of them.

    `completed` and `pending` are the completed and pending instants; `writes` are the completed ones that have commit
    metadata. `offset` is the writers' offset from UTC, if the instants are local times and the files show it. `put_ms` has
    the modification times of the completed files of writes on version 6, in epoch milliseconds: Hudi 1.x takes them for the
    completion times that this version doesn't record.
    """

    instants: tuple[Instant, ...]
    start: str | None
    completed: tuple[Instant, ...] = field(repr=False, compare=False)
    pending: tuple[Instant, ...] = field(repr=False, compare=False)
    writes: tuple[Instant, ...] = field(repr=False, compare=False)
    _by_time: dict[str, Instant] = field(repr=False, compare=False)
    _saved: frozenset[str] = field(repr=False, compare=False)
    _archived: Mapping[str, Instant] = field(default_factory=dict[str, Instant], repr=False, compare=False)
    offset: ObservedOffset | None = field(default=None, repr=False, compare=False)
    put_ms: Mapping[str, int] = field(default_factory=dict[str, int], repr=False, compare=False)
    boundary: str | None = field(default=None, repr=False, compare=False)
    strays: tuple[Instant, ...] = field(default=(), compare=False)
    undone: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @classmethod
    def of(
        cls, instants: Iterable[Instant], *, boundary: str | None = None, strays: tuple[Instant, ...] = ()
    ) -> "Timeline":
        """Combines the states of each instant into its latest one. `boundary` is given if the timeline was in doubt."""
        latest: dict[tuple[str, int], Instant] = {}
        for instant in instants:
            key = (instant.requested_time, _KINDS.get(instant.action, _WRITE))
            known = latest.get(key)
            if known is None or _STATE_RANK[instant.state] > _STATE_RANK[known.state]:
                latest[key] = instant
        by_time = {time: latest[time, kind] for time, kind in sorted(latest) if kind != _SAVEPOINT}
        kept = {time for time, kind in latest if kind == _SAVEPOINT}
        writes = sorted(time for time, write in by_time.items() if write.action in _WRITES)
        if boundary is None:
            start = next((time for time in writes if time not in kept), writes[0] if writes else None)
        else:
            start = next((time for time in writes if time > boundary and time not in kept), f"{boundary}0")
        ordered = [latest[key] for key in sorted(latest)]
        completed = tuple([instant for instant in ordered if instant.state is State.COMPLETED])
        return cls(
            instants=tuple(ordered),
            start=start,
            completed=completed,
            pending=tuple([instant for instant in ordered if instant.state is not State.COMPLETED]),
            writes=tuple([instant for instant in completed if instant.action in WRITE_ACTIONS]),
            _by_time=by_time,
            _saved=frozenset([i.requested_time for i in completed if i.action is Action.SAVEPOINT]),
            boundary=boundary,
            strays=strays,
        )

    @classmethod
    def of_file_names(cls, names: Iterable[str]) -> "Timeline":
        """The timeline in a listing of the timeline directory. Skips other files."""
        return cls.of(filter(None, map(Instant.parse, names)))

    @property
    def pending_writes(self) -> tuple[Instant, ...]:
        """Pending commits and delta commits of writers, without compactions and clusterings."""
        return tuple(i for i in self.pending if i.action in (Action.COMMIT, Action.DELTA_COMMIT))

    @property
    def pending_plans(self) -> tuple[Instant, ...]:
        """Pending compactions, log compactions and clusterings."""
        return tuple(i for i in self.pending if i.is_pending_plan)

    @property
    def archived(self) -> Collection[Instant]:
        """The completed instants that have left the active timeline, but whose completion times are known."""
        return self._archived.values()

    def find(self, requested_time: str) -> Instant | None:
        """The instant with that requested time, in its latest state."""
        return self._by_time.get(requested_time)

    def find_compaction(self, requested_time: str) -> Instant | None:
        """The compaction with that requested time, in its latest state."""
        instants = (i for i in self.instants if i.requested_time == requested_time)
        return next((i for i in instants if _KINDS.get(i.action) == _COMPACTION), None)

    def shares_its_time(self, compaction: str) -> bool:
        """Whether a writer has the same requested time as a compaction."""
        instant = self.find(compaction)
        return instant is not None and _KINDS.get(instant.action, _WRITE) == _WRITE

    def has_savepoint(self, requested_time: str) -> bool:
        """Whether a savepoint keeps the table as of the write of that requested time."""
        return requested_time in self._saved

    def is_completed(self, requested_time: str) -> bool:
        """Whether the instant has completed. Also true before the timeline's start (archived)."""
        instant = self._by_time.get(requested_time)
        if instant is not None:
            return instant.is_completed
        return self.start is not None and requested_time < self.start and requested_time not in self.undone

    def completion_time(self, requested_time: str) -> str | None:
        """The completion time; None if pending or unknown. Version 6 records none, so there it is the requested time."""
        instant = self._by_time.get(requested_time) or self._archived.get(requested_time)
        if instant is None or instant.state is not State.COMPLETED:
            return None
        return instant.completion_time or instant.requested_time

    def is_archived(self, requested_time: str) -> bool:
        """Whether the instant has completed and left the active timeline."""
        return requested_time not in self._by_time and self.is_completed(requested_time)

    def with_archived(self, archived: Iterable[Instant]) -> "Timeline":
        """This timeline, which knows the completion times of these instants as well."""
        return replace(self, _archived={**self._archived, **{instant.requested_time: instant for instant in archived}})

    def with_undone(self, undone: Iterable[str]) -> "Timeline":
        """This timeline, which knows that these instants were undone."""
        return replace(self, undone=frozenset(undone))

    def with_instant(self, instant: Instant) -> "Timeline":
        """This timeline with one more instant."""
        longer = Timeline.of((*self.instants, instant), boundary=self.boundary, strays=self.strays)
        return replace(longer, _archived=self._archived, offset=self.offset, put_ms=self.put_ms, undone=self.undone)

    def until(self, requested_time: str) -> "Timeline":
        """The timeline as of that time: only instants requested at or before it."""
        earlier = (i for i in self.instants if i.requested_time <= requested_time)
        shorter = Timeline.of(earlier, boundary=self.boundary, strays=self.strays)
        return replace(shorter, offset=self.offset, put_ms=self.put_ms, undone=self.undone)
