"""Log blocks that hold one span of event time each: what is in them, and what an exact cut then reads of them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_adapters.format.encoding.avro.event_time_properties import event_times_in_header
from eventide_adapters.format.slice.log_file import cursor
from eventide_adapters.format.slice.log_file.blocks import PlacedBlock, read_headers
from eventide_adapters.format.slice.log_file.records import BlockReader, LogPart
from eventide_core.errors import ConfigError
from eventide_core.table.files.log_block import BlockType

HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000 // HOUR_MS * HOUR_MS
BUCKETS = "hoodie.log.block.event.time.bucket"


def rows(count: int, first_ms: int, step_ms: int, word: str) -> pa.Table:
    ids = [f"k{number:05d}" for number in range(count)]
    # Not in the order of time, so that nothing but the writer lays them out by it.
    times = [first_ms + step_ms * (number * 7919 % count) for number in range(count)]
    return pa.table({"id": ids, "at": times, "word": [word] * count})


@pytest.fixture(params=[6, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    made = Table.create(
        str(tmp_path / "clustered"),
        options={
            BUCKETS: "1h",
            "hoodie.write.table.version": str(request.param),
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": "1",
        },
        schema=rows(1, 0, 1, "").schema,
        record_key="id",
        event_time="at",
    )
    made.insert(rows(400, START_MS - HOUR_MS, 1, "base"))
    return made


def blocks(table: Table) -> list[tuple[int, int]]:
    """The spans of the data blocks in the table's logs, in hours after the start."""
    state, storage = table.state(), table._application.storage
    ranges: list[tuple[int, int]] = []
    for log in (log for part in state.view.latest_slices() for log in part.log_files):
        for block in (placed.block for placed in read_headers(storage, log.path, log.size)):
            if block.block_type is not BlockType.DELETE:
                told = event_times_in_header(block, "at")
                assert told is not None
                assert told.min_ms is not None
                assert told.max_ms is not None
                ranges.append(((told.min_ms - START_MS) // HOUR_MS, (told.max_ms - START_MS) // HOUR_MS))
    return ranges


def test_each_hour_has_a_block_and_rare_late_records_share_one(table: Table) -> None:
    on_time = rows(400, START_MS, 3 * HOUR_MS // 400, "on time")
    late = rows(4, START_MS - 9 * HOUR_MS, 2 * HOUR_MS, "late").set_column(
        0, "id", pa.array([f"late{n}" for n in range(4)])
    )
    table.upsert(pa.concat_tables([on_time, late]))
    assert blocks(table) == [(-9, -3), (0, 0), (1, 1), (2, 2)]
    seen = table.snapshot().to_arrow()
    assert Counter(seen.column("id").to_pylist()) == Counter([*on_time["id"].to_pylist(), *late["id"].to_pylist()])
    assert set(seen.column("word").to_pylist()) == {"on time", "late"}


def test_an_exact_cut_decodes_no_block_at_or_after_t(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.upsert(rows(400, START_MS, 4 * HOUR_MS // 400, "on time"))
    decoded: list[int] = []

    class Counting(BlockReader):
        def read_each(self, blocks: Iterable[PlacedBlock]) -> Iterator[tuple[PlacedBlock, LogPart]]:
            for placed, part in super().read_each(blocks):
                decoded.append(placed.block.offset)
                yield placed, part

    monkeypatch.setattr(cursor, "BlockReader", Counting)
    result = table.compact(table.plan_compaction(START_MS + 2 * HOUR_MS, cut="exact", link_mode="copy"))
    assert result.freshness.watermark_ms == START_MS + 2 * HOUR_MS
    assert len(decoded) == 2
    optimized = table.read_optimized().to_arrow()
    assert set(optimized.column("word").to_pylist()) == {"base", "on time"}
    assert not [row for row in optimized.to_pylist() if row["at"] >= START_MS + 2 * HOUR_MS]


def test_a_duration_that_is_none_is_refused_before_anything_is_written(table: Table) -> None:
    before = table.state().timeline.instants
    opened = Table.open(table.uri, {BUCKETS: "an hour"})
    with pytest.raises(ConfigError, match=r"hoodie\.log\.block\.event\.time\.bucket='an hour' is not a duration"):
        opened.upsert(rows(2, START_MS, 1, "x"))
    assert table.state().timeline.instants == before
