"""A table in memory whose log files are merged in part."""

from collections.abc import Mapping

from eventide.testing.crash_enumeration import Bench, Moment, pending_plan
from eventide.testing.histories import EPOCH_MS, Layout, Story, delete, put
from eventide.testing.oracle import Order
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.ports import NoProgress


def compacted_bench(name: str, version: int, options: Mapping[str, str]) -> tuple[Bench, Moment]:
    """A table with base files, log files, left-overs, a compaction with its plan, and a later write with deletes."""
    bench = Bench(name, options)
    story = Story.begin(Layout(version, Order.EVENT_TIME), bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"), put("k1", 2, "base")))
    story.commit((put("k0", 5, "early"),))
    story.commit((put("k1", 12, "left over"), put("k3", 13, "left over")))
    application = bench.process()
    application.scheduler.schedule(CompactionRequest(EPOCH_MS + 10, None, LinkChoice.COPY))
    application.runner.execute(pending_plan(application).instant, NoProgress())
    story.commit((put("k0", 20, "later"), delete("k3", 21)))
    return bench, bench.moment()
