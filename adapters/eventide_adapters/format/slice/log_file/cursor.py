"""Walks the log files of a slice: which blocks count, by their headers, and what is in them, as Arrow columns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from eventide_adapters.format.encoding.avro.event_time_properties import event_times_in_header
from eventide_adapters.format.slice.log_file.blocks import PlacedBlock, counting_blocks
from eventide_adapters.format.slice.log_file.records import BlockReader, LogPart
from eventide_core.ports import Storage
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_shape import RecordShape

RangeTest: TypeAlias = Callable[[EventTimeRange], bool]
"""Whether a block with such event times is wanted."""


@dataclass(frozen=True)
class LogCursor:
    """Over the log files of one slice, (path, size) in reader order. `accepted` decides which of their blocks count."""

    storage: Storage
    logs: Sequence[tuple[str, int]]
    accepted: BlockFilter
    is_strict: bool

    @cached_property
    def blocks(self) -> tuple[PlacedBlock, ...]:
        """The blocks that count, in reader order. Raises what `counting_blocks` raises."""
        return counting_blocks(self.storage, self.logs, self.accepted, is_strict=self.is_strict)

    def parts(
        self, shape: RecordShape, columns: Sequence[str] | None, is_wanted: RangeTest | None = None
    ) -> Iterator[LogPart]:
        """The records and deletes of the blocks that count, in reader order.

        If `columns` is None, returns all columns, with Hudi's meta fields first. A block whose header states its range of
        event times is read only if `is_wanted` is true for the range. Raises MissingFileError, CorruptLogBlockError (for a
        torn block, only if strict), RecordDecodeError, UnsupportedLogFormatError, UnsupportedTableError.
        """
        for _, part in self.placed_parts(shape, columns, is_wanted):
            yield part

    def placed_parts(
        self, shape: RecordShape, columns: Sequence[str] | None, is_wanted: RangeTest | None = None
    ) -> Iterator[tuple[PlacedBlock, LogPart]]:
        """The records and deletes as `parts` yields them, each part beside its block."""
        blocks: Iterable[PlacedBlock] = self.blocks
        if is_wanted is not None:
            source = shape.event_time_source
            blocks = (
                b for b in blocks if (times := event_times_in_header(b.block, source)) is None or is_wanted(times)
            )
        yield from BlockReader(self.storage, shape, columns).read_each(blocks)
