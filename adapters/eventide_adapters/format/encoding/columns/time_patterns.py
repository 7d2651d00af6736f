"""How texts of event times are read: the zone and the pattern that a table's settings name, as a regular expression.

Imports no Arrow: a table is opened without it.
"""

import re
from dataclasses import dataclass
from datetime import tzinfo
from functools import lru_cache
from typing import Final

from eventide_core.config import EVENT_TIME_FORMAT, EVENT_TIME_ZONE, Options, zone_of
from eventide_core.errors import ConfigError
from eventide_core.table.records.event_time_texts import FORMAT_KEY, ZONE_KEY, EventTimeTexts

_TOKEN: Final = re.compile(r"'(?P<literal>[^']*)'|(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<other>[^A-Za-z']+)")
_DIGITS: Final = {"H": "hour", "h": "half", "m": "minute", "s": "second", "M": "month", "d": "day"}
_GROUPS: Final = {
    "yyyy": r"(?P<year>\d{4})",
    "a": r"(?P<meridiem>[AaPp][Mm])",
    "XXX": r"(?P<offset>Z|[+-]\d{2}:\d{2})",
    **{letter: rf"(?P<{name}>\d{{1,2}})" for letter, name in _DIGITS.items()},
    **{2 * letter: rf"(?P<{name}>\d{{2}})" for letter, name in _DIGITS.items()},
    **{count * "S": rf"(?P<fraction>\d{{{count}}})" for count in range(1, 10)},
}
_LOCAL_ISO: Final = (
    r"^(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?)?$"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a text becomes an event time.

    `regex` has a named group for each part of a time; None if the settings name neither a zone nor a pattern. `zone` is the
    zone of texts without an offset; None if they have to state one. `takes_numbers`: the digits of an epoch time, in any
    unit, are a time, too; not so if the settings name a pattern.
    """

    regex: str | None
    zone: tzinfo | None
    takes_numbers: bool


def zone_of_local(texts: EventTimeTexts) -> tzinfo | None:
    """The zone of times that have none; None if no zone is stated. Raises ConfigError for an unknown one."""
    return None if texts.zone is None else zone_of(texts.zone, f"{ZONE_KEY}=")


@lru_cache(maxsize=16)
def reading_of(texts: EventTimeTexts) -> Reading:
    """Raises ConfigError for a zone or pattern that cannot be used."""
    zone = zone_of_local(texts)
    if texts.pattern is None:
        return Reading(None if zone is None else _LOCAL_ISO, zone, takes_numbers=True)
    regex = _regex(texts.pattern)
    if ("<offset>" in regex) == (zone is not None):
        cure = f"omit {ZONE_KEY}" if zone is not None else f"set {ZONE_KEY} to a name such as Europe/Berlin"
        has = "a zone of its own" if zone is not None else "no zone"
        raise ConfigError(f"{FORMAT_KEY}={texts.pattern!r} has {has}: {cure}")
    return Reading(regex, zone, takes_numbers=False)


def event_time_texts(options: Options) -> EventTimeTexts:
    """How texts of event times are read, by the options. Raises ConfigError for a zone or pattern that cannot be used."""
    texts = EventTimeTexts(options.text(EVENT_TIME_ZONE), options.text(EVENT_TIME_FORMAT))
    reading_of(texts)
    return texts


def _regex(pattern: str) -> str:
    parts, end = list[str](), 0
    for token in _TOKEN.finditer(pattern):
        letters = token["letters"]
        if token.start() != end or (letters and letters not in _GROUPS) or set('"\\') & set(token[0]):
            break
        parts.append(_GROUPS[letters] if letters else re.escape(token["other"] or token["literal"] or "'"))
        end = token.end()
    regex = f"^{''.join(parts)}$"
    names = re.findall(r"<(\w+)>", regex)
    has_day = {"year", "month", "day"} <= set(names) and len(set(names)) == len(names)
    has_hour = ("half" in names) == ("meridiem" in names) and not {"half", "hour"} <= set(names)
    if end != len(pattern) or not has_day or not has_hour:
        raise ConfigError(
            f"{FORMAT_KEY}={pattern!r} isn't a pattern of a time: write year, month and day, and further parts, as yyyy, "
            "MM, dd, HH, mm, ss, SSS, XXX (an offset), or M, d, H, hh with a; texts between single quotes. An example is "
            "MM/dd/yyyy HH:mm"
        )
    return regex
