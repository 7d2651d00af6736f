"""Real Hudi meets tables that eventide's writer made: it reads them, and continues writing to them."""

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide_adapters.format.write.arrow_records import ArrowRecords
from eventide_adapters.format.write.record_writer import RowWriter
from eventide_core.action.write.pending_write import PendingWrite
from eventide_core.config import BLOOM_ENTRIES, BUCKETS, LOG_BLOCK_EVENT_TIME_BUCKET
from eventide_core.ports import NoProgress
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.settings.write_shape import WriteOperation
from support.judge import HudiJudge, hudi_rs
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    BUCKET_INDEX,
    COMMIT_TIME_ORDERING,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    OVERWRITE_WITH_LATEST,
    table_name,
    table_version,
)
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64(), word=pa.string())
START_MS = 1_700_000_000_000
PLAIN = MERGE_ON_READ | BUCKET_INDEX | NO_METADATA_TABLE | AVRO_LOG_BLOCKS | table_name("written")
COMMIT_ORDER, EVENT_ORDER = MergeRule.COMMIT_TIME_ORDERING, MergeRule.EVENT_TIME_ORDERING
STOCK_OPTIONS = {
    (6, COMMIT_ORDER): PLAIN | OVERWRITE_WITH_LATEST,
    (6, EVENT_ORDER): PLAIN | DEFAULT_PAYLOAD,
    (8, COMMIT_ORDER): PLAIN | COMMIT_TIME_ORDERING | table_version(8),
    (8, EVENT_ORDER): PLAIN | EVENT_TIME_ORDERING | table_version(8),
    (9, COMMIT_ORDER): PLAIN | COMMIT_TIME_ORDERING | table_version(9),
    (9, EVENT_ORDER): PLAIN | EVENT_TIME_ORDERING | table_version(9),
}

# What a reader sees after the commits of `_write`, by the rules of the two orders.
UNTOUCHED = {("k6", 6, "base"), ("k7", 7, "base"), ("k8", 8, "base"), ("k9", 9, "base")}
IN_EITHER_ORDER = UNTOUCHED | {("k0", 400, "last"), ("k1", 100, "first"), ("k12", 300, "new")}
EXPECTED = {
    COMMIT_ORDER: IN_EITHER_ORDER | {("k2", 150, "after its delete"), ("k4", -5, "late")},
    EVENT_ORDER: IN_EITHER_ORDER | {("k4", 4, "base")},
}
# k12 is the first key of its bucket, so it came in a base file.
BASES_ALONE = {(f"k{i}", i, "base") for i in range(10)} | {("k12", 300, "new")}


class CountingClock:
    """A second further at each look."""

    def __init__(self) -> None:
        self._now_ms = 1_790_000_000_000

    def now_ms(self) -> int:
        self._now_ms += 1000
        return self._now_ms

    def sleep(self, milliseconds: int) -> None:
        self._now_ms += milliseconds

    def local_offset_ms(self, _epoch_ms: int, /) -> int:
        return 0


def _rows(*rows: tuple[str, str, int, str]) -> pa.Table:
    shifted = [(key, part, START_MS + time, word) for key, part, time, word in rows]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in shifted], schema=SCHEMA)


def _part(key: str) -> str:
    return "ab"[int(key[1:]) % 2]


def _write(path: Path, version: int, merge_rule: MergeRule, *, leaves_one_inflight: bool) -> None:
    """Two partitions of two buckets: a base, and logs with late rows and deletes of both kinds."""
    Table.create(
        str(path),
        schema=SCHEMA,
        record_key="id",
        partition="part",
        event_time="event_ts",
        version=version,
        options={"hoodie.write.record.merge.mode": merge_rule, "hoodie.table.name": "written", BUCKETS: 2},
    )
    uuids = (f"00000000-0000-4000-8000-{number:012d}" for number in itertools.count())
    options: dict[str, str] = {
        BLOOM_ENTRIES: "1000",
        LOG_BLOCK_EVENT_TIME_BUCKET: "1s",
    }  # late rows get blocks of their own
    application = assemble(str(path), options, clock=CountingClock(), new_uuid=lambda: next(uuids))

    def begin(upserts: pa.Table, deletes: pa.Table | None = None) -> PendingWrite:
        records = ArrowRecords(upserts, deletes, application.engine, RowWriter(application.storage))
        return application.append.begin(WriteOperation.UPSERT, records, NoProgress())

    def commit(upserts: pa.Table, deletes: pa.Table | None = None) -> None:
        application.append.complete(begin(upserts, deletes))

    commit(_rows(*((f"k{i}", _part(f"k{i}"), i, "base") for i in range(10))))
    ordered = {"id": ["k2", "k3"], "part": ["a", "b"], "event_ts": [START_MS + 200, START_MS + 200]}
    commit(_rows(("k0", "a", 100, "first"), ("k1", "b", 100, "first")), pa.table(ordered))
    late = _rows(("k4", "a", -5, "late"), ("k2", "a", 150, "after its delete"), ("k12", "a", 300, "new"))
    commit(late, pa.table({"id": ["k5"], "part": ["b"]}))
    if leaves_one_inflight:
        pending = begin(_rows(("k6", "a", 900, "inflight")))
        application.heartbeats.stop(pending.instant)
    commit(_rows(("k0", "a", 400, "last")))


def _seen(rows: pa.Table) -> set[tuple[str, int, str]]:
    found = [(row["id"], row["event_ts"] - START_MS, row["word"]) for row in rows.to_pylist()]
    assert len(set(found)) == len(found), "a row is there twice"
    return set(found)


@pytest.mark.parametrize("merge_rule", [COMMIT_ORDER, EVENT_ORDER])
@pytest.mark.parametrize("version", [6, pytest.param(8, marks=pytest.mark.broad), 9])
def test_hudi_reads_what_the_writer_wrote(
    version: int, merge_rule: MergeRule, tmp_path: Path, judge_111: HudiJudge
) -> None:
    path = tmp_path / "table"
    _write(path, version, merge_rule, leaves_one_inflight=True)

    assert _seen(judge_111.read(path)) == EXPECTED[merge_rule]
    assert _seen(hudi_rs.read(path)) == EXPECTED[merge_rule]
    assert _seen(judge_111.read(path, "read_optimized")) == BASES_ALONE


@pytest.mark.parametrize("merge_rule", [COMMIT_ORDER, EVENT_ORDER])
def test_hudi_0x_reads_a_version_6_table_of_the_writer(
    merge_rule: MergeRule, tmp_path: Path, judge_015: HudiJudge
) -> None:
    path = tmp_path / "table"
    _write(path, 6, merge_rule, leaves_one_inflight=True)
    # In Hudi 0.x a later record beats an earlier delete whatever its event time.
    expected = EXPECTED[merge_rule] | {("k2", 150, "after its delete")}

    assert _seen(judge_015.read(path)) == expected
    assert _seen(judge_015.read(path, "read_optimized")) == BASES_ALONE


@pytest.mark.parametrize("merge_rule", [COMMIT_ORDER, EVENT_ORDER])
@pytest.mark.parametrize("version", [6, pytest.param(8, marks=pytest.mark.broad), 9])
def test_hudi_continues_writing_where_the_writer_stopped(
    version: int, merge_rule: MergeRule, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue({6: "judge_015", 8: "judge_102", 9: "judge_111"}[version])
    path = tmp_path / "table"
    # A stock writer rolls back what is inflight, and refuses to where commits came after it.
    _write(path, version, merge_rule, leaves_one_inflight=False)
    options = STOCK_OPTIONS[version, merge_rule]
    before = _seen(judge.read(path))
    file_groups = {file.name[:36] for file in path.glob("part=*/*.parquet")}

    judge.write(path, _rows(("k0", "a", 500, "stock"), ("k9", "b", 500, "stock")), options=options)

    after = {row for row in before if row[0] not in ("k0", "k9")}
    assert _seen(judge.read(path)) == after | {("k0", 500, "stock"), ("k9", 500, "stock")}
    assert {file.name[:36] for file in path.glob("part=*/*.parquet")} == file_groups, "a key went to another bucket"
