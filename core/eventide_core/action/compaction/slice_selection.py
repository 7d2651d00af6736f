"""Selects what an event-time compaction merges of each slice.

1. `select` splits each slice's log files by the strategy. A slice with nothing before T is not compacted. It is
   compacted in full if there is a rollback block, or a block of an instant that never completed, anywhere in the slice,
   or a log compaction's block among the left-overs, or if the split divides the blocks of one instant. With an exact cut,
   the records before T in the remaining log files are also merged: `early` has these log files.
2. `with_merger` compacts a slice in full if the user-defined merger doesn't allow to split it.
3. `needed_histories` determines the keys whose histories are needed because algebra doesn't decide
   (slice_split.py). The service reads them. `apply_verdict` falls back to full compaction if they require it, or
   records that tombstones have to be carried.
"""

from dataclasses import dataclass, replace

from eventide_core.action.compaction.slice_split import SplitVerdict
from eventide_core.action.compaction.strategy import CompactionStrategy
from eventide_core.bulk_dataclass import bulk_dataclass
from eventide_core.errors import counted, format_timestamp
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.log_facts import LogFacts
from eventide_core.table.records.custom_merger import CustomMerger
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.timeline.contents.plans import FallbackReason
from eventide_core.table.timeline.timeline import Timeline


@bulk_dataclass(frozen=True, slots=True)
class SliceFacts:
    """A file slice, and in `log_facts` the facts of its log files, in reader order.

    The last `above` log files completed after the compaction's instant: they belong to the new slice and are never merged.
    """

    file_slice: FileSlice
    log_facts: tuple[LogFacts, ...]
    above: int = 0

    @property
    def below(self) -> tuple[LogFacts, ...]:
        """The log files that a compaction may merge."""
        return self.log_facts[: len(self.log_facts) - self.above]


@bulk_dataclass(frozen=True, slots=True)
class Selection:
    """A slice's split: the first `count` log files are compacted, the others remain.

    `facts` are the slice's. `fallback` is set if it is compacted in full although less would reach T; `reason`
    states for people, in either case, why the split is where it is. `threshold_ms` is T if the cut is exact: records of the
    others that are before it are merged, too. `carried_tombstones` have to be carried, or at least one of so many may have
    to be. `is_alike_in_time`: a reader of the new base file sees no difference as of the instants between the left-overs
    either. `has_to_wait`: not even a full compaction is possible without a visible difference, as long as log files are
    above the compaction.
    """

    facts: SliceFacts
    count: int
    fallback: FallbackReason | None
    reason: str
    threshold_ms: int | None = None
    carried_tombstones: int = 0
    is_alike_in_time: bool = True
    has_to_wait: bool = False

    @property
    def compacted(self) -> tuple[LogFacts, ...]:
        return self.facts.log_facts[: self.count]

    @property
    def left_overs(self) -> tuple[LogFacts, ...]:
        return self.facts.log_facts[self.count :]

    @property
    def in_old_slice(self) -> tuple[LogFacts, ...]:
        """The remaining log files of the old slice. They need a link if the base file isn't back-dated below them."""
        return self.facts.below[self.count :]

    @property
    def above(self) -> tuple[LogFacts, ...]:
        """The remaining log files that belong to the new slice."""
        return self.facts.log_facts[len(self.facts.below) :]

    @property
    def early(self) -> tuple[LogFacts, ...]:
        """The left-over log files with records that an exact cut merges, or merged before."""
        if self.threshold_ms is None:
            return ()
        return tuple(fact for fact in self.in_old_slice if fact.event_times.starts_before(self.threshold_ms))

    @property
    def has_partial_updates(self) -> bool:
        return any(fact.has_partial_updates for fact in self.facts.log_facts)

    def in_full(self, fallback: FallbackReason, reason: str) -> "Selection":
        return replace(self, count=len(self.facts.below), fallback=fallback, reason=reason, carried_tombstones=0)


@dataclass(frozen=True, slots=True)
class ReaderRules:
    """How the table merges, and how each engine that may read it does.

    `rule` is the table's own, by which base files are written; `readers` are the rules of all engines, `rule` among them.
    `is_base_file_index`: SIMPLE, BLOOM, and similar.

    `orders_by_event_time`: versions are ordered by the event time alone, by a column whose values have the same order.
    `takes_columns`: any record may take columns of older ones (hoodie.table.partial.update.mode). `reads_positions`: log
    files may state the positions of their records in the base file, by which Hudi merges them. `merger` is set under merge
    rule CUSTOM.
    """

    rule: MergeRule
    readers: tuple[MergeRule, ...]
    is_base_file_index: bool
    orders_by_event_time: bool = False
    takes_columns: bool = False
    reads_positions: bool = False
    merger: CustomMerger | None = None


@dataclass(frozen=True, slots=True)
class ExactCut:
    """An exact cut at T: `threshold_ms`, in epoch milliseconds, itself excluded.

    `max_left_overs` is the number of log files that a slice may keep. A slice with more is compacted in full.
    """

    threshold_ms: int
    max_left_overs: int


def select(
    facts: SliceFacts, strategy: CompactionStrategy, instant: str, timeline: Timeline, exact: ExactCut | None = None
) -> Selection | None:
    """The slice's split by the strategy; None if it has nothing to compact."""
    compacted, left_overs = strategy.filter_log_files([fact.log_file for fact in facts.below], instant)
    if exact is None:
        if not compacted:
            return None
        chosen = Selection(facts, len(compacted), None, _reason(len(compacted), len(left_overs)))
    else:
        if not any(fact.uncompacted.starts_before(exact.threshold_ms) for fact in facts.below):
            return None
        chosen = _exact_selection(facts, len(compacted), exact)
    for fact in facts.below:
        if fact.rolled_back:
            return chosen.in_full(
                FallbackReason.ROLLBACK_BLOCK,
                f"{fact.log_file.name} rolls back blocks, so the log files must stay together",
            )
        if fact.nameless_from is not None:
            return chosen.in_full(
                FallbackReason.TORN_BYTES,
                f"{fact.log_file.name} has torn bytes, which an append left that broke off",
            )
        uncommitted = [time for time in fact.instants if not timeline.is_completed(time)]
        if uncommitted:
            return chosen.in_full(
                FallbackReason.UNCOMMITTED_BLOCK,
                f"{fact.log_file.name} has a block of {min(uncommitted)}, which never completed",
            )
    for fact in chosen.in_old_slice:
        if fact.has_merged_block:
            return chosen.in_full(
                FallbackReason.LOG_COMPACTION,
                f"{fact.log_file.name} has the result of a log compaction of the log files before it",
            )
    divided = _divided_write(chosen, timeline)
    if divided is not None:
        return chosen.in_full(
            FallbackReason.DIVIDED_WRITE,
            f"merged log files have blocks of {divided}, and so have log files after others: readers that group blocks by "
            "instant would meet the others in another order",
        )
    return chosen


def _divided_write(chosen: Selection, timeline: Timeline) -> str | None:
    """An instant with blocks on both sides of the split whose division changes the order of the blocks by instant.

    A single write may be divided if all log files between its first and its last have blocks of it.
    """
    merged = frozenset[str]().union(*(fact.instants for fact in chosen.compacted))
    left = frozenset[str]().union(*(fact.instants for fact in chosen.in_old_slice))
    # A compaction's stats name it for each left-over that it made. No block has its instant.
    divided = sorted(time for time in merged & left if timeline.find_compaction(time) is None)
    for time in divided:
        places = [place for place, fact in enumerate(chosen.facts.below) if time in fact.instants]
        if len(divided) > 1 or places[-1] - places[0] >= len(places):
            return time
    return None


def _exact_selection(facts: SliceFacts, count: int, exact: ExactCut) -> Selection:
    chosen = Selection(facts, count, None, "", exact.threshold_ms)
    if not chosen.in_old_slice:
        return replace(chosen, reason="all records in the log files are before T")
    first = chosen.in_old_slice[0]
    latest_ms = max(fact.event_times.max_ms or exact.threshold_ms for fact in chosen.in_old_slice)
    if len(chosen.in_old_slice) > exact.max_left_overs:
        return chosen.in_full(
            FallbackReason.TOO_MANY_LEFT_OVERS,
            f"{len(chosen.in_old_slice)} log files would be left over, and {exact.max_left_overs} are "
            f"allowed: {first.log_file.name} is the first with a record at or after T, and the latest of them has "
            f"event time {format_timestamp(latest_ms)}",
        )
    reason = f"{first.log_file.name} is the first log file with a record at or after T"
    if chosen.early:
        reason += f"; takes the records before T from {counted(len(chosen.early), 'log file')} that stay"
    return replace(chosen, reason=reason, is_alike_in_time=not chosen.early)


def _reason(compacted: int, left_overs: int) -> str:
    if left_overs == 0:
        return "every log file is at or below one with records before T"
    return f"the last log file with records before T is number {compacted} of {compacted + left_overs}"


def with_merger(selection: Selection, rules: ReaderRules) -> Selection:
    """The selection of a table with a user-defined merger: split only where every reader sees the same.

    Readers merge the log files with each other first, then with the base. After a split, they merge the left-overs with each
    other, then with the new base. An associative merger makes the same record either way, if no delete is among the
    versions. An exact cut isn't a split: what it merges early is merged a second time with the left-over that holds it.
    """
    merger = rules.merger
    if merger is None or not selection.left_overs:
        return selection
    has_deletes = any(fact.delete_count for fact in selection.facts.log_facts)
    if merger.is_associative and not has_deletes and not selection.early:
        return selection
    if selection.above:
        return replace(selection, has_to_wait=True)
    if not merger.is_associative:
        why = f"the merger {merger.name} doesn't declare that it is associative"
    elif has_deletes:
        why = f"the merger {merger.name} would meet deletes in another order"
    else:
        why = f"the merger {merger.name} would merge records of an exact cut twice"
    return selection.in_full(FallbackReason.CUSTOM_MERGER, f"merged in part, readers could see other rows: {why}")


def needs_unique_keys(selection: Selection, rules: ReaderRules) -> bool:
    """Whether the split shows other rows if several records of the base file have one key.

    A record meets the first of them. So a delete of it that is merged lets its later versions meet the second one. And
    the positions that log files state lead to all of them, but no longer once there is another base file below.
    """
    if not selection.left_overs or selection.facts.file_slice.base_file is None:
        return False
    return rules.reads_positions or any(fact.delete_count for fact in selection.facts.log_facts)


def with_doubled_key(selection: Selection, key: str) -> Selection:
    """The selection of a slice whose base file has this key more than once."""
    if selection.above:
        return replace(selection, has_to_wait=True)
    return selection.in_full(
        FallbackReason.DOUBLED_KEY,
        f"the base file has key {key!r} more than once: merged in part, later versions would meet another of its records",
    )


def needed_histories(selection: Selection, rules: ReaderRules) -> bool | None:
    """The key histories that decide. None: none. True: of keys with a delete. False: of all shared keys."""
    if not selection.left_overs or rules.merger is not None or _is_cut_by_order(selection, rules):
        return None
    if _takes_columns(selection, rules) and MergeRule.EVENT_TIME_ORDERING in rules.readers:
        return False
    if MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST in rules.readers:
        return False
    has_deletes = any(fact.delete_count for fact in selection.facts.log_facts)
    if has_deletes and (
        MergeRule.EVENT_TIME_ORDERING in rules.readers or rules.is_base_file_index or _takes_columns(selection, rules)
    ):
        return True
    return None


def _takes_columns(selection: Selection, rules: ReaderRules) -> bool:
    return rules.takes_columns or selection.has_partial_updates


def _is_cut_by_order(selection: Selection, rules: ReaderRules) -> bool:
    """Whether an exact cut separates the versions of every key by their order. Then algebra decides about deletes, too.

    A log file above the compaction isn't cut.

    Everything before T is merged, and a reader merges the left-overs on top of it. A version in a left-over that is
    older than a merged one is also before T, so it was merged with the others. Therefore, a left-over can only undo a
    delete, by an older record. Such a delete is carried.
    """
    return (
        selection.threshold_ms is not None
        and not selection.above
        and rules.orders_by_event_time
        and not _takes_columns(selection, rules)
        and not rules.is_base_file_index
        and all(reader is MergeRule.EVENT_TIME_ORDERING for reader in rules.readers)
        and all(fact.event_times.has_only_times for fact in selection.facts.log_facts)
    )


def unjudged(selection: Selection, rules: ReaderRules) -> Selection:
    """The selection that needs no histories. The merge determines whether deletes of a cut by order have to be carried."""
    if not selection.early or not _is_cut_by_order(selection, rules):
        return selection
    deletes = sum(fact.delete_count for fact in (*selection.compacted, *selection.early))
    return replace(selection, carried_tombstones=deletes)


_FALLBACK_REASONS = {
    FallbackReason.DELETE_REORDERED: "merged in part, deletes of key {key!r} would meet its other versions in another order",
    FallbackReason.LATE_RECORD_REORDERED: "merged in part, Hudi 0.x would see another version of key {key!r}",
    FallbackReason.PARTIAL_UPDATE_REORDERED: (
        "merged in part, updates of some columns of key {key!r} would meet its other versions in another order"
    ),
    FallbackReason.KEY_LEAVES_BASE_INDEX: (
        "key {key!r} would be in a left-over log file only, where an index over base files does not find it"
    ),
}


def apply_verdict(selection: Selection, verdict: SplitVerdict) -> Selection:
    """The selection after the verdict on its keys' histories."""
    is_split_in_time = bool(selection.above) and not verdict.is_alike_in_time
    if (verdict.fallback is not None or is_split_in_time) and not selection.in_old_slice:
        return replace(selection, has_to_wait=True)
    if verdict.fallback is None and is_split_in_time:
        return selection.in_full(
            FallbackReason.DELETE_REORDERED,
            "merged in part, deletes would meet other versions in another order because of a write since",
        )
    if verdict.fallback is not None:
        return selection.in_full(verdict.fallback, _FALLBACK_REASONS[verdict.fallback].format(key=verdict.example))
    return replace(
        selection,
        carried_tombstones=verdict.carried_tombstones,
        is_alike_in_time=selection.is_alike_in_time and verdict.is_alike_in_time,
    )
