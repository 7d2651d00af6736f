"""Folds versions by a user-defined merger, in whole columns: from the oldest to the newest, as Hudi does.

Round n merges the nth version of each key with what the versions before it became, for all keys at once. So the merger is
called as many times as the key with most versions has versions.

A record that the merger makes has the ordering value in its columns. It counts as written by its newer version's block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, Flags, Numbers
from eventide_adapters.format.slice.log_file.ordering_values import later_wins, orderings_of
from eventide_adapters.format.slice.merge.record_mergers import merge_rows
from eventide_core.table.records.custom_merger import CustomMerger
from eventide_core.table.records.record_order import MergeRule

_ORDERING: Final = "ordering"


@dataclass(frozen=True, slots=True)
class CustomFold:
    """The outcome for each key. All arrays but `data` are indexed by key.

    `last` is the position, among the versions that were folded, of the last one that counts: the outcome has its instant.
    `orderings` has the ordering value, null if there is none. `row` is the place in `data`, -1 for a delete. `data` has the
    rows of all versions, and behind them those that the merger made.
    """

    last: Numbers
    orderings: ArrowArray
    row: Numbers
    data: pa.Table


def fold_custom(
    codes: Numbers,
    key_count: int,
    orderings: ArrowArray,
    is_natural_delete: Flags,
    row: Numbers,
    data: pa.Table,
    merger: CustomMerger,
    fields: Sequence[str],
) -> CustomFold:
    """Folds versions in reader order. `codes` are their keys, `row` is a version's place in `data`, -1 for a delete."""
    versions = np.argsort(codes, kind="stable")
    counts = np.bincount(codes, minlength=key_count)
    starts = np.cumsum(counts) - counts
    last = versions[starts]
    data, ordered = data.combine_chunks(), pa.table({_ORDERING: orderings})
    rows, place = row[last], last.copy()  # `place` is where the ordering value is; beyond `data`, both are in `made`
    made, made_ordered = data.slice(0, 0), ordered.slice(0, 0)
    ended, ended_ordered, ended_count = [data], [ordered], 0
    final_row, final_place = rows.copy(), place.copy()
    for number in range(1, int(counts.max(initial=0))):
        keys = np.flatnonzero(counts > number)
        newer = versions[starts[keys] + number]
        are_records = (rows[keys] >= 0) & (row[newer] >= 0)

        with_delete, later = keys[~are_records], newer[~are_records]
        if merger.delete_rule is MergeRule.EVENT_TIME_ORDERING:
            natural = is_natural_delete[later] | is_natural_delete[last[with_delete]]
            older = _values(_take(ordered, made_ordered, place[with_delete]))
            wins = later_wins(older, orderings.take(later), natural)
            with_delete, later = with_delete[wins], later[wins]
        rows[with_delete], last[with_delete], place[with_delete] = row[later], later, later

        merged, later = keys[are_records], newer[are_records]
        if len(merged):
            fresh = merge_rows(merger, _take(data, made, rows[merged]), data.take(row[later])).combine_chunks()
            rows[merged] = len(data) + len(made) + np.arange(len(merged))
            place[merged] = len(ordered) + len(made) + np.arange(len(merged))
            last[merged] = later
            fresh_ordered = pa.table({_ORDERING: orderings_of(fresh.to_batches()[0], fields)})
            made = pa.concat_tables([made, fresh]).combine_chunks()
            made_ordered = pa.concat_tables([made_ordered, fresh_ordered]).combine_chunks()

        # Keep in `made` only what meets a further version. Otherwise, a round would cost as much as all rounds before it.
        is_made = rows >= len(data)
        ends = np.flatnonzero(counts == number + 1)
        final_row[ends], final_place[ends] = rows[ends], place[ends]
        ends = ends[is_made[ends]]
        final_row[ends] = len(data) + ended_count + np.arange(len(ends))
        final_place[ends] = len(ordered) + ended_count + np.arange(len(ends))
        ended_count += len(ends)
        if len(ends):
            ended.append(made.take(rows[ends] - len(data)))
            ended_ordered.append(made_ordered.take(rows[ends] - len(data)))
        stays = keys[is_made[keys] & (counts[keys] > number + 1)]
        at = rows[stays] - len(data)
        made, made_ordered = made.take(at), made_ordered.take(at)
        rows[stays] = len(data) + np.arange(len(stays))
        place[stays] = len(ordered) + np.arange(len(stays))
    all_ordered = pa.concat_tables(ended_ordered).combine_chunks()
    return CustomFold(last, _values(all_ordered.take(final_place)), final_row, pa.concat_tables(ended))


def _take(first: pa.Table, second: pa.Table, places: Numbers) -> pa.Table:
    """Rows of both tables, where the second one's places follow the first one's."""
    is_second = places >= len(first)
    if not is_second.any():
        return first.take(places)
    if is_second.all():
        return second.take(places - len(first))
    both = pa.concat_tables([first.take(places[~is_second]), second.take(places[is_second] - len(first))])
    return both.combine_chunks().take(np.argsort(np.argsort(is_second, kind="stable")))


def _values(ordered: pa.Table) -> ArrowArray:
    column: Any = ordered.column(_ORDERING)
    values: ArrowArray = column.combine_chunks()
    return values
