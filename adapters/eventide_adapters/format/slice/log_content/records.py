"""What the records of log files show: the latest keys of one, and the histories of keys in a slice. Part of log_content."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import table_fields
from eventide_adapters.format.encoding.columns.event_times import event_times_ms, unreadable_rows
from eventide_adapters.format.encoding.columns.field_path import top_level
from eventide_adapters.format.slice.base_file.parquet import read_base
from eventide_adapters.format.slice.log_content.key_versions import (
    all_versions,
    common_keys,
    histories,
    of_keys,
    versions_of_block,
    versions_of_keys,
)
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.slice.log_file.event_times import event_time_column, event_times_of, is_before
from eventide_adapters.format.slice.log_file.ordering_values import ordering_type, orderings_of
from eventide_adapters.format.slice.log_file.records import LogPart
from eventide_adapters.format.slice.merge.base_merge import merge_columns
from eventide_adapters.format.slice.merge.key_table import KeyTable
from eventide_core.ports import SplitSlice, Storage, TimedKey, UnreadableEventTime
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.key_history import KeyHistory
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import RECORD_KEY


@dataclass(frozen=True, slots=True)
class ArrowRecordContent:
    """Implements `ports.RecordContent`, in columns."""

    storage: Storage

    def count_before(self, log: LogFile, shape: RecordShape, threshold_ms: int, blocks: BlockFilter) -> int:
        columns = top_level([shape.require_event_time_field(self.storage.root)])
        parts = LogCursor(self.storage, [(log.path, log.size)], blocks, is_strict=True).parts(shape, columns)
        return sum(pc.less(event_times_of(part, shape), pa.scalar(threshold_ms)).true_count for part in parts)

    def latest_keys(
        self, log: LogFile, shape: RecordShape, since_ms: int, limit: int, blocks: BlockFilter
    ) -> tuple[TimedKey, ...]:
        columns = top_level([*merge_columns(shape), shape.require_event_time_field(self.storage.root)])
        latest = dict[str, int]()
        cursor = LogCursor(self.storage, [(log.path, log.size)], blocks, is_strict=False)
        for part in cursor.parts(shape, columns, lambda times: times.max_ms is not None and times.max_ms >= since_ms):
            event_times = event_times_of(part, shape)
            chosen = pc.greater_equal(event_times, pa.scalar(since_ms))
            table = pa.table({"key": part.keys.filter(chosen), "ms": event_times.filter(chosen)})
            table = (
                table.group_by("key", use_threads=False).aggregate([("ms", "max")]).sort_by([("ms_max", "descending")])
            )
            for row in table.slice(0, limit).to_pylist():
                latest[row["key"]] = max(row["ms_max"], latest.get(row["key"], row["ms_max"]))
        worst = sorted(latest.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
        return tuple(TimedKey(key, time) for key, time in worst)

    def unreadable_event_times(
        self, log: LogFile, shape: RecordShape, limit: int, blocks: BlockFilter
    ) -> tuple[UnreadableEventTime, ...]:
        columns = top_level([RECORD_KEY, shape.require_event_time_field(self.storage.root)])
        unreadable = list[UnreadableEventTime]()
        cursor = LogCursor(self.storage, [(log.path, log.size)], blocks, is_strict=False)
        for part in cursor.parts(shape, columns, lambda times: times.unreadable_records > 0):
            unreadable += unreadable_in(log.path, part, shape, limit - len(unreadable))
            if len(unreadable) == limit:
                break
        return tuple(unreadable)

    def key_histories(
        self, split: SplitSlice, shape: RecordShape, blocks: BlockFilter, *, only_deleted: bool
    ) -> tuple[KeyHistory, ...]:
        # A rollback block rolls back blocks of either side. Positions count a key's versions: base, merged, remaining.
        logs = sorted((*split.merged, *split.left_overs), key=lambda log: log.name.reader_order)
        merged_paths = {log.path for log in split.merged}
        threshold_ms, columns = split.threshold_ms, merge_columns(shape)
        if threshold_ms is not None and shape.event_time_field is not None:
            columns = top_level([*columns, shape.event_time_field])
        sides: dict[bool, list[pa.Table]] = {True: [], False: []}
        cursor = LogCursor(self.storage, [(log.path, log.size) for log in logs], blocks, is_strict=True)
        for placed, part in cursor.placed_parts(shape, columns):
            is_merged = placed.path in merged_paths
            versions = versions_of_block(part, shape.ordering_fields, is_partial=shape.partial_update is not None)
            if threshold_ms is not None and not is_merged and placed.path not in split.above:
                is_early = pa.array(is_before(event_times_of(part, shape), threshold_ms))
                versions = versions.set_column(versions.num_columns - 1, "is_early", is_early)
            sides[is_merged].append(versions)
        types = {field.name: field.type.arrow for field in table_fields(shape.schema)}
        ordering = ordering_type(shape.ordering_fields, types)
        left, right = (all_versions(sides[is_merged], ordering) for is_merged in (True, False))
        keys = common_keys(left, right, only_deleted=only_deleted)
        if not len(keys):
            return ()
        base = all_versions(_base_versions(self.storage, split.base_path, shape, keys), ordering)
        return histories(keys, base, of_keys(left, keys), of_keys(right, keys))

    def doubled_key(self, base_path: str, shape: RecordShape) -> str | None:
        batches = read_base(self.storage, base_path, table_fields(shape.schema, (RECORD_KEY,)), shape)
        index, numbers = KeyTable.numbered(pa.chunked_array((b.column(RECORD_KEY) for b in batches), pa.string()))
        if len(index.keys) == len(numbers):
            return None
        key: str = index.keys[int(np.argmax(np.bincount(numbers)))].as_py()
        return key


def unreadable_in(path: str, part: LogPart, shape: RecordShape, limit: int) -> list[UnreadableEventTime]:
    """At most so many records of a part of a block whose event time cannot be read."""
    column = event_time_column(part, shape)
    rows = np.flatnonzero(unreadable_rows(column, event_times_ms(column, shape.event_time_texts)))[:limit].tolist()
    return [UnreadableEventTime(path, part.keys[row].as_py(), repr(column[row].as_py())) for row in rows]


def _base_versions(storage: Storage, path: str | None, shape: RecordShape, keys: Any) -> Iterator[pa.Table]:
    if path is None:
        return
    for batch in read_base(storage, path, table_fields(shape.schema, merge_columns(shape)), shape):
        orderings = orderings_of(batch, shape.ordering_fields)
        yield of_keys(versions_of_keys(batch.column(RECORD_KEY), orderings), keys)
