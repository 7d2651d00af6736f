"""Small tables with a past: commits that make trouble for a compaction, and the table and the oracle that both tell them.

Event times are milliseconds after `EPOCH_MS`; so are the T of a history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa

from eventide.bootstrap import Application, assemble
from eventide.engine_local import LocalEngine
from eventide.testing.metadata_listing import begin_metadata_table
from eventide.testing.oracle import Change, Oracle, Order
from eventide.writer import arrow_records, create
from eventide_adapters.format.avro.from_arrow import avro_schema_of
from eventide_adapters.storage.memory import MemoryFile, MemoryStorage
from eventide_core.action.pending_write import PendingWrite
from eventide_core.config import (
    BLOOM_ENTRIES,
    BLOOM_FALSE_POSITIVES,
    BUCKETS,
    INDEX_TYPE,
    LOG_EVENT_TIMES,
    PARQUET_CODEC,
    TRACK_EVENT_TIMES,
)
from eventide_core.ports import NoProgress, Storage
from eventide_core.table.new_table import NewTable
from eventide_core.table.plans import CutMode
from eventide_core.table.properties import PROPERTIES_PATH
from eventide_core.table.record_order import MergeRule
from eventide_core.table.write_shape import WriteOperation

EPOCH_MS = 1_700_000_000_000
_COLUMNS: list[pa.Field[Any]] = [
    pa.field("key", pa.string()),
    pa.field("part", pa.string()),
    pa.field("ms", pa.int64()),
    pa.field("word", pa.string()),
]
SCHEMA = pa.schema(_COLUMNS)
_START_MS = 1_790_000_000_000
_BETWEEN_COMMITS_MS = 10  # room for a back-dated instant

_VERSION_8 = {
    Order.COMMIT_TIME: (
        "ce9acb64-bde0-424c-9b91-f6ebba25356d",
        "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    ),
    Order.EVENT_TIME: (
        "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    ),
}
"""The merge strategies and payloads that Hudi 1.0 names in the settings of a table."""

Commit = tuple[Change, ...]


@dataclass(slots=True)
class ManualClock:
    """A clock that stands still unless one sleeps, so that runs which do the same leave the same names."""

    time_ms: int = _START_MS

    def now_ms(self) -> int:
        return self.time_ms

    def sleep(self, milliseconds: int) -> None:
        self.time_ms += milliseconds

    def local_offset_ms(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class History:
    """Commits, the first of which makes base files, and the T and cut of the compaction that follows them."""

    name: str
    commits: tuple[Commit, ...]
    cut_ms: int
    cut: CutMode = CutMode.FILE

    @property
    def cut_epoch_ms(self) -> int:
        return EPOCH_MS + self.cut_ms


@dataclass(frozen=True, slots=True)
class Layout:
    """What kind of table the history is written into."""

    version: int
    order: Order
    has_block_event_times: bool = False
    has_metadata_table: bool = False
    buckets: int = 1

    def __post_init__(self) -> None:
        assert self.order in self.reader_orders

    @property
    def reader_orders(self) -> tuple[Order, ...]:
        """The orders by which engines read this table, its own first: Hudi 0.x has others for what it wrote."""
        if self.version >= 8:
            return (self.order,)
        by_own = {
            Order.HUDI_0X_OVERWRITE: (Order.HUDI_0X_OVERWRITE, Order.COMMIT_TIME),
            Order.EVENT_TIME: (Order.EVENT_TIME, Order.HUDI_0X_DEFAULT),
            Order.COMMIT_TIME: (Order.COMMIT_TIME,),
        }
        return by_own[self.order]

    @property
    def has_ordering_field(self) -> bool:
        """Version 6 goes by commits alone only where it knows no field to go by."""
        return self.version >= 8 or self.order is not Order.COMMIT_TIME

    def kept(self, changes: Commit) -> Commit:
        """The changes as such a table keeps them: a delete says its time by the ordering field, or not at all."""
        if self.has_ordering_field:
            return changes
        return tuple(replace(change, ms=None) if change.word is None else change for change in changes)

    @property
    def table(self) -> NewTable:
        by_commit = self.order is not Order.EVENT_TIME
        return NewTable(
            name="story",
            schema=avro_schema_of("story", SCHEMA),
            version=max(self.version, 9) if self.version > 6 else 6,
            merge_rule=MergeRule.COMMIT_TIME_ORDERING if by_commit else MergeRule.EVENT_TIME_ORDERING,
            record_key_fields=("key",),
            partition_fields=("part",),
            ordering_field="ms" if self.has_ordering_field else None,
            writer_options={INDEX_TYPE: "BUCKET", BUCKETS: str(self.buckets)},
        )

    def create(self, storage: Storage) -> None:
        """Makes the table. Version 8, of which eventide makes none, differs from 9 in what its settings say."""
        create(storage, self.table)
        if self.version == 8:
            (strategy, payload) = _VERSION_8[self.order]
            text = storage.read(PROPERTIES_PATH).decode().replace("version=9\n", "version=8\n")
            text += f"hoodie.record.merge.strategy.id={strategy}\nhoodie.compaction.payload.class={payload}\n"
            storage.put(PROPERTIES_PATH, text.encode())

    @property
    def write_options(self) -> dict[str, str]:
        """Small files. Event times stand nowhere, as by Hudi on version 6, or in the headers of the blocks; of tables
        that merge by them in write stats, too.
        """
        return {
            LOG_EVENT_TIMES: str(self.has_block_event_times),
            TRACK_EVENT_TIMES: str(self.has_block_event_times and self.order is Order.EVENT_TIME),
            BLOOM_ENTRIES: "10",
            BLOOM_FALSE_POSITIVES: "0.01",
            PARQUET_CODEC: "uncompressed",
        }


def layouts(*, has_block_event_times: bool = False, buckets: int = 1) -> tuple[Layout, ...]:
    """Each table version in each of its merge orders."""
    return tuple(
        Layout(version, order, has_block_event_times, buckets=buckets)
        for version, order in (
            (6, Order.HUDI_0X_OVERWRITE),
            (6, Order.EVENT_TIME),
            (9, Order.COMMIT_TIME),
            (9, Order.EVENT_TIME),
        )
    )


class NoLock:
    """ports.TableLock of a writer who shares none, as Hudi's do that are set to be alone."""

    def acquire(self) -> NoLock:
        return self

    def check(self) -> None:
        """There is nothing to lose."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to give up."""


@dataclass(slots=True)
class Story:
    """A table that is being written, and the oracle that gets the same. Its writer takes no lock."""

    layout: Layout
    storage: Storage
    clock: ManualClock
    oracle: Oracle
    _file_groups: int = 0

    @classmethod
    def begin(cls, layout: Layout, storage: Storage, clock: ManualClock) -> Story:
        story = cls(layout, storage, clock, Oracle(layout.order, layout.buckets))
        layout.create(storage)
        if layout.has_metadata_table:
            begin_metadata_table(storage, layout.version)
        return story

    @property
    def writer(self) -> Application:
        return assemble(
            self.storage.root,
            self.layout.write_options,
            engine=LocalEngine(1),
            storage=self.storage,
            lock=NoLock(),
            clock=self.clock,
            new_uuid=self._next_uuid,
        )

    def commit(self, changes: Commit) -> str:
        return self.complete(self.begin_commit(changes), changes)

    def begin_commit(self, changes: Commit) -> PendingWrite:
        self.clock.sleep(_BETWEEN_COMMITS_MS)
        writer = self.writer
        incoming = arrow_records(writer, *records(changes))
        pending = writer.append.begin(WriteOperation.UPSERT, incoming, NoProgress())
        # Real time has no place here: a beat a minute later would land in whatever table is under test by then.
        writer.append.heartbeats.stop(pending.instant)
        return pending

    def complete(self, pending: PendingWrite, changes: Commit) -> str:
        instant = self.writer.append.complete(pending).instant
        self.oracle.commit(instant, [at_epoch(change) for change in changes])
        return instant

    def _next_uuid(self) -> str:
        self._file_groups += 1
        return f"00000000-0000-4000-8000-{self._file_groups:012d}"


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table as files in memory, what the oracle says of it, and when that was."""

    layout: Layout
    files: Mapping[str, MemoryFile]
    oracle: Oracle = field(compare=False)
    time_ms: int


def write_history(layout: Layout, history: History, name: str) -> WrittenTable:
    """The table that a history leaves, in memory under that name for the time of the call."""
    clock = ManualClock()
    storage = MemoryStorage.from_dump(name, {}, now_ms=clock.now_ms)
    story = Story.begin(layout, storage, clock)
    for changes in history.commits:
        story.commit(changes)
    return WrittenTable(layout, storage.dump(), story.oracle, clock.time_ms)


def put(key: str, ms: int | None, word: str, *, partition: str = "a") -> Change:
    """An upsert; its key and partition as the table shows them. Without an event time only where commits are the order."""
    return Change(f"part={partition}", key, ms, word)


def delete(key: str, ms: int | None = None, *, partition: str = "a") -> Change:
    """A delete; without an event time one in natural order."""
    return Change(f"part={partition}", key, ms, None)


def records(changes: Commit) -> tuple[pa.Table | None, pa.Table | None]:
    """Upserts and deletes as the writer takes them."""
    upserts = [
        {"key": c.key, "part": _directory_value(c), "ms": _epoch(c.ms), "word": c.word}
        for c in changes
        if c.word is not None
    ]
    deletes = [{"key": c.key, "part": _directory_value(c), "ms": _epoch(c.ms)} for c in changes if c.word is None]
    return (
        pa.Table.from_pylist(upserts, schema=SCHEMA) if upserts else None,
        pa.Table.from_pylist(deletes, schema=SCHEMA.remove(3)) if deletes else None,
    )


def _directory_value(change: Change) -> str:
    return change.partition.partition("=")[2]


def _epoch(ms: int | None) -> int | None:
    return None if ms is None else EPOCH_MS + ms


def at_epoch(change: Change) -> Change:
    return replace(change, ms=_epoch(change.ms))
