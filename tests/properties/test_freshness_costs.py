"""The reads of freshness: no log file if write stats suffice, only headers if these suffice, and each log file once."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import Application, assemble
from eventide_adapters.format.slice.log_file.blocks import PlacedBlock
from eventide_adapters.format.slice.log_file.records import BlockReader, LogPart
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_adapters.storage.open import open_storage
from eventide_core.config import (
    BUCKETS,
    CLOCK_SKEW_MS,
    EVENT_TIME_FIELD,
    LOG_EVENT_TIMES,
    TRACK_EVENT_TIMES,
    LinkChoice,
    Options,
)
from eventide_core.service.common.facts.log_facts import LogFactsReader

T = 1_700_002_204_000
STATS: dict[str, str] = {TRACK_EVENT_TIMES: "true", LOG_EVENT_TIMES: "false", EVENT_TIME_FIELD: "ms"}
HEADERS: dict[str, str] = {TRACK_EVENT_TIMES: "false", LOG_EVENT_TIMES: "true"}
NEITHER: dict[str, str] = {TRACK_EVENT_TIMES: "false", LOG_EVENT_TIMES: "false"}


class Told:
    """A table in memory, and a process whose reads are counted."""

    def __init__(self, name: str, options: dict[str, str]) -> None:
        self.uri, self.options = f"memory://{name}", {BUCKETS: "1", CLOCK_SKEW_MS: "1", **options}
        columns: list[pa.Field[Any]] = [pa.field("id", pa.string()), pa.field("part", pa.string())]
        self.schema = pa.schema([*columns, pa.field("ms", pa.int64(), nullable=False)])
        self.table = Table.create(
            self.uri, schema=self.schema, record_key="id", partition="part", event_time="ms", options=self.options
        )
        for ms in (0, 1, 5, 110, 120):
            self.write(ms)

    def write(self, *times: int) -> None:
        found = {"id": list("abcdefgh"[: len(times)]), "part": ["p"] * len(times), "ms": [T + ms for ms in times]}
        self.table.upsert(pa.table(found, schema=self.schema))

    def process(self) -> tuple[Application, FaultyStorage]:
        storage = FaultyStorage(open_storage(self.uri, Options(self.options)))
        return assemble(self.uri, self.options, storage=storage), storage

    def logs(self) -> set[str]:
        return {log.path for found in self.table.state().view.latest_slices() for log in found.log_files}


def opened(storage: FaultyStorage) -> Counter[str]:
    """How often each log was."""
    return Counter(found.path for found in storage.reads if ".log." in found.path)


def decoded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The blocks whose content is read from now on."""
    found: list[object] = []
    read, read_each = BlockReader.read, BlockReader.read_each

    def counting(self: BlockReader, placed: PlacedBlock) -> Iterator[LogPart]:
        found.append(placed.place)
        return read(self, placed)

    def counting_each(self: BlockReader, blocks: Iterable[PlacedBlock]) -> Iterator[tuple[PlacedBlock, LogPart]]:
        for placed, part in read_each(self, blocks):
            found.append(placed.place)
            yield placed, part

    monkeypatch.setattr(BlockReader, "read", counting)
    monkeypatch.setattr(BlockReader, "read_each", counting_each)
    return found


def test_no_log_is_opened_where_write_stats_tell_be_it_a_left_over_of_left_overs() -> None:
    told = Told("costs by stats", STATS)
    told.table.compact(told.table.plan_compaction(T + 100, link_mode=LinkChoice.COPY))
    told.write(130)
    told.table.compact(told.table.plan_compaction(T + 105, link_mode=LinkChoice.COPY))
    application, storage = told.process()
    fresh = application.freshness.now(application.state())
    assert (fresh.watermark_ms, fresh.late_records) == (T + 105, 0)
    assert application.freshness.by_partition(application.state())["part=p"] == fresh
    assert fresh.earliest_log_event_time_ms == T + 110
    assert opened(storage) == {}
    assert len(told.logs()) == 3


def test_only_the_log_with_late_records_is_opened_to_count_them() -> None:
    told = Told("costs of late records", STATS)
    told.table.compact(told.table.plan_compaction(T + 100, link_mode=LinkChoice.COPY))
    before = told.logs()
    told.write(50, 60, 140)
    (late,) = told.logs() - before
    application, storage = told.process()
    fresh = application.freshness.now(application.state())
    assert (fresh.watermark_ms, fresh.late_records) == (T + 50, 2)
    assert set(opened(storage)) == {late}


def test_where_headers_tell_each_log_is_opened_once_and_no_block_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told("costs by headers", HEADERS)
    told.table.compact(told.table.plan_compaction(T + 100, link_mode=LinkChoice.COPY))
    left_over = told.logs()
    told.write(130)
    application, storage = told.process()
    blocks = decoded(monkeypatch)
    assert application.freshness.now(application.state()).watermark_ms == T + 100
    assert opened(storage) == dict.fromkeys(told.logs() - left_over, 1)
    assert blocks == []
    application.freshness.by_partition(application.state())
    assert opened(storage) == dict.fromkeys(told.logs() - left_over, 1)


def test_log_files_without_statistics_are_read_once_per_process_until_left_over() -> None:
    told = Told("costs of neither", NEITHER)
    told.write(130)
    application, storage = told.process()
    assert application.freshness.now(application.state()).watermark_ms is None
    once = opened(storage)
    assert set(once) == told.logs()
    told.write(140)
    application.freshness.now(application.state())
    (written,) = told.logs() - set(once)
    assert {path for path, count in opened(storage).items() if count > once[path]} == {written}
    for before in (100, 115):
        told.table.compact(told.table.plan_compaction(T + before, link_mode=LinkChoice.COPY))
    application, storage = told.process()
    assert application.freshness.now(application.state()).watermark_ms == T + 115
    assert len(told.logs()) == 3
    assert opened(storage) == {}


def test_partitions_are_distinguished_after_one_request_for_all_log_files(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told("costs by partition", STATS)
    found = {"id": ["a", "b"], "part": ["q", "r"], "ms": [T + 7, T + 200]}
    told.table.upsert(pa.table(found, schema=told.schema))
    told.table.compact(told.table.plan_compaction(T + 100, link_mode=LinkChoice.COPY))
    late = {"id": ["c", "d", "c"], "part": ["q", "r", "r"], "ms": [T + 50, T + 60, T + 70]}
    told.table.upsert(pa.table(late, schema=told.schema))
    application, _ = told.process()
    questions: list[int] = []
    read = LogFactsReader.read

    def counting(self: LogFactsReader, state: Any, shape: Any, logs: Any, *, are_stats_proof: bool) -> Any:
        questions.append(len(wanted := tuple(logs)))
        return read(self, state, shape, wanted, are_stats_proof=are_stats_proof)

    monkeypatch.setattr(LogFactsReader, "read", counting)
    fresh = application.freshness.by_partition(application.state())
    assert questions == [len(told.logs())]
    told_of = {partition: (one.watermark_ms, one.late_records) for partition, one in fresh.items()}
    assert told_of == {"part=p": (T + 100, 0), "part=q": (T + 50, 1), "part=r": (T + 60, 2)}
