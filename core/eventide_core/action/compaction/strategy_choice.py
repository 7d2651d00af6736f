"""Which strategies a user has named, with their options: `hoodie.compaction.strategy`, by Hudi's class names.

Several names, separated by commas, are a chain, as in Hudi 1.x: each takes its part of what the ones before it took. The
event-time strategy says what is compacted of a slice, the others which slices are; so its position in the chain does not
matter.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from eventide_core import config as keys
from eventide_core.action.compaction.slice_strategies import (
    BoundedIOCompactionStrategy,
    BoundedPartitionAwareCompactionStrategy,
    DayBasedCompactionStrategy,
    LogFileNumBasedCompactionStrategy,
    LogFileSizeBasedCompactionStrategy,
    PartitionRegexBasedCompactionStrategy,
    UnBoundedCompactionStrategy,
    UnBoundedPartitionAwareCompactionStrategy,
)
from eventide_core.action.compaction.strategy import EVENT_TIME_STRATEGY, CompactionStrategy
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.table.files.file_slice import FileSlice

PACKAGE = "org.apache.hudi.table.action.compact.strategy."


@dataclass(frozen=True, slots=True)
class ChosenStrategy:
    """The chain that a user has named.

    `names` are the classes without Hudi's package, as named. `chain` has them in the same order, without the event-time
    strategy, which chooses no slices. `is_by_event_time`: it is among them, so slices are compacted up to T, not in full.
    """

    names: tuple[str, ...]
    is_by_event_time: bool
    chain: tuple[CompactionStrategy, ...]

    def choose(self, partitions: Iterable[str], slices: Sequence[FileSlice]) -> tuple[FileSlice, ...]:
        """Of the slices with something to compact those to compact, in order. `partitions` are all of the table."""
        paths: Sequence[str] = sorted(partitions)
        for strategy in self.chain:
            paths = strategy.filter_partition_paths(paths)
        of_partition: dict[str, list[FileSlice]] = {path: [] for path in paths}
        for file_slice in slices:
            if file_slice.partition in of_partition:
                of_partition[file_slice.partition].append(file_slice)
        chosen: Sequence[FileSlice] = [file_slice for path in paths for file_slice in of_partition[path]]
        for strategy in self.chain:
            chosen = strategy.order_and_filter(chosen)
        return tuple(chosen)

    def __str__(self) -> str:
        return ", ".join(self.names)


def chosen_strategy(options: Options, today: date) -> ChosenStrategy:
    """The strategy of `hoodie.compaction.strategy`; EventTimeBasedCompactionStrategy where none is named.

    Raises ConfigError for a name that is not known, and for an option of a named strategy that cannot be used.
    """
    names = [name.strip().removeprefix(PACKAGE) for name in options.get(keys.STRATEGY).split(",")]
    chain: list[CompactionStrategy] = []
    for name in names:
        if name == EVENT_TIME_STRATEGY:
            continue
        if name not in _STRATEGIES:
            known = ", ".join(sorted([EVENT_TIME_STRATEGY, *_STRATEGIES]))
            raise ConfigError(f"option {keys.STRATEGY}: {name!r} is unknown; known strategies are {known}")
        chain.append(_STRATEGIES[name](options, today))
    return ChosenStrategy(tuple(names), EVENT_TIME_STRATEGY in names, tuple(chain))


def _bound(options: Options) -> BoundedIOCompactionStrategy:
    return BoundedIOCompactionStrategy(
        options.get(keys.TARGET_IO_MB),
        options.get(keys.PARQUET_MAX_FILE_SIZE),
    )


def _earliest_day(options: Options, today: date) -> date:
    try:
        return today - timedelta(days=options.get(keys.TARGET_PARTITIONS))
    except OverflowError:
        return date.min


def _partition_regex(options: Options) -> re.Pattern[str]:
    pattern = options.get(keys.PARTITION_REGEX)
    if pattern is None:
        raise ConfigError(f"PartitionRegexBasedCompactionStrategy needs a pattern: set {keys.PARTITION_REGEX}")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"option {keys.PARTITION_REGEX}={pattern!r} is not a regular expression: {error}") from None


_STRATEGIES: dict[str, Callable[[Options, date], CompactionStrategy]] = {
    "UnBoundedCompactionStrategy": lambda _, __: UnBoundedCompactionStrategy(),
    "BoundedIOCompactionStrategy": lambda options, _: _bound(options),
    "LogFileSizeBasedCompactionStrategy": lambda options, _: LogFileSizeBasedCompactionStrategy(
        options.get(keys.LOG_FILE_SIZE_THRESHOLD), _bound(options)
    ),
    "LogFileNumBasedCompactionStrategy": lambda options, _: LogFileNumBasedCompactionStrategy(
        options.get(keys.LOG_FILE_NUM_THRESHOLD), _bound(options)
    ),
    "DayBasedCompactionStrategy": lambda options, _: DayBasedCompactionStrategy(
        options.get(keys.TARGET_PARTITIONS), _bound(options)
    ),
    "BoundedPartitionAwareCompactionStrategy": lambda options, today: BoundedPartitionAwareCompactionStrategy(
        _earliest_day(options, today)
    ),
    "UnBoundedPartitionAwareCompactionStrategy": lambda options, today: UnBoundedPartitionAwareCompactionStrategy(
        _earliest_day(options, today)
    ),
    "PartitionRegexBasedCompactionStrategy": lambda options, _: PartitionRegexBasedCompactionStrategy(
        _partition_regex(options)
    ),
}
