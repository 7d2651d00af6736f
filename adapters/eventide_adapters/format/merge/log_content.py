"""Answers the planner's questions about log files: their event times, and the histories of keys. Returns no records."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventide_adapters.format.avro.event_time_properties import event_times_in_header
from eventide_adapters.format.log_file.blocks import (
    counting_blocks,
    instant_of_torn_block,
    read_headers,
    refuse_unknown,
    rollback_target,
)
from eventide_core.errors import UnsupportedTableError
from eventide_core.ports import LogSummary, Storage, TimedKey
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_slice import LogFile
from eventide_core.table.key_history import KeyHistory
from eventide_core.table.log_block import BlockType
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import BlockFilter

if TYPE_CHECKING:
    from eventide_adapters.format.log_file.records import BlockReader


@dataclass(frozen=True, slots=True)
class ArrowLogContent:
    """ports.LogContent, in columns. A torn block that may count raises an error: a plan needs the whole log file."""

    storage: Storage

    def summarize(self, log: LogFile, shape: RecordShape) -> LogSummary:
        """The summary of one log file. Counts all its blocks, whatever the state of their instants.

        Reads the headers. Of a data block whose schema states its event times, reads nothing else.
        """
        field = event_time_field(self.storage, shape)
        event_times, deletes = EventTimeRange(None, None), 0
        reader: BlockReader | None = None
        instants: set[str] = set()
        rolled_back: set[str] = set()
        has_torn_block = has_merged = has_partial = False
        for placed in read_headers(self.storage, log.path, log.size, is_strict=False):
            block = placed.block
            if block.block_type is BlockType.COMMAND:
                rolled_back.add(rollback_target(placed))
                continue
            if block.block_type is BlockType.CORRUPT:
                has_torn_block = True
                instants.add(instant_of_torn_block(placed))
                continue
            refuse_unknown(placed)
            instants.add(placed.instant)
            has_merged = has_merged or bool(placed.merged_instants)
            has_partial = has_partial or placed.is_partial
            known = event_times_in_header(block, field)
            if known is None:
                # Imported here: Arrow takes longer to import than most tables take to look at.
                from eventide_adapters.format.merge.log_event_times import event_time_reader, event_times_and_deletes

                reader = reader or event_time_reader(self.storage, shape)
                known, deleted = event_times_and_deletes(reader, placed, shape)
                deletes += deleted
            event_times = event_times.union(known)
        return LogSummary(
            log.path,
            event_times,
            frozenset(instants),
            deletes,
            frozenset(rolled_back),
            has_torn_block,
            has_merged,
            has_partial,
        )

    def check_blocks(self, logs: Sequence[LogFile], blocks: BlockFilter) -> frozenset[str]:
        counting = counting_blocks(self.storage, [(log.path, log.size) for log in logs], blocks, is_strict=True)
        return frozenset(placed.path for placed in counting if placed.is_partial)

    def count_before(self, log: LogFile, shape: RecordShape, threshold_ms: int, blocks: BlockFilter) -> int:
        """The number of its records and deletes with an event time before the threshold. Unknown ones don't count."""
        from eventide_adapters.format.merge.log_event_times import count_before

        return count_before(self.storage, log, shape, threshold_ms, blocks)

    def latest_keys(
        self, log: LogFile, shape: RecordShape, since_ms: int, limit: int, blocks: BlockFilter
    ) -> tuple[TimedKey, ...]:
        from eventide_adapters.format.merge.log_keys import latest_keys

        return latest_keys(self.storage, log, shape, since_ms, limit, blocks)

    def key_histories(
        self,
        base_path: str | None,
        merged: Sequence[LogFile],
        left_overs: Sequence[LogFile],
        shape: RecordShape,
        blocks: BlockFilter,
        *,
        only_deleted: bool,
        early_before_ms: int | None = None,
        above: Collection[str] = (),
    ) -> tuple[KeyHistory, ...]:
        from eventide_adapters.format.merge.log_keys import key_histories

        return key_histories(
            self.storage,
            base_path,
            merged,
            left_overs,
            shape,
            blocks,
            only_deleted=only_deleted,
            early_before_ms=early_before_ms,
            above=above,
        )


def event_time_field(storage: Storage, shape: RecordShape) -> str:
    """Raises UnsupportedTableError if no event-time field is known."""
    if shape.event_time_field is None:
        raise UnsupportedTableError(
            f"{storage.root}: no event-time field is known; set hoodie.payload.event.time.field to the column that has it"
        )
    return shape.event_time_field
