"""The backlog: what is in log files but not yet in a base file, as the RFC's metrics measure it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.log_facts import LogFacts


@dataclass(frozen=True, slots=True)
class Backlog:
    """The log files of the latest slices, left-overs among them: what a compaction of everything would merge.

    `file_slices` counts the slices that have any, `log_files` the log files, and `bytes` their sizes. `min_event_time_ms` is
    the least event time in any of them, even if an exact cut merged it; None if unknown.
    """

    file_slices: int
    log_files: int
    bytes: int
    min_event_time_ms: int | None


def backlog(slices: Iterable[FileSlice], facts: Mapping[str, LogFacts]) -> Backlog:
    """The backlog of these slices. `facts` are by log file path, and may be incomplete."""
    with_logs = [file_slice for file_slice in slices if file_slice.log_files]
    logs = [log for file_slice in with_logs for log in file_slice.log_files]
    known = (facts[log.path].event_times.min_ms for log in logs if log.path in facts)
    earliest = min((ms for ms in known if ms is not None), default=None)
    return Backlog(len(with_logs), len(logs), sum(log.size for log in logs), earliest)
