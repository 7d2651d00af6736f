"""The event times of log files whose headers don't state them. Part of log_content."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.avro.field_path import top_level
from eventide_adapters.format.log_file.blocks import PlacedBlock, counting_blocks
from eventide_adapters.format.log_file.event_times import event_times_of
from eventide_adapters.format.log_file.records import BlockReader, DeleteBlock
from eventide_adapters.format.merge.log_content import event_time_field
from eventide_core.ports import Storage
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_slice import LogFile
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import BlockFilter


def event_time_reader(storage: Storage, shape: RecordShape) -> BlockReader:
    """Reads what `event_times_and_deletes` needs. Raises UnsupportedTableError if no event-time field is known."""
    return BlockReader(storage, shape, top_level([event_time_field(storage, shape)]))


def event_times_and_deletes(reader: BlockReader, placed: PlacedBlock, shape: RecordShape) -> tuple[EventTimeRange, int]:
    """The event times of one block, and the number of its deletes."""
    found, deletes = EventTimeRange(None, None), 0
    for part in reader.read(placed):
        times = event_times_of(part, shape)
        least, greatest = pc.min(times).as_py(), pc.max(times).as_py()
        found = found.union(EventTimeRange(least, greatest, times.null_count))
        deletes += len(times) if isinstance(part, DeleteBlock) else 0
    return found, deletes


def count_before(storage: Storage, log: LogFile, shape: RecordShape, threshold_ms: int, blocks: BlockFilter) -> int:
    """The number of its records and deletes with an event time before the threshold. Unknown ones don't count."""
    reader = event_time_reader(storage, shape)
    count = 0
    for placed in counting_blocks(storage, [(log.path, log.size)], blocks, is_strict=True):
        for part in reader.read(placed):
            count += pc.less(event_times_of(part, shape), pa.scalar(threshold_ms)).true_count
    return count
