"""How the values of a table's event-time column are read that have no zone: texts, local timestamps and dates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from eventide_core.errors import ConfigError
from eventide_core.table.schema.avro_schema import AvroSchema

ZONE_KEY: Final = "eventide.event.time.zone"
FORMAT_KEY: Final = "eventide.event.time.format"
_IN: Final = " in "


@dataclass(frozen=True, slots=True)
class EventTimeTexts:
    """How event times without a zone are read: `zone` is a time zone's name, `pattern` one of Java, as the user wrote them.

    A timestamp without a zone is a time in that zone, and a date its first moment there; in UTC without a zone (None).

    With a zone alone, an ISO-8601 text without a zone is a time in that zone. With a pattern, a text of that form is a time,
    in the zone unless the pattern has one of its own. A text of digits is then no number of seconds. ISO-8601 with a zone,
    which cannot be mistaken, is always a time. Without either, no other text is one.
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

    def source(self, field: str, schema: AvroSchema) -> str:
        """The field, with how its values are read: two figures are of the same event times if this is the same.

        So figures from before a change of the settings are not used after it. Figures of local times have their own form:
        versions of eventide that took them for UTC named the zone of texts beside them.
        """
        if self == ISO_WITH_ZONE:
            return field
        if schema.is_local_time(field) and self.zone not in (None, "UTC"):
            return f"{field}{_IN}{self.zone}"
        if not schema.is_text(field):
            return field
        return " ".join([field, *(f"{key.rpartition('.')[2]}={value}" for key, value in self.settings.items())])

    def contradicts(self, published: str, field: str, schema: AvroSchema) -> bool:
        """Whether figures of that source are of other local times of the field: without a zone, they are of UTC."""
        return (published if _IN in published else field) != self.source(field, schema)

    def why_unused(self, field: str | None, schema: AvroSchema) -> str | None:
        """Why the field doesn't need these settings; None if it does."""
        if field is None:
            return "the event-time field is not named: name it"
        if schema.is_text(field) or self == ISO_WITH_ZONE or (schema.is_local_time(field) and self.pattern is None):
            return None
        has = "no texts" if schema.is_local_time(field) else "neither texts nor times without a zone"
        return f"the event-time field {field!r} has {has}: omit it"

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
