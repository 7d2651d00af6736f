"""Merges versions that hold some columns only, in plain Python: what the columnar merge is held to.

The rule: `eventide_core/table/records/partial_update.py`.
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
