"""A compaction and a write in object stores and HDFS whose answers are lost or end at any request that may change the store.

The store is real. What is left in it is held to the same invariants as in memory (tests/properties/test_execute_crashes.py,
test_ingest_crashes.py), and continued from in the store.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from eventide.testing.compaction_case import make_case
from eventide.testing.crash_enumeration import Bench, Moment, Protocol, Tally, execute, roll_back
from eventide.testing.histories import layouts
from eventide.testing.inspection.checks import check_nothing_left
from eventide.testing.named_histories import named_histories
from eventide_core.config import LinkChoice
from support.cases.ingest import HEARTBEAT_EXPIRY_MS, WRITTEN, ingest, ingest_case
from support.faults.stores import LOST, FaultyStore, TableInStore, WriteFault, faulty_store
from support.run.reach import reached
from support.servers.faulty_proxy import Fault

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("short_pauses")]

VERSIONS = {6: 1, 9: 3}
"""The layout in event-time order of each version, by its place in `layouts()`."""


@pytest.fixture(scope="module", params=["moto", "fake_gcs", "azurite", "name_node"])
def store(request: pytest.FixtureRequest) -> Iterator[FaultyStore]:
    with faulty_store(request.getfixturevalue(request.param)) as faulty:
        yield faulty


@dataclass(frozen=True, slots=True)
class Deed:
    """What a process does, and how a later one and a check of the table answer to its end."""

    start: Moment
    protocol: Protocol
    check: Callable[[Moment], bool]
    """Holds a moment to the invariants; whether the deed is completed."""
    check_recovered: Callable[[TableInStore, Moment, bool, int], None]


def compaction(version: int, tally: Tally) -> Deed:
    late, *_ = named_histories()
    case = make_case(layouts()[VERSIONS[version]], late, LinkChoice.COPY, Bench("in a store"), tally)
    assert case is not None

    def check_recovered(table: TableInStore, left: Moment, is_completed: bool, number: int) -> None:
        is_undone = not is_completed and number % 2 == 1
        protocol = roll_back(case.instant) if is_undone else execute(case.instant)
        done, failure = table.run(protocol, left.time_ms)
        status = case.check(done)
        if is_undone and failure is None:
            assert status == "absent"
            check_nothing_left(done.files, case.start.files)
            tally.add("rolled back")
            return
        if is_undone:  # its completion has been decided
            done, failure = table.run(execute(case.instant), left.time_ms)
        assert (failure, case.check(done)) == (None, "completed")
        tally.add("completed")

    return Deed(case.scheduled, execute(case.instant), lambda left: case.check(left) == "completed", check_recovered)


def written(version: int, tally: Tally) -> Deed:
    case = ingest_case(layouts()[VERSIONS[version]], Bench("in a store"))

    def check_recovered(table: TableInStore, left: Moment, is_completed: bool, number: int) -> None:
        del number
        done, failure = table.run(ingest(WRITTEN), left.time_ms)
        assert failure is None
        assert case.check(done, WRITTEN, WRITTEN) == (WRITTEN,) * (1 + is_completed)
        tally.add("written again")

    return Deed(case.start, ingest(WRITTEN), lambda left: case.check(left, WRITTEN) == (WRITTEN,), check_recovered)


DEEDS = {"compact": compaction, "ingest": written}


@pytest.mark.parametrize(
    ("version", "deed", "is_all"),
    [
        *(pytest.param(9, deed, False, id=f"v9, {deed}, one", marks=pytest.mark.broad) for deed in DEEDS),
        *(
            pytest.param(version, deed, True, id=f"v{version}, {deed}, all", marks=pytest.mark.proof)
            for version in VERSIONS
            for deed in DEEDS
        ),
    ],
)
def test_a_lost_reply_or_an_end_at_any_write_request_loses_and_doubles_nothing(
    version: int, deed: str, is_all: bool, store: FaultyStore
) -> None:
    tally = Tally()
    made, table = DEEDS[deed](version, tally), TableInStore(store)
    counted = WriteFault(-1, None)
    table.load(made.start)
    done, failure = table.run(made.protocol, made.start.time_ms, counted)
    assert failure is None
    assert made.check(done)
    for number in range(counted.seen) if is_all else (2 * counted.seen // 3,):
        table.load(made.start)
        left, _ = table.run(made.protocol, made.start.time_ms, WriteFault(number, Fault.REPLY_LOST, is_end=True))
        tally.add("ends")
        is_completed = made.check(left)
        table.expire()
        made.check_recovered(table, left.later(HEARTBEAT_EXPIRY_MS), is_completed, number)
        for fault in LOST if is_all else (LOST[number % len(LOST)],):
            table.load(made.start)
            done, failure = table.run(made.protocol, made.start.time_ms, WriteFault(number, fault))
            assert failure is None, f"{fault.name} at the write request {number}"
            assert made.check(done), f"{fault.name} at the write request {number}"
            tally.add("lost answers")
    assert tally.counts["ends"] == (counted.seen if is_all else 1)
    for what, times in tally.counts.items():
        reached(f"{deed} in stores: {what}", times)
