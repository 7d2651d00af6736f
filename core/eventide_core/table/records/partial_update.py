"""How versions merge that hold some columns only: the plain-Python truth that the columnar merge is held to.

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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eventide_core.table.records.record_order import MergeRule, Version, merge_into_base, merge_into_buffer


@dataclass(frozen=True, slots=True)
class PartialVersion:
    """A version, and in `values` the columns that it has, by name; a delete has none."""

    version: Version
    values: Mapping[str, object]

    def above(self, older: "PartialVersion") -> "PartialVersion":
        """This version, the winner, with the columns of the other one that it lacks."""
        if self.version.is_delete or older.version.is_delete:
            return self
        return PartialVersion(self.version, {**older.values, **self.values})


def merge_partial_into_buffer(
    rule: MergeRule, buffered: PartialVersion | None, newer: PartialVersion
) -> PartialVersion:
    """The version that stays after `newer` follows `buffered` in the log files."""
    if buffered is None:
        return newer
    is_newer = merge_into_buffer(rule, buffered.version, newer.version) is newer.version
    return newer.above(buffered) if is_newer else buffered.above(newer)


def merge_partial_into_base(
    rule: MergeRule, base: PartialVersion | None, buffered: PartialVersion | None
) -> PartialVersion | None:
    """The record that a reader sees; None if the key is absent."""
    if buffered is None:
        return base
    if base is None:
        return None if buffered.version.is_delete else buffered
    winner = merge_into_base(rule, base.version, buffered.version)
    if winner is None:
        return None
    return buffered.above(base) if winner is buffered.version else base.above(buffered)


def latest_partial(
    rule: MergeRule, base: PartialVersion | None, versions: Iterable[PartialVersion]
) -> PartialVersion | None:
    """What a reader sees of a key with this base record and these log records in reader order."""
    buffered: PartialVersion | None = None
    for version in versions:
        buffered = merge_partial_into_buffer(rule, buffered, version)
    return merge_partial_into_base(rule, base, buffered)


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
