"""A plan whose instant turns out not to be quiet is withdrawn and made again (version 8 and later): interrupted anywhere.

A writer chooses an instant below the plan's, and its file becomes visible later: before the plan runs, or while it does.
The run dies at each of its writes; whoever comes next ends what exists.
"""

from itertools import count

import pytest

from eventide.bootstrap import Application
from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import Moment, StandingStill, execute, writes_of
from eventide.testing.histories import Commit, Layout, put, records
from eventide.testing.living_table.account import pending_instants
from eventide.testing.living_table.table import LivingTable
from eventide.testing.oracle import Order
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_core.action.compaction import quiet_moment
from eventide_core.config import LinkChoice
from eventide_core.ports import NoProgress, Storage
from eventide_core.table.settings.write_shape import WriteOperation
from support.run.reach import reached

pytestmark = pytest.mark.slow

HISTORY: tuple[Commit, ...] = (
    (put("k0", 1, "base"), put("k1", 1, "base")),
    (put("k1", 2, "before T"),),
    (put("k0", 8, "after T"),),
)
LATE: Commit = (put("k0", 7, "visible late"),)
T = 3
RETAINED_COMMITS = "hoodie.cleaner.commits.retained"
KINDS = [
    (Order.EVENT_TIME, LinkChoice.COPY),
    (Order.COMMIT_TIME, LinkChoice.SYMLINK),
    (Order.EVENT_TIME, LinkChoice.PREFIX),
]


class Overtaken:
    """A plan, and a writer below its instant whose files are not visible yet."""

    def __init__(self, order: Order, link: LinkChoice) -> None:
        self.table = LivingTable(Layout(9, order), link, "withdrawn")
        bench = self.table.bench
        # The next clean keeps the moments before the late writer, or no plan could lie there.
        bench.options = {**bench.options, RETAINED_COMMITS: "3"}
        after: list[Moment] = [bench.moment()]
        for commit in HISTORY:
            self.table.write(commit)
            after.append(bench.moment())
        before = after[-1]
        bench.load(before.later(2 * quiet_moment.AWAY_FROM_WRITERS_MS))
        self.table.schedule(T)
        plan = self.table.account.plan
        assert plan is not None
        assert str(plan.link_mode) == str(link)
        self.instant = plan.instant
        self.planned = bench.moment()
        if link is LinkChoice.PREFIX:
            before = after[1]  # a back-dated plan lies right behind the last log that it merges
        bench.load(before.later(5))
        writer = bench.process()
        self.late = writer.append.begin(WriteOperation.UPSERT, arrow_records(writer, *records(LATE)), NoProgress())
        writer.heartbeats.stop(self.late.instant)
        assert self.late.instant < self.instant
        self.new = {path: file for path, file in self.table.files.items() if path not in before.files}
        bench.load(self.planned)
        self.account = self.table.account

    def becomes_visible(self) -> None:
        for path, file in self.new.items():
            self.table.bench.storage.put(path, file.data)

    def start(self, moment: Moment) -> None:
        self.table.bench.load(moment)
        self.table.account = self.account.copy()
        self.table.open_writes = [(self.late, LATE)]
        self.table.record_others(())

    def end(self) -> None:
        """Whoever comes next ends what the dead run left; then the writer completes, and T is reached."""
        table = self.table
        table.let_the_dead_expire()  # the writer is alive
        end_pending(table.bench.process())
        table.record_others(())
        table.inspect(whole=True)
        assert not pending_instants(table.files, "compaction")
        table.end_write()
        assert not table.open_writes
        table.schedule(T)
        table.execute()
        table.inspect(whole=True)
        freshness = table.account.oracle.freshness()
        assert freshness.watermark_ms is not None
        assert {row[3] for row in table.account.oracle.snapshot()} >= {"before T"}


def end_pending(application: Application) -> None:
    application.pending.end(NoProgress())


@pytest.mark.parametrize("while_it_runs", [False, True], ids=["before it runs", "while it runs"])
@pytest.mark.parametrize(("order", "link"), KINDS)
def test_a_reverted_plan_that_is_planned_again_may_die_at_any_write(
    order: Order, link: LinkChoice, while_it_runs: bool
) -> None:
    overtaken = Overtaken(order, link)
    bench, run = overtaken.table.bench, execute(overtaken.instant)
    begun = overtaken.planned
    if not while_it_runs:
        overtaken.becomes_visible()
        begun = bench.moment()
    steps = writes_of(bench, begun, run)
    base = next(number for number, step in enumerate(steps) if step.path.endswith(".parquet"))
    number = 0
    for number in count():
        overtaken.start(begun)
        storage: Storage = bench.storage
        if while_it_runs:
            storage = StandingStill(storage, base, overtaken.becomes_visible)
        storage = FaultyStorage(storage, FaultPlan(writes={number: Fault.CRASH_BEFORE}))
        try:
            run(bench.process(storage))
        except SimulatedCrash:
            overtaken.table.record_others(())
            overtaken.table.inspect()
        else:
            break
        overtaken.end()
    overtaken.table.record_others(())
    assert overtaken.instant in overtaken.table.account.rolled_back, "the plan was withdrawn"
    overtaken.end()
    assert number > 20
    reached(f"withdrawn plans: broken off at a write, {'while it ran' if while_it_runs else 'before it ran'}", number)
