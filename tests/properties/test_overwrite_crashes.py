"""An overwrite interrupted at every one of its own writes: readers see the old rows or the new, and it can run again."""

import sys
from dataclasses import dataclass
from itertools import product

import pytest

from eventide.bootstrap import Application
from eventide.rows.reader import Rows
from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import (
    Bench,
    Moment,
    Protocol,
    Tally,
    crash_states,
    faults,
    interludes,
    start_of,
)
from eventide.testing.histories import Commit, History, layouts, put, records, write_history
from eventide.testing.inspection.observation import check_verified
from eventide_adapters.storage.faulty import Fault
from eventide_core.errors import BusyError, LockError, WriteConflictError
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation

pytestmark = pytest.mark.slow

HEARTBEAT_EXPIRY_MS = 121_000
OLD = (put("k0", 1, "old"), put("k1", 2, "old"), put("k2", 3, "old", partition="b"))
LATER = (put("k0", 9, "later"),)
NEW = (put("k0", 5, "new"), put("k7", 6, "new"))
RIVAL = (put("k1", 8, "rival"),)
OPERATIONS = [WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE]
TALLY = Tally()
FLOORS = {"crash states": 40, "faults": 120, "seen after a crash": 4, "both completed": 20, "one gave way": 10}
Shown = frozenset[tuple[str, str]]
OF_B: Shown = frozenset({("k2", "old")})
LAYOUTS = {layout.version: layout for layout in layouts()}
START = History("overwritten", (OLD, LATER), cut_ms=20)


@dataclass(frozen=True, slots=True)
class Case:
    """A table with two rows in partition `a`, one in `b`; `old` is what readers see of it, and `new` after the overwrite."""

    operation: WriteOperation
    start: Moment
    bench: Bench
    old: Shown = frozenset({("k0", "later"), ("k1", "old")}) | OF_B

    @property
    def new(self) -> Shown:
        added: Shown = frozenset({("k0", "new"), ("k7", "new")})
        return added | OF_B if self.operation is WriteOperation.INSERT_OVERWRITE else added

    def overwrite(self, application: Application) -> None:
        write(self.operation, NEW)(application)

    def shown(self, moment: Moment) -> Shown:
        self.bench.load(moment)
        application = self.bench.process()
        plan = application.queries.snapshot()
        rows = Rows(plan, application.reader, application.engine).to_arrow(columns=["key", "word"]).to_pylist()
        return frozenset((row["key"], row["word"]) for row in rows)

    def orders(self, moment: Moment) -> tuple[bool, ...]:
        """Whether the upsert may have completed after the overwrite. Version 6 records no completion times."""
        self.bench.load(moment)
        state = self.bench.process().state()
        ends = {state.commits[i.requested_time].operation_type: i.completion_time for i in state.timeline.writes[-2:]}
        upsert, overwrite = ends["UPSERT"], ends[self.operation.operation_type]
        return (True, False) if upsert is None or overwrite is None else (upsert > overwrite,)

    def check_continues(self, left: Moment, seen: Shown) -> None:
        """After the heartbeat of the dead process has expired, a write works, and an overwrite."""
        later = left.after_the_lock_expired().later(HEARTBEAT_EXPIRY_MS)
        again, failure = self.bench.attempt(later, write(WriteOperation.UPSERT, RIVAL))
        assert failure is None
        assert self.shown(again) == {row for row in seen if row[0] != "k1"} | {("k1", "rival")}
        over, failure = self.bench.attempt(again, self.overwrite)
        assert failure is None
        assert self.shown(over) == self.new
        self.bench.load(over)
        assert not self.bench.process().state().timeline.pending
        check_verified(self.bench.process())


def write(operation: WriteOperation, changes: Commit) -> Protocol:
    def run(application: Application) -> None:
        application.append.write(operation, arrow_records(application, *records(changes)), NoProgress())

    return run


@pytest.fixture(scope="module", params=[*product(sorted(LAYOUTS), OPERATIONS)], ids=lambda p: f"v{p[0]}-{p[1]}")
def case(request: pytest.FixtureRequest) -> Case:
    version, operation = request.param
    bench = Bench("overwrite-crashes")
    start = start_of(write_history(LAYOUTS[version], START, bench.name))
    found = Case(operation, start, bench)
    assert found.shown(start) == found.old
    return found


def test_an_overwrite_that_dies_at_any_step_is_whole_or_not_there(case: Case) -> None:
    for number, left in crash_states(case.bench, case.start, case.overwrite):
        TALLY.add("crash states")
        seen = case.shown(left)
        assert seen in (case.old, case.new), f"write {number}"
        TALLY.add("seen after a crash", seen == case.new)
        case.check_continues(left, seen)


def test_an_overwrite_whose_storage_fails_or_loses_a_reply_is_whole_or_not_there(case: Case) -> None:
    for fault, operation, left, failure in faults(case.bench, case.start, case.overwrite):
        TALLY.add("faults")
        seen = case.shown(left)
        assert seen == case.new if failure is None else seen in (case.old, case.new), f"{fault} at {operation}"
        if fault is Fault.REPLY_LOST and failure is not None:
            assert seen == case.old, f"it has completed, but the user got {failure!r}"
        case.check_continues(left, seen)


def test_no_row_of_a_write_beside_an_overwrite_is_lost_or_kept_by_chance(case: Case) -> None:
    """Both orders in which the two may complete are fine. An upsert that was reported as done is never half there."""
    upsert = write(WriteOperation.UPSERT, RIVAL)
    for first, second, overwrites_first in ((case.overwrite, upsert, True), (upsert, case.overwrite, False)):
        for operation, left, failure, others_failure in interludes(case.bench, case.start, first, second):
            overwrite_failure, upsert_failure = (
                (failure, others_failure) if overwrites_first else (others_failure, failure)
            )
            for error in (overwrite_failure, upsert_failure):
                assert isinstance(error, WriteConflictError | BusyError | LockError | None), operation
            replaced = case.old if overwrite_failure else case.new
            upserted: Shown = frozenset({row for row in replaced if row[0] != "k1"} | {("k1", "rival")})
            possible: list[Shown] = [replaced] if upsert_failure else [upserted]
            if overwrite_failure is None and upsert_failure is None:
                TALLY.add("both completed")
                possible = [upserted if is_upsert_last else case.new for is_upsert_last in case.orders(left)]
            assert case.shown(left) in possible, operation
            TALLY.add("one gave way", bool(overwrite_failure or upsert_failure))


def test_the_campaign_reached_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{TALLY}\n")
    missed = {what: TALLY.counts[what] for what, floor in FLOORS.items() if TALLY.counts[what] < floor}
    assert not missed, f"reached only {missed}, of {FLOORS}"
