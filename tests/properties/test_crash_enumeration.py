"""A compaction broken off at every write, in every way, and recovered from in every way: no reader ever notices.

EVENTIDE_CAMPAIGN=n goes through n - 1 random histories more in each layout and link mode.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import (
    LOCK_EXPIRY_MS,
    Bench,
    Moment,
    Protocol,
    Tally,
    crash_states,
    execute,
    failing_reads,
    faults,
    interludes,
    pending_plan,
    roll_back,
    schedule,
    start_of,
    writes_of,
)
from eventide.testing.histories import (
    Commit,
    History,
    Layout,
    Story,
    delete,
    layouts,
    named_histories,
    put,
    write_history,
)
from eventide.testing.metadata_listing import check_metadata_listing
from eventide.testing.observation import (
    LOCK_PREFIX,
    BlockInstants,
    Observer,
    Seen,
    check_each_version_once,
    check_files_untouched,
    check_freshness,
    check_incremental,
    check_links_whole,
    check_nothing_left,
    check_plan,
    check_plan_is_safe_for_others,
    check_read_optimized,
    check_single_completion,
    check_snapshot,
    check_time_travel,
    check_verified,
    merged_counts,
)
from eventide.testing.oracle import Change, Oracle, Order
from eventide_adapters.storage.faulty import Fault
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, EventideError, InstantNotFoundError, RefusedError
from eventide_core.service.compaction_files import made_files
from eventide_core.service.table import TableState
from eventide_core.table.instant import Action
from eventide_core.table.plans import CompactionPlan, require_ours

CAMPAIGN = int(os.environ.get("EVENTIDE_CAMPAIGN", "1"))
MEANWHILE: Commit = (put("k1", 50, "written meanwhile"), put("k9", 3, "late meanwhile"))

# What a campaign of size 1 must reach at the least; a generator that reaches less finds less.
FLOORS = {
    "histories": 12,
    "crash states": 500,
    "recoveries": 1200,
    "faults": 900,
    "interludes": 900,
    "compactions completed": 900,
    "rollbacks completed": 600,
    "plans with left-overs": 12,
    "plans with carried tombstones": 2,
}


@dataclass(slots=True)
class Case:
    """One compaction of one table, and what is known of it. `before` and `after` are the oracle's words."""

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

    @property
    def plan_path(self) -> str:
        folder = ".hoodie" if self.layout.version < 8 else ".hoodie/timeline"
        return f"{folder}/{self.instant}.compaction.requested"

    def with_write(self, moment: Moment) -> tuple[Case, Moment]:
        """The case after a writer, who sees the plan if there is one, has committed something more."""
        self.bench.load(moment)
        before = self.before.copy()
        story = Story(self.layout, self.bench.storage, self.bench.clock, before, 7)
        story.commit(MEANWHILE)
        written = self.bench.moment()
        return self.told(before, moment, written), written

    def told(self, before: Oracle, moment: Moment, written: Moment) -> Case:
        """The case once the oracle knows of what was written since a moment."""
        grown = {path: file for path, file in written.files.items() if path not in moment.files}
        start = Moment({**self.start.files, **grown}, self.start.time_ms)
        after = before.copy()
        after.compact(self.plan.cut_ms, merged_counts(self.plan))
        assert after.snapshot() == before.snapshot(), "the oracle itself sees the compaction: a history to avoid"
        return replace(self, start=start, before=before, after=after)

    def check(self, moment: Moment) -> str:
        """Holds the table to every promise; whether the compaction is absent, pending or completed."""
        self.bench.load(moment)
        application = self.bench.process()
        state = TableState.load(application.files)
        found = state.timeline.find(self.instant)
        status = "absent" if found is None else "completed" if found.is_completed else "pending"
        oracle = self.after if status == "completed" else self.before
        if moment.visible not in self.seen:
            self.seen[moment.visible] = self.observer.look(application, oracle.instants)
            if status != "pending":
                check_verified(application)
        seen = self.seen[moment.visible]
        check_snapshot(seen, self.before.snapshot())
        check_read_optimized(seen, oracle.read_optimized())
        check_time_travel(seen, self.before)
        check_incremental(seen, self.before)
        check_freshness(seen, oracle)
        check_files_untouched(moment.files, self.start.files)
        check_single_completion(moment.files, self.instant)
        if self.layout.has_metadata_table:
            check_metadata_listing(moment.files, () if status == "completed" else made_files(self.plan))
        if status != "pending" or self.layout.version >= 8:
            # In version 6 readers merge a pending slice with the one below it: a left-over may be there twice.
            check_each_version_once(state, moment.files, oracle, self.blocks)
        if status != "absent":
            check_links_whole(moment.files, self.plan, is_completed=status == "completed")
            check_plan_is_safe_for_others(moment.files, self.plan, self.plan_path)
        if status == "completed":
            assert found is not None
            assert found.action is Action.COMMIT
        return status

    def attempt(self, moment: Moment, protocol: Protocol) -> tuple[Moment, str, EventideError | None]:
        """What the protocol makes of the table, checked."""
        left, failure = self.bench.attempt(moment, protocol)
        return left, self.check(left), failure

    def finish(self, moment: Moment) -> None:
        """From wherever the table is, it can be brought to a completed compaction, or back to none."""
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
    """The history's compaction, not begun; None where the link mode is refused."""
    table = write_history(layout, history, bench.name)
    start = start_of(table)
    try:
        scheduled = bench.run(start, schedule(history, link))
    except RefusedError:
        return None
    plan = pending_plan(bench.process())
    after = table.oracle.copy()
    after.compact(plan.cut_ms, merged_counts(plan))
    check_plan(plan, table.oracle, after, layout.reader_orders)
    tally.add("histories")
    tally.add("plans with left-overs", any(op.remaining for op in plan.operations))
    tally.add("plans with carried tombstones", any(op.carried_name for op in plan.operations))
    return Case(layout, history, start, scheduled, plan, table.oracle, after, bench, tally)


def cells() -> Iterator[tuple[Layout, History, LinkChoice]]:
    """Layouts, histories and link modes: each history in both versions and orders, each link mode where it is possible."""
    late, carried, natural, in_time = named_histories()
    for layout in layouts(has_block_event_times=False):
        yield layout, late, LinkChoice.COPY
        if layout.version >= 8:
            yield layout, late, LinkChoice.PREFIX
    for layout in layouts(has_block_event_times=True):
        if layout.order is Order.EVENT_TIME:
            yield layout, carried, LinkChoice.COPY
            yield layout, natural, LinkChoice.HARDLINK
            yield replace(layout, has_metadata_table=True), late, LinkChoice.COPY
    yield layouts()[3], in_time, LinkChoice.AUTO
    yield layouts()[2], natural, LinkChoice.PREFIX
    for number in range(CAMPAIGN - 1):
        for layout in layouts(has_block_event_times=number % 2 == 0):
            for link in (LinkChoice.COPY, LinkChoice.HARDLINK, LinkChoice.PREFIX):
                yield layout, random_history(number), link


def random_history(seed: int) -> History:
    """Up to five commits over three keys and few event times, so that they meet."""
    chance = random.Random(seed)

    def change(key: str, number: int) -> Change:
        kind = chance.random()
        if number and kind < 0.12:
            return delete(key)
        ms = chance.randint(1, 6)
        return delete(key, ms) if number and kind < 0.3 else put(key, ms, f"{key} of {number}")

    commits: list[Commit] = [(put("k0", 2, "base"), put("k1", 3, "base"))]
    for number in range(1, chance.randint(4, 6)):
        keys = chance.sample(["k0", "k1", "k2"], chance.randint(1, 2))
        commits.append(tuple(change(key, number) for key in keys))
    return History(f"random {seed}", tuple(commits), cut_ms=chance.randint(2, 5))


def cell_name(layout: Layout, history: History, link: LinkChoice) -> str:
    kind = f"v{layout.version}-{layout.order.name}{'-metadata table' if layout.has_metadata_table else ''}"
    return f"{kind}-{history.name}-{link}"


TALLY = Tally()
CELLS = list(cells())


@pytest.fixture(scope="module", params=CELLS, ids=[cell_name(*cell) for cell in CELLS])
def case(request: pytest.FixtureRequest) -> Case:
    layout, history, link = request.param
    made = make_case(layout, history, link, Bench("crash-enumeration"), TALLY)
    if made is None:
        pytest.skip(f"link mode {link} is refused for this history")
    return made


def test_a_compaction_that_dies_at_any_write_can_be_ended_in_any_way(case: Case) -> None:
    for number, left in crash_states(case.bench, case.scheduled, execute(case.instant)):
        TALLY.add("crash states")
        TALLY.add("locks removed by hand", left.has_stuck_lock)
        status = case.check(left)
        later = left.after_the_lock_expired()

        done, after_retry, failure = case.attempt(later, execute(case.instant))
        assert (after_retry, failure) == ("completed", None), f"write {number}"
        again, status_again, failure = case.attempt(done, execute(case.instant))
        assert (status_again, failure, again.visible) == ("completed", None, done.visible)

        undone, after_rollback, failure = case.attempt(later, roll_back(case.instant))
        if failure is None:
            assert after_rollback == "absent"
            check_nothing_left(undone.files, case.start.files)
            TALLY.add("rollbacks completed")
        else:
            # Its completion has been decided.
            assert (status, after_rollback) == ("pending", "pending")
            assert isinstance(failure, BusyError)

        _, after_schedule, failure = case.attempt(later, schedule(case.history, LinkChoice.COPY))
        assert after_schedule == status
        assert isinstance(failure, BusyError) == (status == "pending")

        written_case, written = case.with_write(later)
        written_case.finish(written)
        TALLY.add("recoveries", 4)
        TALLY.add("compactions completed")


def test_a_scheduling_that_dies_at_any_write_leaves_a_plan_or_none(case: Case) -> None:
    link = LinkChoice(case.plan.link_mode)
    for _, left in crash_states(case.bench, case.start, schedule(case.history, link)):
        TALLY.add("crash states")
        later = left.after_the_lock_expired()
        status = case.check(left)
        if status == "pending":
            case.finish(later)
        else:
            _, failure = case.bench.attempt(later, schedule(case.history, link))
            assert failure is None
            _, failure = case.bench.attempt(later, execute(case.instant))
            assert isinstance(failure, InstantNotFoundError)
        TALLY.add("recoveries", 2)


def test_a_rollback_that_dies_at_any_write_can_be_ended(case: Case) -> None:
    states = [left for _, left in crash_states(case.bench, case.scheduled, execute(case.instant))]
    undecided = [left for left in states if not any(path.endswith(".outcome") for path in left.files)]
    for begun in (case.scheduled, undecided[-1].after_the_lock_expired()):
        for number, left in crash_states(case.bench, begun, roll_back(case.instant)):
            TALLY.add("crash states")
            status = case.check(left)
            later = left.after_the_lock_expired()
            if status == "absent":
                check_nothing_left(left.files, case.start.files)
                continue
            undone, status, failure = case.attempt(later, roll_back(case.instant))
            assert (status, failure) == ("absent", None), f"write {number}"
            check_nothing_left(undone.files, case.start.files)
            case.finish(later)
            TALLY.add("recoveries", 2)
            TALLY.add("rollbacks completed")


def test_a_write_that_fails_or_whose_reply_is_lost_or_that_is_sent_twice_does_no_harm(case: Case) -> None:
    for protocol, start in ((execute(case.instant), case.scheduled), (roll_back(case.instant), case.scheduled)):
        for fault, operation, left, failure in faults(case.bench, start, protocol):
            TALLY.add("faults")
            status = case.check(left)
            if failure is None:
                assert status != "pending", f"{fault} at {operation} was not noticed"
            if fault is Fault.REPLY_LOST and status == "completed":
                assert failure is None, f"the compaction has completed, but the user was told {failure}"
            case.finish(left.after_the_lock_expired())


def test_a_read_that_fails_does_no_harm(case: Case) -> None:
    for _, left in failing_reads(case.bench, case.scheduled, execute(case.instant)):
        TALLY.add("failing reads")
        case.check(left)


def test_two_processes_at_work_on_one_plan_make_one_compaction(case: Case) -> None:
    for other, waits in ((execute(case.instant), 0), (execute(case.instant), LOCK_EXPIRY_MS)):
        for operation, left, failure, others_failure in interludes(
            case.bench, case.scheduled, execute(case.instant), after_waiting(case, waits, other)
        ):
            TALLY.add("interludes")
            assert failure is None or others_failure is None, f"{operation}: {failure!r} and {others_failure!r}"
            assert case.check(left) == "completed"


def test_a_rollback_beside_a_running_compaction_ends_one_of_the_two(case: Case) -> None:
    for waits in (0, LOCK_EXPIRY_MS):
        other = after_waiting(case, waits, roll_back(case.instant))
        for operation, left, failure, others_failure in interludes(
            case.bench, case.scheduled, execute(case.instant), other
        ):
            TALLY.add("interludes")
            status = case.check(left)
            if failure is None:
                assert (status, others_failure is None) == ("completed", False), operation
            elif others_failure is None:
                assert status == "absent", operation
                check_nothing_left(left.files, case.start.files)
            else:
                case.finish(left.after_the_lock_expired())


def test_a_writer_who_commits_beside_a_running_compaction_loses_nothing(case: Case) -> None:
    told: list[tuple[Oracle, Moment, Moment]] = []

    def write(_: Application) -> None:
        alone = case.bench.moment()
        before = case.before.copy()
        Story(case.layout, case.bench.storage, case.bench.clock, before, 7).commit(MEANWHILE)
        told.append((before, alone, case.bench.moment()))

    for _, left, failure, others_failure in interludes(case.bench, case.scheduled, execute(case.instant), write):
        TALLY.add("interludes")
        status = case.told(*told.pop()).check(left)
        assert (status, failure, others_failure) == ("completed", None, None)


def test_a_writer_who_had_not_seen_the_plan_loses_nothing(case: Case) -> None:
    """In version 6 its log lies in the slice that the plan took, and so the slice is planned again, in full."""
    before, written = unaware_write(case)
    begun = Moment({**case.scheduled.files, **written.files}, written.time_ms)
    for _, left in crash_states(case.bench, begun, execute(case.instant)):
        TALLY.add("crash states")
        done, failure = case.bench.attempt(left.after_the_lock_expired(), execute(case.instant))
        assert failure is None
        assert as_planned_now(case).told(before, case.start, written).check(done) == "completed"


def test_a_writer_who_has_not_seen_the_plan_and_comes_while_it_runs_loses_nothing(case: Case) -> None:
    """Up to the last look inside the lock; a writer who shares no lock and comes after it is the documented risk."""
    before, written = unaware_write(case)

    def write(_: Application) -> None:
        for path in written.files.keys() - case.start.files.keys():
            case.bench.storage.put(path, written.files[path].data)

    steps = writes_of(case.bench, case.scheduled, execute(case.instant))
    locked = max(n for n, step in enumerate(steps) if (step.kind, step.path) == ("put_if_absent", LOCK_PREFIX))
    left_by = interludes(case.bench, case.scheduled, execute(case.instant), write)
    for number, (operation, left, failure, _) in enumerate(left_by):
        if number > locked:
            break
        TALLY.add("interludes")
        case.bench.load(left)
        told = as_planned_now(case).told(before, case.start, written)
        status = told.check(left)
        assert (status == "completed") == (failure is None), f"{operation}: {failure!r}"
        if status == "pending":
            undone, failure = case.bench.attempt(left, roll_back(case.instant))
            assert failure is None
            assert told.check(undone) == "absent"


def unaware_write(case: Case) -> tuple[Oracle, Moment]:
    """What a writer commits who looked at the table before it was planned; the oracle and the files it leaves."""
    case.bench.load(case.start.later(10))
    before = case.before.copy()
    Story(case.layout, case.bench.storage, case.bench.clock, before, 7).commit(MEANWHILE)
    return before, case.bench.moment()


def as_planned_now(case: Case) -> Case:
    """The case with the plan that stands on the timeline of the table as it is, which may have been made anew."""
    files = case.bench.process().files
    return replace(case, plan=require_ours(files.plan(files.config(), case.instant)))


def after_waiting(case: Case, milliseconds: int, protocol: Protocol) -> Protocol:
    def run(_: Application) -> None:
        case.bench.clock.sleep(milliseconds)
        protocol(case.bench.process())

    return run


def test_the_campaign_reached_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{TALLY}\n")
    missed = {what: TALLY.counts[what] for what, floor in FLOORS.items() if TALLY.counts[what] < floor}
    assert not missed, f"reached only {missed}, of {FLOORS}"
