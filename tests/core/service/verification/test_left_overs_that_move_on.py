"""Two partial compactions whose quiet moments both lie before a log file: it moves from slice to slice under its name."""

import pytest

from eventide.testing.crash_enumeration import OPTIONS, Bench
from eventide.testing.histories import EPOCH_MS, Layout, Story, put
from eventide.testing.oracle import Order
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.ports import NoProgress
from eventide_core.table.timeline.contents.plans import LinkMode, require_ours
from support.pauses.services import shown
from support.pauses.standstill import verified


@pytest.mark.parametrize("version", [8, 9])
def test_a_left_over_that_a_later_compaction_takes_into_its_slice_is_no_damage(version: int) -> None:
    bench = Bench("moved on", OPTIONS)
    story = Story.begin(Layout(version, Order.EVENT_TIME), bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"),))
    for ms in (10, 20, 30):
        bench.clock.sleep(1_000)
        story.commit((put("k0", ms, f"at {ms}"),))
    before = shown(bench.process())
    instants: list[str] = []
    for cut_ms in (15, 25):
        bench.clock.sleep(1_000)
        application = bench.process()
        plan = application.scheduler.schedule(
            CompactionRequest(EPOCH_MS + cut_ms, None, LinkChoice.AUTO), is_for_later=True
        ).plan
        assert require_ours(plan).link_mode is LinkMode.PREFIX
        application.runner.execute(plan.instant, NoProgress())
        instants.append(plan.instant)
    (last,) = bench.process().state().view.latest_slices()
    (log,) = last.log_files
    assert instants[0] < instants[1] == last.base_instant < str(log.name.instant)
    assert shown(bench.process()) == before
    assert verified(bench.process()) == ""
