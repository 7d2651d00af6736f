"""Which version of a key wins: the plain-Python truth that the columnar merge is held to.

A slice is read in two steps, as Hudi 1.1.1 does (BufferedRecordMergerFactory):

1. fold: the versions of a key in the log files, in reader order, into one (`merge_into_buffer`).
2. final: that one against the base file's (`merge_into_base`).

COMMIT_TIME_ORDERING: the later version wins, in both steps.
EVENT_TIME_ORDERING: the greater ordering value wins, the later one on a tie. A delete without an ordering value (Hudi
writes 0 for it: a delete in natural order) always wins over what came before it, and over the base; any later version
takes its place, and then it is forgotten.

Hudi 0.x has other rules for the version 6 tables that it writes. Its OverwriteWithLatestAvroPayload is read by them; the
other is here only because a compaction must not change what such a reader sees:

HUDI_0X_OVERWRITE_WITH_LATEST: among log files the greater ordering value wins, but any insert beats an earlier delete;
a log file always beats the base.
HUDI_0X_DEFAULT: the same among log files; an insert with a smaller ordering value loses to the base, a delete never
does.

HUDI_1_1_CUSTOM_PAYLOAD, like HUDI_0X_DEFAULT never the rule of a compaction: Hudi 1.1 and later, where merge mode CUSTOM
names EventTimeAvroPayload. Any insert beats an earlier delete among log files, and of two deletes the first stays; the
rest is as by event time.

CUSTOM: a user-defined merger makes one record out of two (custom_merger.py). No order of versions determines what it makes,
so no function here takes it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never

Ordering = Any
"""A comparable ordering value, all of one type within a table. None: natural order."""


class MergeRule(StrEnum):
    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    HUDI_0X_OVERWRITE_WITH_LATEST = "HUDI_0X_OVERWRITE_WITH_LATEST"
    HUDI_0X_DEFAULT = "HUDI_0X_DEFAULT"
    HUDI_1_1_CUSTOM_PAYLOAD = "HUDI_1_1_CUSTOM_PAYLOAD"
    CUSTOM = "CUSTOM"


_NO_ORDER = "a user-defined merger doesn't order versions"


@dataclass(frozen=True, slots=True)
class Version:
    """One version of one key. `position` identifies the record, in the caller's own terms.

    `ordering` is its ordering value, or the rank of that among those compared; None if it has none. `is_delete`: it deletes
    its key, and without an ordering value it is a natural delete. `is_partial`: it may take columns of other versions
    (table/records/partial_update.py).
    """

    ordering: Ordering
    is_delete: bool
    position: int = -1
    is_partial: bool = False

    @property
    def is_natural_delete(self) -> bool:
        return self.is_delete and self.ordering is None


def merge_into_buffer(rule: MergeRule, buffered: Version | None, newer: Version) -> Version:
    """The version that stays after `newer` follows `buffered` in the logs."""
    if buffered is None:
        return newer
    if rule is MergeRule.HUDI_1_1_CUSTOM_PAYLOAD and buffered.is_delete:
        return buffered if newer.is_delete else newer
    if newer.is_natural_delete or buffered.is_natural_delete:
        return newer
    match rule:
        case MergeRule.COMMIT_TIME_ORDERING:
            return newer
        case MergeRule.EVENT_TIME_ORDERING | MergeRule.HUDI_1_1_CUSTOM_PAYLOAD:
            return newer if newer.ordering >= buffered.ordering else buffered
        case MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST | MergeRule.HUDI_0X_DEFAULT:
            if buffered.is_delete and not newer.is_delete:
                return newer
            return newer if newer.ordering >= buffered.ordering else buffered
        case MergeRule.CUSTOM:
            raise AssertionError(_NO_ORDER)
        case _:
            assert_never(rule)


def merge_into_base(rule: MergeRule, base: Version | None, buffered: Version | None) -> Version | None:
    """The version that a reader sees; None if the key is absent. `base` is never a delete."""
    if buffered is None:
        return base
    if base is not None and not buffered.is_natural_delete:
        match rule:
            case MergeRule.COMMIT_TIME_ORDERING | MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST:
                pass
            case MergeRule.EVENT_TIME_ORDERING | MergeRule.HUDI_1_1_CUSTOM_PAYLOAD:
                if buffered.ordering < base.ordering:
                    return base
            case MergeRule.HUDI_0X_DEFAULT:
                if not buffered.is_delete and buffered.ordering < base.ordering:
                    return base
            case MergeRule.CUSTOM:
                raise AssertionError(_NO_ORDER)
            case _:
                assert_never(rule)
    return None if buffered.is_delete else buffered


def fold(rule: MergeRule, versions: Iterable[Version]) -> Version | None:
    """The winner among versions in reader order; None of none."""
    buffered: Version | None = None
    for version in versions:
        buffered = merge_into_buffer(rule, buffered, version)
    return buffered


def latest(rule: MergeRule, base: Version | None, versions: Iterable[Version]) -> Version | None:
    """What a reader sees of a key with this base record and these log records in reader order."""
    return merge_into_base(rule, base, fold(rule, versions))
