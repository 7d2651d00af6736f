"""The exact cut: the read-optimized view holds what was committed before T, nothing newer, and no reader notices anything.

Each history stands against one way in which that could go wrong; every rule is tried on each kind of table that it is about.
"""

import pytest

from eventide.testing.crash_enumeration import Bench, crash_states, execute, pending_plan, schedule
from eventide.testing.histories import EPOCH_MS, Commit, History, Layout, Story, delete, layouts, put
from eventide.testing.inspection.checks import (
    check_freshness,
    check_incremental,
    check_plan,
    check_read_optimized,
    check_snapshot,
    check_time_travel,
    merged_counts,
)
from eventide.testing.inspection.observation import Observer, check_verified
from eventide_core.config import MAX_LEFT_OVERS, LinkChoice
from eventide_core.errors import format_timestamp
from eventide_core.service.common.state.table import TableState
from eventide_core.table.timeline.contents.plans import CompactionPlan, CutMode, FallbackReason
from support.run.reach import reached

pytestmark = pytest.mark.slow

IN_EVENT_TIME = [layout for layout in layouts() if layout.order.name == "EVENT_TIME"]
BY_ONE_RULE = [*IN_EVENT_TIME, *(layout for layout in layouts() if layout.order.name == "COMMIT_TIME")]


class Told:
    """A table, its oracle, and exact compactions of it, each held to the oracle in every query."""

    def __init__(self, layout: Layout, options: dict[str, str] | None = None) -> None:
        self.layout = layout
        self.bench = Bench("exact")
        self.bench.options = {**self.bench.options, **(options or {})}
        self.story = Story.begin(layout, self.bench.storage, self.bench.clock)

    def commits(self, *commits: Commit) -> "Told":
        for changes in commits:
            self.story.commit(changes)
        return self

    def compacted(self, cut_ms: int, link: LinkChoice = LinkChoice.COPY) -> CompactionPlan:
        oracle = self.story.oracle
        before = oracle.copy()
        schedule(History("exact", (), cut_ms, CutMode.EXACT), link)(self.bench.process())
        plan = pending_plan(self.bench.process())
        oracle.compact(plan.cut_ms, merged_counts(plan), plan.cut_ms)
        check_plan(plan, before, oracle, self.layout.reader_orders)
        process = self.bench.process()
        process.freshness.now(process.state())  # what the process knows of the logs must not outlive the commit
        execute(plan.instant)(process)
        assert process.freshness.now(process.state()).late_records == oracle.freshness().late_records
        self.hold()
        return plan

    def plans_nothing(self, cut_ms: int) -> bool:
        process = self.bench.process()
        schedule(History("exact", (), cut_ms, CutMode.EXACT), LinkChoice.COPY)(process)
        return not process.files.timeline(process.files.config()).pending_plans

    def hold(self) -> None:
        oracle = self.story.oracle
        seen = Observer().look(self.bench.process(), oracle.instants)
        check_snapshot(seen, oracle.snapshot())
        check_read_optimized(seen, oracle.read_optimized())
        check_time_travel(seen, oracle)
        check_incremental(seen, oracle)
        check_freshness(seen, oracle)
        check_verified(self.bench.process(), is_deep=True)

    @property
    def is_exact(self) -> bool:
        """Whether the read-optimized view shows exactly what was committed before the cut."""
        oracle = self.story.oracle
        cut_ms = oracle.freshness().cut_ms
        assert cut_ms is not None
        return oracle.read_optimized() == oracle.exactly_before(cut_ms)


@pytest.fixture(params=layouts(), ids=lambda layout: f"v{layout.version}-{layout.order.name}")
def layout(request: pytest.FixtureRequest) -> Layout:
    found: Layout = request.param
    return found


def in_layouts(chosen: list[Layout]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("layout", chosen, ids=lambda layout: f"v{layout.version}-{layout.order.name}")


BASE = (put("a", 1, "base"), put("b", 1, "base"))


@in_layouts(BY_ONE_RULE)
def test_late_records_are_taken_out_of_logs_that_stay(layout: Layout) -> None:
    told = Told(layout).commits(
        BASE,
        (put("a", 4, "early"),),
        (put("b", 20, "on time"), put("c", 20, "new")),
        (put("c", 5, "late"), put("b", 30, "last"), put("d", 6, "late and new")),
    )
    plan = told.compacted(10)
    (operation,) = plan.operations
    assert [len(operation.compacted), len(operation.left_overs)] == [1, 2]
    assert [left.threshold_ms for left in operation.left_overs] == [None, EPOCH_MS + 10]
    assert told.is_exact
    assert told.story.oracle.freshness().watermark_ms == EPOCH_MS + 10
    reached("exact cut: left-overs merged early", 1)


@in_layouts(BY_ONE_RULE)
def test_a_slice_whose_first_log_stays_is_rewritten_for_what_is_late(layout: Layout) -> None:
    told = Told(layout).commits(BASE, (put("a", 20, "on time"), put("b", 3, "late")))
    (operation,) = told.compacted(10).operations
    assert (operation.compacted, len(operation.left_overs)) == ((), 1)
    assert told.is_exact


@in_layouts(BY_ONE_RULE)
def test_what_was_merged_early_is_not_merged_for_its_own_sake_again(layout: Layout) -> None:
    told = Told(layout).commits(BASE, (put("a", 20, "on time"), put("b", 3, "late")))
    told.compacted(10)
    assert told.plans_nothing(10)
    assert told.compacted(15).operations == ()
    told.commits((put("b", 4, "later, and late"),))
    assert told.story.oracle.freshness().late_records == 1
    told.hold()
    (operation,) = told.compacted(15).operations
    assert len(operation.left_overs) == 2
    assert told.compacted(25).operations[0].left_overs == ()


@in_layouts(BY_ONE_RULE)
def test_records_merged_early_keep_their_place_among_those_merged_later(layout: Layout) -> None:
    """By commit time a record of a retired log would else beat a later one that lies in the base already."""
    told = Told(layout).commits(
        BASE,
        (put("b", 7, "blocks"), put("a", 5, "first")),
        (put("a", 7, "second"),),
        (put("a", 5, "third"), put("c", 30, "stays")),
    )
    told.compacted(6)
    told.compacted(9)
    assert told.is_exact


@in_layouts(IN_EVENT_TIME)
def test_a_delete_that_a_left_over_would_contradict_is_carried(layout: Layout) -> None:
    told = Told(layout).commits(BASE, (delete("b", 8),), (put("a", 20, "stays"), put("b", 4, "older")))
    (operation,) = told.compacted(10).operations
    assert operation.carried_name is not None
    assert told.is_exact
    told.compacted(30)
    assert ("part=a", "b") not in {row[:2] for row in told.story.oracle.read_optimized()}


@in_layouts(IN_EVENT_TIME)
def test_a_tie_goes_to_the_left_over(layout: Layout) -> None:
    """Logs above the first that stays are never retired, although this one lies before T: its tie is the newer."""
    told = Told(layout).commits(
        BASE, (put("a", 20, "stays"), put("b", 2, "v2")), (put("b", 2, "v3"),), (put("a", 20, "tie"),)
    )
    (operation,) = told.compacted(10).operations
    assert (len(operation.compacted), len(operation.left_overs)) == (0, 3)
    assert told.is_exact


def test_a_delete_in_natural_order_makes_the_slice_fall_back_where_it_would_show(layout: Layout) -> None:
    told = Told(layout).commits(
        (put("a", 2, "base"), put("b", 1, "base")),
        (put("b", 20, "stays"), delete("a")),
        (put("a", 1, "below the base"), put("b", 21, "last")),
        (put("a", 25, "above T"),),
    )
    told.compacted(2)
    told.compacted(10)


def test_a_record_from_the_future_does_not_hold_logs_back_for_ever(layout: Layout) -> None:
    told = Told(layout, {MAX_LEFT_OVERS: "2"}).commits(BASE, (put("a", 10**9, "future"), put("b", 2, "early")))
    told.commits((put("b", 3, "more"),))
    assert told.compacted(10).operations[0].fallback is None
    told.commits((put("b", 4, "yet more"),))
    (operation,) = told.compacted(10).operations
    assert operation.fallback is FallbackReason.TOO_MANY_LEFT_OVERS
    assert format_timestamp(EPOCH_MS + 10**9) in operation.reason
    assert operation.left_overs == ()


def test_what_a_pending_compaction_has_made_waits_with_the_logs_that_it_is_of() -> None:
    """On version 6 it is in the slice already; counted by itself it would make late of what was merged early."""
    told = Told(next(layout for layout in IN_EVENT_TIME if layout.version == 6))
    told.commits((put("k0", 1, "base"), put("k1", 2, "base")), (put("k0", 5, "early"), put("k1", 30, "stays")))
    told.compacted(10)
    told.commits((put("k1", 3, "late"), put("k0", 31, "stays")))
    schedule(History("exact", (), 20, CutMode.EXACT), LinkChoice.COPY)(told.bench.process())
    plan, expected = pending_plan(told.bench.process()), told.story.oracle.freshness()
    assert expected.late_records == 1
    pending = 0
    for _, left in crash_states(told.bench, told.bench.moment(), execute(plan.instant)):
        told.bench.load(left)
        state = told.bench.process().state()
        if not state.timeline.is_completed(plan.instant):
            now = told.bench.process().freshness.now(state)
            assert (now.cut_ms, now.watermark_ms, now.late_records) == (
                expected.cut_ms,
                expected.watermark_ms,
                expected.late_records,
            )
            pending += 1
    assert pending > 3


def test_each_way_to_link_shows_the_same(layout: Layout) -> None:
    commits = (
        BASE,
        (put("a", 4, "early"),),
        (put("b", 20, "on time"), put("c", 3, "late")),
        (put("c", 30, "last"), delete("a", 25)),
    )
    seen = set[object]()
    for link in (LinkChoice.COPY, LinkChoice.HARDLINK, LinkChoice.AUTO):
        told = Told(layout).commits(*commits)
        told.compacted(10, link)
        seen.add(frozenset(row[:4] for row in told.story.oracle.read_optimized()))
    assert len(seen) == 1


def test_a_cut_of_whole_files_may_follow_an_exact_one(layout: Layout) -> None:
    told = Told(layout).commits(BASE, (put("a", 20, "on time"), put("b", 3, "late")), (put("a", 40, "last"),))
    told.compacted(10)
    oracle = told.story.oracle
    schedule(History("file", (), 25), LinkChoice.COPY)(told.bench.process())
    plan = pending_plan(told.bench.process())
    oracle.compact(plan.cut_ms, merged_counts(plan))
    execute(plan.instant)(told.bench.process())
    told.hold()
    assert len(TableState.load(told.bench.process().files).view.latest_slices()) == 1
