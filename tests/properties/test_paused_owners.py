"""A process that stands still before any of its writes, and wakes up after others have gone on, harms nobody.

Its lock and its heartbeat have expired; the others have undone what it left, written, compacted, cleaned and archived
beyond it. Whatever the process then still does, every acknowledged row is there, no other is, `verify` finds nothing, and
the others can go on. Not checked here: a process that is paused twice, or one other than an archival that dies as it wakes
up; tables with a metadata table (docs/invariants.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from eventide.testing.crash_enumeration import Bench, Moment, Protocol
from eventide.testing.histories import Commit, Layout, Story, put
from eventide_core.table.plans import CutMode
from support.pasts import EARLY, LAYOUTS, Service, begin_past, clean, undo_completed, undo_failed
from support.paused import Others, archive, compact, ingest, wakings, wrong
from support.service_cases import Shown, shown

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


_MERGES = {"hoodie.timeline.compaction.batch.size": "2", "hoodie.archive.merge.files.batch.size": "2"}
_ARCHIVED = ("/history/", "/archived/")


@cache
def _before_archival(layout: Layout) -> tuple[Bench, Moment, Shown]:
    """A table of which much was archived, so that the next archival merges what was, and removes old manifests."""
    bench = Bench("archived", EARLY | _MERGES)
    bench.load(begin_past(clean, layout).start)
    others = Others(bench, 100)
    others.go_on(3)
    for _ in range(3):
        bench.clock.sleep(1_000)
        others.write()
        others.compact()
    bench.process().cleaner.clean(1)
    return bench, bench.moment(), shown(bench.process())


@pytest.mark.parametrize("dies", [False, True], ids=["goes on", "dies"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_archival_that_wakes_up_takes_nothing_from_those_of_others(layout: Layout, dies: bool) -> None:
    bench, start, before = _before_archival(layout)
    changed = list[str]()
    for woken in wakings(bench, start, archive, dies=dies, at=lambda operation: _is_archived(operation.path)):
        changed.append(woken.operation.path.rpartition("/")[2])
        problem = wrong(bench, woken, before)
        assert problem is None, f"{woken.number}: {woken.operation} ended in {woken.failure!r}: {problem}"
    assert len(changed) > 5
    assert "mergeArchivePlan" in changed or {"_version_", "manifest_2", "manifest_7"} <= set(changed)


@pytest.mark.broad
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_archival_that_wakes_up_removes_from_the_timeline_what_is_archived(layout: Layout) -> None:
    bench, start, before = _before_archival(layout)
    for woken in wakings(bench, start, archive, at=lambda operation: not _is_archived(operation.path)):
        problem = wrong(bench, woken, before)
        assert problem is None, f"{woken.number}: {woken.operation} ended in {woken.failure!r}: {problem}"


def _is_archived(path: str) -> bool:
    return any(directory in path for directory in _ARCHIVED)
