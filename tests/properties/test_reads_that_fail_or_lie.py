"""A read that fails, or a listing that does not yet show the last commit, costs at most an error: no action loses a row.

The port promises listings that are true, and the stores that eventide brings keep that. This is for the day on which one
doesn't: of all the listings of an action one is answered as of before the last commit, each in turn.

Not covered: listings that stay stale from the first of an action to its last, by which nobody could tell.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from eventide.bootstrap import Application
from eventide.rows.reader import Rows
from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import (
    Bench,
    Moment,
    Protocol,
    execute,
    failing_reads,
    pending_plan,
    roll_back,
    schedule,
    start_of,
)
from eventide.testing.histories import EPOCH_MS, Commit, Layout, put, records, write_history
from eventide.testing.named_histories import named_histories
from eventide.testing.oracle import Change, Oracle, Order
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import LinkChoice
from eventide_core.errors import EventideError
from eventide_core.ports import FileInfo, NoProgress, Storage
from eventide_core.table.settings.write_shape import WriteOperation

pytestmark = pytest.mark.slow

HISTORY = named_histories()[0]
COLUMNS = ("_hoodie_partition_path", "key", "ms", "word", "_hoodie_commit_time")
HEARTBEAT_EXPIRY_MS = 121_000
WRITTEN = (put("k0", 40, "written"), put("k6", 5, "new"))


class ForgetfulStorage(FaultyStorage):
    """One of its listings, by number, is another storage's; none where there is no such number."""

    def __init__(self, inner: Storage, earlier: Storage, number: int) -> None:
        super().__init__(inner)
        self._earlier = earlier
        self._number = number
        self.listings = 0

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        number, self.listings = self.listings, self.listings + 1
        return self._earlier.list(directory) if number == self._number else super().list(directory)


@dataclass(frozen=True, slots=True)
class Case:
    """A table and a compaction of it, scheduled; `earlier` is the table before its last commit."""

    bench: Bench
    earlier: MemoryStorage
    start: Moment
    scheduled: Moment
    instant: str
    oracle: Oracle

    def left_by(self, start: Moment, protocol: Protocol) -> Iterator[tuple[Moment, EventideError | None]]:
        """What the protocol leaves for each of its listings that is stale, when all locks have expired."""
        number, count = -1, 0
        while number < count:
            self.bench.load(start)
            storage = ForgetfulStorage(self.bench.storage, self.earlier, number)
            failure: EventideError | None = None
            try:
                protocol(self.bench.process(storage))
            except EventideError as error:
                failure = error
            if number < 0:
                count = storage.listings
            else:
                yield self.bench.moment().after_the_lock_expired().later(HEARTBEAT_EXPIRY_MS), failure
            number += 1

    def check(self, moment: Moment, oracle: Oracle) -> None:
        self.bench.load(moment)
        application = self.bench.process()
        seen = (
            Rows(application.queries.snapshot(), application.reader, application.engine).to_arrow(COLUMNS).to_pylist()
        )
        assert sorted(tuple(row.values()) for row in seen) == sorted(oracle.snapshot())

    def finish(self, moment: Moment, oracle: Oracle) -> None:
        """Whatever is pending can be brought to an end that changes no row."""
        self.check(moment, oracle)
        self.bench.load(moment)
        for pending in self.bench.process().state().timeline.pending_plans:
            done, failure = self.bench.attempt(moment, execute(pending.requested_time))
            assert failure is None
            self.check(done, oracle)


@pytest.fixture(scope="module", params=[6, 9])
def case(request: pytest.FixtureRequest) -> Case:
    layout, bench = Layout(request.param, Order.EVENT_TIME), Bench("reads")
    earlier = write_history(layout, replace(HISTORY, commits=HISTORY.commits[:-1]), bench.name)
    table = write_history(layout, HISTORY, bench.name)
    assert earlier.files.keys() < table.files.keys()
    start = start_of(table)
    scheduled = bench.run(start, schedule(HISTORY, LinkChoice.COPY))
    instant = pending_plan(bench.process()).instant
    before = MemoryStorage.from_dump("reads-before", earlier.files)
    return Case(bench, before, start, scheduled, instant, table.oracle)


def test_a_plan_made_by_a_stale_listing_loses_nothing(case: Case) -> None:
    for left, _ in case.left_by(case.start, schedule(HISTORY, LinkChoice.COPY)):
        case.finish(left, case.oracle)


def test_a_compaction_run_by_a_stale_listing_loses_nothing(case: Case) -> None:
    for left, _ in case.left_by(case.scheduled, execute(case.instant)):
        case.finish(left, case.oracle)


def test_a_rollback_by_a_stale_listing_loses_nothing(case: Case) -> None:
    for left, _ in case.left_by(case.scheduled, roll_back(case.instant)):
        case.finish(left, case.oracle)


def test_a_clean_by_a_stale_listing_loses_nothing(case: Case) -> None:
    compacted = case.bench.run(case.scheduled, execute(case.instant))
    for left, _ in case.left_by(compacted, clean):
        case.finish(left, case.oracle)


def test_a_write_by_a_stale_listing_is_whole_or_not_there(case: Case) -> None:
    for left, failure in case.left_by(case.start, ingest(WRITTEN)):
        case.bench.load(left)
        oracle = case.oracle.copy()
        new = [time for time in sorted(case.bench.process().state().commits) if time not in oracle.instants]
        assert bool(new) == (failure is None)
        for instant in new:
            oracle.commit(instant, [at_epoch(change) for change in WRITTEN])
        case.finish(left, oracle)


@pytest.mark.parametrize("action", ["schedule", "roll back", "clean"])
def test_a_read_that_fails_loses_nothing(case: Case, action: str) -> None:
    start, protocol = {
        "schedule": (case.start, schedule(HISTORY, LinkChoice.COPY)),
        "roll back": (case.scheduled, roll_back(case.instant)),
        "clean": (case.scheduled, clean),
    }[action]
    for _, left in failing_reads(case.bench, start, protocol):
        case.check(left, case.oracle)


def clean(application: Application) -> None:
    application.cleaner.clean(1)


def ingest(changes: Commit) -> Protocol:
    def run(application: Application) -> None:
        application.append.write(WriteOperation.UPSERT, arrow_records(application, *records(changes)), NoProgress())

    return run


def at_epoch(change: Change) -> Change:
    assert change.ms is not None
    return replace(change, ms=EPOCH_MS + change.ms)
