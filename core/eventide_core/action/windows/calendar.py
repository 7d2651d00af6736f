"""The boundaries of windows: days, hours or parts of them in a time zone.

A window of an hour or less is absolute: where clocks are put back, the hour that they show twice is two windows. A day
begins at midnight of its zone, so the nights of the clock changes make days of 23 and 25 hours.
"""

from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import cache
from typing import Final

from eventide_core.action.compaction.threshold_alignment import Alignment
from eventide_core.config import ALIGN
from eventide_core.errors import ConfigError

_alignment: Final = cache(Alignment)
_CLOCK_CHANGE_MS = 3 * 60 * 60 * 1000  # no zone's clocks are put forward or back by more, but for a whole day


@dataclass(frozen=True, slots=True)
class WindowCalendar:
    """Windows of `seconds`, a length that divides an hour or a day, counted from midnight in `zone`."""

    seconds: int
    zone: tzinfo = UTC

    def __post_init__(self) -> None:
        """Raises ConfigError for a length that fits neither an hour nor a day."""
        try:
            _alignment(self.seconds, self.zone)
        except ConfigError as error:
            raise ConfigError(str(error).replace(f"option {ALIGN}", "windows")) from None

    def begin_of(self, epoch_ms: int) -> int:
        """The begin of the window that holds a time. Raises ConfigError for a time outside the calendar."""
        return _alignment(self.seconds, self.zone).floor(epoch_ms)

    def end_of(self, begin_ms: int) -> int:
        """The end of the window that begins there, which is the begin of the next one."""
        usual_ms = begin_ms + self.seconds * 1000
        if self.zone is UTC or (self.begin_of(usual_ms) == usual_ms and self.begin_of(usual_ms - 1) == begin_ms):
            return usual_ms
        inside, beyond = begin_ms, begin_ms + self.seconds * 1000 + _CLOCK_CHANGE_MS
        while self.begin_of(beyond) <= begin_ms:  # a zone that skipped a day
            beyond += self.seconds * 1000
        while beyond - inside > 1:
            middle = (inside + beyond) // 2
            if self.begin_of(middle) > begin_ms:
                beyond = middle
            else:
                inside = middle
        return beyond
