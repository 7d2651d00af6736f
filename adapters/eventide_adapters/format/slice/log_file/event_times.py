"""The event times of a log block's records and deletes, and the records and deletes before a threshold.

The event time of a delete is its ordering value, if the event-time field is an ordering field. Otherwise, and if the
value is null, the delete has no event time. A record without an event time, or with one that cannot be read, counts as
before every threshold.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowColumn
from eventide_adapters.format.encoding.columns.event_times import event_time_range, event_times_ms
from eventide_adapters.format.encoding.columns.field_path import column_at
from eventide_adapters.format.slice.log_file.ordering_values import ordering_of_fields
from eventide_adapters.format.slice.log_file.records import DataBlock, LogPart
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_shape import RecordShape


def event_times_of(part: LogPart, shape: RecordShape) -> pa.Int64Array:
    """The event times in epoch milliseconds; null for none, and for unreadable ones."""
    return event_times_ms(event_time_column(part, shape), shape.event_time_texts)


def event_time_range_of(part: LogPart, shape: RecordShape) -> EventTimeRange:
    """The range of the part's event times."""
    return event_time_range(event_time_column(part, shape), shape.event_time_texts)


def event_time_column(part: LogPart, shape: RecordShape) -> ArrowColumn:
    """The values that hold the event times. The part must include the event-time column."""
    assert shape.event_time_field is not None, "event times of a table whose event-time field is not known"
    if isinstance(part, DataBlock):
        return column_at(part.records, shape.event_time_field)
    if shape.event_time_field in shape.ordering_fields:
        return ordering_of_fields(part.orderings, shape.ordering_fields, shape.event_time_field)
    return pa.nulls(len(part.keys), pa.int64())


def is_before(times: pa.Int64Array, threshold_ms: int) -> npt.NDArray[np.bool_]:
    """Which of these event times are before the threshold. Nulls are."""
    known = times.is_valid().to_numpy(zero_copy_only=False)
    return np.asarray(~known | (times.fill_null(threshold_ms).to_numpy(zero_copy_only=False) < threshold_ms), np.bool_)
