"""The hours of a day in which a table of a fleet may be compacted."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from eventide_core.errors import ConfigError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MINUTES: Final = 1440
_FORM: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class DailyWindow:
    """From one minute of the day to another, in a time zone. The end is excluded, and may lie on the next day.

    `start_minute` and `end_minute` count from midnight as clocks of `zone` show it, 0 to 1439, and differ.
    """

    start_minute: int
    end_minute: int
    zone: tzinfo = UTC

    @classmethod
    def parse(cls, text: str, zone: tzinfo = UTC) -> "DailyWindow":
        """`22:00-06:00`. Raises ConfigError for any other form, and for a window without length."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise ConfigError(f"window {text!r} does not have the form HH:MM-HH:MM, such as 22:00-06:00")
        hour, minute, end_hour, end_minute = map(int, match.groups())
        window = cls(hour * 60 + minute, end_hour * 60 + end_minute, zone)
        if window.start_minute == window.end_minute:
            raise ConfigError(f"window {text!r} has no length; omit it if the table may be compacted at any time")
        return window

    @property
    def share_of_day(self) -> float:
        return ((self.end_minute - self.start_minute) % _DAY_MINUTES) / _DAY_MINUTES

    def is_open(self, now_ms: int) -> bool:
        minute = self._local(now_ms).hour * 60 + self._local(now_ms).minute
        if self.start_minute < self.end_minute:
            return self.start_minute <= minute < self.end_minute
        return minute >= self.start_minute or minute < self.end_minute

    def opens_at(self, now_ms: int) -> int:
        """The next opening after a moment."""
        return self._next(now_ms, self.start_minute)

    def closes_at(self, now_ms: int) -> int:
        """The next close after a moment."""
        return self._next(now_ms, self.end_minute)

    def _next(self, now_ms: int, minute: int) -> int:
        """The next moment at which clocks of the zone show a minute of the day."""
        midnight = self._local(now_ms).replace(hour=0, minute=0, second=0, microsecond=0)
        for days in range(3):
            at = (midnight + timedelta(days=days)).replace(hour=minute // 60, minute=minute % 60)
            at_ms = (at.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
            if at_ms > now_ms:
                return at_ms
        raise AssertionError("a minute of the day comes within two days")

    def _local(self, now_ms: int) -> datetime:
        return (_EPOCH + timedelta(milliseconds=now_ms)).astimezone(self.zone)
