"""How versions merge that hold some columns only.

`record_order` decides which of two versions wins. If both are records, the winner takes the columns that it lacks from the
other one, and its ordering value stays. A delete takes nothing, and gives nothing: a version that replaces a delete in the
log files still takes columns of the base's record, as in Hudi 1.1 and 1.2.

A version lacks a column

- in a block of partial updates, as MERGE INTO writes them: where the block's schema doesn't have it;
- under hoodie.table.partial.update.mode=IGNORE_DEFAULTS: where it is the column's default, which is null;
- under FILL_UNAVAILABLE: where a text is the table's marker for "unavailable". In bytes Hudi on Spark doesn't find it.

A slice may be merged in part where the versions of each key of which one lacks columns come in rising order, the base's
first, and none that lacks columns follows a delete (`is_in_order`): then each takes from all before it, however they are
grouped.
"""

from collections.abc import Iterable

from eventide_core.table.records.record_order import MergeRule, Version, merge_into_buffer


def is_in_order(rule: MergeRule, base: Version | None, versions: Iterable[Version]) -> bool:
    """Whether each of these versions wins over all before it, and none that takes columns follows a delete."""
    newest = base
    for version in versions:
        if newest is not None:
            if version.is_partial and newest.is_delete:
                return False
            if merge_into_buffer(rule, newest, version) is not version:
                return False
        newest = version
    return True
