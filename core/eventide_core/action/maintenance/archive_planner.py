"""Which instants leave the active timeline: Hudi's rule, and what left-overs need.

1. Nothing while there are at most `max_commits` completed writes. Otherwise, all but the last `min_commits` may go,
   oldest first. If cleaning retains more, both are higher by the difference: the writes that it retains stay, and one more.
2. Of these only the ones before every bound. docs/invariants.md lists the bounds, and what each protects.
3. Cleans and rollbacks before the last write that goes leave with it, except the last clean, and those that the metadata
   table has not compacted yet. Restores and savepoints stay, and so does a write that a savepoint keeps.

The oldest go first and none is left out in between, except for those that savepoints keep: whatever lies before the first
write of the active timeline has ended.
"""

from collections.abc import Collection
from dataclasses import dataclass

from eventide_core.table.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS, Action, Instant
from eventide_core.table.timeline.timeline import Timeline

_WRITES = WRITE_ACTIONS | COMPLETED_ACTION.keys()
"""The actions of writes, and of the plans that become writes."""


@dataclass(frozen=True, slots=True)
class ArchiveTerms:
    """How many writes stay.

    `max_commits` is how many completed writes there may be before any is archived, `min_commits` how many then stay.
    `is_beyond_savepoint`: writes after a savepoint may go as well (`hoodie.archive.beyond.savepoint`). `max_delta_commits`
    is the limit of Hudi's compaction trigger.
    """

    min_commits: int
    max_commits: int
    is_beyond_savepoint: bool
    max_delta_commits: int


@dataclass(frozen=True, slots=True)
class ArchiveFacts:
    """`bounds`: requested times that stay, with everything after them. `compactions`: the times of completed compactions.

    `strays`: the instants of left-overs that no compaction has any more; the timeline must not start after one.
    `earliest_retained`: the earliest write that the next clean retains; None if its policy doesn't go by time.
    `followed_until`: the instant of the metadata table's last compaction, empty if it has none; None if the table has no
    metadata table.
    """

    timeline: Timeline
    bounds: Collection[str]
    compactions: Collection[str]
    strays: Collection[str] = ()
    earliest_retained: str | None = None
    followed_until: str | None = None

    def is_followed(self, instant: Instant) -> bool:
        """Whether a compaction of the metadata table has merged what the instant changed."""
        return self.followed_until is None or (instant.completion_time or instant.requested_time) <= self.followed_until


def instants_to_archive(facts: ArchiveFacts, terms: ArchiveTerms) -> tuple[Instant, ...]:
    """The completed instants to archive, by requested time."""
    timeline = facts.timeline
    spared = _spared_by_cleaning(facts, terms)
    if len(timeline.writes) <= terms.max_commits + spared:
        return ()
    bound = min((*facts.bounds, *_bounds(facts, terms)), default="9")
    old = timeline.writes[: len(timeline.writes) - terms.min_commits - spared]
    archived = [i for i in old if i.requested_time < bound and not timeline.has_savepoint(i.requested_time)]
    if not archived:
        return ()
    cleans = [i for i in timeline.completed if i.action is Action.CLEAN]
    others = [i for i in timeline.completed if i.action is Action.ROLLBACK] + cleans[:-1]
    last = archived[-1].requested_time
    return tuple(sorted([*archived, *(i for i in others if i.requested_time < last and facts.is_followed(i))]))


def bounds_of_metadata_table(table: Timeline, *, is_beyond_savepoint: bool) -> list[str]:
    """Bounds for the metadata table's own timeline: the table's first write, and its first pending action of any kind."""
    writes = [i.requested_time for i in table.instants if i.action in _WRITES]
    if is_beyond_savepoint:
        writes = [time for time in writes if not table.has_savepoint(time)]
    return [*writes[:1], *(i.requested_time for i in table.pending[:1])]


def _spared_by_cleaning(facts: ArchiveFacts, terms: ArchiveTerms) -> int:
    """How many writes more than the terms say stay beside those that cleaning retains."""
    if facts.earliest_retained is None:
        return 0
    retained = sum(i.requested_time >= facts.earliest_retained for i in facts.timeline.writes)
    return max(0, retained + 1 - terms.min_commits)


def _bounds(facts: ArchiveFacts, terms: ArchiveTerms) -> list[str]:
    timeline = facts.timeline
    bounds = [i.requested_time for i in timeline.pending if i.action not in (*_WRITES, Action.SAVEPOINT)]
    pending = [i.requested_time for i in timeline.pending if i.action in _WRITES]
    bounds += [_start_before(timeline, time) for time in (*pending, *facts.strays)]
    if not terms.is_beyond_savepoint:
        bounds += [i.requested_time for i in timeline.completed if i.action is Action.SAVEPOINT]
    bounds += [i.requested_time for i in timeline.writes if not facts.is_followed(i)][:1]
    return bounds + _counted_by_trigger(facts, terms)


def _start_before(timeline: Timeline, stray: str) -> str:
    """The last write before it at which the timeline can start (see Timeline.start); empty if there is none.

    Every reader takes files of an instant before the start for committed, also the files of a pending one.
    """
    writes = (i.requested_time for i in timeline.writes if not timeline.has_savepoint(i.requested_time))
    return max((time for time in writes if time < stray), default="")


def _counted_by_trigger(facts: ArchiveFacts, terms: ArchiveTerms) -> list[str]:
    """The first delta commit that Hudi's next compaction counts from, or the compaction before it."""
    last = max((time for time in facts.compactions), default="")
    since = [
        i.requested_time for i in facts.timeline.writes if i.action is Action.DELTA_COMMIT and i.requested_time > last
    ]
    if len(since) >= terms.max_delta_commits:
        return [since[len(since) - terms.max_delta_commits]]
    return [last] if last else since[:1]
