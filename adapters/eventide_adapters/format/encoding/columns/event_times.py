"""Event times of a whole column in epoch milliseconds, by the rules of `eventide_core.table.records.event_time`."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowColumn
from eventide_adapters.format.encoding.columns.local_times import epoch_ms_of_local
from eventide_adapters.format.encoding.columns.time_patterns import zone_of_local
from eventide_adapters.format.encoding.columns.time_texts import times_of_texts
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.records.event_time import (
    DATE_DIGITS,
    UNREADABLE_DIGITS,
    EventTimeRange,
    decimal_to_epoch_ms,
    spells_a_date,
)
from eventide_core.table.records.event_time_texts import ISO_WITH_ZONE, EventTimeTexts
from eventide_core.table.records.local_time import DAY_MS

"""Any pa.Array; the library's stubs have a separate type for each kind."""

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_INT64_DIGITS = 18  # the greatest power of ten that fits in 64 bits


def event_times_ms(column: ArrowColumn, texts: EventTimeTexts = ISO_WITH_ZONE) -> pa.Int64Array:
    """The column's event times; null if a record has none, or one that is unreadable: see `unreadable_rows`.

    `texts` says how the table's texts and local times are read. Unreadable are a string that is not a time, a string with
    more digits than 64 bits can hold, a number that is too great or that spells out a date, and a NaN.
    Raises UnsupportedTableError for a column that is not a time, a date, a number, or a string.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.int64())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return times_of_texts(column, texts)
    if pa.types.is_date32(kind):
        days = _numbers(column, pa.int32()).astype(np.int64)
        return _in_zone(_with_nulls(days * DAY_MS, column), texts)
    if pa.types.is_timestamp(kind):
        times = _timestamps(column)
        return _in_zone(times, texts) if kind.tz is None else times
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return _integers(column)
    if pa.types.is_floating(kind):
        return _doubles(column)
    if pa.types.is_decimal128(kind):
        return _decimals(column)
    raise UnsupportedTableError(f"an event-time column of type {kind}: supported are times, dates, numbers and strings")


def unreadable_rows(column: ArrowColumn, times: pa.Int64Array) -> npt.NDArray[np.bool_]:
    """Which rows of the column have a value that is not a time. `times` are the column's."""
    if times.null_count == column.null_count:
        return np.zeros(len(column), np.bool_)
    unreadable: ArrowColumn = pc.and_(times.is_null(), column.is_valid())
    return np.asarray(unreadable.to_numpy(zero_copy_only=False), np.bool_)


def event_time_range(column: ArrowColumn, texts: EventTimeTexts = ISO_WITH_ZONE) -> EventTimeRange:
    """The range of the column's event times. Raises UnsupportedTableError as `event_times_ms` does."""
    times = event_times_ms(column, texts)
    ends: Any = pc.min_max(times).as_py()
    return EventTimeRange(ends["min"], ends["max"], column.null_count, times.null_count - column.null_count)


def _in_zone(local: pa.Int64Array, texts: EventTimeTexts) -> pa.Int64Array:
    """The event times of local times: in the zone that the table states, otherwise in UTC."""
    zone = zone_of_local(texts)
    if zone is None:
        return local
    mask = local.is_null().to_numpy(zero_copy_only=False)
    return pa.array(epoch_ms_of_local(local.fill_null(0).to_numpy(), zone), pa.int64(), mask=mask)


def _timestamps(column: ArrowColumn) -> pa.Int64Array:
    numbers = _numbers(column, pa.int64())
    match column.type.unit:
        case "s":
            fits = (numbers >= _INT64_MIN // 1000 + 1) & (numbers <= _INT64_MAX // 1000)
            is_none = ~fits | column.is_null().to_numpy(zero_copy_only=False)
            return pa.array(np.where(fits, numbers, 0) * 1000, pa.int64(), mask=is_none)
        case "ms":
            return _with_nulls(numbers, column)
        case "us":
            return _with_nulls(numbers // 1000, column)
        case _:
            return _with_nulls(numbers // 1_000_000, column)


def _doubles(column: ArrowColumn) -> pa.Int64Array:
    """Epoch milliseconds; none for NaN, for numbers beyond 64 bits, and for a date.

    Rounds: 1700000000.1 is 100 ms later than 1700000000, although the nearest double is less than that.
    """
    numbers = column.cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    is_known = np.abs(numbers) < float(_INT64_MAX)
    values = np.where(is_known, numbers, 0.0)
    whole = np.abs(np.trunc(values)).astype(np.uint64)
    is_known &= ~_spell_dates(whole)
    seconds, micros, nanos = (_has_digits(whole, digits) for digits in (10, 16, 19))
    times = np.floor(np.select([seconds, micros, nanos], [values * 1e3, values / 1e3, values / 1e6], values))
    return pa.array(times.astype(np.int64), pa.int64(), mask=~is_known)


def _decimals(column: ArrowColumn) -> pa.Int64Array:
    """Epoch milliseconds, exactly as `decimal_to_epoch_ms` has them.

    Calls it for values beyond 64 bits, and computes the others as a column.
    """
    scale = column.type.scale
    words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)[column.offset : column.offset + len(column)]
    low, high = words[:, 0], words[:, 1]
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    is_narrow = (high == low >> 63) & (low != _INT64_MIN) if scale <= _INT64_DIGITS else np.zeros(len(column), np.bool_)
    unscaled = np.where(is_narrow & ~is_null, low, 0)
    whole = (np.abs(unscaled) // 10 ** min(scale, _INT64_DIGITS)).astype(np.uint64)
    choices = [
        np.floor_divide(unscaled, 10**places) if places >= 0 else unscaled * 10**-places
        for places in (min(scale + shift, _INT64_DIGITS) for shift in (-3, 3, 6, 0))
    ]
    times = np.select([_has_digits(whole, digits) for digits in (10, 16, 19)], choices[:3], choices[3])
    is_wide = ~is_narrow & ~is_null
    is_null |= _spell_dates(whole)
    for place in np.flatnonzero(is_wide):
        epoch_ms = decimal_to_epoch_ms(column[int(place)].as_py())
        times[place], is_null[place] = (0, True) if epoch_ms is None else (epoch_ms, False)
    return pa.array(times, pa.int64(), mask=is_null)


def _integers(column: ArrowColumn) -> pa.Int64Array:
    numbers = _numbers(column, column.type).astype(np.int64)
    # Unsigned, because the lowest 64-bit number has no positive counterpart.
    size = np.where(numbers < 0, np.negative(numbers).view(np.uint64), numbers.view(np.uint64))
    seconds, micros, nanos = (_has_digits(size, digits) for digits in (10, 16, 19))
    times = np.select([seconds, micros, nanos], [numbers * 1000, numbers // 1000, numbers // 1_000_000], numbers)
    is_none = _spell_dates(size) | column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(times, pa.int64(), mask=is_none)


def _spell_dates(size: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Whether each number spells a date. Asks `spells_a_date` about the rare ones of so many digits."""
    is_date: npt.NDArray[np.bool_] = np.logical_or.reduce([_has_digits(size, digits) for digits in UNREADABLE_DIGITS])
    for place in np.flatnonzero(_has_digits(size, DATE_DIGITS)).tolist():
        is_date[place] = spells_a_date(int(size[place]))
    return is_date


def _has_digits(size: npt.NDArray[np.uint64], digits: int) -> npt.NDArray[np.bool_]:
    return (size >= np.uint64(10 ** (digits - 1))) & (size < np.uint64(10**digits))


def _numbers(column: ArrowColumn, storage: pa.DataType) -> Any:
    """The column's numbers; arbitrary values for nulls."""
    return column.view(storage).fill_null(0).to_numpy(zero_copy_only=False)


def _with_nulls(times: npt.NDArray[np.int64], column: ArrowColumn) -> pa.Int64Array:
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(times, pa.int64(), mask=mask)
