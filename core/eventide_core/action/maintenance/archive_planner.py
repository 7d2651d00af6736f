"""Which instants leave the active timeline: Hudi's rule, and what left-overs need.

1. Nothing while there are at most `max_commits` completed writes. Otherwise, all but the last `min_commits` may go,
   oldest first.
2. Of these only the ones before every bound: the first pending instant; the first savepoint (unless an option lifts this
   bound); the earliest write that cleaning retains, by the last clean and by its options; the delta commits that Hudi's
   trigger still counts; the last compaction of Hudi's metadata table; the first replacecommit whose file groups have not
   been cleaned; the last write before a compaction that was rolled back and left left-overs, which would count if the
   timeline started after that compaction.
3. Cleans and rollbacks before the first write that stays go with them, except the last clean. Restores and savepoints stay.

The oldest go first and none is left out in between: whatever lies before the first write of the active timeline has ended.
"""

from collections.abc import Collection
from dataclasses import dataclass

from eventide_core.table.timeline.instant import Action, Instant
from eventide_core.table.timeline.timeline import Timeline


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
    """`bounds`: requested times that stay, with everything after them. `compactions`: those of completed compactions.

    `strays`: the instants of left-overs that no compaction has any more; the timeline must not start after one.
    """

    timeline: Timeline
    bounds: Collection[str]
    compactions: Collection[str]
    strays: Collection[str] = ()


def instants_to_archive(facts: ArchiveFacts, terms: ArchiveTerms) -> tuple[Instant, ...]:
    """The completed instants to archive, by requested time."""
    writes = facts.timeline.writes
    if len(writes) <= terms.max_commits:
        return ()
    bound = min((*facts.bounds, *_bounds(facts, terms)), default="9")
    archived = [i for i in writes[: len(writes) - terms.min_commits] if i.requested_time < bound]
    if not archived:
        return ()
    first_kept = next(i.requested_time for i in writes if i not in archived)
    cleans = [i for i in facts.timeline.completed if i.action is Action.CLEAN]
    others = [i for i in facts.timeline.completed if i.action is Action.ROLLBACK] + cleans[:-1]
    return tuple(sorted([*archived, *(i for i in others if i.requested_time < first_kept)]))


def _bounds(facts: ArchiveFacts, terms: ArchiveTerms) -> list[str]:
    bounds = [i.requested_time for i in facts.timeline.pending if i.action is not Action.SAVEPOINT]
    if not terms.is_beyond_savepoint:
        bounds += [i.requested_time for i in facts.timeline.completed if i.action is Action.SAVEPOINT]
    bounds += _counted_by_trigger(facts, terms)
    bounds += [_start_before(facts.timeline, stray) for stray in facts.strays]
    return bounds


def _start_before(timeline: Timeline, stray: str) -> str:
    """The last write before it at which the timeline can start: see Timeline.start."""
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
