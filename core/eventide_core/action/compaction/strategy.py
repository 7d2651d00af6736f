"""Hudi's CompactionStrategy with the RFC's `filter_log_files`, and the RFC's own strategy.

Hudi's other strategies are in slice_strategies.py, what a user names in strategy_choice.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import attrgetter
from typing import Final, Protocol

from eventide_core.table.files.file_slice import FileSlice, LogFile
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.timeline.contents.plans import CutMode

Split = tuple[tuple[LogFile, ...], tuple[LogFile, ...]]
"""(log files to compact, log files to remain), each in reader order."""


_READER_ORDER: Final = attrgetter("name.reader_order")

EVENT_TIME_STRATEGY = "EventTimeBasedCompactionStrategy"


class CompactionStrategy(Protocol):
    """By default, a strategy takes everything, in the given order."""

    def filter_partition_paths(self, partitions: Sequence[str]) -> Sequence[str]:
        """The partitions to consider, in order."""
        return partitions

    def order_and_filter(self, slices: Sequence[FileSlice]) -> Sequence[FileSlice]:
        """The slices to compact, in order."""
        return slices

    def filter_log_files(self, all_log_files: Sequence[LogFile], instant: str) -> Split:  # noqa: ARG002 - the RFC's signature
        """The log files to compact and those to remain, for a compaction at `instant` (RFC-74 section 1, point 2)."""
        return tuple(sorted(all_log_files, key=_READER_ORDER)), ()


@dataclass(frozen=True, slots=True)
class EventTimeBasedCompactionStrategy(CompactionStrategy):
    """The log files that a compaction merges.

    With `cut` FILE, these are the log files up to the last one that contains a record before T. With EXACT, they are those
    before the first one that contains any other record.

    The RFC takes each file whose minimum is at or before its threshold, at any position. That reorders versions of a key, so
    this function also takes everything below the last such file, a closed prefix: see docs/invariants.md, counterexample 2.
    With an exact cut, the prefix contains only records before T. Such records of the log files above it are also merged, and
    their log files remain. An unknown event time counts as minus infinity.

    `event_times` returns a log file's range; `threshold_ms` is T, exclusive.
    """

    threshold_ms: int
    event_times: Callable[[LogFile], EventTimeRange]
    cut: CutMode = CutMode.FILE

    def filter_log_files(self, all_log_files: Sequence[LogFile], instant: str) -> Split:  # noqa: ARG002 - the RFC's signature
        logs = sorted(all_log_files, key=_READER_ORDER)
        ranges = [self.event_times(log) for log in logs]
        if self.cut is CutMode.EXACT:
            count = sum(1 for _ in takewhile(lambda times: times.ends_before(self.threshold_ms), ranges))
        else:
            count = max((n for n, times in enumerate(ranges, 1) if times.starts_before(self.threshold_ms)), default=0)
        return tuple(logs[:count]), tuple(logs[count:])


def threshold_of_latency(compaction_ms: int, data_latency_seconds: int) -> int:
    """T for data that arrives at most `data_latency_seconds` after its event time (RFC-74 section 3)."""
    return compaction_ms - 1000 * data_latency_seconds
