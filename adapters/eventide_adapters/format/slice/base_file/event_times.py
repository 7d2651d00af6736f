"""The event times of a base file, from the column statistics in its footer. Reads no page."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.encoding.columns.event_times import event_times_ms
from eventide_adapters.format.encoding.columns.field_path import type_at
from eventide_adapters.format.encoding.parquet.footer_columns import require_sound_columns, stated_chunks
from eventide_adapters.format.encoding.parquet.open_file import open_base
from eventide_core.ports import Storage
from eventide_core.table.records.event_time import DATE_DIGITS, UNREADABLE_DIGITS, EventTimeRange
from eventide_core.table.records.record_shape import RecordShape


@dataclass(frozen=True, slots=True)
class ParquetBaseContent:
    """ports.BaseContent over a storage."""

    storage: Storage

    def event_times(self, base_path: str, shape: RecordShape) -> EventTimeRange | None:
        field = shape.event_time_field or ""
        with open_base(self.storage, base_path) as file:
            kind = type_at(field, {column.name: column.type for column in file.schema_arrow})
            if kind is None:
                return None
            if pa.types.is_int64(kind) and shape.schema.is_local_time(field):
                # Hudi before 1.1 writes timestamps without a zone as plain numbers.
                kind = type_at(field, {column.name: column.type for column in arrow_schema(shape.schema)})
            require_sound_columns(file.metadata, file.footer, f"base file {base_path}")
            chunks = stated_chunks(file.metadata, field)
        if chunks is None:
            return None
        stated: list[Any] = [chunk.statistics for chunk in chunks]
        nulls = sum(stats.null_count for stats in stated)
        raw = [end for stats in stated if stats.has_min_max for end in (stats.min_raw, stats.max_raw)]
        if not raw:
            return EventTimeRange(None, None, nulls)
        if not _rises(kind, raw):
            return None
        numbers = pa.array(raw, pa.int32() if kind.bit_width == 32 else pa.int64())
        times: list[Any] = event_times_ms(numbers.view(kind), shape.event_time_texts).to_pylist()
        return EventTimeRange(min(times), max(times), nulls)


def _rises(kind: pa.DataType, raw: list[int]) -> bool:
    """Whether event times rise with the column's values, so that its minimum and maximum are also theirs.

    They don't for strings. They don't for plain numbers with different signs or numbers of digits either, because the
    number of digits decides whether a number is in seconds, milliseconds, microseconds, or nanoseconds, and nor do they
    for those whose digits may be a date's, which aren't times.
    """
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return all(isinstance(end, int) for end in raw)  # an INT96 consists of three numbers and has no order
    return (
        pa.types.is_signed_integer(kind)
        and kind.bit_width >= 32
        and len({(end < 0, len(str(abs(end)))) for end in raw}) == 1
        and len(str(abs(raw[0]))) not in (DATE_DIGITS, *UNREADABLE_DIGITS)
    )
