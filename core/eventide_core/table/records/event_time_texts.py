"""How the texts of a table's event-time column are read, where they are not ISO-8601 with a zone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from eventide_core.errors import ConfigError

ZONE_KEY: Final = "eventide.event.time.zone"
FORMAT_KEY: Final = "eventide.event.time.format"


@dataclass(frozen=True, slots=True)
class EventTimeTexts:
    """How texts of event times are read: `zone` is a time zone's name, `pattern` one of Java, both as the user wrote them.

    With a zone alone, an ISO-8601 text without a zone is a time in that zone. With a pattern, a text of that form is a time,
    in the zone unless the pattern has one of its own. A text of digits is then no number of seconds. ISO-8601 with a zone,
    which cannot be mistaken, is always a time. Without either (None), no other text is one.
    """

    zone: str | None = None
    pattern: str | None = None

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "EventTimeTexts":
        """By a table's own settings, or by options."""
        return cls(settings.get(ZONE_KEY) or None, settings.get(FORMAT_KEY) or None)

    @property
    def settings(self) -> dict[str, str]:
        """The values that are set, by the keys of a table's settings."""
        values = {ZONE_KEY: self.zone, FORMAT_KEY: self.pattern}
        return {key: value for key, value in values.items() if value is not None}

    def source(self, field: str) -> str:
        """The field, with how its texts are read: two figures are of the same event times if this is the same.

        So figures from before a change of the settings are not used after it.
        """
        return " ".join([field, *(f"{key.rpartition('.')[2]}={value}" for key, value in self.settings.items())])

    def or_else(self, asked: "EventTimeTexts", root: str) -> "EventTimeTexts":
        """The table's own, otherwise what the user asks for. Raises ConfigError if both are set and differ."""
        if self == ISO_WITH_ZONE:
            return asked
        for key, value in asked.settings.items():
            if self.settings.get(key) != value:
                raise ConfigError(
                    f"option {key}={value!r}: the table {root} was created with {self}, and what is known of its event "
                    "times is in terms of that; omit the option"
                )
        return self

    def __str__(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.settings.items()) or "ISO-8601 with a zone"


ISO_WITH_ZONE: Final = EventTimeTexts()
"""The form of a text if nothing else is set."""
