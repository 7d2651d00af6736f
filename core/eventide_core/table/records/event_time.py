"""Event times in milliseconds, and the range of event times in a log file.

A column gives epoch milliseconds as Hudi reads them: a timestamp or date by its logical type, floored to whole
milliseconds, in the zone that the table states if it has none of its own (local_time.py), otherwise in UTC; a plain number
or a string of digits by its length (10 digits are seconds, 13 milliseconds; 16 and 19, which Hudi leaves out of its write
stats, are microseconds and nanoseconds; any other length is milliseconds); any other string as ISO-8601. A number that
spells out a date and a time, such as 20261120030000, isn't a time: it has no zone, and as milliseconds it would be one of
the year 2612, which no T reaches. Of a decimal and a floating number, which Hudi leaves out, too, the digits before the
point count; those after it are a part of the unit: 1700000000.5 is half a second later than 1700000000.
"""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Final, TypeAlias

from eventide_core.bulk_dataclass import bulk_dataclass
from eventide_core.errors import InvalidThresholdError
from eventide_core.table.records.local_time import DAY_MS, local_to_epoch_ms

_PLAIN_MS_MIN: Final = 10**11  # in 1973; a smaller number is a T in seconds, or a mistake
_SECONDS_MIN: Final = 10**8  # in 1973; a smaller number is not even meant as seconds
_EPOCH_MS = re.compile(r"-?\d{1,15}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,19}", re.ASCII)  # a long has no more digits

DATE_DIGITS: Final = 14
"""A number of so many digits may spell out a date and a time to the second: yyyyMMddHHmmss."""
UNREADABLE_DIGITS: Final = (17, 18)
"""No unit gives a time of so many digits before the year 300000; a date and a time to the millisecond has 17."""

_MS_BY_DIGITS: Final = {10: Fraction(1000), 16: Fraction(1, 1000), 19: Fraction(1, 1_000_000)}
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


def datetime_of(epoch_ms: int | None, name: str) -> datetime | None:
    """A time in UTC; None if there is none. Raises InvalidThresholdError for one that Python's datetimes don't reach."""
    if epoch_ms is None:
        return None
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        raise InvalidThresholdError(
            f"{name}: {epoch_ms} ms is not in the years 1 to 9999, which a datetime holds; read {name}_ms instead"
        ) from None


@bulk_dataclass(frozen=True, slots=True)
class EventTimeRange:
    """The event times of a log file's records, in epoch milliseconds, both ends inside the range.

    `unknown_records` counts the records without an event time: nulls, and deletes that carry none. `unreadable_records`
    counts those with a value that is not a time, which may be before any threshold. A range with neither end has no
    record with an event time.
    """

    min_ms: int | None
    max_ms: int | None
    unknown_records: int = 0
    unreadable_records: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether it is the range of no records."""
        return self.min_ms is None and self.max_ms is None and self.has_only_times

    @property
    def has_only_times(self) -> bool:
        """Whether every record has an event time."""
        return not self.unknown_records and not self.unreadable_records

    def union(self, other: "EventTimeRange") -> "EventTimeRange":
        """The range of the records of both."""
        if self.is_empty:
            return other
        least = [time for time in (self.min_ms, other.min_ms) if time is not None]
        greatest = [time for time in (self.max_ms, other.max_ms) if time is not None]
        return EventTimeRange(
            min(least, default=None),
            max(greatest, default=None),
            self.unknown_records + other.unknown_records,
            self.unreadable_records + other.unreadable_records,
        )

    def starts_before(self, threshold_ms: int) -> bool:
        """Whether a record is, or may be, before the threshold: a value that isn't an event time is minus infinity."""
        return not self.has_only_times or (self.min_ms is not None and self.min_ms < threshold_ms)

    def ends_before(self, threshold_ms: int) -> bool:
        """Whether every record is before the threshold: a value that isn't an event time is minus infinity."""
        return self.max_ms is None or self.max_ms < threshold_ms

    def since(self, threshold_ms: int) -> "EventTimeRange":
        """A range that contains the records at or after the threshold, and begins no earlier."""
        if self.min_ms is None or self.max_ms is None or self.max_ms < threshold_ms:
            return EventTimeRange(None, None)
        return EventTimeRange(max(self.min_ms, threshold_ms), self.max_ms)


@dataclass(frozen=True, slots=True)
class EventTimeSpan:
    """The event times of `field` from `begin_ms` on (None: from the first one) and before `end_ms`.

    A record without an event time, or with one that cannot be read, is in no span.
    """

    field: str
    begin_ms: int | None
    end_ms: int


def spells_a_date(number: int) -> bool:
    """Whether a number that is not negative is written as a date and a time, without a zone."""
    if number >= 10**DATE_DIGITS:
        return len(str(number)) in UNREADABLE_DIGITS
    date, time = divmod(number, 1_000_000)
    return (
        1900 <= date // 10_000 < 2200
        and 1 <= date // 100 % 100 <= 12
        and 1 <= date % 100 <= 31
        and time // 10_000 < 24
        and time // 100 % 100 < 60
        and time % 100 < 60
    )


def number_to_epoch_ms(value: int) -> int | None:
    """A plain number in an event-time column as epoch milliseconds; its number of digits gives its unit.

    None if it spells out a date and a time.
    """
    if spells_a_date(abs(value)):
        return None
    match len(str(abs(value))):
        case 10:
            return value * 1000
        case 16:
            return value // 1000
        case 19:
            return value // 1_000_000
        case _:
            return value


def decimal_to_epoch_ms(value: Decimal) -> int | None:
    """A decimal in an event-time column as epoch milliseconds; None if they exceed 64 bits, or spell out a date."""
    if spells_a_date(abs(int(value))):
        return None
    digits = len(str(abs(int(value))))
    millis = math.floor(Fraction(value) * _MS_BY_DIGITS.get(digits, 1))
    return millis if _INT64_MIN <= millis <= _INT64_MAX else None


def text_to_epoch_ms(value: str, zone: tzinfo | None = None) -> int | None:
    """A text in an event-time column as epoch milliseconds; None if it is not a time. `zone`: see `iso_to_epoch_ms`."""
    return number_to_epoch_ms(int(value)) if _NUMBER.fullmatch(value) else iso_to_epoch_ms(value, zone)


def iso_to_epoch_ms(value: str, zone: tzinfo | None = None) -> int | None:
    """An ISO-8601 text as epoch milliseconds; None for any other. `zone`: of a text without one, None to refuse it."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return _floor_ms(moment)
    return None if zone is None else local_to_epoch_ms(_floor_ms(moment.replace(tzinfo=UTC)), zone)


Moment: TypeAlias = str | int | datetime
"""T as a caller may write it: ISO-8601 with a zone, epoch milliseconds, or a datetime with a zone."""


class Threshold(int):
    """T in epoch milliseconds, once it has been parsed."""


def parse_threshold(given: Moment) -> Threshold:
    """Parses a user's T, ISO-8601 with a zone or epoch milliseconds, into epoch milliseconds. Returns a parsed one as it is.

    Raises InvalidThresholdError for anything else, including a time without a zone, and a plain number before 1973, which
    is rather in seconds. An ISO-8601 time cannot be mistaken, so that it may be any.
    """
    if isinstance(given, Threshold):
        return given
    text = str(given).strip()
    if _EPOCH_MS.fullmatch(text):
        if int(text) < _PLAIN_MS_MIN:
            raise InvalidThresholdError(_too_small(int(text)))
        return Threshold(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidThresholdError(
            f"T {text!r} cannot be read: give ISO-8601 with a zone, such as 2026-11-21T00:00Z, or epoch milliseconds"
        )
    return Threshold(_floor_ms(moment))


def _too_small(number: int) -> str:
    if number < 0:
        cure = "give ISO-8601 with a zone, such as 1969-12-31T00:00Z, if it is before 1970"
    elif number < _SECONDS_MIN:
        cure = "give ISO-8601 with a zone, such as 1970-01-01T00:00Z, if it is so early"
    else:
        meant = datetime.fromtimestamp(number, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        cure = f"epoch seconds? write {meant} or milliseconds, {number * 1000}"
    return f"T must be epoch milliseconds of at least {_PLAIN_MS_MIN} (1973), not {number}: {cure}"


def is_ahead(threshold_ms: int, now_ms: int) -> bool:
    """Whether T is more than a day later than the clock, which no local time that is taken for UTC is."""
    return threshold_ms > now_ms + DAY_MS


def _floor_ms(moment: datetime) -> int:
    # Whole microseconds by integers: a float timestamp loses the last digits of far dates.
    epoch = datetime.fromisoformat("1970-01-01T00:00+00:00")
    return (moment - epoch) // timedelta(milliseconds=1)
