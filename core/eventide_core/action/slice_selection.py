"""What an event-time compaction takes of each slice.

1. `select` splits each slice's logs by the strategy. A slice with nothing before T is left alone. A rollback block, or a
   block of an instant that never completed, anywhere in the slice, or a log compaction's block among the left-overs: full
   compaction.
2. `needed_histories` says which keys' histories algebra does not answer for (action/slice_split.py); the service fetches
   them, `settle` falls back to full compaction where they say so, or notes that tombstones are to be carried.
"""

from dataclasses import dataclass, replace

from eventide_core.action.compaction_strategy import CompactionStrategy
from eventide_core.action.slice_split import SplitVerdict
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_slice import FileSlice, LogFile
from eventide_core.table.plans import FallbackReason
from eventide_core.table.record_order import MergeRule
from eventide_core.table.timeline import Timeline


@dataclass(frozen=True, slots=True)
class LogFacts:
    """A log file and what is known of its content.

    `needs_check`: its headers weren't looked at, or one of its blocks is torn.
    """

    log: LogFile
    event_times: EventTimeRange
    instants: frozenset[str]
    delete_count: int
    has_rollback_block: bool
    needs_check: bool
    has_merged_block: bool


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
    for fact in chosen.remaining:
        if fact.has_merged_block:
            return chosen.in_full(
                FallbackReason.LOG_COMPACTION,
                f"{fact.log.name} holds what a log compaction merged of the logs before it",
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
