"""Divides the rows of a write into log blocks that each hold one span of event times.

A compaction by event time then needs only the headers of the blocks to skip rows at or after T. Adjacent spans with few rows
share a block: late records have many such spans, and each block costs a header.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.columns.event_times import event_times_ms
from eventide_adapters.format.columns.field_path import column_at
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.records.schema import RECORD_KEY

_FEW: Final = 64  # a span of less than one row in so many is a small one


def by_event_time(rows: pa.Table, shape: RecordShape, bucket_ms: int) -> Iterator[pa.Table]:
    """The rows in portions by event time, the earliest first, and rows without one before all. Keeps the order within one.

    Returns one portion in the original order if the order of the rows may decide which of two versions of a key is newer, or
    if the event time is unknown. `bucket_ms` is the span of a portion, 0 for none.
    """
    if not bucket_ms or shape.event_time_field is None or len(rows) < 2 or _has_doubles(rows):
        yield rows
        return
    column: Any = column_at(rows, shape.event_time_field).combine_chunks()
    try:
        times = event_times_ms(column, shape.event_time_texts)
    except UnsupportedTableError:
        yield rows  # only a compaction by event time needs them, and reports it
        return
    filled = times.fill_null(np.iinfo(np.int64).min).to_numpy(zero_copy_only=False)
    spans = np.floor_divide(filled, bucket_ms)
    order = np.argsort(spans, kind="stable")
    _, sizes = np.unique(spans, return_counts=True)
    ordered = rows.take(order)
    begin = 0
    for size in _portions(sizes, max(1, len(rows) // _FEW)):
        yield ordered.slice(begin, size)
        begin += size


def _portions(sizes: Any, few: int) -> list[int]:
    """The sizes of the portions, after combining adjacent spans with few rows each."""
    portions: list[int] = []
    is_open = False
    for size in map(int, sizes):
        if is_open and size < few:
            portions[-1] += size
        else:
            portions.append(size)
        is_open = size < few
    return portions


def _has_doubles(rows: pa.Table) -> bool:
    keys: Any = rows.column(RECORD_KEY)
    return bool(pc.count_distinct(keys).as_py() != len(rows))
