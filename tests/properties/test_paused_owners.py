"""A process that stands still before any of its writes, and wakes up after others have gone on, harms nobody.

Its lock and its heartbeat have expired; the others have undone what it left, written, compacted, cleaned and archived
beyond it. Whatever the process then still does, every acknowledged row is there, no other is, `verify` finds nothing, and
the others can go on. Not checked here: a process that is paused twice, or dies as it wakes up; one that archives; tables
with a metadata table (docs/invariants.md).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eventide.testing.crash_enumeration import Bench, Protocol
from eventide.testing.histories import Commit, Layout, Story, put
from eventide_core.table.timeline.plans import CutMode
from support.pasts import LAYOUTS, Service, begin_past, clean, undo_completed, undo_failed
from support.paused import compact, ingest, wakings, wrong

pytestmark = pytest.mark.slow

OWN: Commit = (put("k0", 70, "own"), put("k9", 71, "own"))
VERBS = {"compact": compact(16, CutMode.FILE), "compact exactly": compact(16, CutMode.EXACT)}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_write_that_wakes_up_is_there_or_not_at_all(layout: Layout) -> None:
    past = begin_past(clean, layout)
    before = frozenset(row[:-1] for row in past.story.oracle.snapshot())
    count, succeeded = 0, set[bool]()
    for woken in wakings(past.bench, past.start, ingest(OWN)):
        count += 1
        succeeded.add(woken.failure is None)
        problem = wrong(past.bench, woken, before, OWN)
        assert problem is None, f"{woken.number}: {woken.operation} ended in {woken.failure!r}: {problem}"
    assert count > 10
    assert succeeded == {True, False}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("protocol", VERBS.values(), ids=VERBS)
def test_a_compaction_that_wakes_up_changes_no_row(protocol: Protocol, layout: Layout) -> None:
    past = begin_past(clean, layout)
    before = frozenset(row[:-1] for row in past.story.oracle.snapshot())
    for woken in wakings(past.bench, past.start, protocol):
        problem = wrong(past.bench, woken, before)
        assert problem is None, f"{woken.number}: {woken.operation} ended in {woken.failure!r}: {problem}"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("begin", [clean, undo_failed, undo_completed])
def test_a_service_that_wakes_up_has_done_all_of_its_work_or_none(
    begin: Callable[[Story, Bench], Service], layout: Layout
) -> None:
    past = begin_past(begin, layout)
    possible = [frozenset(row[:-1] for row in oracle.snapshot()) for oracle in (past.service.after, past.story.oracle)]
    for woken in wakings(past.bench, past.start, past.service.run):
        problems = [wrong(past.bench, woken, rows) for rows in possible]
        assert None in problems, f"{woken.number}: {woken.operation} ended in {woken.failure!r}: {problems[0]}"
