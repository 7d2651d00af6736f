"""Durations and time zones as users write them, wherever they do: one reading, one message, one cure."""

import re
from datetime import UTC, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from eventide_core.errors import ConfigError

A_DURATION: Final = "a duration such as 90s, 30m, 2h or 1d"
_DURATION = re.compile(r"(\d{1,9}[smhd])+", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.ASCII | re.IGNORECASE)


def duration_seconds(text: str) -> int | None:
    """What 90s, 30m, 2h, 1d, 1d12h or 0 is in seconds; None if it isn't a duration."""
    if text == "0":
        return 0
    if not _DURATION.fullmatch(text):
        return None
    return sum(int(count) * _SECONDS[unit] for count, unit in re.findall(r"(\d+)([smhd])", text))


def duration_of(text: object, asked: str) -> int:
    """A duration in seconds; `asked` begins the message, such as "target_lag=". Raises ConfigError."""
    seconds = duration_seconds(text) if isinstance(text, str) else None
    if seconds is None:
        raise ConfigError(f"{asked}{text!r} is not {A_DURATION}")
    return seconds


def positive_duration_of(text: object, asked: str) -> int:
    """A duration in seconds, above 0; `asked` begins the message. Raises ConfigError."""
    seconds = duration_of(text, asked)
    if not seconds:
        raise ConfigError(f"{asked}{text!r} is not above 0: use {A_DURATION}")
    return seconds


def duration_text(seconds: int) -> str:
    """A duration as users write it: 1h30m."""
    parts: list[str] = []
    for unit, length in sorted(_SECONDS.items(), key=lambda one: -one[1]):
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def zone_of(name: str, asked: str) -> tzinfo:
    """The time zone of that name; `asked` begins the message, such as "time_zone=". Raises ConfigError.

    An offset such as GMT+8:00, which Java takes for a zone, is none: the message names the zone of that offset.
    """
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # no such zone, or no name of one
        raise ConfigError(f"{asked}{name!r} is not a known time zone: {_cure(name)}") from None


def _cure(name: str) -> str:
    match = _OFFSET.fullmatch(name)
    if match is None:
        return "use a name such as Europe/Berlin; if the machine has no time zones, run `pip install tzdata`"
    offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    if not offset:
        return "use UTC"
    named = "a name such as Asia/Kolkata"
    is_east, hours = match[1] == "+", offset // timedelta(hours=1)
    if offset % timedelta(hours=1) or hours > (14 if is_east else 12):
        return f"it is an offset; use {named}"
    return (
        f"it is an offset; use {named}, or Etc/GMT{'-' if is_east else '+'}{hours}, whose sign is the other way round"
    )
