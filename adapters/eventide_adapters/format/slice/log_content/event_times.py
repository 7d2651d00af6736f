"""The event times of log blocks whose headers don't state them. Part of log_content."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from eventide_adapters.format.encoding.avro.decode import count_of_whole
from eventide_adapters.format.encoding.columns.event_times import event_time_range, event_times_ms, unreadable_rows
from eventide_adapters.format.encoding.columns.field_path import top_level
from eventide_adapters.format.slice.log_file.blocks import PlacedBlock
from eventide_adapters.format.slice.log_file.event_times import event_time_column
from eventide_adapters.format.slice.log_file.records import BlockReader, DataBlock, DeleteBlock, schema_to_share
from eventide_core.errors import EventideError
from eventide_core.ports import Storage
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema

_GREATEST: Final = (1 << 63) - 1


@dataclass(slots=True)
class BlockEventTimes:
    """The event times of blocks of one table. `reader` reads the columns that have them."""

    reader: BlockReader
    shape: RecordShape
    _known: dict[tuple[str, int], EventTimeRange] = field(default_factory=dict[tuple[str, int], EventTimeRange])

    @classmethod
    def of(cls, storage: Storage, shape: RecordShape) -> "BlockEventTimes":
        """Raises UnsupportedTableError if no event-time field is known."""
        return cls(BlockReader(storage, shape, top_level([shape.require_event_time_field(storage.root)])), shape)

    def __call__(self, placed: PlacedBlock) -> tuple[EventTimeRange, int]:
        """The event times of one block, and the number of its deletes."""
        times, deletes = self._known.get((placed.path, placed.block.offset)), 0
        if times is not None:
            return times, deletes
        times = EventTimeRange(None, None)
        for part in self.reader.read(placed):
            column = event_time_column(part, self.shape)
            times = times.union(event_time_range(column, self.shape.event_time_texts))
            deletes += len(column) if isinstance(part, DeleteBlock) else 0
        return times, deletes

    def prepare(self, blocks: Iterable[PlacedBlock]) -> None:
        """Decodes the blocks together that were read with their headers, are Avro, and have one schema.

        Blocks with deletes, and those that can't be read, are left to the call.
        """
        by_schema: dict[AvroSchema, list[tuple[PlacedBlock, bytes, int]]] = {}
        for placed in blocks:
            schema = schema_to_share(placed)
            if schema is not None and placed.content is not None:
                count = count_of_whole(placed.content)
                if count:
                    by_schema.setdefault(schema, []).append((placed, placed.content, count))
        for schema, several in by_schema.items():
            records = self.reader.read_joined([(content, count) for _, content, count in several], schema)
            if records is None:
                continue
            with suppress(EventideError):
                ranges = self._ranges(records, [count for _, _, count in several])
                for (placed, _, _), times in zip(several, ranges, strict=True):
                    if times is not None:
                        self._known[placed.path, placed.block.offset] = times

    def _ranges(self, records: pa.RecordBatch, counts: Sequence[int]) -> list[EventTimeRange | None]:
        """The event times of so many rows, one after the other; None where a row is marked as deleted."""
        column = event_time_column(DataBlock("", records), self.shape)
        times = event_times_ms(column, self.shape.event_time_texts)
        starts = np.cumsum([0, *counts[:-1]])
        is_known = times.is_valid().to_numpy(zero_copy_only=False)
        least = np.minimum.reduceat(times.fill_null(_GREATEST).to_numpy(zero_copy_only=False), starts).tolist()
        greatest = np.maximum.reduceat(times.fill_null(-_GREATEST).to_numpy(zero_copy_only=False), starts).tolist()
        valid = np.add.reduceat(is_known, starts, dtype=np.int64).tolist()
        unreadable = np.add.reduceat(unreadable_rows(column, times), starts, dtype=np.int64).tolist()
        deleted = np.logical_or.reduceat(self.reader.deleted_rows(records), starts).tolist()
        ranges = [
            EventTimeRange(low if known else None, high if known else None, count - known - others, others)
            for low, high, count, known, others in zip(least, greatest, counts, valid, unreadable, strict=True)
        ]
        return [None if has_deletes else times for times, has_deletes in zip(ranges, deleted, strict=True)]
