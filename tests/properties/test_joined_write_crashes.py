"""A write that moves a key to another partition and fills up a base file, interrupted at every one of its own writes.

The key is deleted in a log of its old partition and inserted into a small base file of the new one: a reader sees both or
neither.
"""

from dataclasses import dataclass

import pyarrow as pa
import pytest

from eventide.bootstrap import Application
from eventide.rows.reader import Rows
from eventide.rows.writer import arrow_records, create, new_table
from eventide.testing.crash_enumeration import OPTIONS as SHORT_WAITS
from eventide.testing.crash_enumeration import Bench, Moment, Protocol, crash_states, interludes
from eventide_core.config import BLOOM_ENTRIES, BLOOM_FALSE_POSITIVES, INDEX_TYPE
from eventide_core.errors import LockError, WriteConflictError
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), part=pa.string(), ms=pa.int64())
START_MS = 1_790_000_000_000
OPTIONS: dict[str, str] = {
    **SHORT_WAITS,
    INDEX_TYPE: "GLOBAL_SIMPLE",
    BLOOM_ENTRIES: "10",
    BLOOM_FALSE_POSITIVES: "0.01",
}
HEARTBEAT_EXPIRY_MS = 121_000

Row = tuple[str, str, int]
BEFORE = {("a", "p", 1), ("b", "p", 1), ("c", "q", 1)}
MOVED: tuple[Row, ...] = (("b", "q", 2), ("d", "q", 1))
AFTER = {("a", "p", 1), ("b", "q", 2), ("c", "q", 1), ("d", "q", 1)}
RIVAL: tuple[Row, ...] = (("b", "r", 3),)


def upsert(*rows: Row) -> Protocol:
    def run(application: Application) -> None:
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
        application.append.write(WriteOperation.UPSERT, arrow_records(application, table, None), NoProgress())

    return run


@dataclass(slots=True)
class Case:
    bench: Bench
    start: Moment

    def seen(self, moment: Moment) -> set[Row]:
        self.bench.load(moment)
        application = self.bench.process()
        rows = Rows(application.queries.snapshot(), application.reader, application.engine).to_arrow().to_pylist()
        found = [(row["id"], row["part"], row["ms"]) for row in rows]
        assert len(set(found)) == len(found)
        assert all(row["_hoodie_partition_path"] == f"part={row['part']}" for row in rows)
        return set(found)


@pytest.fixture(scope="module", params=[6, 9])
def case(request: pytest.FixtureRequest) -> Case:
    bench = Bench(f"joined-crashes-{request.param}", OPTIONS)
    bench.load(Moment({}, START_MS))
    made = new_table(
        bench.storage.root, SCHEMA, OPTIONS, record_key="id", partition="part", ordering="ms", event_time=None,
        version=request.param,
    )  # fmt: skip
    create(bench.storage, made)
    upsert(*sorted(BEFORE))(bench.process())
    bench.clock.sleep(10)
    return Case(bench, bench.moment())


def test_a_key_that_moves_is_seen_once_wherever_the_write_dies(case: Case) -> None:
    reached = 0
    for number, left in crash_states(case.bench, case.start, upsert(*MOVED)):
        seen = case.seen(left)
        assert seen in (BEFORE, AFTER), f"write {number}"
        reached += seen == BEFORE
        again, failure = case.bench.attempt(left.after_the_lock_expired().later(HEARTBEAT_EXPIRY_MS), upsert(*MOVED))
        assert failure is None, f"write {number}: {failure!r}"
        assert case.seen(again) == AFTER
        state = case.bench.process().state()
        assert not state.timeline.pending
        assert any(stat.prev_base_file for commit in state.commits.values() for stat in commit.stats), (
            "none was filled up"
        )
    assert reached > 8


def test_of_two_writers_that_move_one_key_one_is_refused_or_comes_later(case: Case) -> None:
    refused = 0
    for operation, left, failure, others_failure in interludes(case.bench, case.start, upsert(*MOVED), upsert(*RIVAL)):
        assert isinstance(failure, WriteConflictError | None), operation
        assert isinstance(others_failure, LockError | None), operation
        seen = case.seen(left)
        assert len({key for key, _, _ in seen}) == len(seen), f"{operation}: a key lives in two partitions"
        expected = BEFORE if failure is not None else AFTER
        if others_failure is None:
            expected = {row for row in expected if row[0] != "b"} | set(RIVAL)
        assert seen == expected, operation
        refused += failure is not None
    assert refused
