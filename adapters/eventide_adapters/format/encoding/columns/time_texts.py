"""The event times of a column of texts, by the settings of `eventide_core.table.records.event_time_texts`."""

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.local_times import epoch_ms_of_local
from eventide_adapters.format.encoding.columns.time_patterns import Reading, reading_of
from eventide_core.table.records.event_time import iso_to_epoch_ms, text_to_epoch_ms
from eventide_core.table.records.event_time_texts import ISO_WITH_ZONE, EventTimeTexts

Ints = npt.NDArray[np.int64]

_DAY: Final = 86_400
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


def times_of_texts(column: Any, texts: EventTimeTexts) -> pa.Int64Array:
    """The event times in epoch milliseconds; null for none, and for a text that isn't a time.

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
    millis: Ints = local * 1000
    if "fraction" in names:
        millis += _numbers(_first_three(parsed.field("fraction")))
    if reading.zone is not None:
        return epoch_ms_of_local(millis, reading.zone), is_known
    offsets = _own_offsets(parsed.field("offset"))
    is_known &= np.abs(offsets) < _DAY
    return millis - offsets * 1000, is_known


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
