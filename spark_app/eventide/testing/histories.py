"""Small tables with a history: commits that are difficult for a compaction, written to a table and to the oracle alike.

Event times are milliseconds after `EPOCH_MS`; so is the T of a history.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import pyarrow as pa

from eventide.bootstrap import Application, assemble
from eventide.engine_local import LocalEngine
from eventide.rows.writer import arrow_records, create
from eventide.testing.inspection.metadata_listing import begin_metadata_table
from eventide.testing.oracle import UNREADABLE, Change, Oracle, Order
from eventide_adapters.format.encoding.avro.from_arrow import avro_schema_of
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowField
from eventide_adapters.storage.memory import MemoryFile, MemoryStorage
from eventide_core.action.write.pending_write import PendingWrite
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
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.settings.new_table import NewTable
from eventide_core.table.settings.properties import PROPERTIES_PATH
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.plans import CutMode

EPOCH_MS = 1_700_000_000_000
_COLUMNS: list[ArrowField] = [
    pa.field("key", pa.string()),
    pa.field("part", pa.string()),
    pa.field("ms", pa.int64()),
    pa.field("word", pa.string()),
]
SCHEMA = pa.schema(_COLUMNS)
_WITH_TEXT_TIMES = SCHEMA.set(2, pa.field("ms", pa.string()))
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
    """A clock that advances only in `sleep`, so that equal runs produce equal names."""

    time_ms: int = _START_MS

    def now_ms(self) -> int:
        return self.time_ms

    def sleep(self, milliseconds: int) -> None:
        self.time_ms += milliseconds

    def local_offset_ms(self, _epoch_ms: int, /) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class History:
    """Commits, and the T and the cut of the compaction that follows them. The first commit makes base files."""

    name: str
    commits: tuple[Commit, ...]
    cut_ms: int
    cut: CutMode = CutMode.FILE

    @property
    def cut_epoch_ms(self) -> int:
        return EPOCH_MS + self.cut_ms


@dataclass(frozen=True, slots=True)
class Layout:
    """The kind of table that receives the history."""

    version: int
    order: Order
    has_block_event_times: bool = False
    has_metadata_table: bool = False
    buckets: int = 1
    index: str = "BUCKET"
    has_text_times: bool = False

    def __post_init__(self) -> None:
        assert self.order in self.reader_orders

    @property
    def reader_orders(self) -> tuple[Order, ...]:
        """The orders by which engines read this table, the table's order first: Hudi 0.x has others for its own tables."""
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
        """False for version 6 in commit order: it orders by commits alone only if it has no ordering field.

        Texts order otherwise than times, so a table whose event times are texts has none, either.
        """
        return not self.has_text_times and (self.version >= 8 or self.order is not Order.COMMIT_TIME)

    @property
    def schema(self) -> pa.Schema:
        return _WITH_TEXT_TIMES if self.has_text_times else SCHEMA

    def kept(self, changes: Commit) -> Commit:
        """The changes as such a table keeps them. Without an ordering field, a delete has no event time."""
        if self.has_ordering_field:
            return changes
        return tuple(replace(change, ms=None) if change.word is None else change for change in changes)

    @property
    def table(self) -> NewTable:
        by_commit = self.order is not Order.EVENT_TIME
        return NewTable(
            name="story",
            schema=avro_schema_of("story", self.schema),
            version=max(self.version, 9) if self.version > 6 else 6,
            merge_rule=MergeRule.COMMIT_TIME_ORDERING if by_commit else MergeRule.EVENT_TIME_ORDERING,
            record_key_fields=("key",),
            partition_fields=("part",),
            ordering_field="ms" if self.has_ordering_field else None,
            writer_options={
                str(INDEX_TYPE): self.index,
                **({str(BUCKETS): str(self.buckets)} if self.index == "BUCKET" else {}),
            },
        )

    def create(self, storage: Storage) -> None:
        """Makes the table. Eventide makes no tables of version 8, so this changes the settings of a version 9 table."""
        create(storage, self.table)
        if self.version == 8:
            (strategy, payload) = _VERSION_8[self.order]
            text = storage.read(PROPERTIES_PATH).decode().replace("version=9\n", "version=8\n")
            text += f"hoodie.record.merge.strategy.id={strategy}\nhoodie.compaction.payload.class={payload}\n"
            storage.put(PROPERTIES_PATH, text.encode())

    @property
    def write_options(self) -> dict[str, str]:
        """Options for small files.

        By default, no event times are recorded, as with Hudi on version 6. With `has_block_event_times`, they are in the
        headers of the blocks, and for tables that merge by event time in the write stats, too.
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
    """ports.TableLock of a writer that shares no lock, like Hudi writers in single-writer mode."""

    def acquire(self) -> "NoLock":
        return self

    def check(self) -> None:
        """Always succeeds: the lock can't be lost."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: no lock is held."""


@dataclass(slots=True)
class Story:
    """A table under construction, and an oracle that receives the same commits. The writer takes no lock."""

    layout: Layout
    storage: Storage
    clock: ManualClock
    oracle: Oracle
    _file_groups: int = 0

    @classmethod
    def begin(cls, layout: Layout, storage: Storage, clock: ManualClock) -> "Story":
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
        # Heartbeats run in real time: a beat a minute later would land in the table that is under test by then.
        writer.heartbeats.stop(pending.instant)
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
    """A table as files in memory, its oracle, and the time of both."""

    layout: Layout
    files: Mapping[str, MemoryFile]
    oracle: Oracle = field(compare=False)
    time_ms: int


def write_history(layout: Layout, history: History, name: str) -> WrittenTable:
    """Writes a history into a new table in memory. The memory storage has the given name during the call."""
    clock = ManualClock()
    storage = MemoryStorage.from_dump(name, {}, now_ms=clock.now_ms)
    story = Story.begin(layout, storage, clock)
    for changes in history.commits:
        story.commit(changes)
    return WrittenTable(layout, storage.dump(), story.oracle, clock.time_ms)


def put(key: str, ms: int | None, word: str, *, partition: str = "a") -> Change:
    """An upsert, with key and partition as the table shows them.

    The event time can be None only if the table orders by commit time.
    """
    return Change(f"part={partition}", key, ms, word)


def delete(key: str, ms: int | None = None, *, partition: str = "a") -> Change:
    """A delete. Without an event time, it is a delete in natural order."""
    return Change(f"part={partition}", key, ms, None)


def records(changes: Commit, schema: pa.Schema = SCHEMA) -> tuple[pa.Table | None, pa.Table | None]:
    """Upserts and deletes in the form that the writer accepts."""
    has_text_times = pa.types.is_string(schema.field("ms").type)
    upserts = [
        {
            "key": c.key,
            "part": _directory_value(c),
            "ms": _time_text(c) if has_text_times else _epoch(c.ms),
            "word": c.word,
        }
        for c in changes
        if c.word is not None
    ]
    deletes = [{"key": c.key, "part": _directory_value(c), "ms": _epoch(c.ms)} for c in changes if c.word is None]
    return (
        pa.Table.from_pylist(upserts, schema=schema) if upserts else None,
        pa.Table.from_pylist(deletes, schema=schema.remove(3)) if deletes else None,
    )


def _time_text(change: Change) -> str | None:
    return UNREADABLE if change.is_unreadable else None if change.ms is None else str(_epoch(change.ms))


def _directory_value(change: Change) -> str:
    return change.partition.partition("=")[2]


def _epoch(ms: int | None) -> int | None:
    return None if ms is None else EPOCH_MS + ms


def at_epoch(change: Change) -> Change:
    return replace(change, ms=_epoch(change.ms))
