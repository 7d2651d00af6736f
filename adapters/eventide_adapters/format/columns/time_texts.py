"""The event times of a column of texts, by the settings of `eventide_core.table.records.event_time_texts`.

A local time that occurs twice, when clocks go back, is the first of both; one that does not occur, when they go forward,
is read by the offset before the change, as Java, Spark and Python do. Both are what a datetime with `fold=0` is.
"""

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.columns.time_patterns import Reading, reading_of
from eventide_core.table.records.event_time import iso_to_epoch_ms, text_to_epoch_ms
from eventide_core.table.records.event_time_texts import ISO_WITH_ZONE, EventTimeTexts

Ints = npt.NDArray[np.int64]

_DAY: Final = 86_400
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


def times_of_texts(column: Any, texts: EventTimeTexts) -> pa.Int64Array:
    """The event times in epoch milliseconds; null for none, and for a text that is no time.

    Parses whole columns of the forms that the settings name, and one by one what else may be ISO-8601.
    """
    encoded = column.dictionary_encode()
    unique = encoded.dictionary
    if texts == ISO_WITH_ZONE:
        times = [text_to_epoch_ms(text) for text in unique.to_pylist()]
        return pa.array(map(_fitting, times), pa.int64()).take(encoded.indices)
    reading = reading_of(texts)
    millis, is_known = _by_parts(unique, reading)
    zone, others = None if texts.pattern else reading.zone, np.flatnonzero(~is_known)
    for place, text in zip(others.tolist(), unique.take(pa.array(others)).to_pylist(), strict=True):
        time = _fitting((text_to_epoch_ms if reading.takes_numbers else iso_to_epoch_ms)(text, zone))
        millis[place], is_known[place] = time or 0, time is not None
    return pa.array(millis, pa.int64(), mask=~is_known).take(encoded.indices)


def _fitting(time: int | None) -> int | None:
    return time if time is not None and _INT64_MIN <= time <= _INT64_MAX else None


def _by_parts(unique: Any, reading: Reading) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The times of the texts of that form, and which texts have it."""
    assert reading.regex is not None, "texts without a form"
    parsed: Any = pc.extract_regex(unique, reading.regex)
    names = set(re.findall(r"<(\w+)>", reading.regex))

    def numbers(name: str, absent: int = 0) -> Ints:
        return _numbers(parsed.field(name)) if name in names else np.full(len(unique), absent, np.int64)

    year, month, day = (numbers(name) for name in ("year", "month", "day"))
    hour, minute, second, half = numbers("hour"), numbers("minute"), numbers("second"), numbers("half", 12)
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    is_known = (
        parsed.is_valid().to_numpy(zero_copy_only=False)
        & (year >= 1)
        & (month >= 1)
        & (month <= 12)
        & (day >= 1)
        & (days.astype("datetime64[M]") == months)
        & (hour < 24)
        & (minute < 60)
        & (second < 60)
        & (half >= 1)
        & (half <= 12)
    )
    if "meridiem" in names:
        hour = half % 12 + 12 * _is(parsed.field("meridiem"), "(?i)^p")
    local = np.where(is_known, days.astype(np.int64) * _DAY + hour * 3600 + minute * 60 + second, 0)
    if reading.zone is None:
        offsets = _own_offsets(parsed.field("offset"))
        is_known &= np.abs(offsets) < _DAY
    else:
        offsets = _offsets(local, reading.zone)
    millis = _numbers(_first_three(parsed.field("fraction"))) if "fraction" in names else 0
    return (local - offsets) * 1000 + millis, is_known


def _numbers(texts: Any) -> Ints:
    """Digits as numbers; 0 for none."""
    given: Any = pc.if_else(pc.equal(texts, pa.scalar("", texts.type)), pa.scalar("0", texts.type), texts)
    numbers: Any = pc.fill_null(given.cast(pa.int64()), 0)
    return np.array(numbers, np.int64)


def _first_three(texts: Any) -> Any:
    """The milliseconds of a fraction, whatever its number of digits."""
    padded: Any = pc.utf8_rpad(texts, 3, "0")
    return pc.utf8_slice_codeunits(padded, 0, 3)


def _is(texts: Any, regex: str) -> npt.NDArray[np.bool_]:
    matches: Any = pc.fill_null(pc.match_substring_regex(texts, regex), pa.scalar(False))
    return np.asarray(matches.to_numpy(zero_copy_only=False), np.bool_)


def _own_offsets(texts: Any) -> Ints:
    """In seconds, of texts such as +02:00 and Z."""
    parts: Any = pc.extract_regex(texts, r"^[+-](?P<hour>\d{2}):(?P<minute>\d{2})$")
    minute = _numbers(parts.field("minute"))
    size = _numbers(parts.field("hour")) * 3600 + np.where(minute < 60, minute * 60, _DAY)
    return np.where(_is(texts, "^-"), -size, size)


def _offsets(local: Ints, zone: tzinfo) -> Ints:
    """The zone's offset of each local second.

    Asks the zone for each day once, and for each time of a day only where the offset changes within that day.
    """
    days, of_day = np.unique(np.floor_divide(local, _DAY), return_inverse=True)
    ends = [(_offset(day * _DAY, zone), _offset(day * _DAY + _DAY - 1, zone)) for day in days.tolist()]
    first, last = np.array(ends, np.int64).reshape(-1, 2).T
    offsets = first[of_day]
    for place in np.flatnonzero((first != last)[of_day]).tolist():
        offsets[place] = _offset(int(local[place]), zone)
    return offsets


@lru_cache(maxsize=4096)
def _offset(local: int, zone: tzinfo) -> int:
    days, seconds = divmod(local, _DAY)
    moment = datetime.fromordinal(days + _EPOCH_DAY).replace(
        hour=seconds // 3600, minute=seconds // 60 % 60, second=seconds % 60, tzinfo=zone
    )
    offset = moment.utcoffset()
    assert offset is not None, "a zone without an offset"
    return offset.days * _DAY + offset.seconds


_EPOCH_DAY: Final = datetime(1970, 1, 1, tzinfo=UTC).toordinal()
