"""Compactions beside writes that are open across the plan, its execution and its commit, in every order.

Two writers and a compaction, two events each: an order says when each begins and ends. After every event the table is held
to all invariants (testing/living_table/table.py). The writers overlap; they write to two partitions, as two writers that
change one file group at a time end in a conflict with each other.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import pytest

from eventide.testing.histories import Commit, Layout, delete, put
from eventide.testing.inspection.observation import Observer
from eventide.testing.living_table.table import LivingTable
from eventide.testing.oracle import Order
from eventide_core.config import LinkChoice
from eventide_core.table.timeline.contents.plans import CutMode
from support.run.reach import reached

pytestmark = pytest.mark.slow

BOTH = ("a", "b")
BASE: Commit = tuple(put(key, 1, "base", partition=part) for part in BOTH for key in ("k0", "k1", "k2"))
BEFORE_T: Commit = tuple(change for part in BOTH for change in (put("k1", 2, "early", partition=part),))
DELETED: Commit = tuple(delete("k2", 4, partition=part) for part in BOTH)
AFTER_T: Commit = tuple(put("k0", 8, "late", partition=part) for part in BOTH)
T = 5
WRITES: tuple[Commit, ...] = (
    (put("k0", 9, "open one"), put("k1", 3, "late one"), put("k2", 2, "loses to the delete")),
    (put("k0", 9, "open two", partition="b"), put("k1", 9, "newer", partition="b")),
)
REACH: Counter[str] = Counter()


@dataclass(frozen=True, slots=True)
class Kind:
    order: Order
    link: LinkChoice
    cut: CutMode = CutMode.FILE

    def table(self, observer: Observer) -> LivingTable:
        table = LivingTable(Layout(9, self.order), self.link, "open-writes", self.cut, REACH, observer)
        for commit in (BASE, BEFORE_T, DELETED, AFTER_T):
            table.write(commit)
        return table


KINDS = (
    pytest.param(Kind(Order.EVENT_TIME, LinkChoice.COPY), marks=pytest.mark.proof),
    pytest.param(Kind(Order.COMMIT_TIME, LinkChoice.COPY), marks=pytest.mark.proof),
    pytest.param(Kind(Order.COMMIT_TIME, LinkChoice.PREFIX), marks=pytest.mark.proof),
    pytest.param(Kind(Order.EVENT_TIME, LinkChoice.COPY, CutMode.EXACT), marks=pytest.mark.proof),
)


def orders() -> Iterator[tuple[str, ...]]:
    """Every order of two events of each of three actors: one begins before it ends."""
    yield from sorted(set(permutations(("one", "one", "two", "two", "compaction", "compaction"))))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_compaction_beside_overlapping_writers_loses_nothing_in_any_order(kind: Kind) -> None:
    observer = Observer()
    for order in orders():
        table = kind.table(observer)
        done: Counter[str] = Counter()
        for actor in order:
            done[actor] += 1
            if actor == "compaction":
                before = REACH["execute, done"]
                table.schedule(T) if done[actor] == 1 else table.execute()
                assert table.account.plan is not None or REACH["execute, done"] == before + 1, order
            elif done[actor] == 1:
                table.begin_write(WRITES[actor == "two"])
            else:
                mine = [i for i, (_, changes) in enumerate(table.open_writes) if changes == WRITES[actor == "two"]]
                table.end_write(mine[0])
        assert not table.open_writes
        table.schedule(T + 5)
        table.execute()
        table.inspect(whole=True)
    reached(f"orders of a compaction beside two open writes: {REACH['schedule, done']} plans")
