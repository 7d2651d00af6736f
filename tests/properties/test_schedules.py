"""Two processes at work on one table, in every order of their storage operations; three, in random ones.

testing/schedules.py says which orders are the same. By default the search for each pair is bounded, and says so;
EVENTIDE_CAMPAIGN=n goes through all of them, and through n times as many orders of three.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from eventide.bootstrap import Application
from eventide.progress import NoProgress
from eventide.reader import Rows as RowReader
from eventide.testing.account import Account
from eventide.testing.crash_enumeration import Protocol
from eventide.testing.histories import EPOCH_MS, Commit, Layout, put, records
from eventide.testing.living_table import LivingTable
from eventide.testing.observation import MARKERS_PREFIX
from eventide.testing.oracle import Order
from eventide.testing.schedules import End, Explored, all_interleavings, interleaving
from eventide.writer import arrow_records
from eventide_core.action.compaction_request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.table.write_shape import WriteOperation
from support.reach import reached

CAMPAIGN = int(os.environ.get("EVENTIDE_CAMPAIGN", "1"))
MOST_RUNS = 150 if CAMPAIGN == 1 else None
OF_THREE = 10 * CAMPAIGN
MEANWHILE: Commit = (put("k1", 9, "meanwhile"), put("k7", 2, "late meanwhile"))
LAYOUTS = (Layout(6, Order.EVENT_TIME), Layout(9, Order.EVENT_TIME))


@dataclass(slots=True)
class Scene:
    """A table with logs on both sides of T, and the plan for it, if there is one."""

    table: LivingTable
    instant: str | None

    def compactor(self, application: Application) -> None:
        assert self.instant is not None
        application.runner.execute(self.instant, NoProgress())

    def undoer(self, application: Application) -> None:
        assert self.instant is not None
        application.rollback.undo(self.instant)

    def writer(self, application: Application) -> None:
        incoming = arrow_records(application, *records(MEANWHILE))
        application.append.write(WriteOperation.UPSERT, incoming, NoProgress())

    def cleaner(self, application: Application) -> None:
        application.cleaner.clean(1)

    def reader(self, application: Application) -> None:
        """Sees what everybody saw before, whatever goes on."""
        rows = RowReader(application.queries.snapshot(), application.reader, application.engine)
        columns = ("_hoodie_partition_path", "key", "ms", "word", "_hoodie_commit_time")
        found = frozenset(
            row
            for batch in rows.to_batches(columns=columns)
            for row in zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
        )
        assert found == self.table.account.oracle.snapshot(), f"a reader saw {sorted(found)}"

    def scheduler(self, application: Application) -> None:
        application.scheduler.schedule(CompactionRequest(EPOCH_MS + 3, None, LinkChoice.COPY))

    def other_scheduler(self, application: Application) -> None:
        application.scheduler.schedule(CompactionRequest(EPOCH_MS + 4, None, LinkChoice.COPY))

    def judge(self, account: Account, end: End) -> None:
        """What the actors left keeps every promise, and can be brought to an end."""
        table = self.table
        table.bench.load(end.moment)
        table.account = account.copy()
        table.take_note(MEANWHILE)
        table.inspect(whole=True)
        if table.account.plan is not None:
            table.execute()
            if table.account.plan is not None:
                table.roll_back_plan()
        assert table.account.plan is None, "the plan can neither be executed nor rolled back"
        left = [path for path in table.files if path.startswith(MARKERS_PREFIX)]
        assert not left, f"{left} are left"


def scene(layout: Layout, *, has_plan: bool) -> Scene:
    table = LivingTable(layout, LinkChoice.COPY, "schedules")
    table.write((put("k0", 1, "base"), put("k1", 1, "base")))
    table.write((put("k0", 2, "before T"),))
    table.write((put("k1", 6, "after T"),))
    if has_plan:
        table.schedule(3)
        assert table.account.plan is not None
    return Scene(table, table.account.plan.instant if table.account.plan else None)


PAIRS: dict[str, tuple[bool, Callable[[Scene], tuple[Protocol, Protocol]]]] = {
    "compactor and writer": (True, lambda s: (s.compactor, s.writer)),
    "compactor and compactor": (True, lambda s: (s.compactor, s.compactor)),
    "compactor and cleaner": (True, lambda s: (s.compactor, s.cleaner)),
    "compactor and rollback": (True, lambda s: (s.compactor, s.undoer)),
    "compactor and reader": (True, lambda s: (s.compactor, s.reader)),
    "scheduler and scheduler": (False, lambda s: (s.scheduler, s.other_scheduler)),
    "scheduler and writer": (False, lambda s: (s.scheduler, s.writer)),
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"v{layout.version}")
@pytest.mark.parametrize("pair", PAIRS)
def test_two_at_once_keep_every_promise_in_every_order(pair: str, layout: Layout) -> None:
    has_plan, actors = PAIRS[pair]
    here = scene(layout, has_plan=has_plan)
    start, account = here.table.bench.moment(), here.table.account
    explored = Explored()
    judged: set[object] = set()
    for end in all_interleavings(here.table.bench, start, actors(here), explored, MOST_RUNS):
        assert not all(end.failures), f"neither got anywhere: {end.failures}"
        if end.moment.visible not in judged:
            judged.add(end.moment.visible)
            here.judge(account, end)
    assert explored.interleavings > 1
    reached(f"schedules: {pair}, v{layout.version}: runs", explored.runs)
    reached(f"schedules: {pair}, v{layout.version}: situations", explored.situations)
    reached(f"schedules: {pair}, v{layout.version}: interleavings", explored.interleavings)
    reached(f"schedules: {pair}, v{layout.version}: complete", explored.is_complete)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"v{layout.version}")
def test_three_at_once_keep_every_promise(layout: Layout) -> None:
    here = scene(layout, has_plan=True)
    start, account = here.table.bench.moment(), here.table.account
    for number in range(OF_THREE):
        chance = random.Random(number)
        actors = [here.compactor, here.writer, chance.choice([here.cleaner, here.undoer, here.compactor])]
        end = interleaving(here.table.bench, start, actors, chance.choice)
        here.judge(account, end)
        reached("schedules: random orders of three")


def test_an_actor_that_fails_says_so() -> None:
    """The schedule itself: what is no error of eventide's is told, not swallowed."""
    here = scene(LAYOUTS[0], has_plan=False)

    def breaks(application: Application) -> None:
        application.files.config()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(all_interleavings(here.table.bench, here.table.bench.moment(), [breaks, here.scheduler], Explored()))
