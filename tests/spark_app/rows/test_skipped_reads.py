"""How little a filter reads: files and bytes, as a storage counts them."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.reader import Rows
from eventide_adapters.format.encoding.parquet import open_file, output, row_pages
from eventide_core.config import BLOOM_ENTRIES, BUCKETS, CLOCK_SKEW_MS, INDEX_TYPE
from support.doubles.counting_storage import CountingStorage
from support.values.columns import schema_of

EPOCH_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
SLICES, ROWS = 24, 4800
SCHEMA = schema_of(id=pa.string(), ms=pa.int64(), load=pa.binary())
OPTIONS: dict[str, str] = {BLOOM_ENTRIES: "1000", CLOCK_SKEW_MS: "1"}


@pytest.fixture(autouse=True)
def small_row_groups() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "ROW_GROUP_ROWS_MAX", 100)
        patch.setattr(row_pages, "_ROWS_MIN", 0)
        patch.setattr(open_file, "_AT_ONCE_BYTES_MAX", 0)  # so that small files are read as large ones are
        yield


def records(numbers: range, hour: int, *, seed: int = 0) -> pa.Table:
    random.seed(seed)
    loads = [random.randbytes(400) for _ in numbers]
    times = [EPOCH_MS + hour * HOUR_MS + number for number in numbers]
    columns: list[Any] = [[f"key {n}" for n in numbers], times, loads]
    return pa.table(columns, schema=SCHEMA)


def made(path: Path, index: str, *, buckets: int = SLICES, version: int = 9) -> Table:
    return Table.create(
        str(path / "table"),
        schema=SCHEMA,
        record_key="id",
        event_time="ms",
        version=version,
        options={**OPTIONS, INDEX_TYPE: index, BUCKETS: str(buckets)},
    )


def counted(table: Table) -> tuple[Table, CountingStorage]:
    storage = CountingStorage(table.uri)
    return Table(table.uri, OPTIONS, assemble(table.uri, OPTIONS, storage=storage)), storage


def data_files(storage: CountingStorage) -> set[str]:
    return {path for path in storage.opened if ".hoodie/" not in path}


def data_bytes(storage: CountingStorage) -> int:
    return sum(count for path, count in storage.bytes_read.items() if ".hoodie/" not in path)


def asked(rows: Any, storage: CountingStorage, condition: str) -> tuple[pa.Table, set[str], int]:
    storage.forget()
    table = rows.to_arrow(None, condition)
    return table, data_files(storage), data_bytes(storage)


@pytest.mark.parametrize("version", [6, 9])
def test_one_key_of_a_bucket_index_reads_one_slice_and_few_of_its_bytes(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, "BUCKET", version=version)
    table.upsert(records(range(ROWS), 0))
    table.compact(before=EPOCH_MS + HOUR_MS)
    table.upsert(records(range(0, ROWS, 10), 2))
    table, storage = counted(table)
    for rows in (table.snapshot(), table.read_optimized()):
        storage.forget()
        assert rows.to_arrow().num_rows == ROWS
        whole = data_bytes(storage)
        kept, files, read = asked(rows, storage, "id = 'key 777'")
        assert kept.column("id").to_pylist() == ["key 777"]
        assert len({path.lstrip(".").partition("_")[0] for path in files}) == 1
        assert read < whole / 20
        _, few, _ = asked(rows, storage, "id in ('key 1', 'key 2', 'key 3')")
        assert len({path.lstrip(".").partition("_")[0] for path in few}) <= 3


def test_a_key_of_another_index_is_looked_up_in_footers_and_read_in_one_row_group(tmp_path: Path) -> None:
    table = made(tmp_path, "SIMPLE")
    for part in range(4):  # base files of one hour each
        table.insert(records(range(part * 1000, part * 1000 + 1000), part, seed=part))
    table, storage = counted(table)
    rows = table.snapshot()
    storage.forget()
    assert rows.to_arrow().num_rows == 4000
    whole, files_of_all = data_bytes(storage), data_files(storage)
    kept, files, read = asked(rows, storage, "id = 'key 2345'")
    assert kept.num_rows == 1
    assert files <= files_of_all
    assert read < whole / 6
    nothing, _, read_for_nothing = asked(rows, storage, "id = 'nobody'")
    assert nothing.num_rows == 0
    assert read_for_nothing < whole / 6


def test_a_log_that_holds_a_key_its_base_file_lacks_is_read(tmp_path: Path) -> None:
    table = made(tmp_path, "BUCKET", buckets=1)
    table.upsert(records(range(100), 0))
    table.compact(before=EPOCH_MS + HOUR_MS)
    table.upsert(records(range(100, 110), 2))
    table.delete(pa.table({"id": ["key 5", "key 105"]}))
    rows = table.snapshot()
    assert rows.to_arrow(None, "id = 'key 105'").num_rows == 0
    assert rows.to_arrow(None, "id in ('key 5', 'key 6', 'key 104')").column("id").to_pylist() == ["key 6", "key 104"]


def test_a_range_of_event_time_reads_the_slices_that_have_it(tmp_path: Path) -> None:
    table = made(tmp_path, "SIMPLE")
    for part in range(6):
        table.bulk_insert(records(range(part * 500, part * 500 + 500), part, seed=part))
    table.upsert(records(range(500, 510), 1, seed=9))
    table, storage = counted(table)
    for rows in (table.snapshot(), table.read_optimized()):
        storage.forget()
        assert rows.to_arrow().num_rows == 3000
        whole = data_bytes(storage)
        begin = EPOCH_MS + 3 * HOUR_MS
        kept, _, read = asked(rows, storage, f"ms >= {begin} and ms < {begin + HOUR_MS}")
        assert kept.num_rows == 500
        assert read < whole / 2
        reading = rows.reading(None, f"ms >= {begin} and ms < {begin + HOUR_MS}")
        assert len(reading.unskipped(rows.engine)) == 1
        assert len(rows.plan.slices) == 6


def test_a_base_row_that_wins_over_the_log_is_not_skipped(tmp_path: Path) -> None:
    """The log file has an older version with the event time of the filter; the newer one in the base file wins."""
    table = made(tmp_path, "BUCKET", buckets=1)
    table.upsert(records(range(10), 5))
    table.compact(before=EPOCH_MS + 9 * HOUR_MS)
    table.upsert(records(range(1), 1))
    table, _ = counted(table)
    condition = f"ms < {EPOCH_MS + 2 * HOUR_MS}"
    assert table.snapshot().to_arrow(None, condition).num_rows == 0
    assert table.snapshot().count(condition) == 0


def test_a_limit_opens_one_slice_and_decodes_one_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A base file of several batches, not prefetched; slices behind it are not opened; a count reads footers."""
    monkeypatch.setattr(output, "ROW_GROUP_ROWS_MAX", 1 << 20)
    decoded: list[int] = []
    whole = open_file.OpenBaseFile.batches

    def counted_rows(*words: Any, **more: Any) -> Iterator[pa.RecordBatch]:
        for batch in whole(*words, **more):
            decoded.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(open_file.OpenBaseFile, "batches", counted_rows)
    table = made(tmp_path, "SIMPLE")
    for part in range(4):
        table.bulk_insert(records(range(part * 10_000, part * 10_000 + 10_000), part, seed=part))
    table, storage = counted(table)
    asking: list[tuple[Callable[[Rows], int], int]] = [
        (lambda rows: rows.head(20).num_rows, 4096),
        (lambda rows: rows.limit(20).to_arrow(["id"]).num_rows, 4096),
        (lambda rows: sum(batch.num_rows for batch in rows.limit(20).to_batches()), 4096),
        (lambda rows: rows.limit(20).count(), 0),
        (lambda rows: rows.limit(20).count(f"ms >= {EPOCH_MS}"), 10_000),
    ]
    for ask, most_decoded in asking:
        decoded.clear()
        storage.forget()
        assert ask(table.snapshot()) == 20
        assert sum(decoded) <= most_decoded
        assert len(data_files(storage)) == 1
    for most in (0, 10_000, 39_999, 40_000, 99_999):
        assert table.snapshot().limit(most).count() == min(most, 40_000)
    assert table.snapshot().limit(25_000).to_arrow().num_rows == 25_000


MOVES = {
    "GLOBAL_SIMPLE": "hoodie.simple.index.update.partition.path",
    "GLOBAL_BLOOM": "hoodie.bloom.index.update.partition.path",
    "RECORD_INDEX": "hoodie.record.index.update.partition.path",
}


@pytest.mark.parametrize("index", MOVES)
@pytest.mark.parametrize("partition", [1, "a"])
def test_a_row_whose_index_left_it_in_another_partition_is_found(
    tmp_path: Path, index: str, partition: int | str
) -> None:
    other = 2 if partition == 1 else "b"
    rows = [pa.table({"id": ["k"], "part": [one], "ms": [EPOCH_MS + n]}) for n, one in enumerate((partition, other))]
    options = {**OPTIONS, INDEX_TYPE: index, MOVES[index]: "false"}
    uri = str(tmp_path / "table")
    table = Table.create(
        uri, schema=rows[0].schema, record_key="id", partition="part", event_time="ms", options=options
    )
    for one in rows:
        table.upsert(one)
    ((path, there),) = (
        row.values() for row in table.snapshot().to_arrow(["_hoodie_partition_path", "part"]).to_pylist()
    )
    assert (path, there) == (f"part={partition}", other)
    increment = table.incremental("earliest")
    table.compact(before=EPOCH_MS + 2 * HOUR_MS)
    window = next(iter(table.windows("1h", consumer="reports"))).rows()
    for query in (increment, table.snapshot(), table.read_optimized(), window):
        assert query.count(f"part = '{other}'" if other == "b" else f"part = {other}") == 1
        assert query.count(pc.field("part") == partition) == 0
    if index == "RECORD_INDEX":  # which leaves keys unless an option says otherwise
        assert Table.open(uri).snapshot().count(pc.field("part") == other) == 1
    assert table.update({"ms": EPOCH_MS + 5}, where=pc.field("part") == other).rows_updated == 1
    table.delete(where=pc.field("part") == other)
    assert table.snapshot().count() == 0


@pytest.mark.parametrize("index", MOVES)
def test_a_partition_is_skipped_where_keys_move(tmp_path: Path, index: str) -> None:
    rows = pa.table({"id": ["k", "l"], "part": ["a", "b"], "ms": [EPOCH_MS, EPOCH_MS]})
    options = {**OPTIONS, INDEX_TYPE: index, MOVES[index]: "true"}
    table = Table.create(
        str(tmp_path / "table"),
        schema=rows.schema,
        record_key="id",
        partition="part",
        event_time="ms",
        options=options,
    )
    table.upsert(rows)
    assert len(table.snapshot().reading(None, "part = 'a'").slices) == 1
