"""One slice's compaction: what it writes, in which order, and what a second attempt does."""

from __future__ import annotations

import io
import pickle
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.base_file.bloom_filter import DEFAULT_PARAMETERS, BloomFilterBuilder
from eventide_adapters.format.base_file.parquet import BaseFileWriter, BaseFooter, earlier_bloom
from eventide_adapters.format.merge.slice_merger import ArrowSliceMerger
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import CorruptLogBlockError, MissingFileError, PlanMismatchError
from eventide_core.ports import MergeTask
from eventide_core.table.record_order import MergeRule
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import BlockFilter
from support import log_files
from support.slice_files import SCHEMA, base_file, data_block, delete_block, row

D0, D1, D2, D3 = (f"2026010100000000{i}" for i in range(4))
C = "20260101000000009"
BASE = f"part=a/f-0_0-1-0_{D0}.parquet"
NEW_BASE = f"part=a/f-0_9-9-9_{C}.parquet"
LOGS = tuple(f"part=a/.f-0_{D0}.log.{i}_0-1-0" for i in (1, 2, 3))
COPIES = tuple(f"part=a/.f-0_{C}.log.{i}_0-1-0" for i in (2, 3))
CARRIED = f"part=a/.f-0_{C}.log.1_0-1-0"
MARKER = f".hoodie/.temp/{C}/{NEW_BASE}.marker.CREATE"

FILES = {
    BASE: base_file(
        [row("a", 10, "base", D0, "old"), row("b", 10, "base", D0, "old"), row("d", 10, "base", D0, "old")]
    ),
    # a and d are deleted with ordering values; b is changed; c comes in.
    LOGS[0]: delete_block(D1, [("a", 30), ("d", 30)])
    + data_block(D1, [row("b", 20, "first", D1, "f-0"), row("c", 20, "first", D1, "f-0")]),
    # a comes late: it lost to its tombstone, and must go on losing.
    LOGS[1]: data_block(D2, [row("a", 20, "late", D2, "f-0"), row("b", 40, "second", D2, "f-0")]),
    LOGS[2]: data_block(D3, [row("e", 50, "third", D3, "f-0"), row("d", 50, "third", D3, "f-0")]),
}


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> MemoryStorage:
    storage = MemoryStorage.from_dump(request.node.name, {})
    for path, data in FILES.items():
        storage.put(path, data)
    return storage


def task(**changes: Any) -> MergeTask:
    made = MergeTask(
        partition="part=a",
        file_id="f-0",
        instant=C,
        base_path=BASE,
        merged=((LOGS[0], len(FILES[LOGS[0]])),),
        left_overs=tuple((log, len(FILES[log]), copy) for log, copy in zip(LOGS[1:], COPIES, strict=True)),
        early={},
        link_mode="copy",
        carried_path=CARRIED,
        new_base_path=NEW_BASE,
        marker_path=MARKER,
        shape=RecordShape(SCHEMA, MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts"),
        blocks=BlockFilter(frozenset({D0, D1, D2, D3}), D0),
        codec="zstd",
    )
    return replace(made, **changes)


def new_rows(storage: MemoryStorage) -> list[dict[str, Any]]:
    return pq.read_table(io.BytesIO(storage.read(NEW_BASE))).to_pylist()


def files(storage: MemoryStorage) -> dict[str, bytes]:
    return {path: storage.read(path) for path in storage.dump()}


def test_the_new_base_holds_the_merged_rows_under_its_own_name(storage: MemoryStorage) -> None:
    result = ArrowSliceMerger(storage)(task())
    name = NEW_BASE.rpartition("/")[2]
    assert new_rows(storage) == [row("b", 20, "first", D1, name), row("c", 20, "first", D1, name)]
    assert (result.num_writes, result.num_updates, result.num_inserts, result.num_deletes) == (2, 1, 1, 2)
    assert (result.log_records, result.log_blocks) == (4, 2)
    assert result.base_size == len(storage.read(NEW_BASE))
    assert result.new_base_path == NEW_BASE


@pytest.mark.parametrize("deleted", [4, 5])
def test_the_bloom_filter_goes_on_until_a_tenth_of_its_keys_are_of_no_row(storage: MemoryStorage, deleted: int) -> None:
    """What it says of a deleted key is that it may be there, as before."""
    rows = pq.read_table(io.BytesIO(base_file([row(f"k{number}", 10, "base", D0, "old") for number in range(40)])))
    storage.delete(BASE)
    output = storage.open_output(BASE)
    writer = BaseFileWriter(output, SCHEMA, codec="zstd", bloom=BloomFilterBuilder(DEFAULT_PARAMETERS))
    writer.write(rows)
    writer.close({})
    assert output.commit()
    gone = [f"k{number}" for number in range(deleted)]
    log = delete_block(D1, [(key, 30) for key in gone]) + data_block(D1, [row("new", 20, "first", D1, "f-0")])
    storage.put(LOGS[0], log)
    ArrowSliceMerger(storage)(task(merged=((LOGS[0], len(log)),), left_overs=(), carried_path=None))

    footer = BaseFooter.read(storage, NEW_BASE)
    written = [each["_hoodie_record_key"] for each in new_rows(storage)]
    assert written == [*(f"k{number}" for number in range(deleted, 40)), "new"]
    bloom = earlier_bloom(footer, NEW_BASE)
    assert bloom is not None
    assert bloom.may_contain(pa.array(written)).all()
    assert bloom.may_contain(pa.array(gone)).all() == (deleted == 4)
    assert bloom.key_count == (41 if deleted == 4 else 36)
    assert footer.pairs[b"hoodie_min_record_key"] == min(written).encode()


def test_left_overs_are_copied_whole_and_the_marker_is_empty(storage: MemoryStorage) -> None:
    ArrowSliceMerger(storage)(task())
    for log, copy in zip(LOGS[1:], COPIES, strict=True):
        assert storage.read(copy) == FILES[log]
    assert storage.read(MARKER) == b""


def test_a_tombstone_that_a_left_over_record_would_lose_to_is_carried(storage: MemoryStorage) -> None:
    """The tombstone of d is not: what a left-over holds of d is newer than it."""
    result = ArrowSliceMerger(storage)(task())
    assert storage.read(CARRIED) == delete_block(D1, [("a", 30)])
    assert (result.carried_tombstones, result.carried_size) == (1, len(storage.read(CARRIED)))


def test_tombstones_of_several_instants_are_carried_in_a_block_each(storage: MemoryStorage) -> None:
    storage.put(LOGS[0], delete_block(D2, [("b", 60)]) + delete_block(D1, [("a", 30)]))
    merged = ((LOGS[0], len(storage.read(LOGS[0]))),)
    ArrowSliceMerger(storage)(task(merged=merged))
    assert storage.read(CARRIED) == delete_block(D1, [("a", 30)]) + delete_block(D2, [("b", 60)])


def test_a_tombstone_of_several_ordering_fields_is_carried_where_any_of_them_decides(storage: MemoryStorage) -> None:
    def ordering(ts: int, val: str) -> tuple[str, Any]:
        values = (("LongWrapper", ts), ("StringWrapper", val))
        return ("ArrayWrapper", [(f"org.apache.hudi.avro.model.{name}", {"value": value}) for name, value in values])

    # The left-overs hold a@(20, late), b@(40, second) and d@(50, third).
    contradicted = [("a", ordering(20, "m")), ("d", ordering(50, "third "))]
    deletes = [*contradicted, ("b", ordering(40, "a"))]
    storage.put(LOGS[0], log_files.delete_block(D1, deletes))
    shape = RecordShape(SCHEMA, MergeRule.EVENT_TIME_ORDERING, ("ts", "val"), "ts")
    merged = ((LOGS[0], len(storage.read(LOGS[0]))),)
    result = ArrowSliceMerger(storage)(task(merged=merged, shape=shape))
    assert result.carried_tombstones == 2
    assert storage.read(CARRIED) == log_files.delete_block(D1, contradicted)


def test_nothing_is_carried_where_no_left_over_contradicts(storage: MemoryStorage) -> None:
    left_overs = ((LOGS[2], len(FILES[LOGS[2]]), COPIES[1]),)
    result = ArrowSliceMerger(storage)(task(left_overs=left_overs))
    assert result.carried_size is None
    assert storage.stat(CARRIED) is None


def test_without_a_carried_log_in_the_plan_none_is_written(storage: MemoryStorage) -> None:
    result = ArrowSliceMerger(storage)(task(carried_path=None))
    assert (result.carried_tombstones, result.carried_size) == (0, None)
    assert set(storage.dump()) == {*FILES, *COPIES, MARKER, NEW_BASE}


def test_a_slice_of_logs_alone_becomes_a_base_file(storage: MemoryStorage) -> None:
    result = ArrowSliceMerger(storage)(task(base_path=None))
    assert [r["id"] for r in new_rows(storage)] == ["b", "c"]
    assert (result.num_inserts, result.num_updates, result.num_deletes) == (2, 0, 0)


def test_blocks_of_unfinished_instants_are_not_merged(storage: MemoryStorage) -> None:
    ArrowSliceMerger(storage)(task(blocks=BlockFilter(frozenset({D0, D2, D3}), D0)))
    assert [(r["id"], r["val"]) for r in new_rows(storage)] == [("a", "base"), ("b", "base"), ("d", "base")]


@pytest.mark.parametrize(("mode", "is_link"), [("symlink", True), ("hardlink", False)])
def test_left_overs_are_linked_where_the_plan_says_so(storage: MemoryStorage, mode: str, is_link: bool) -> None:
    ArrowSliceMerger(storage)(task(link_mode=mode))
    for log, copy in zip(LOGS[1:], COPIES, strict=True):
        info = storage.stat(copy)
        assert info is not None
        assert (info.link_target is not None) is is_link
        assert storage.read(copy) == FILES[log]


def test_in_mode_prefix_no_left_over_gets_a_file(storage: MemoryStorage) -> None:
    left_overs = tuple((log, len(FILES[log]), None) for log in LOGS[1:])
    ArrowSliceMerger(storage)(task(left_overs=left_overs, link_mode="prefix", carried_path=None))
    assert set(storage.dump()) == {*FILES, MARKER, NEW_BASE}


def test_a_second_run_changes_nothing_and_says_the_same(storage: MemoryStorage) -> None:
    merger = pickle.loads(pickle.dumps(ArrowSliceMerger(storage)))
    first = merger(task())
    before = storage.dump()
    assert merger(task()) == first
    assert storage.dump() == before


def test_a_base_file_that_is_removed_as_soon_as_it_is_written_is_no_result(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = MemoryStorage.stat
    monkeypatch.setattr(MemoryStorage, "stat", lambda self, path: None if path == NEW_BASE else real(self, path))
    with pytest.raises(MissingFileError, match="rolled back"):
        ArrowSliceMerger(storage)(task())


def test_two_runs_from_nothing_write_the_same_bytes(storage: MemoryStorage) -> None:
    ArrowSliceMerger(storage)(task())
    first = files(storage)
    for path in set(first) - set(FILES):
        storage.delete(path)
    ArrowSliceMerger(storage)(task())
    assert files(storage) == first


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_after_a_crash_anywhere_a_second_run_ends_as_if_there_had_been_none(
    storage: MemoryStorage, fault: Fault
) -> None:
    start = storage.dump()
    expected = ArrowSliceMerger(storage)(task())
    ended = files(storage)
    # Names appear in this order, so that a crash leaves the first few of them.
    appearing = [*reversed(COPIES), CARRIED, MARKER, NEW_BASE]
    for number in range(len(appearing)):
        again = MemoryStorage.from_dump(f"crashed at {number}", start)
        with pytest.raises(SimulatedCrash):
            ArrowSliceMerger(FaultyStorage(again, FaultPlan({number: fault})))(task())
        written = number + (fault is Fault.CRASH_AFTER)
        assert set(again.dump()) == {*start, *appearing[:written]}
        assert ArrowSliceMerger(again)(task()) == expected
        assert files(again) == ended


def test_every_write_of_a_merge_gives_one_name(storage: MemoryStorage) -> None:
    faulty = FaultyStorage(storage)
    ArrowSliceMerger(faulty)(task())
    assert [write.path for write in faulty.writes] == [*reversed(COPIES), CARRIED, MARKER, NEW_BASE]


@pytest.mark.parametrize("number", range(5))
def test_a_write_that_is_sent_twice_counts_once(storage: MemoryStorage, number: int) -> None:
    start = storage.dump()
    expected = ArrowSliceMerger(storage)(task())
    again = MemoryStorage.from_dump(f"sent twice at {number}", start)
    faulty = FaultyStorage(again, FaultPlan({number: Fault.DUPLICATED}))
    assert ArrowSliceMerger(faulty)(task()) == expected
    assert files(again) == files(storage)


@pytest.mark.parametrize("log", LOGS)
def test_a_log_that_changed_since_the_plan_stops_the_merge(storage: MemoryStorage, log: str) -> None:
    storage.put(log, FILES[log] + data_block(D3, []))
    with pytest.raises(PlanMismatchError, match=r"log\.\d_0-1-0 has"):
        ArrowSliceMerger(storage)(task())
    assert storage.stat(NEW_BASE) is None
    assert storage.stat(COPIES[1]) is None


@pytest.mark.parametrize("path", FILES)
def test_a_file_of_the_plan_that_is_gone_stops_the_merge(storage: MemoryStorage, path: str) -> None:
    storage.delete(path)
    with pytest.raises(MissingFileError):
        ArrowSliceMerger(storage)(task())
    assert storage.stat(NEW_BASE) is None


def test_a_torn_log_stops_the_merge(storage: MemoryStorage) -> None:
    storage.put(LOGS[0], FILES[LOGS[0]][:-1] + b"\xff")
    with pytest.raises(CorruptLogBlockError):
        ArrowSliceMerger(storage)(task())
    assert storage.stat(NEW_BASE) is None


@pytest.mark.parametrize("path", [COPIES[0], CARRIED, NEW_BASE])
def test_a_foreign_file_under_a_name_of_the_plan_stops_the_merge(storage: MemoryStorage, path: str) -> None:
    storage.put(path, base_file([]))
    with pytest.raises(PlanMismatchError, match="roll the plan back"):
        ArrowSliceMerger(storage)(task())
    assert storage.read(path) == base_file([])


def test_a_base_file_of_another_plan_is_told_apart_by_its_footer(storage: MemoryStorage) -> None:
    ArrowSliceMerger(storage)(task())
    other = ((LOGS[0], len(FILES[LOGS[0]])), (LOGS[1], len(FILES[LOGS[1]])))
    with pytest.raises(PlanMismatchError, match="didn't write it"):
        ArrowSliceMerger(storage)(task(merged=other, left_overs=task().left_overs[1:]))


@pytest.mark.parametrize(("asked", "before"), [("as-before", "snappy"), ("as-before", "gzip"), ("zstd", "gzip")])
def test_a_new_base_is_compressed_as_the_one_before_unless_told_otherwise(
    asked: str, before: Literal["snappy", "gzip"], storage: MemoryStorage
) -> None:
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(FILES[BASE])), sink, compression=before)
    storage.put(BASE, sink.getvalue())
    ArrowSliceMerger(storage)(task(codec=asked))
    written = pq.read_metadata(storage.open_input(NEW_BASE)).row_group(0).column(0).compression
    assert written == (before if asked == "as-before" else asked).upper()
