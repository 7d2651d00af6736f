"""The options of a stream of windows: the arguments of `Table.windows`, each as an option of its own."""

from eventide_core.action.windows.progress import LatePolicy
from eventide_core.config.option import FLAG, TEXT, Option, choice, optional

EVERY = optional(
    "windows",
    TEXT,
    "The length of the windows, such as 15m, 1h, or 1d: each batch of the stream is a closed window of event time. Needs "
    "`consumer`.",
    otherwise="none; the stream is of the table's changes",
)
CONSUMER = optional("consumer", TEXT, "Who gets the windows, each of them once.")
TIME_ZONE = Option("windows.time.zone", TEXT, "UTC", "Where days and hours begin.")
SINCE = optional(
    "windows.since", TEXT, "The first window of a new consumer holds this T.", otherwise="the earliest event time"
)
LATE = Option(
    "windows.late", choice(LatePolicy), LatePolicy.REDELIVER, "What happens to a done window that late data changes."
)
CORRECTIONS_FOR = optional(
    "windows.corrections.for",
    TEXT,
    "How long before the next window a window may begin that is corrected.",
    otherwise="ever",
)
LEASE = Option(
    "windows.lease",
    TEXT,
    "15m",
    "How long the stream holds a window: longer than a batch takes. Then another runner of the consumer gets it.",
)
KEEP = Option("windows.keep", TEXT, "7d", "How long cleaning keeps what the consumer has to read.")
TAKE_OVER = Option(
    "windows.take.over",
    FLAG,
    False,
    "Whether the stream, when it starts, takes an open window from another runner, which is dead.",
)
RENEW = Option("windows.renew", FLAG, False, "Goes on with the latest view where files that are needed were cleaned.")
