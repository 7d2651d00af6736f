"""One compaction of one table in memory, with checks that hold at any moment, however it is interrupted.

case = make_case(layout, history, link, Bench("mine"), Tally())
for number, left in crash_states(case.bench, case.scheduled, execute(case.instant)):
    case.check(left)
    case.finish(left.after_the_lock_expired())
"""

from dataclasses import dataclass, field, replace

from eventide.testing.crash_enumeration import (
    Bench,
    Moment,
    Protocol,
    Tally,
    execute,
    pending_plan,
    roll_back,
    schedule,
    start_of,
)
from eventide.testing.histories import Commit, History, Layout, Story, put, write_history
from eventide.testing.inspection.checks import check_nothing_left, check_plan, exact_threshold, merged_counts
from eventide.testing.inspection.metadata_listing import check_metadata_listing
from eventide.testing.inspection.observation import BlockInstants, Observer, Seen, check_verified
from eventide.testing.invariants import Inspection, check_invariants
from eventide.testing.oracle import Oracle
from eventide_core.config import LinkChoice
from eventide_core.errors import EventideError, RefusedError
from eventide_core.service.common.state.table import TableState
from eventide_core.service.rollback.compaction_files import made_files
from eventide_core.table.timeline.contents.plans import CompactionPlan
from eventide_core.table.timeline.instant import Action

MEANWHILE: Commit = (put("k1", 50, "written meanwhile"), put("k9", 3, "late meanwhile"))
"""What another writer commits during a compaction."""


@dataclass(slots=True)
class Case:
    """One compaction of one table. `before` and `after` are the oracle's states before and after it."""

    layout: Layout
    history: History
    start: Moment
    scheduled: Moment
    plan: CompactionPlan
    before: Oracle
    after: Oracle
    bench: Bench
    tally: Tally
    blocks: BlockInstants = field(default_factory=BlockInstants)
    observer: Observer = field(default_factory=Observer)
    seen: dict[object, Seen] = field(default_factory=dict)

    @property
    def instant(self) -> str:
        return self.plan.instant

    def with_write(self, moment: Moment) -> "tuple[Case, Moment]":
        """The case after another writer commits. If there is a plan, the writer sees it."""
        self.bench.load(moment)
        before = self.before.copy()
        story = Story(self.layout, self.bench.storage, self.bench.clock, before, 7)
        story.commit(MEANWHILE)
        written = self.bench.moment()
        return self.having(before, moment, written), written

    def having(self, before: Oracle, moment: Moment, written: Moment) -> "Case":
        """The case after the oracle learns what was written since `moment`."""
        grown = {path: file for path, file in written.files.items() if path not in moment.files}
        start = Moment({**self.start.files, **grown}, self.start.time_ms)
        after = before.copy()
        after.compact(self.plan.cut_ms, merged_counts(self.plan), exact_threshold(self.plan))
        assert after.snapshot() == before.snapshot(), "the oracle itself sees the compaction: a history to avoid"
        return replace(self, start=start, before=before, after=after)

    def check(self, moment: Moment) -> str:
        """Checks all invariants at this moment. Returns whether the compaction is absent, pending, or completed."""
        self.bench.load(moment)
        application = self.bench.process()
        state = TableState.load(application.files)
        instant = state.timeline.find(self.instant)
        status = "absent" if instant is None else "completed" if instant.is_completed else "pending"
        oracle = self.after if status == "completed" else self.before
        if moment.visible not in self.seen:
            self.seen[moment.visible] = self.observer.look(application, oracle.instants)
            if status != "pending":
                check_verified(application)
        self.tally.add("moments inspected")
        check_invariants(
            Inspection(
                files=moment.files,
                state=state,
                seen=self.seen[moment.visible],
                oracle=oracle,
                blocks=self.blocks,
                plan=None if status == "absent" else self.plan,
                is_completed=status == "completed",
                reader_orders=self.layout.reader_orders,
                untouched=self.start.files,
                cut_ms=self.plan.cut_ms if status == "completed" else None,
            )
        )
        if self.layout.has_metadata_table:
            others = [path for path in moment.files if path.endswith(f"_{self.instant}.parquet")]  # of another engine
            uncommitted = () if status == "completed" else (*made_files(self.plan), *others)
            check_metadata_listing(moment.files, uncommitted)
        if status == "completed":
            assert instant is not None
            assert instant.action is Action.COMMIT
        return status

    def attempt(self, moment: Moment, protocol: Protocol) -> tuple[Moment, str, EventideError | None]:
        """Runs the protocol on the table and checks the result."""
        left, failure = self.bench.attempt(moment, protocol)
        return left, self.check(left), failure

    def finish(self, moment: Moment) -> None:
        """Checks that the table can be brought from this moment to a completed compaction, or back to none."""
        status = self.check(moment)
        if status == "pending":
            moment, status, failure = self.attempt(moment, execute(self.instant))
            if failure is not None:
                moment, status, failure = self.attempt(moment, roll_back(self.instant))
                assert failure is None, f"neither executed nor rolled back: {failure!r}"
                check_nothing_left(moment.files, self.start.files)
                self.tally.add("rollbacks completed")
        if status == "completed":
            self.tally.add("compactions completed")
        assert status != "pending"


def make_case(layout: Layout, history: History, link: LinkChoice, bench: Bench, tally: Tally) -> Case | None:
    """The compaction of the history before its execution; None if the link mode is refused."""
    table = write_history(layout, history, bench.name)
    start = start_of(table)
    try:
        scheduled = bench.run(start, schedule(history, link))
    except RefusedError:
        return None
    plan = pending_plan(bench.process())
    after = table.oracle.copy()
    after.compact(plan.cut_ms, merged_counts(plan), exact_threshold(plan))
    check_plan(plan, table.oracle, after, layout.reader_orders)
    tally.add("histories")
    tally.add("plans with left-overs", any(op.left_overs for op in plan.operations))
    tally.add("plans with carried tombstones", any(op.carried_name for op in plan.operations))
    return Case(layout, history, start, scheduled, plan, table.oracle, after, bench, tally)
