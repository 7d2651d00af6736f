"""A stock writer that closes removes the lock file, whoever holds it; a compaction continues by itself.

`FileSystemBasedLockProvider.close` of Hudi 0.15 to 1.2 does so. Here the file goes before each look that the holder takes at
it, one after the other. Not checked here: what a process does that takes the lock meanwhile (test_schedules).
"""

from dataclasses import dataclass, field, replace
from typing import Self

import pytest

from eventide.bootstrap import Application
from eventide.testing.histories import EPOCH_MS, Commit, Layout, put
from eventide.testing.living_table.table import LivingTable
from eventide.testing.oracle import Order
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import LockLostError
from eventide_core.ports import Lease, NoProgress, Storage, TableLock
from eventide_core.table.timeline.contents.plans import CutMode

LOCK = ".hoodie/lock"
COMMITS: tuple[Commit, ...] = (
    (put("k0", 1, "base"), put("k1", 1, "base")),
    (put("k1", 2, "before T"),),
    (put("k0", 8, "after T"),),
)
T = 5


@dataclass(slots=True)
class TakenAway:
    """The table's lock, whose file goes before the looks of these numbers."""

    lock: TableLock
    storage: Storage
    numbers: frozenset[int]
    looks: int = 0
    lost: list[int] = field(default_factory=list[int])

    def acquire(self) -> Lease:
        return _Watched(self.lock.acquire(), self)


@dataclass(slots=True)
class _Watched:
    lease: Lease
    of: TakenAway

    def check(self) -> None:
        self.of.looks += 1
        if self.of.looks in self.of.numbers:
            self.of.storage.delete(LOCK)
            self.of.lost.append(self.of.looks)
        self.lease.check()

    def __enter__(self) -> Self:
        self.lease.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.lease.__exit__(*error)  # type: ignore[arg-type]


def compact(application: Application) -> None:
    draft = application.scheduler.schedule(CompactionRequest(EPOCH_MS + T, None, LinkChoice.COPY, cut=CutMode.FILE))
    application.runner.execute(draft.plan.instant, NoProgress())


def process(table: LivingTable, numbers: frozenset[int]) -> tuple[Application, TakenAway]:
    application = table.bench.process()
    lock = TakenAway(application.runner.lock, table.bench.storage, numbers)
    application.scheduler = replace(application.scheduler, lock=lock)
    application.runner = replace(application.runner, lock=lock, scheduler=application.scheduler)
    return application, lock


def written(version: int) -> LivingTable:
    table = LivingTable(Layout(version, Order.EVENT_TIME), LinkChoice.COPY, "lock-taken-away", CutMode.FILE)
    for commit in COMMITS:
        table.write(commit)
    return table


@pytest.mark.parametrize("version", [6, 9])
def test_a_compaction_continues_whenever_its_lock_was_taken_away(version: int) -> None:
    number = 0
    while True:
        number += 1
        table = written(version)
        application, lock = process(table, frozenset((number,)))
        compact(application)
        if not lock.lost:
            break
        table.record_others(())
        table.inspect(whole=True)
        assert table.account.plan is None, "nothing is left pending"
    assert number > 4


def test_a_lock_that_is_taken_away_each_time_is_reported() -> None:
    table = written(9)
    application, _ = process(table, frozenset(range(4, 1000)))
    with pytest.raises(LockLostError, match=r"lock was lost: it is gone"):
        compact(application)
