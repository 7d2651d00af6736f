"""Which files of an active timeline don't count, because a process put them after others had gone on.

A process that is paused past its lock does what it had decided on when it wakes up: it puts one file, of an instant that
others have undone meanwhile, or completed and archived. No check before the put prevents that. Therefore, such a file is a
*stray*: readers ignore it, and the next action that holds the table lock removes it. A file of a write or a plan is one

1. if the instant was undone, by the record that an undoing leaves (`Evidence.undone`), and isn't archived. A completed
   file that another engine put counts nevertheless: that engine has acknowledged its rows. So does a plan of version 6:
   until it is gone, writers append to the slices that it begins, and the next writer or compaction ends its undoing;
2. if the instant is at or before the boundary, the last write that was archived and isn't completed on the timeline, and
   is archived itself, or pending. No archival passes a pending write or plan, neither eventide's nor Hudi's. A pending one
   that isn't archived was undone.

The timeline then starts after the boundary. A completed instant before it that isn't archived counts: an archival that was
paused may have raised the boundary over a back-dated compaction. So does a write that a savepoint keeps. Writes that are
archived and still on the timeline, with no gap after them, count in either place: an archival of Hudi may be removing them
right now, or have done so since the timeline was listed.

3. A restore that was only requested is a stray if the timeline has a later instant: it has undone nothing, and was decided
   on without that instant. So is the inflight file of a clean or rollback whose requested file, which came before it, is
   gone: the action was archived, or void.

4. A savepoint that has completed twice counts once: others completed it under another completion time, while its own
   process was paused before that file. The earlier completion is the late one. One without its inflight file, whose
   deletion eventide has recorded, was deleted: the record comes first, then the inflight file.

A timeline is *in doubt*, so that more than its own files must be read, if its first write or plan lacks one of its three
files, apart from those that savepoints keep (`Timeline.start`), or any has other files than all three, or the first two. A
late put never completes such a set. An instant that is in no doubt is left to the rollback or restore that undoes it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from eventide_core.table.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS, Action, Instant, State
from eventide_core.table.timeline.outcome_file import record_of
from eventide_core.table.timeline.timeline import Timeline

_WRITES = WRITE_ACTIONS | COMPLETED_ACTION.keys()
_COMPACTION = frozenset({Action.COMPACTION, Action.COMMIT})
_REQUESTED = frozenset({State.REQUESTED})
_BEGUN = frozenset({State.REQUESTED, State.INFLIGHT})
_ALL = frozenset(State)
_ORDER = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}

_Key = tuple[str, bool]
"""A requested time, and whether the instant is a compaction: a writer without the lock may have taken the same time."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What else than its files decides about a timeline; each is asked only if it matters.

    `boundary`: the requested time of the last archived write that isn't among these completed ones, None if there is none.
    `is_archived`: whether a write is. `undone`: the records of what was undone (outcome_file.py). `is_of_another_engine`:
    whether another engine put the completed file. `exists`: whether a file is there now, which a listing may have missed.
    `are_plans_followed`: whether writers append to the slices of a plan.
    """

    boundary: Callable[[Collection[str]], str | None]
    is_archived: Callable[[str], bool]
    undone: Callable[[], frozenset[str]]
    is_of_another_engine: Callable[[Instant], bool]
    exists: Callable[[Instant], bool]
    are_plans_followed: bool = False

    def is_followed(self, files: Collection[Instant]) -> bool:
        """Whether these are the files of a pending plan that writers may follow."""
        is_plan = any(file.action is Action.COMPACTION and file.state is State.REQUESTED for file in files)
        return self.are_plans_followed and is_plan and not any(file.is_completed for file in files)


def timeline_of(files: Iterable[Instant], evidence: Evidence) -> Timeline:
    """The timeline of these files, with what doesn't count as its `strays`, in the order in which they may be removed."""
    there = tuple(files)
    by_key = _writes(there)
    saved = {i.requested_time for i in there if i.action is Action.SAVEPOINT}
    first = min((key for key in by_key if key[0] not in saved), default=None)
    is_begin_in_doubt = first is not None and _states(by_key[first]) != _ALL
    is_any_in_doubt = any(map(_is_in_doubt, by_key.values()))
    late = [*_late_restores(there), *_late_services(there, evidence), *_late_savepoints(there, evidence)]
    if not (is_begin_in_doubt or is_any_in_doubt or late):
        return Timeline.of(there)
    undone, never_completed = evidence.undone(), set[str]()
    completed = {time for (time, _), own in by_key.items() if State.COMPLETED in _states(own)}
    boundary = evidence.boundary(completed) if is_begin_in_doubt else None
    strays: list[Instant] = []
    for key in sorted(by_key):
        time, own = key[0], by_key[key]
        is_undone = record_of(time, own[0].action) in undone and not evidence.is_followed(own)
        if is_undone and _is_in_doubt(own) and not evidence.is_archived(time):
            is_acknowledged = any(i.is_completed and evidence.is_of_another_engine(i) for i in own)
            strays += () if is_acknowledged else sorted(own, key=_order, reverse=True)
        elif boundary is not None and time <= boundary and time not in saved:
            is_archived, is_pending = evidence.is_archived(time), State.COMPLETED not in _states(own)
            strays += sorted(own, key=_order) if is_archived or is_pending else ()
            if is_pending and not is_archived:
                never_completed.add(time)
    strays += late
    left_out = set(strays)
    timeline = Timeline.of((i for i in there if i not in left_out), boundary=boundary, strays=tuple(strays))
    return timeline.with_undone(never_completed)


def _writes(files: Iterable[Instant]) -> Mapping[_Key, list[Instant]]:
    by_key: dict[_Key, list[Instant]] = {}
    for file in files:
        if file.action in _WRITES:
            by_key.setdefault((file.requested_time, file.action in _COMPACTION), []).append(file)
    return by_key


def _is_in_doubt(files: Collection[Instant]) -> bool:
    return _states(files) not in (_ALL, _BEGUN)


def _states(files: Collection[Instant]) -> frozenset[State]:
    return frozenset([file.state for file in files])


def _order(file: Instant) -> int:
    return _ORDER[file.state]


def _late_restores(files: Collection[Instant]) -> list[Instant]:
    restores: dict[str, list[Instant]] = {}
    for file in files:
        if file.action is Action.RESTORE:
            restores.setdefault(file.requested_time, []).append(file)
    requested = [own[0] for own in restores.values() if _states(own) == _REQUESTED]
    return [one for one in requested if any(file.requested_time > one.requested_time for file in files)]


def _late_services(files: Collection[Instant], evidence: Evidence) -> list[Instant]:
    services = [file for file in files if file.action in (Action.CLEAN, Action.ROLLBACK)]
    known = {(file.requested_time, file.action) for file in services if file.state is not State.INFLIGHT}
    alone = [file for file in services if (file.requested_time, file.action) not in known]
    return [file for file in alone if not evidence.exists(replace(file, state=State.REQUESTED))]


def _late_savepoints(files: Collection[Instant], evidence: Evidence) -> list[Instant]:
    completed = sorted(
        (i for i in files if i.action is Action.SAVEPOINT and i.is_completed), key=lambda one: one.completion_time or ""
    )
    last = {file.requested_time: file for file in completed}
    pinned = {i.requested_time for i in files if i.action is Action.SAVEPOINT and i.state is State.INFLIGHT}
    alone = [file for file in completed if file.requested_time not in pinned]
    records = evidence.undone() if alone else ()
    deleted = {file for file in alone if record_of(file.requested_time, file.action) in records}
    return [file for file in completed if file is not last[file.requested_time] or file in deleted]
