"""How fresh the read-optimized table is.

cut: the T of the last completed event-time compaction.
watermark: min(cut, the least event time of committed log records that are not in a base file yet): the greatest T for
which "everything before T that has been committed is in the read-optimized table" is true now. A late record lowers it.
Records without an event time cannot lower it; they are counted apart.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from eventide_core.table.event_time import EventTimeRange

CUT_KEY = "hoodie.ro.event.time.cut"
WATERMARK_KEY = "hoodie.ro.event.time.watermark"
EVENT_TIME_FIELD_KEY = "hoodie.ro.event.time.field"
LATE_RECORDS_KEY = "hoodie.ro.late.records"


@dataclass(frozen=True, slots=True)
class Freshness:
    """Epoch milliseconds and record counts. `watermark_ms` and `cut_ms` are None before the first event-time compaction.

    `late_records` lie before the cut, were committed after its plan, and are not in a base file yet.
    """

    watermark_ms: int | None
    cut_ms: int | None
    late_records: int
    unknown_event_time_records: int
    earliest_log_event_time_ms: int | None


def freshness(cut_ms: int | None, logs: Iterable[EventTimeRange], late_records: int) -> Freshness:
    """The freshness of a table, or of one partition: `logs` are the ranges of its log records not yet in a base file."""
    ranges = tuple(logs)
    earliest = min((r.min_ms for r in ranges if r.min_ms is not None), default=None)
    watermark = cut_ms
    if cut_ms is not None and earliest is not None:
        watermark = min(cut_ms, earliest)
    return Freshness(watermark, cut_ms, late_records, sum(r.unknown_records for r in ranges), earliest)
