"""What an event-time compaction at T does to each slice, and how left-overs stay visible.

1. `select` splits each slice's logs by the strategy. A slice with nothing before T is left alone. A rollback block, or a
   block of an instant that never completed, anywhere in the slice: full compaction.
2. `needed_histories` says which keys' histories algebra does not answer for (action/slice_split.py); the service fetches
   them, `settle` falls back to full compaction where they say so, or notes that tombstones are to be carried.
3. `choose_link` picks the link mode and the compaction's instant: back-dated below the left-overs where the whole plan
   allows it (protocol: `prefix`), else a new instant and a file for each left-over.
4. `plan_compaction` names every file that the execution will make.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eventide_core.action.compaction_strategy import CompactionStrategy
from eventide_core.action.slice_split import SplitVerdict
from eventide_core.config import LinkChoice
from eventide_core.errors import RefusedError
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_name import BaseFileName, LogFileName
from eventide_core.table.file_slice import FileSlice, LogFile
from eventide_core.table.instant import next_instant_time
from eventide_core.table.plans import (
    CompactionPlan,
    Cut,
    FallbackReason,
    LeftOver,
    LinkMode,
    PlannedLog,
    PlannedOperation,
)
from eventide_core.table.record_order import MergeRule
from eventide_core.table.timeline import Timeline


@dataclass(frozen=True, slots=True)
class LogFacts:
    """A log file and what is known of its content."""

    log: LogFile
    event_times: EventTimeRange
    instants: frozenset[str]
    delete_count: int
    has_rollback_block: bool


@dataclass(frozen=True, slots=True)
class SliceFacts:
    """A file slice and the facts of its logs, in reader order."""

    file_slice: FileSlice
    logs: tuple[LogFacts, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """A slice's split: the first `count` logs are compacted, the rest remains.

    `is_alike_in_time`: a reader of the new base sees no difference as of the instants between the left-overs either.
    """

    facts: SliceFacts
    count: int
    fallback: FallbackReason | None
    reason: str
    carried_tombstones: int = 0
    is_alike_in_time: bool = True

    @property
    def compacted(self) -> tuple[LogFacts, ...]:
        return self.facts.logs[: self.count]

    @property
    def remaining(self) -> tuple[LogFacts, ...]:
        return self.facts.logs[self.count :]

    def in_full(self, fallback: FallbackReason, reason: str) -> "Selection":
        return replace(self, count=len(self.facts.logs), fallback=fallback, reason=reason, carried_tombstones=0)


@dataclass(frozen=True, slots=True)
class ReaderRules:
    """How the table merges, and how each engine that may read it does. `is_base_file_index`: SIMPLE, BLOOM and the like."""

    rule: MergeRule
    readers: tuple[MergeRule, ...]
    is_base_file_index: bool


def select(facts: SliceFacts, strategy: CompactionStrategy, instant: str, timeline: Timeline) -> Selection | None:
    """The slice's split by the strategy; None where it has nothing to compact."""
    compacted, remaining = strategy.filter_log_files(facts.file_slice.log_files, instant)
    if not compacted:
        return None
    chosen = Selection(facts, len(compacted), None, _reason(len(compacted), len(remaining)))
    for fact in facts.logs:
        if fact.has_rollback_block:
            return chosen.in_full(
                FallbackReason.ROLLBACK_BLOCK, f"{fact.log.name} takes blocks back, so the logs must stay together"
            )
        for block_instant in sorted(fact.instants):
            if not timeline.is_completed(block_instant):
                return chosen.in_full(
                    FallbackReason.UNCOMMITTED_BLOCK,
                    f"{fact.log.name} holds a block of {block_instant}, which never completed",
                )
    return chosen


def _reason(compacted: int, remaining: int) -> str:
    if remaining == 0:
        return "every log lies at or below one with records before T"
    return f"the last log with records before T is number {compacted} of {compacted + remaining}"


def needed_histories(selection: Selection, rules: ReaderRules) -> bool | None:
    """Whether key histories decide: None: no; True: those of keys with a delete; False: those of all shared keys."""
    if not selection.remaining:
        return None
    if MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST in rules.readers:
        return False
    has_deletes = any(fact.delete_count for fact in selection.facts.logs)
    if has_deletes and (MergeRule.EVENT_TIME_ORDERING in rules.readers or rules.is_base_file_index):
        return True
    return None


_FALLBACK_REASONS = {
    FallbackReason.DELETE_REORDERED: "merged in part, deletes of key {key!r} would meet its other versions in another order",
    FallbackReason.LATE_RECORD_REORDERED: "merged in part, Hudi 0.x would see another version of key {key!r}",
    FallbackReason.KEY_LEAVES_BASE_INDEX: (
        "key {key!r} would be in a left-over log only, where an index over base files does not find it"
    ),
}


def settle(selection: Selection, verdict: SplitVerdict) -> Selection:
    """The selection after its keys' histories have been judged."""
    if verdict.fallback is not None:
        return selection.in_full(verdict.fallback, _FALLBACK_REASONS[verdict.fallback].format(key=verdict.example))
    return replace(selection, carried_tombstones=verdict.carried_tombstones, is_alike_in_time=verdict.is_alike_in_time)


@dataclass(frozen=True, slots=True)
class LinkChoiceFacts:
    """What the choice of a link mode looks at.

    `now` is an unused instant above every time of the timeline. `earliest_retained` is the earliest commit that cleaning
    keeps, None where it keeps all.
    """

    choice: LinkChoice
    timeline: Timeline
    slices_by_completion_time: bool
    now: str
    earliest_retained: str | None
    used_times: frozenset[str]


@dataclass(frozen=True, slots=True)
class LinkDecision:
    mode: LinkMode
    instant: str
    reason: str


def choose_link(selections: Sequence[Selection], facts: LinkChoiceFacts) -> LinkDecision:
    """How left-overs stay visible, and the compaction's instant.

    Raises RefusedError where the mode that was asked for would not be safe.
    """
    if facts.choice is LinkChoice.SYMLINK:
        raise RefusedError(
            "link mode symlink: stock readers see no rows through symbolic links and stock cleaners delete their targets; "
            "it needs a storage that is known to keep them and eventide.table.exclusive=true; use copy or auto"
        )
    if facts.choice is LinkChoice.HARDLINK:
        return LinkDecision(LinkMode.HARDLINK, facts.now, "asked for")
    if facts.choice is LinkChoice.COPY:
        return LinkDecision(LinkMode.COPY, facts.now, "asked for")
    if not any(selection.remaining for selection in selections):
        return LinkDecision(LinkMode.COPY, facts.now, "nothing is left over, so no link is needed")
    instant, why_not = _backdated_instant(selections, facts)
    if instant is not None:
        return LinkDecision(
            LinkMode.PREFIX,
            instant,
            f"every merged log completed before {instant}, every left-over after it: no file is needed",
        )
    if facts.choice is LinkChoice.PREFIX:
        raise RefusedError(f"link mode prefix is not possible here: {why_not}; use copy or auto")
    return LinkDecision(LinkMode.COPY, facts.now, f"prefix is not possible: {why_not}")


def _backdated_instant(selections: Sequence[Selection], facts: LinkChoiceFacts) -> tuple[str | None, str]:
    """An instant between the merged logs and the left-overs, or why there is none (protocol.md step 1)."""
    timeline = facts.timeline
    if not facts.slices_by_completion_time:
        return None, "table version 6 slices logs by name, not by completion time"
    if any(selection.carried_tombstones for selection in selections):
        return None, "tombstones have to be carried, which needs a file"
    if not all(selection.is_alike_in_time for selection in selections):
        return (
            None,
            "as of an instant between the left-overs, a reader of the new base would see another version of a key",
        )
    after = max(_completion(timeline, fact.log) for s in selections for fact in s.compacted)
    before = min(
        min(_completion(timeline, fact.log), fact.log.name.instant) for s in selections for fact in s.remaining
    )
    instant = next_instant_time(after)
    while instant in facts.used_times:
        instant = next_instant_time(instant)
    if instant > before:
        return None, f"a merged log completed at {after}, but a left-over was requested at {before}"
    if timeline.start is not None and instant < timeline.start:
        return None, f"instants later than {instant} have been archived"
    if facts.earliest_retained is not None and instant < facts.earliest_retained:
        return (
            None,
            f"the next clean keeps nothing before {facts.earliest_retained}, so readers of the old slice would break",
        )
    for write in timeline.pending_writes:
        if write.requested_time < instant:
            return None, f"the write requested at {write.requested_time} is still pending"
    return instant, ""


def _completion(timeline: Timeline, log: LogFile) -> str:
    completion = timeline.completion_time(log.name.instant)
    assert completion is not None  # the view holds logs of completed instants only
    return completion


@dataclass(frozen=True, slots=True)
class PlanTerms:
    """What a plan says besides its operations."""

    cut_ms: int
    cut: Cut
    event_time_field: str
    schema: str
    table_version: int
    partitions_with_logs: tuple[str, ...]


def plan_compaction(
    selections: Sequence[Selection], link: LinkDecision, terms: PlanTerms, attempt: int = 0
) -> CompactionPlan:
    """The plan, with every name that its execution will make. `attempt` keeps the base files of a re-plan apart."""
    operations = tuple(
        _operation(selection, link, terms, f"{number}-{attempt}-0") for number, selection in enumerate(selections)
    )
    return CompactionPlan(
        instant=link.instant,
        cut_ms=terms.cut_ms,
        cut=terms.cut,
        link_mode=link.mode,
        link_reason=link.reason,
        event_time_field=terms.event_time_field,
        operations=operations,
        schema=terms.schema,
        partitions_with_logs=terms.partitions_with_logs,
    )


def _operation(selection: Selection, link: LinkDecision, terms: PlanTerms, token: str) -> PlannedOperation:
    file_slice = selection.facts.file_slice
    base = file_slice.base_file
    has_carried = selection.carried_tombstones > 0
    remaining = tuple(
        LeftOver(_planned(fact), _left_over_name(fact.log, number, link, terms.table_version, has_carried))
        for number, fact in enumerate(selection.remaining)
    )
    carried = None
    if has_carried:
        carried = (
            LogFileName(file_slice.file_id, link.instant, 0, "00000-0-1")
            if terms.table_version < 8
            else LogFileName(file_slice.file_id, link.instant, 1, "0-0-1")
        )
    return PlannedOperation(
        partition=file_slice.partition,
        file_id=file_slice.file_id,
        base_instant=file_slice.base_instant,
        base_path=base.path if base else None,
        base_size=base.size if base else 0,
        compacted=tuple(_planned(fact) for fact in selection.compacted),
        remaining=remaining,
        new_base_name=str(BaseFileName(file_slice.file_id, token, link.instant)),
        carried_name=str(carried) if carried else None,
        fallback=selection.fallback,
        reason=selection.reason,
    )


def _left_over_name(log: LogFile, number: int, link: LinkDecision, table_version: int, has_carried: bool) -> str | None:
    """The left-over's name in the new slice; None where it needs none.

    Version 6: version 0, which no writer chooses, with tokens that rise as strings; so it lies below every log that a
    writer appends to the new slice, planned or not. Version 8 and later: a writer's log bears its own instant.
    """
    if link.mode is LinkMode.PREFIX:
        return None
    position = number + has_carried
    if table_version < 8:
        return str(LogFileName(log.name.file_id, link.instant, 0, f"{position:05d}-0-1"))
    return str(LogFileName(log.name.file_id, link.instant, position + 1, log.name.write_token or "0-0-1"))


def _planned(fact: LogFacts) -> PlannedLog:
    return PlannedLog(fact.log.path, fact.log.size, fact.event_times)
