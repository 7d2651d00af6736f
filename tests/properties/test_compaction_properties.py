"""Small random tables, any T, any link mode: a compaction, data after it, and a second compaction, against the oracle.

EVENTIDE_CAMPAIGN=n tries n times as many, other ones at each run.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.testing.crash_enumeration import Bench, execute, pending_plan, schedule
from eventide.testing.histories import Commit, History, Layout, Story, delete, layouts, put
from eventide.testing.observation import (
    LOCK_PREFIX,
    MARKERS_PREFIX,
    BlockInstants,
    Observer,
    check_each_version_once,
    check_freshness,
    check_incremental,
    check_links_whole,
    check_plan,
    check_read_optimized,
    check_snapshot,
    check_time_travel,
    merged_counts,
)
from eventide.testing.oracle import Change, Oracle
from eventide_core.config import LinkChoice
from eventide_core.errors import RefusedError
from eventide_core.service.table import TableState
from eventide_core.table.plans import Cut

CAMPAIGN = int(os.environ.get("EVENTIDE_CAMPAIGN", "1"))
KEYS = ("k0", "k1")
TIMES = st.integers(1, 4)
LINKS = (LinkChoice.AUTO, LinkChoice.COPY, LinkChoice.HARDLINK, LinkChoice.PREFIX)


@st.composite
def commits(draw: st.DrawFn) -> Commit:
    """Changes of one or two keys: mostly upserts, and deletes of both kinds."""
    changes: list[Change] = []
    for key in draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=2, unique=True)):
        kind = draw(st.integers(0, 9))
        if kind == 0:
            changes.append(delete(key))
        elif kind <= 2:
            changes.append(delete(key, draw(TIMES)))
        else:
            changes.append(put(key, draw(TIMES), f"word {draw(st.integers(0, 99))}"))
    return tuple(changes)


BASES = st.lists(TIMES, min_size=1, max_size=2).map(
    lambda times: tuple(put(key, time, "base") for key, time in zip(KEYS, times, strict=False))
)
LAYOUTS = st.sampled_from([*layouts(), *layouts(has_block_event_times=True)])


@settings(
    max_examples=100 * CAMPAIGN, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=CAMPAIGN == 1
)
@given(
    layout=LAYOUTS,
    base=BASES,
    first=st.lists(commits(), min_size=1, max_size=4),
    second=st.lists(commits(), max_size=2),
    cuts=st.lists(TIMES, min_size=2, max_size=2).map(sorted),
    links=st.lists(st.sampled_from(LINKS), min_size=2, max_size=2),
    kinds=st.lists(st.sampled_from(Cut), min_size=2, max_size=2),
)
def test_no_compaction_changes_what_a_reader_sees(
    layout: Layout,
    base: Commit,
    first: list[Commit],
    second: list[Commit],
    cuts: list[int],
    links: list[LinkChoice],
    kinds: list[Cut],
) -> None:
    bench = Bench("properties")
    story = Story.begin(layout, bench.storage, bench.clock)
    story.commit(base)
    for more, cut_ms, link, cut in zip((first, second), cuts, links, kinds, strict=True):
        for changes in more:
            story.commit(changes)
        _hold(bench, story.oracle)
        _compact(bench, layout, story.oracle, History("random", (), cut_ms, cut), link)
        _hold(bench, story.oracle)


def _compact(bench: Bench, layout: Layout, oracle: Oracle, history: History, link: LinkChoice) -> None:
    """Compacts the table and tells the oracle; nothing where the link mode is refused."""
    before = oracle.copy()
    try:
        schedule(history, link)(bench.process())
    except RefusedError:
        assert link is LinkChoice.PREFIX
        return
    plan = pending_plan(bench.process())
    oracle.compact(plan.cut_ms, merged_counts(plan), plan.cut_ms if plan.cut is Cut.EXACT else None)
    check_plan(plan, before, oracle, layout.reader_orders)
    execute(plan.instant)(bench.process())
    files = bench.storage.dump()
    check_links_whole(files, plan, is_completed=True)
    assert not [path for path in files if path.startswith((LOCK_PREFIX, MARKERS_PREFIX))]


def _hold(bench: Bench, oracle: Oracle) -> None:
    """Every query says what the oracle says."""
    application = bench.process()
    seen = Observer().look(application, oracle.instants)
    check_snapshot(seen, oracle.snapshot())
    check_read_optimized(seen, oracle.read_optimized())
    check_time_travel(seen, oracle)
    check_incremental(seen, oracle)
    check_freshness(seen, oracle)
    check_each_version_once(TableState.load(application.files), bench.storage.dump(), oracle, BlockInstants())
