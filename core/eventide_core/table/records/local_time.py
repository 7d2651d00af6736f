"""When a local time of a zone was, in milliseconds.

1. A local time that occurs twice, when clocks go back, is the first of both.
2. One that does not occur, when they go forward, is the moment of the change: never later than what Java, Spark and Python
   read, which is the offset before the change.
3. So no local time is taken to be later than it was, and nothing before T waits unseen; and a later local time is never an
   earlier moment, so that the least and the greatest value of a column are its least and greatest event time.
"""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Final

DAY_MS: Final = 86_400_000
_MS: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - a local time
_DAY_MAX: Final = date.max.toordinal() - _EPOCH.toordinal() - 1  # its UTC days are within the years of a datetime, too
_DAY_MIN: Final = date.min.toordinal() - _EPOCH.toordinal() + 1
_LAST: Final = time(23, 59, 59, 999_000)


@dataclass(frozen=True, slots=True)
class DayOffsets:
    """How far a zone is ahead of UTC at the start and at the end of a local day, `first_ms` and `last_ms`.

    `change_ms` is the moment of the change in epoch milliseconds; None if the offset is the same all day.
    """

    first_ms: int
    last_ms: int
    change_ms: int | None


@lru_cache(maxsize=4096)
def offsets_of_day(day: int, zone: tzinfo) -> DayOffsets:
    """The offsets of the local day with that number since 1970-01-01; beyond the years of a datetime, the nearest day's."""
    midnight = _EPOCH + timedelta(days=min(max(day, _DAY_MIN), _DAY_MAX))
    first, last = (
        _offset(midnight.replace(tzinfo=zone, fold=0)),
        _offset(datetime.combine(midnight, _LAST, zone).replace(fold=1)),
    )
    if first == last:
        return DayOffsets(first // _MS, last // _MS, None)
    begin = midnight.replace(tzinfo=UTC) - first
    seconds = range(int((timedelta(days=1) + first - last).total_seconds()) + 1)
    passed = bisect_left(
        seconds, True, key=lambda second: _offset((begin + timedelta(seconds=second)).astimezone(zone)) != first
    )
    change = begin + timedelta(seconds=passed) - _EPOCH.replace(tzinfo=UTC)
    return DayOffsets(first // _MS, last // _MS, change // _MS)


def local_to_epoch_ms(local_ms: int, zone: tzinfo) -> int:
    """A local time, in milliseconds since 1970-01-01T00:00 of the zone, as epoch milliseconds."""
    offsets = offsets_of_day(local_ms // DAY_MS, zone)
    moment_ms = local_ms - offsets.first_ms
    if offsets.change_ms is None or moment_ms < offsets.change_ms:
        return moment_ms
    return max(offsets.change_ms, local_ms - offsets.last_ms)


def _offset(moment: datetime) -> timedelta:
    offset = moment.utcoffset()
    assert offset is not None, "a zone without an offset"
    return offset
