"""Version 6 beside writers that never pause: a plan waits for a gap, then for those who may not have seen it, and no others.

A log's slice is in its name, as the writer knew it when it began. What the other processes do while a compaction waits
is done by its clock: each sleep lets the next of them continue.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from eventide.bootstrap import Application
from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import LOCK_EXPIRY_MS, Bench, Moment, execute
from eventide.testing.histories import EPOCH_MS, Commit, Layout, ManualClock, delete, put, records
from eventide.testing.inspection.metadata_listing import begin_metadata_table, check_metadata_listing
from eventide.testing.living_table.table import LivingTable
from eventide.testing.oracle import Order
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.write.pending_write import PendingWrite
from eventide_core.config import EXCLUSIVE, PENDING_WRITE_WAIT_MS, LinkChoice
from eventide_core.errors import BusyError, MetadataTableBusyError
from eventide_core.ports import NoProgress
from eventide_core.service.common.state.table import TableState
from eventide_core.service.compaction.scheduling.schedule import GAP_WAIT_MS
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.plans import CompactionPlan, CutMode, require_ours

BASE: Commit = (put("k0", 1, "base"), put("k1", 1, "base"), put("k2", 1, "base"))
BEFORE_T: Commit = (put("k1", 2, "before T"),)
AFTER_T: Commit = (put("k0", 8, "after T"),)
OPEN: Commit = (put("k1", 3, "open"), put("k0", 9, "open"), put("k5", 3, "new"))
T = 5
EPOCH_INSTANT = "20260101000000000"
ORDERS = (Order.EVENT_TIME, Order.COMMIT_TIME)


@dataclass(slots=True)
class ClockOfAll(ManualClock):
    """A clock by which others continue: what they `do`, one thing a sleep."""

    do: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def sleep(self, milliseconds: int) -> None:
        self.time_ms += milliseconds
        if self.do:
            self.do.pop(0)()


def living(
    order: Order,
    cut: CutMode = CutMode.FILE,
    *,
    is_exclusive: bool = False,
    deletes: bool = False,
    has_metadata_table: bool = False,
) -> LivingTable:
    table = LivingTable(Layout(6, order), LinkChoice.COPY, "version-6-open-writes", cut)
    if has_metadata_table:
        begin_metadata_table(table.bench.storage, 6)
    table.bench.options = {**table.bench.options, EXCLUSIVE: str(is_exclusive).lower()}
    table.write(BASE)
    table.write((*BEFORE_T, delete("k2", 2)) if deletes else BEFORE_T)
    table.write(AFTER_T)
    return table


def beside(table: LivingTable, *others: Callable[[], None]) -> None:
    """From now on the others continue each sleep of the clock."""
    table.bench.clock = ClockOfAll(table.bench.clock.time_ms, list(others))


def begin(table: LivingTable, changes: Commit) -> PendingWrite:
    table.bench.clock.sleep(10)
    application = table.bench.process()
    pending = application.append.begin(
        WriteOperation.UPSERT, arrow_records(application, *records(changes)), NoProgress()
    )
    application.heartbeats.stop(pending.instant)
    return pending


def end(table: LivingTable, pending: PendingWrite, changes: Commit) -> Callable[[], None]:
    def run() -> None:
        table.bench.process().append.complete(pending)
        table.record_others(changes)

    return run


def schedule(table: LivingTable) -> None:
    request = CompactionRequest(EPOCH_MS + T, None, LinkChoice.COPY, cut=table.cut)
    table.bench.process().scheduler.schedule(request)
    table.record_others(())


def run(table: LivingTable) -> None:
    plan = table.account.plan
    assert plan is not None
    execute(plan.instant)(table.bench.process())
    table.record_others(())
    table.inspect(whole=True)


def unaware(table: LivingTable) -> PendingWrite:
    """A plan, and a writer who had loaded the timeline before it was there, and is pending."""
    before = table.bench.moment().later(5)
    schedule(table)
    planned = table.bench.moment().later(100)
    table.bench.load(before)
    pending = begin(table, OPEN)
    table.bench.load(Moment({**table.files, **planned.files}, planned.time_ms))
    table.record_others(())
    return pending


def pending_plan(bench: Bench, instant: str) -> CompactionPlan:
    files = bench.process().files
    return require_ours(files.plan(files.config(), instant))


@pytest.mark.parametrize("order", ORDERS)
def test_a_plan_is_made_in_the_first_gap_and_knows_what_was_written_until_then(order: Order) -> None:
    table = living(order)
    open_write = begin(table, OPEN)
    beside(table, lambda: None, end(table, open_write, OPEN))
    schedule(table)
    assert table.account.plan is not None
    (op,) = table.account.plan.operations
    assert len(op.compacted) + len(op.left_overs) == 3
    run(table)


@pytest.mark.parametrize("order", ORDERS)
def test_a_write_that_began_after_the_plan_is_not_in_its_way(order: Order) -> None:
    """It is pending when the plan runs, so the plan waits for it; the one that begins meanwhile is nobody's concern."""
    table = living(order)
    schedule(table)
    first = begin(table, OPEN)
    later: list[PendingWrite] = []
    changes: Commit = (put("k0", 10, "begun while the plan waits"),)

    def goes_on() -> None:
        end(table, first, OPEN)()
        later.append(begin(table, changes))

    beside(table, lambda: None, goes_on)
    run(table)
    end(table, later[0], changes)()
    table.inspect(whole=True)


@pytest.mark.parametrize("cut", list(CutMode))
@pytest.mark.parametrize("order", ORDERS)
def test_records_of_a_writer_that_had_not_seen_the_plan_are_left_over(order: Order, cut: CutMode) -> None:
    table = living(order, cut)
    pending = unaware(table)
    assert table.account.plan is not None
    instant = table.account.plan.instant
    beside(table, lambda: None, end(table, pending, OPEN))
    run(table)
    (op,) = pending_plan(table.bench, instant).operations
    assert [log.name.partition("_")[0] for log in op.compacted] != []
    assert len(op.left_overs) == 2
    assert op.left_overs[-1].threshold_ms is None
    application = table.bench.process()
    late = [write for write in TableState.load(application.files).timeline.writes if write.requested_time > instant]
    assert late, "the writer's instant is later than the plan's, so nobody sees it as of the plan"


@pytest.mark.parametrize("order", ORDERS)
def test_a_merged_delete_still_beats_an_older_record_of_a_writer_unaware_of_the_plan(
    order: Order,
) -> None:
    table = living(order, deletes=True)
    before = table.bench.moment().later(5)
    schedule(table)
    planned = table.bench.moment().later(100)
    table.bench.load(before)
    changes: Commit = (put("k2", 1, "older than the delete"),)
    pending = begin(table, changes)
    table.bench.load(Moment({**table.files, **planned.files}, planned.time_ms))
    table.record_others(())
    beside(table, lambda: None, end(table, pending, changes))
    run(table)


@pytest.mark.parametrize("order", ORDERS)
def test_a_plan_that_has_waited_for_a_writer_may_die_anywhere_and_be_run_again(order: Order) -> None:
    table = living(order)
    pending = unaware(table)
    end(table, pending, OPEN)()
    begun, account = table.bench.moment(), table.account
    assert account.plan is not None
    instant = account.plan.instant
    number = 0
    while True:
        table.bench.load(begun)
        table.account = account.copy()
        table.record_others(())
        try:
            execute(instant)(
                table.bench.process(FaultyStorage(table.bench.storage, FaultPlan({number: Fault.CRASH_BEFORE})))
            )
        except SimulatedCrash:
            table.record_others(())
            table.inspect()
            table.bench.load(table.bench.moment().after_the_lock_expired())
            if table.account.plan is not None:
                run(table)
        else:
            break
        number += 1
    assert number > 8


@pytest.mark.parametrize("order", ORDERS)
def test_without_a_gap_it_is_busy_and_names_the_writes(order: Order) -> None:
    table = living(order)
    open_write = begin(table, OPEN)
    before = table.files
    with pytest.raises(BusyError, match=rf"(?s){open_write.instant}.*gap.*waited 1\d\d\d ms"):
        schedule(table)
    assert table.files == before
    end(table, open_write, OPEN)()
    schedule(table)
    run(table)


@pytest.mark.parametrize("has_metadata_table", [False, True])
@pytest.mark.parametrize("cut", list(CutMode))
@pytest.mark.parametrize("order", ORDERS)
def test_an_exclusive_table_is_planned_beside_writes_that_leave_no_gap(
    order: Order, cut: CutMode, has_metadata_table: bool
) -> None:
    table = living(order, cut, is_exclusive=True, has_metadata_table=has_metadata_table)
    open_write = begin(table, OPEN)
    table.bench.options = {**table.bench.options, PENDING_WRITE_WAIT_MS: "60000"}
    begun_ms = table.bench.clock.time_ms
    schedule(table)
    assert table.bench.clock.time_ms - begun_ms <= 2 * GAP_WAIT_MS, "a gap is waited for as long as without the option"
    assert table.account.plan is not None
    assert table.account.plan.instant < open_write.instant
    beside(table, lambda: None, lambda: None, end(table, open_write, OPEN))
    run(table)
    if has_metadata_table:
        check_metadata_listing(table.files, ())


def test_a_plan_stays_if_a_writer_takes_too_long_and_the_next_run_continues_it() -> None:
    table = living(Order.EVENT_TIME)
    pending = unaware(table)
    assert table.account.plan is not None
    instant = table.account.plan.instant

    def goes_on(application: Application) -> None:
        application.runner.execute(instant, NoProgress())

    with pytest.raises(BusyError, match=rf'{pending.instant} did not complete.*execute\("{instant}"\)'):
        goes_on(table.bench.process())
    end(table, pending, OPEN)()
    table.bench.clock.sleep(LOCK_EXPIRY_MS)
    run(table)


@dataclass(slots=True)
class AtTheMerge(NoProgress):
    """Lets something happen when a compaction begins to merge."""

    do: Callable[[], None]

    def start(self, what: str, total: int) -> None:
        assert (what, total) == ("compacting", 1)
        self.do()


@pytest.mark.parametrize(("has_metadata_table", "has_heartbeat"), [(False, False), (True, False), (True, True)])
def test_the_metadata_table_gets_no_commit_while_a_writer_without_the_lock_begins(
    has_metadata_table: bool, has_heartbeat: bool
) -> None:
    """A writer of Hudi 0.15 fails where the metadata table gets a later commit before it puts its inflight file."""
    table = living(Order.EVENT_TIME, has_metadata_table=has_metadata_table)
    schedule(table)
    assert table.account.plan is not None
    instant = table.account.plan.instant
    storage = table.bench.storage
    found: list[bool] = []
    begun = f"{instant[:-3]}999"

    def requested() -> None:
        if has_heartbeat:
            storage.put(f".hoodie/.heartbeat/{begun}", b"")
        storage.put(f".hoodie/{begun}.deltacommit.requested", b"")

    def inflight() -> None:
        found.append(storage.stat(f".hoodie/{instant}.commit") is not None)
        storage.put(f".hoodie/{begun}.deltacommit.inflight", b"")

    beside(table, lambda: None, inflight)
    table.bench.process().runner.execute(instant, AtTheMerge(requested))
    assert storage.stat(f".hoodie/{instant}.commit") is not None
    assert found == ([False] if has_metadata_table and not has_heartbeat else [])


def test_a_compaction_waits_while_hudi_compacts_the_metadata_table() -> None:
    """A writer of Hudi 0.15 does so as it begins; it takes a second."""
    table = living(Order.EVENT_TIME, has_metadata_table=True)
    storage = table.bench.storage
    planned = f".hoodie/metadata/.hoodie/{EPOCH_INSTANT}001.compaction.requested"

    def compacted() -> None:
        storage.delete(planned)

    storage.put(planned, b"")
    beside(table, lambda: None, compacted)
    schedule(table)
    assert table.account.plan is not None

    storage.put(planned, b"")
    beside(table, lambda: None, lambda: None, compacted)
    run(table)
    check_metadata_listing(table.files, ())

    storage.put(planned, b"")
    with pytest.raises(MetadataTableBusyError, match=EPOCH_INSTANT):
        table.bench.process().scheduler.plan(CompactionRequest(EPOCH_MS + T, None, LinkChoice.COPY, cut=table.cut))
