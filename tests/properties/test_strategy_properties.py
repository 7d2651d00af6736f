"""Random tables and random chains of strategies: whatever a strategy leaves out, what is published stays true.

A row before the watermark that only a log holds would make it false, so would a cut that promises what a plan left out.
EVENTIDE_CAMPAIGN=n tries n times as many, other ones at each run.
"""

from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.bootstrap import Application, assemble
from eventide.engine_local import LocalEngine
from eventide.testing.crash_enumeration import Bench, execute, pending_plan
from eventide.testing.histories import EPOCH_MS, Commit, Layout, Story, delete, layouts, put
from eventide.testing.inspection.checks import (
    check_freshness,
    check_read_optimized,
    check_snapshot,
    check_time_travel,
    merged_counts,
)
from eventide.testing.inspection.observation import Observer
from eventide.testing.oracle import Change
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from support.run.campaign import IS_REPEATED, tries

pytestmark = pytest.mark.slow

PARTITIONS = ("p", "q", "r")
TIMES = st.integers(1, 6)
EVENT_TIME = "EventTimeBasedCompactionStrategy"


@dataclass(frozen=True, slots=True)
class Round:
    """Commits, and the compaction that follows them: up to T where its strategy knows event time."""

    commits: tuple[Commit, ...]
    strategy: str
    regex: str
    t: int


@st.composite
def commits(draw: st.DrawFn) -> Commit:
    changes: list[Change] = []
    for partition in draw(st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=3, unique=True)):
        is_delete = draw(st.integers(0, 9)) == 0
        key = f"{partition}-{draw(st.integers(0, 1))}"
        change = put(key, draw(TIMES), f"word {draw(st.integers(0, 99))}", partition=partition)
        changes.append(delete(key, partition=partition) if is_delete else change)
    return tuple(changes)


BOUNDED = (f"{EVENT_TIME},PartitionRegexBasedCompactionStrategy", f"LogFileNumBasedCompactionStrategy,{EVENT_TIME}")
WITHOUT_EVENT_TIME = ("PartitionRegexBasedCompactionStrategy", "LogFileNumBasedCompactionStrategy")


def rounds_by(*strategies: str) -> st.SearchStrategy[Round]:
    histories = st.lists(commits(), min_size=1, max_size=3).map(tuple)
    return st.builds(Round, histories, st.sampled_from(strategies), st.sampled_from(["[pq]", "q", "[pr]"]), TIMES)


# A cut, then late records and a bound that may leave them out, then anything.
ROUNDS = st.tuples(
    rounds_by(EVENT_TIME, *BOUNDED), rounds_by(*BOUNDED), rounds_by(EVENT_TIME, *BOUNDED, *WITHOUT_EVENT_TIME)
).map(lambda rounds: [replace(turn, t=t) for turn, t in zip(rounds, sorted(r.t for r in rounds), strict=True)])
BASE = tuple(put(f"{name}-0", 1, "base", partition=name) for name in PARTITIONS)


@settings(
    max_examples=tries(test=40, proof=40),
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=IS_REPEATED,
)
@given(layout=st.sampled_from(layouts()), rounds=ROUNDS)
def test_what_is_published_stays_true_whatever_strategies_leave_out(layout: Layout, rounds: list[Round]) -> None:
    bench = Bench("strategies")
    story = Story.begin(layout, bench.storage, bench.clock)
    story.commit(BASE)
    for turn in rounds:
        for changes in turn.commits:
            story.commit(changes)
        application = _process(bench, turn)
        is_for_t = EVENT_TIME in turn.strategy
        request = CompactionRequest(EPOCH_MS + turn.t if is_for_t else None, None, LinkChoice.AUTO, is_for_t)
        draft = application.scheduler.schedule(request)
        if draft.idle is None:
            plan = pending_plan(application)
            story.oracle.compact(plan.cut_ms, merged_counts(plan))
            execute(plan.instant)(application)
            if plan.cut_ms is not None:  # what it has just promised holds of everything that was committed
                assert (story.oracle.freshness().late_records, story.oracle.freshness().watermark_ms) == (
                    0,
                    plan.cut_ms,
                )
                assert plan.cut_ms <= EPOCH_MS + turn.t
        _hold(bench, story)


def _process(bench: Bench, turn: Round) -> Application:
    options = {
        "hoodie.compaction.strategy": turn.strategy,
        "hoodie.compaction.partition.path.regex": f"part={turn.regex}",
        "hoodie.compaction.logfile.num.threshold": "2",
        "hoodie.compact.inline.max.delta.commits": "0",
        "hoodie.index.type": "BUCKET",
    }
    return assemble(bench.storage.root, options, engine=LocalEngine(1), storage=bench.storage, clock=bench.clock)


def _hold(bench: Bench, story: Story) -> None:
    seen = Observer().look(bench.process(), story.oracle.instants)
    check_snapshot(seen, story.oracle.snapshot())
    check_read_optimized(seen, story.oracle.read_optimized())
    check_time_travel(seen, story.oracle)
    check_freshness(seen, story.oracle)
