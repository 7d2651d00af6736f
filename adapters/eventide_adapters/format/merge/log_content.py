"""Answers the planner's questions about log files: their event times, and the histories of keys. Returns no records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.avro.event_time_properties import event_times_in_header
from eventide_adapters.format.avro.field_path import top_level
from eventide_adapters.format.avro.schema import RECORD_KEY, table_fields
from eventide_adapters.format.base_file.virtual_key import read_keyed_base
from eventide_adapters.format.log_file.blocks import (
    counting_blocks,
    instant_of_torn_block,
    read_headers,
    refuse_unknown,
    rollback_target,
)
from eventide_adapters.format.log_file.event_times import event_times_of, is_before
from eventide_adapters.format.log_file.ordering_values import orderings_of
from eventide_adapters.format.log_file.records import BlockReader, DeleteBlock
from eventide_adapters.format.merge.base_merge import merge_columns
from eventide_adapters.format.merge.key_versions import VersionColumns, common_keys, histories, versions_of_block
from eventide_core.errors import UnsupportedTableError
from eventide_core.ports import LogSummary, Storage, TimedKey
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_slice import LogFile
from eventide_core.table.key_history import KeyHistory
from eventide_core.table.log_block import BlockType
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import BlockFilter


@dataclass(frozen=True, slots=True)
class ArrowLogContent:
    """ports.LogContent, in columns. A torn block that may count raises an error: a plan needs the whole log file."""

    storage: Storage

    def summarize(self, log: LogFile, shape: RecordShape) -> LogSummary:
        """The summary of one log file. Counts all its blocks, whatever the state of their instants.

        Reads the headers. Of a data block whose schema states its event times, reads nothing else.
        """
        tally, reader = _Tally(), _event_time_reader(self.storage, shape)
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
            known = event_times_in_header(block, shape.event_time_field)
            if known is not None:
                tally.add_range(known)
                continue
            for part in reader.read(placed):
                tally.add(event_times_of(part, shape), is_delete=isinstance(part, DeleteBlock))
        return LogSummary(
            log.path,
            tally.event_times,
            frozenset(instants),
            tally.deletes,
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
        reader = _event_time_reader(self.storage, shape)
        count = 0
        for placed in counting_blocks(self.storage, [(log.path, log.size)], blocks, is_strict=True):
            for part in reader.read(placed):
                count += pc.less(event_times_of(part, shape), pa.scalar(threshold_ms)).true_count
        return count

    def latest_keys(
        self, log: LogFile, shape: RecordShape, since_ms: int, limit: int, blocks: BlockFilter
    ) -> tuple[TimedKey, ...]:
        columns = top_level([*merge_columns(shape), *_event_time_columns(self.storage, shape)])
        reader, latest = BlockReader(self.storage, shape, columns), dict[str, int]()
        for placed in counting_blocks(self.storage, [(log.path, log.size)], blocks, is_strict=False):
            known = event_times_in_header(placed.block, shape.event_time_field)
            if known is not None and (known.max_ms is None or known.max_ms < since_ms):
                continue
            for part in reader.read(placed):
                times = event_times_of(part, shape)
                chosen = pc.greater_equal(times, pa.scalar(since_ms))
                keys = part.keys if isinstance(part, DeleteBlock) else part.records.column(RECORD_KEY)
                table = pa.table({"key": keys.filter(chosen), "ms": times.filter(chosen)})
                table = table.group_by("key").aggregate([("ms", "max")]).sort_by([("ms_max", "descending")])
                for row in table.slice(0, limit).to_pylist():
                    latest[row["key"]] = max(row["ms_max"], latest.get(row["key"], row["ms_max"]))
        worst = sorted(latest.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        return tuple(TimedKey(key, time) for key, time in worst)

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
        """The histories of the keys on both sides, in the order of their first appearance on the merged side.

        A rollback block rolls back blocks of either side. Positions count a key's versions: base, merged, remaining.
        """
        logs = sorted((*merged, *left_overs), key=lambda log: log.name.reader_order)
        merged_paths = {log.path for log in merged}
        columns = merge_columns(shape)
        if early_before_ms is not None and shape.event_time_field is not None:
            columns = top_level([*columns, shape.event_time_field])
        reader = BlockReader(self.storage, shape, columns)
        sides: dict[bool, list[VersionColumns]] = {True: [], False: []}
        for placed in counting_blocks(self.storage, [(log.path, log.size) for log in logs], blocks, is_strict=True):
            is_merged = placed.path in merged_paths
            for part in reader.read(placed):
                versions = versions_of_block(
                    part, RECORD_KEY, shape.ordering_fields, is_partial=shape.partial_update is not None
                )
                if early_before_ms is not None and not is_merged and placed.path not in above:
                    versions = versions.marked_early(is_before(event_times_of(part, shape), early_before_ms))
                sides[is_merged].append(versions)
        left, right = (VersionColumns.concat(sides[is_merged], reader.ordering_type) for is_merged in (True, False))
        keys = common_keys(left, right, only_deleted=only_deleted)
        if not len(keys):
            return ()
        base = VersionColumns.concat(list(self._base_versions(base_path, shape, keys)), reader.ordering_type)
        return histories(keys, base, left.of(keys), right.of(keys))

    def _base_versions(self, path: str | None, shape: RecordShape, keys: Any) -> Iterator[VersionColumns]:
        if path is None:
            return
        for batch in read_keyed_base(self.storage, path, table_fields(shape.schema, merge_columns(shape)), shape):
            orderings = orderings_of(batch, shape.ordering_fields)
            yield VersionColumns.of_keys(batch.column(RECORD_KEY), orderings, is_delete=False).of(keys)


def _event_time_reader(storage: Storage, shape: RecordShape) -> BlockReader:
    return BlockReader(storage, shape, _event_time_columns(storage, shape))


def _event_time_columns(storage: Storage, shape: RecordShape) -> list[str]:
    if shape.event_time_field is None:
        raise UnsupportedTableError(
            f"{storage.root}: no event-time field is known; set hoodie.payload.event.time.field to the column that has it"
        )
    return [*top_level([shape.event_time_field])]


class _Tally:
    """Collects the event times of a log file."""

    def __init__(self) -> None:
        self.event_times = EventTimeRange(None, None)
        self.deletes = 0

    def add(self, times: pa.Int64Array, *, is_delete: bool) -> None:
        least, greatest = pc.min(times).as_py(), pc.max(times).as_py()
        self.add_range(EventTimeRange(least, greatest, times.null_count))
        self.deletes += len(times) if is_delete else 0

    def add_range(self, other: EventTimeRange) -> None:
        self.event_times = self.event_times.union(other)
