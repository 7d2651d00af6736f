"""Finds log files with records that a wrong clock dated into the future.

Such a record prevents an exact cut from retiring its log file, and every log file above it, until the slice exceeds its
limit of left-overs and is compacted in full. By the ranges of the log files alone, which cost nothing, a log file
offends if

1. its latest record is later than the clock, or
2. its latest record is later than everything in the log files that came after it, at least three of them: a stream
   continues, and its event times advance.

To name the keys of these records, the log file has to be read, which only happens on request
(service/query/offending_records.py).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eventide_core.action.compaction.slice_selection import SliceFacts
from eventide_core.table.files.file_slice import LogFile

LOG_FILES_NAMED = 5  # enough to find the device; others appear after these are repaired
_LATER_LOG_FILES_MIN = 3  # one or two log files of late data after timely data are normal


@dataclass(frozen=True, slots=True)
class OffendingLogFile:
    """A log file with records at or after `since_ms` that seem to be of the future.

    `since_ms` and `latest_ms`, the greatest event time in it, are in epoch milliseconds. `held_back` counts the log files
    above it that hold nothing but records before T, and would be retired without it.
    """

    partition: str
    file_id: str
    log_file: LogFile
    since_ms: int
    latest_ms: int
    held_back: int


def offending_log_files(
    slices: Iterable[SliceFacts], threshold_ms: int | None, now_ms: int
) -> tuple[OffendingLogFile, ...]:
    """The worst log files: first those that hold back most, then those furthest in the future.

    `threshold_ms` is T, if any.
    """
    logs = sorted(
        (offending for facts in slices for offending in _of_slice(facts, threshold_ms, now_ms)),
        key=lambda o: (-o.held_back, -o.latest_ms, o.log_file.path),
    )
    return tuple(logs[:LOG_FILES_NAMED])


def _of_slice(facts: SliceFacts, threshold_ms: int | None, now_ms: int) -> Iterator[OffendingLogFile]:
    later_max: int | None = None
    later_count = retirable = 0
    for fact in reversed(facts.log_facts):
        latest = fact.event_times.max_ms
        if latest is None:
            continue
        since = _since(latest, later_max if later_count >= _LATER_LOG_FILES_MIN else None, now_ms)
        if since is not None and (threshold_ms is None or latest >= threshold_ms):
            file_slice = facts.file_slice
            yield OffendingLogFile(file_slice.partition, file_slice.file_id, fact.log_file, since, latest, retirable)
        retirable += threshold_ms is not None and fact.event_times.ends_before(threshold_ms)
        later_max = latest if later_max is None else max(latest, later_max)
        later_count += 1


def _since(latest_ms: int, later_max_ms: int | None, now_ms: int) -> int | None:
    """The time from which a log file's records seem to be of the future; None if its latest record doesn't."""
    bounds = [bound for bound in (later_max_ms, now_ms) if bound is not None and latest_ms > bound]
    return min(bounds) + 1 if bounds else None
