"""Folds versions by a merger of the user's own, in whole columns: from the oldest to the newest, as Hudi does.

Round n merges the nth version of each key with what the versions before it became, for all keys at once. So the merger is
called as many times as the key with most versions has versions.

A record that the merger makes has the ordering value in its columns. It counts as written by its newer version's block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventide_adapters.format.log_file.ordering_values import Numbers, common_ranks, orderings_of
from eventide_adapters.format.merge.partial_fold import Flags
from eventide_adapters.format.merge.record_mergers import merge_rows
from eventide_core.table.custom_merger import CustomMerger
from eventide_core.table.record_order import MergeRule


@dataclass(frozen=True, slots=True)
class CustomFold:
    """By key: the last version that counts, the ordering value, and the place in `data`, -1 for a delete."""

    last: Numbers
    orderings: pa.Array[Any]
    row: Numbers
    data: pa.Table


def newer_wins(merger: CustomMerger, older: pa.Array[Any], newer: pa.Array[Any], is_natural_delete: Flags) -> Flags:
    """Whether the newer version stays of pairs with a delete, by their ordering values.

    `is_natural_delete`: either version is a delete in natural order.
    """
    if merger.delete_rule is MergeRule.COMMIT_TIME_ORDERING:
        return np.ones(len(newer), np.bool_)
    of_newer, of_older = common_ranks(newer, older)
    return np.asarray((of_newer >= of_older) | is_natural_delete, np.bool_)


def fold_custom(
    codes: Numbers,
    key_count: int,
    orderings: pa.Array[Any],
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
    rows, place = row[last], last.copy()  # `place` is that of the ordering value
    for number in range(1, int(counts.max(initial=0))):
        keys = np.flatnonzero(counts > number)
        newer = versions[starts[keys] + number]
        are_records = (rows[keys] >= 0) & (row[newer] >= 0)

        with_delete, later = keys[~are_records], newer[~are_records]
        natural = is_natural_delete[later] | is_natural_delete[last[with_delete]]
        wins = newer_wins(merger, orderings.take(place[with_delete]), orderings.take(later), natural)
        with_delete, later = with_delete[wins], later[wins]
        rows[with_delete], last[with_delete], place[with_delete] = row[later], later, later

        merged, later = keys[are_records], newer[are_records]
        if len(merged):
            made = merge_rows(merger, data.take(rows[merged]), data.take(row[later])).combine_chunks()
            rows[merged] = len(data) + np.arange(len(merged))
            place[merged] = len(orderings) + np.arange(len(merged))
            last[merged] = later
            data = pa.concat_tables([data, made])
            orderings = pa.concat_arrays([orderings, orderings_of(made.to_batches()[0], fields)])
    return CustomFold(last, orderings.take(place), rows, data)
