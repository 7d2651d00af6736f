"""Markers of the windows that are done."""

from eventide_core.config.option import TEXT, Option, optional

MARKER_EVERY = optional(
    "eventide.done.marker.every",
    TEXT,
    "The length of the windows that each round of `serve` marks as done when they are complete, such as 15m, 1h, or 1d.",
    otherwise="no markers",
)
MARKER_TO = optional(
    "eventide.done.marker.to",
    TEXT,
    "Where markers go: the directory of files, on any storage, or a URL (`https://...`) that is called.",
    otherwise="`.hoodie/.aux/eventide/done` of the table",
)
MARKER_NAME = Option(
    "eventide.done.marker.name",
    TEXT,
    "%Y-%m-%dT%H%M%z/_SUCCESS",
    "The name of a file, by the begin of its window, as `strftime` writes it.",
)
MARKER_SINCE = optional(
    "eventide.done.marker.since", TEXT, "The first window holds this T.", otherwise="the earliest event time"
)
MARKER_ZONE = Option("eventide.done.marker.timezone", TEXT, "UTC", "Where days and hours begin, such as Europe/Berlin.")
MARKER_SECRET = optional(
    "eventide.done.marker.secret", TEXT, "Signs each call of a URL, by HMAC-SHA256 of its body.", secret=True
)
MARKER_LEASE = Option(
    "eventide.done.marker.lease",
    TEXT,
    "1m",
    "How long other services wait for one that may be dead while it sends an event.",
)
