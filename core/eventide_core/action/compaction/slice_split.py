"""Whether a slice may be compacted in part: what each reader sees of a key before, and after, must be the same.

A prefix P of a slice's log files is merged into its base, the rest Q stays. For most keys that is the same by algebra
(docs/rfc74.md): under COMMIT_TIME_ORDERING always; under EVENT_TIME_ORDERING wherever no delete is among the versions.
The keys that P and Q share, and about which algebra does not decide, are judged by their whole history, one by one:

1. before = what a reader sees of base, P and Q.
2. new base = base merged with P, by the table's own rule: that is what will be written. With an exact cut also with the
   versions of Q that lie before T; they stay in Q as well.
3. A tombstone of P that beat the base but is gone from it, and that a live record of Q would lose to, is carried into the
   new slice below Q. Q keeps its own.
4. after = what the reader sees of new base, the carried tombstone, and Q. It must equal `before` for every rule by which
   a reader of this table merges.
5. Where the index finds keys in base files only (SIMPLE, BLOOM): a key that P takes out of the base while Q holds it
   live would be inserted a second time, into another file group, by the next upsert.

6. Where versions take columns of others (table/records/partial_update.py), they must come in rising order, none after a
   delete.

4, 5 or 6 fails: the slice is compacted in full.

A base that is back-dated below the left-overs (link mode prefix) is also read by time travel to the instants between
them, so 4 must then hold for Q up to each of its versions, too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eventide_core.table.records.key_history import KeyHistory
from eventide_core.table.records.partial_update import is_in_order
from eventide_core.table.records.record_order import MergeRule, Version, fold, latest, merge_into_base
from eventide_core.table.timeline.contents.plans import FallbackReason


@dataclass(frozen=True, slots=True)
class SplitVerdict:
    """Whether a slice may be compacted in part, by the histories of its keys.

    `fallback` states why it must be compacted in full, and `example` is a key for which that is so; both are None otherwise.
    `carried_tombstones` counts those to carry into the new slice, 0 with a fallback. `is_alike_in_time`: a reader sees no
    difference as of the instants between the left-overs either.
    """

    fallback: FallbackReason | None
    example: str | None
    carried_tombstones: int
    is_alike_in_time: bool = True


def judge_split(
    histories: Iterable[KeyHistory], rule: MergeRule, reader_rules: Sequence[MergeRule], *, is_base_file_index: bool
) -> SplitVerdict:
    """Whether P may be merged without Q. `reader_rules` are the rules of all readers of the table, `rule` among them."""
    carried = 0
    is_alike_in_time = True
    for history in histories:
        versions = history.merged + history.left_overs
        if any(version.is_partial for version in versions) and not is_in_order(rule, history.base, versions):
            return SplitVerdict(FallbackReason.PARTIAL_UPDATE_REORDERED, history.key, 0)
        tombstone = carried_tombstone(history, rule)
        carried += tombstone is not None
        new_base = latest(rule, history.base, history.taken)
        if (
            is_base_file_index
            and new_base is None
            and (history.base is not None or any(not v.is_delete for v in history.taken))
            and latest(rule, None, history.left_overs) is not None
        ):
            return SplitVerdict(FallbackReason.KEY_LEAVES_BASE_INDEX, history.key, 0)
        below = () if tombstone is None else (tombstone,)
        for reader in reader_rules:
            before = latest(reader, history.base, history.merged + history.left_overs)
            after = latest(reader, new_base, below + history.left_overs)
            if before != after:
                has_delete = any(v.is_delete for v in history.merged + history.left_overs)
                reason = FallbackReason.DELETE_REORDERED if has_delete else FallbackReason.LATE_RECORD_REORDERED
                return SplitVerdict(reason, history.key, 0)
        moments = (history.left_overs[:count] for count in range(len(history.left_overs)))
        is_alike_in_time &= all(
            latest(rule, history.base, history.merged + seen) == latest(rule, new_base, below + seen)
            for seen in moments
        )
    return SplitVerdict(None, None, carried, is_alike_in_time)


def carried_tombstone(history: KeyHistory, rule: MergeRule) -> Version | None:
    """The ordered delete that is merged and must go on lying below Q; None if Q cannot contradict it."""
    if rule is not MergeRule.EVENT_TIME_ORDERING:
        return None
    winner = fold(rule, history.taken)
    if winner is None or not winner.is_delete or winner.ordering is None:
        return None
    if winner in history.early:
        return None  # its left-over keeps it
    if merge_into_base(rule, history.base, winner) is not None:
        return None  # the base is newer than the delete
    contradicted = any(
        not version.is_delete and version.ordering is not None and version.ordering < winner.ordering
        for version in history.left_overs
    )
    return winner if contradicted else None
