"""How fresh the read-optimized table is.

cut: the T of the last completed event-time compaction, or less if a strategy left slices out of it. watermark: min(cut,
the earliest event time of committed log records that are not in a base file yet): the greatest T for which "everything
before T that has been committed is in the read-optimized table" is true now. A late record lowers it. Records without
an event time cannot lower it; they are counted separately. A record with an event time that cannot be read may be before
any T, so there is no watermark until its log file is merged.

A copy-on-write table is complete: each commit puts its records into base files, so any T is reached.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from eventide_core.errors import format_timestamp
from eventide_core.table.records.event_time import EventTimeRange, Moment, datetime_of, parse_threshold
from eventide_core.table.timeline.source_progress import SourceProgress, basis_of


@dataclass(frozen=True, slots=True)
class Freshness:
    """Epoch milliseconds and record counts; `watermark` and `cut_time` are the same times as datetimes.

    `watermark_ms` and `cut_ms` are None before the first event-time compaction. `watermark_ms` is also None as long as a log
    record has an event time that cannot be read.

    `late_records` are before the cut, were committed after its plan, and are not in a base file yet.
    `unknown_event_time_records` and `unreadable_event_time_records` count the log records, not in a base file yet, whose
    event time is null or cannot be read. `earliest_log_event_time_ms` is the least event time of those that have one; None
    if there are none. `is_complete`: all records are in base files, and there are no watermark and no cut. `is_exact`:
    whether no base file holds an event time at or after an exact cut; None for a cut by whole log files, or where nobody
    looked, or footers don't show it. `sources`: how far what the table is filled from has come, which holds its watermark
    back (arrival.py); `files_watermark_ms` is the watermark without them, and `held_back_by` names the lower one: "files",
    or a source. `notes` state how event times were read, if the table doesn't.
    """

    watermark_ms: int | None
    cut_ms: int | None
    late_records: int
    unknown_event_time_records: int
    earliest_log_event_time_ms: int | None
    is_complete: bool = False
    unreadable_event_time_records: int = 0
    is_exact: bool | None = None
    sources: tuple[SourceProgress, ...] = ()
    files_watermark_ms: int | None = None
    held_back_by: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def basis(self) -> str:
        """On what the watermark rests: "files" or "sources" (`basis_of`)."""
        return basis_of(self.sources)

    @property
    def watermark(self) -> datetime | None:
        """`watermark_ms` as a datetime in UTC. Raises InvalidThresholdError beyond the years 1 to 9999."""
        return datetime_of(self.watermark_ms, "watermark")

    @property
    def cut_time(self) -> datetime | None:
        """`cut_ms` as a datetime in UTC. Raises InvalidThresholdError beyond the years 1 to 9999."""
        return datetime_of(self.cut_ms, "cut")

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.facts())

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Names and values for people."""
        return (
            ("watermark", watermark_text(self)),
            ("cut", format_timestamp(self.cut_ms)),
            *(() if self.is_exact is None else (("exact at the cut", "yes" if self.is_exact else "no"),)),
            ("late records", f"{self.late_records:,}"),
            ("records without event time", f"{self.unknown_event_time_records:,}"),
            ("records with an unreadable event time", f"{self.unreadable_event_time_records:,}"),
            *((f"{one.kind} {one.name} up to", one.progress_text) for one in self.sources),
            *(("note", note) for note in self.notes),
        )

    def has_reached(self, threshold: Moment, *, nulls_count: bool = False) -> bool:
        """Whether everything before T that has been committed is in the read-optimized table.

        `nulls_count`: records without an event time count as before T. Raises InvalidThresholdError for a T that cannot be
        read.
        """
        threshold_ms = parse_threshold(threshold)
        if self.is_complete:
            return True
        waits = nulls_count and self.unknown_event_time_records > 0
        return self.watermark_ms is not None and self.watermark_ms >= threshold_ms and not waits


NO_CUT = Freshness(None, None, 0, 0, None)
"""The freshness of a compaction without a cut before and after it: its log files don't need to be read."""
COMPLETE = Freshness(None, None, 0, 0, None, is_complete=True)
"""The freshness of a copy-on-write table."""


def freshness(cut_ms: int | None, logs: Iterable[EventTimeRange], late_records: int) -> Freshness:
    """The freshness of a table, or of one partition: `logs` are the ranges of its log records not yet in a base file."""
    ranges = tuple(logs)
    earliest = min((r.min_ms for r in ranges if r.min_ms is not None), default=None)
    watermark = cut_ms
    if cut_ms is not None and earliest is not None:
        watermark = min(cut_ms, earliest)
    unreadable = sum(r.unreadable_records for r in ranges)
    if unreadable:
        watermark = None
    return Freshness(
        watermark,
        cut_ms,
        late_records,
        sum(r.unknown_records for r in ranges),
        earliest,
        unreadable_event_time_records=unreadable,
    )


def watermark_text(fresh: Freshness) -> str:
    """The watermark as text for the user."""
    return "complete (copy-on-write)" if fresh.is_complete else format_timestamp(fresh.watermark_ms)


def not_below_cut(threshold_ms: int, cut_ms: int | None) -> int:
    """The T to compact up to: not below the published cut, which only a rollback lowers."""
    return threshold_ms if cut_ms is None else max(threshold_ms, cut_ms)


def publishable_cut(threshold_ms: int, left_out: Iterable[EventTimeRange], cut_ms: int | None) -> int | None:
    """The cut that an event-time compaction up to T publishes: the greatest time before which it leaves nothing.

    `left_out` are the ranges of the log files of slices that have records before T and that the plan leaves out. They
    hold the cut back to their earliest record. Returns None, so that the commit publishes no cut, if that record is
    unknown, or is before `cut_ms`, the published cut. That only covers what was committed before its own plan, so it
    stays true.
    """
    ranges = tuple(left_out)
    if not all(times.has_only_times for times in ranges):
        return None
    new_cut_ms = min([threshold_ms, *(times.min_ms for times in ranges if times.min_ms is not None)])
    return None if cut_ms is not None and new_cut_ms < cut_ms else new_cut_ms
