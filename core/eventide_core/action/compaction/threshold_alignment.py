"""T rounded down to a day, an hour, or a part of one, in a time zone, for snapshots of whole days and hours.

1. T is converted to local time, and rounded down to a multiple of the length since midnight.
2. If clocks are put forward over a boundary, the boundary is the moment of the change.
3. If clocks are put back and show a boundary twice, both are boundaries for lengths up to an hour. For a longer length,
   only the first one is: a day begins once.

Lengths divide an hour or a day without a remainder, so that each day has the same boundaries.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from eventide_core.config import ALIGN, duration_text
from eventide_core.errors import ConfigError

_HOUR, _DAY = 3600, 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Boundaries that are `seconds` apart, counted from midnight of `zone`."""

    seconds: int
    zone: tzinfo = UTC

    def __post_init__(self) -> None:
        """Raises ConfigError for a length that fits neither an hour nor a day."""
        fits_hour = self.seconds > 0 and _HOUR % self.seconds == 0
        fits_day = self.seconds > 0 and self.seconds % _HOUR == 0 and _DAY % self.seconds == 0
        if not (fits_hour or fits_day):
            raise ConfigError(
                f"option {ALIGN}: {duration_text(self.seconds)} divides neither an hour nor a day: use 15m, 1h, 6h or "
                "1d, for example"
            )

    def floor(self, epoch_ms: int) -> int:
        """The last boundary at or before a time. Raises ConfigError for a time outside the years of the calendar."""
        try:
            local = (_EPOCH + epoch_ms * _MS).astimezone(self.zone)
            midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
            second = local.hour * 3600 + local.minute * 60 + local.second
            boundary = midnight + timedelta(seconds=second - second % self.seconds)  # local time
            first, again = (_epoch_ms(boundary.replace(fold=fold)) for fold in (0, 1))
        except OverflowError:
            raise ConfigError(f"T {epoch_ms} is outside the calendar, so {ALIGN} cannot align it") from None
        if again > first:  # shown twice
            return again if self.seconds <= _HOUR and again <= epoch_ms else first
        return first if first <= epoch_ms else again


def _epoch_ms(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // _MS
