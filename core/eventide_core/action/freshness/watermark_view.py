"""Which compaction's read-optimized view answers "as of watermark T".

1. A compaction answers T where the watermark that it published is T or later: its view held everything before T that had
   been committed by its plan.
2. Of these the ones with the least cut, which hold the least that is newer: with an exact cut at T nothing newer at all.
   Cuts never fall, so they are the earliest ones, too.
3. Several may have published that cut, each later one for what had come late. The earliest whose files are still there
   answers: the same T has the same answer until a clean removes those files, and then one that holds more of what was late.

A compaction with a later cut is never taken instead of one that has been cleaned: it would hold data that was not
requested.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from eventide_core.table.records.event_time import datetime_of
from eventide_core.table.timeline.instant import Instant


@dataclass(frozen=True, slots=True)
class PublishedView:
    """The read-optimized view that the completed `compaction` left. `cut_ms` and `watermark_ms` are as it published them.

    Both are in epoch milliseconds, and are of the time of its commit: late records don't lower this watermark.
    """

    compaction: Instant
    cut_ms: int
    watermark_ms: int

    @property
    def watermark(self) -> datetime | None:
        """`watermark_ms` as a datetime in UTC. Raises InvalidThresholdError beyond the years 1 to 9999."""
        return datetime_of(self.watermark_ms, "watermark")

    @property
    def cut_time(self) -> datetime | None:
        """`cut_ms` as a datetime in UTC. Raises InvalidThresholdError beyond the years 1 to 9999."""
        return datetime_of(self.cut_ms, "cut")

    @property
    def completed(self) -> tuple[str, str]:
        """The sort key of views."""
        return (self.compaction.completion_time or self.compaction.requested_time, self.compaction.requested_time)


def views_that_answer(published: Iterable[PublishedView], threshold_ms: int) -> tuple[PublishedView, ...]:
    """The views that answer T, best first; none if no compaction has published such a watermark."""
    answering = sorted((v for v in published if v.watermark_ms >= threshold_ms), key=lambda v: v.completed)
    least_ms = min((v.cut_ms for v in answering), default=None)
    return tuple(v for v in answering if v.cut_ms == least_ms)
