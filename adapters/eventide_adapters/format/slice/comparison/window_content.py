"""The rows of a span of event time, and how they differ between two views. Of base files alone.

A base file whose footer states that it holds none of the span is not read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import query_schema
from eventide_adapters.format.encoding.columns.event_times import event_times_ms
from eventide_adapters.format.encoding.columns.field_path import column_at, top_level
from eventide_adapters.format.slice.base_file.event_times import ParquetBaseContent
from eventide_adapters.format.slice.comparison.row_changes import row_changes
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_core.ports import Engine, Storage
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.records.event_time import EventTimeSpan
from eventide_core.table.records.record_shape import RecordShape

_SECOND_MS = 1000


@dataclass(frozen=True, slots=True)
class SpanSliceReader(ArrowSliceReader):
    """Reads of a slice the rows whose event time is in `span`: its begin is included, its end excluded."""

    reads_whole_slices = False

    span: EventTimeSpan

    def read(
        self, slice_read: SliceRead, shape: RecordShape, columns: Iterable[str] | None
    ) -> Iterator[pa.RecordBatch]:
        """As `ArrowSliceReader.read`."""
        if self._holds_none(slice_read, shape):
            return
        wanted = None if columns is None else list(columns)
        names = None if wanted is None else list(dict.fromkeys((*wanted, *top_level((self.span.field,)))))
        for batch in ArrowSliceReader.read(self, slice_read, shape, names):
            chosen = batch.filter(self._is_inside(batch, shape))
            if len(chosen):
                yield chosen if wanted is None else chosen.select([n for n in chosen.schema.names if n in wanted])

    def base_row_count(self, slice_read: SliceRead) -> int | None:  # noqa: ARG002 - no footer counts the rows of a span
        """None: the rows of the span have to be read."""
        return None

    def is_outside(self, slice_read: SliceRead, shape: RecordShape) -> bool:
        """As `ArrowSliceReader.is_outside`."""
        return self._holds_none(slice_read, shape) or ArrowSliceReader.is_outside(self, slice_read, shape)

    def _is_inside(self, batch: pa.RecordBatch, shape: RecordShape) -> Any:
        """Which rows are in the span. Null for those without an event time, which a filter leaves out."""
        times = event_times_ms(column_at(batch, self.span.field), shape.event_time_texts)
        inside: Any = pc.less(times, pa.scalar(self.span.end_ms))
        if self.span.begin_ms is not None:
            inside = pc.and_(inside, pc.greater_equal(times, pa.scalar(self.span.begin_ms)))
        return inside

    def _holds_none(self, slice_read: SliceRead, shape: RecordShape) -> bool:
        if slice_read.base_path is None or slice_read.log_paths:
            return False
        times = ParquetBaseContent(self.storage).event_times(
            slice_read.base_path, replace(shape, event_time_field=self.span.field)
        )
        if times is None or times.min_ms is None or times.max_ms is None:
            return False
        ends_before = self.span.begin_ms is not None and times.max_ms < self.span.begin_ms
        return ends_before or times.min_ms >= self.span.end_ms


@dataclass(frozen=True, slots=True)
class ArrowWindowContent:
    """ports.WindowContent over a storage."""

    storage: Storage

    def earliest(self, slices: Sequence[SliceRead], shape: RecordShape, engine: Engine) -> int | None:
        times = engine.map(partial(_earliest, self.storage, shape), slices) if slices else []
        return min((time for time in times if time is not None), default=None)

    def counts(
        self,
        slices: Sequence[SliceRead],
        shape: RecordShape,
        field: str,
        spans: Sequence[tuple[int, int]],
        engine: Engine,
    ) -> tuple[int, ...]:
        """The number of rows whose event time is in each span. Reads event times alone, and logs that may change them."""
        whole = EventTimeSpan(field, min(begin for begin, _ in spans), max(end for _, end in spans))
        count = partial(_counts, SpanSliceReader(self.storage, whole), shape, tuple(spans))
        return tuple(map(sum, zip(*(engine.map(count, slices) if slices else ()), strict=True))) or (0,) * len(spans)

    def changed_times(
        self,
        before: Sequence[SliceRead],
        after: Sequence[SliceRead],
        shape: RecordShape,
        span: EventTimeSpan,
        keys: Sequence[str],
        engine: Engine,
    ) -> frozenset[int]:
        partitions = sorted({one.partition for one in (*before, *after)})
        pairs = [
            tuple(tuple(one for one in side if one.partition == partition) for side in (before, after))
            for partition in partitions
        ]
        compare = partial(_changed_times, SpanSliceReader(self.storage, span), shape, tuple(keys))
        return frozenset[int]().union(*(engine.map(compare, pairs) if pairs else ()))


def _counts(
    reader: SpanSliceReader, shape: RecordShape, spans: Sequence[tuple[int, int]], slice_read: SliceRead
) -> list[int]:
    """How many rows of a slice are in each span."""
    field = reader.span.field
    batches = reader.read(slice_read, shape, top_level((field,)))
    times = [event_times_ms(column_at(batch, field), shape.event_time_texts) for batch in batches]
    known: Any = np.sort(np.concatenate([np.asarray(pc.drop_null(one)) for one in times] or [np.empty(0, np.int64)]))
    return [int(number) for number in np.diff(np.searchsorted(known, np.asarray(spans, np.int64)), axis=1)[:, 0]]


def _earliest(storage: Storage, shape: RecordShape, slice_read: SliceRead) -> int | None:
    """The earliest event time of a base file."""
    field = shape.event_time_field
    assert field is not None, "the earliest event time of a table whose event-time field is not known"
    path = slice_read.base_path
    times = None if path is None else ParquetBaseContent(storage).event_times(path, shape)
    if times is not None:
        return times.min_ms
    batches = ArrowSliceReader(storage).read(slice_read, shape, top_level((field,)))
    least: list[Any] = [
        pc.min(event_times_ms(column_at(batch, field), shape.event_time_texts)).as_py() for batch in batches
    ]
    return min((time for time in least if time is not None), default=None)


def _changed_times(
    reader: SpanSliceReader, shape: RecordShape, keys: Sequence[str], sides: tuple[tuple[SliceRead, ...], ...]
) -> frozenset[int]:
    """The event times of what differs between two sets of slices of one partition, floored to seconds."""
    schema = query_schema(shape)
    before, after = (
        pa.Table.from_batches([b for one in side for b in reader.read(one, shape, None)], schema) for side in sides
    )
    times: set[int] = set()
    for part in row_changes(before, after, keys).parts:
        for chunk in column_at(part, reader.span.field).chunks:
            seconds = event_times_ms(chunk, shape.event_time_texts).to_numpy(zero_copy_only=False) // _SECOND_MS
            times.update((np.unique(seconds) * _SECOND_MS).tolist())
    return frozenset(times)
