"""Tags by watermark."""

from eventide_core.config.option import DURATION, TEXT, Option, optional, whole_number

TAG_EVERY = optional(
    "hoodie.eventide.tag.every",
    DURATION,
    "Tags the view in a round of `serve` if the watermark has passed the start of a day (`1d`), an hour (`1h`), "
    "or a part of one.",
    otherwise="no tags",
)
TAG_ZONE = Option(
    "hoodie.eventide.tag.timezone", TEXT, "UTC", "The time zone of these days and hours, such as Europe/Berlin."
)
TAG_NAME = optional(
    "hoodie.eventide.tag.name",
    TEXT,
    "The name of such a tag, by the start of the day or hour, as `strftime` writes it.",
    otherwise="`%Y-%m-%d` for days, `%Y-%m-%dT%H:%M%z` for hours and parts of them",
)
TAG_RETAINED = optional(
    "hoodie.eventide.tag.retained",
    whole_number(at_least=1),
    "How many of these tags are kept: older ones are deleted. Tags that a person made stay.",
    otherwise="all",
)
