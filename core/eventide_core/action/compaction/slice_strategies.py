"""Which whole slices a compaction takes, and in which order: Hudi's own strategies, as Hudi 1.x has them.

A strategy's sizes are the sizes of the whole slice: its base file and all its log files. Where Hudi 0.x differs: its
DayBased strategy has no bound of IO, and its BoundedIO takes one slice even for a bound of 0.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from eventide_core.action.compaction.strategy import CompactionStrategy
from eventide_core.errors import ConfigError
from eventide_core.table.files.file_slice import FileSlice

_MEGABYTE = 1024 * 1024
_DAY = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?!\d)", re.ASCII)
_PARTITION_KEYS = re.compile(r"(^|/)[^/]*?=")


def compaction_io_mb(file_slice: FileSlice, new_base_bytes: int) -> int:
    """Hudi's TOTAL_IO_MB: what compacting the slice reads and writes, each in whole megabytes, rounded down.

    The new base file counts as large as the old one; where there is none, as `new_base_bytes`.
    """
    base_bytes = file_slice.base_file.size if file_slice.base_file else 0
    return (base_bytes + log_bytes(file_slice)) // _MEGABYTE + (base_bytes or new_base_bytes) // _MEGABYTE


def log_bytes(file_slice: FileSlice) -> int:
    return sum(log.size for log in file_slice.log_files)


@dataclass(frozen=True, slots=True)
class UnBoundedCompactionStrategy(CompactionStrategy):
    """Everything."""


@dataclass(frozen=True, slots=True)
class BoundedIOCompactionStrategy(CompactionStrategy):
    """Slices until their IO has reached the target: the one that reaches it is still taken.

    `target_io_mb` counts whole megabytes, read and written (`compaction_io_mb`), over all slices of the plan.
    `new_base_bytes` is the size that a slice without a base file is taken to get.
    """

    target_io_mb: int
    new_base_bytes: int

    def order_and_filter(self, slices: Sequence[FileSlice]) -> Sequence[FileSlice]:
        taken: list[FileSlice] = []
        left_mb = self.target_io_mb
        for file_slice in slices:
            if left_mb <= 0:
                break
            left_mb -= compaction_io_mb(file_slice, self.new_base_bytes)
            taken.append(file_slice)
        return taken


@dataclass(frozen=True, slots=True)
class LogFileSizeBasedCompactionStrategy(CompactionStrategy):
    """Slices with at least `threshold_bytes` of log files in total, the most first, until the `bound` of IO."""

    threshold_bytes: int
    bound: BoundedIOCompactionStrategy

    def order_and_filter(self, slices: Sequence[FileSlice]) -> Sequence[FileSlice]:
        large = [file_slice for file_slice in slices if log_bytes(file_slice) >= self.threshold_bytes]
        return self.bound.order_and_filter(sorted(large, key=log_bytes, reverse=True))


@dataclass(frozen=True, slots=True)
class LogFileNumBasedCompactionStrategy(CompactionStrategy):
    """Slices with at least `threshold` log files, the most first, until the `bound` of IO."""

    threshold: int
    bound: BoundedIOCompactionStrategy

    def order_and_filter(self, slices: Sequence[FileSlice]) -> Sequence[FileSlice]:
        many = [file_slice for file_slice in slices if len(file_slice.log_files) >= self.threshold]
        return self.bound.order_and_filter(sorted(many, key=lambda file_slice: len(file_slice.log_files), reverse=True))


@dataclass(frozen=True, slots=True)
class DayBasedCompactionStrategy(CompactionStrategy):
    """The partitions of the latest days, the latest first, until the `bound` of IO. Of all partitions, not of changed ones.

    `target_partitions` is how many partitions, not days, are considered.
    """

    target_partitions: int
    bound: BoundedIOCompactionStrategy

    def filter_partition_paths(self, partitions: Sequence[str]) -> Sequence[str]:
        return sorted(partitions, key=day_of, reverse=True)[: self.target_partitions]

    def order_and_filter(self, slices: Sequence[FileSlice]) -> Sequence[FileSlice]:
        return self.bound.order_and_filter(slices)


@dataclass(frozen=True, slots=True)
class BoundedPartitionAwareCompactionStrategy(CompactionStrategy):
    """The partitions of the day `earliest` and after it, the latest first.

    That day is today, in the local time zone, less `hoodie.compaction.daybased.target.partitions` days.
    """

    earliest: date

    def filter_partition_paths(self, partitions: Sequence[str]) -> Sequence[str]:
        return sorted((path for path in partitions if day_of(path) >= self.earliest), key=day_of, reverse=True)


@dataclass(frozen=True, slots=True)
class UnBoundedPartitionAwareCompactionStrategy(CompactionStrategy):
    """The partitions before the day `earliest`: what BoundedPartitionAware leaves. The latest first, by name."""

    earliest: date

    def filter_partition_paths(self, partitions: Sequence[str]) -> Sequence[str]:
        return sorted((path for path in partitions if day_of(path) < self.earliest), reverse=True)


@dataclass(frozen=True, slots=True)
class PartitionRegexBasedCompactionStrategy(CompactionStrategy):
    """The partitions in whose path `pattern` is found, anywhere in it."""

    pattern: re.Pattern[str]

    def filter_partition_paths(self, partitions: Sequence[str]) -> Sequence[str]:
        return [path for path in partitions if self.pattern.search(path)]


def day_of(partition: str) -> date:
    """The day of a partition path `yyyy/MM/dd` or `a=yyyy/b=MM/c=dd`, whatever follows it. Raises ConfigError."""
    match = _DAY.match(_PARTITION_KEYS.sub(r"\1", partition))
    try:
        if match is not None:
            return date(*map(int, match.groups()))
    except ValueError:
        pass
    raise ConfigError(
        f"partition {partition!r} is not a day as yyyy/MM/dd, which the strategies by day need; choose another strategy"
    )
