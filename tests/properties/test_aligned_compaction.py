"""Compactions aligned to boundaries of event time: one a boundary, and another one only for what came late."""

from eventide.testing.crash_enumeration import Bench
from eventide.testing.histories import EPOCH_MS, Layout, Story, put
from eventide.testing.oracle import Order
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.compaction.threshold_alignment import Alignment
from eventide_core.config import LinkChoice
from eventide_core.errors import format_timestamp
from eventide_core.ports import NoProgress
from eventide_core.table.timeline.contents.plans import CutMode

DAY_MS = 86_400_000
MIDNIGHT = DAY_MS - EPOCH_MS % DAY_MS  # the first one of the history


def test_a_boundary_that_is_published_and_still_true_makes_nothing_due() -> None:
    bench = Bench("aligned")
    story = Story.begin(Layout(9, Order.EVENT_TIME), bench.storage, bench.clock)

    def round_at(ms: int) -> int | str | None:
        """The cut that a round at that event time publishes, or why it does nothing."""
        request = CompactionRequest(
            EPOCH_MS + ms, None, LinkChoice.AUTO, cut=CutMode.EXACT, alignment=Alignment(86_400)
        )
        process = bench.process()
        draft = process.scheduler.schedule(request)
        if draft.idle is not None:
            return draft.idle
        process.runner.execute(draft.plan.instant, NoProgress())
        bench.clock.sleep(10)
        return draft.plan.cut_ms

    story.commit((put("a", 1, "base"),))
    story.commit((put("a", 10, "first day"), put("b", MIDNIGHT + 5, "second day")))
    first = EPOCH_MS + MIDNIGHT
    reached = f"already reached: everything before T is compacted, and the view is exact at {format_timestamp(first)}"
    assert round_at(MIDNIGHT + 1000) == first
    assert round_at(MIDNIGHT + 2000) == reached
    story.commit((put("c", MIDNIGHT + 3000, "on time"),))
    assert round_at(MIDNIGHT + 4000) == reached
    story.commit((put("d", 20, "late"),))
    assert bench.process().freshness.now(bench.process().state()).late_records == 1
    assert round_at(MIDNIGHT + 5000) == first
    assert bench.process().freshness.now(bench.process().state()).watermark_ms == first
    assert round_at(MIDNIGHT + DAY_MS) == first + DAY_MS
