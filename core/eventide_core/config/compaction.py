"""Compaction by event time."""

from enum import StrEnum

from eventide_core.config.option import (
    DURATION,
    FLAG,
    TEXT,
    WHOLE_NUMBER,
    Option,
    choice,
    one_of,
    optional,
    whole_number,
)


class LinkChoice(StrEnum):
    AUTO = "auto"
    SYMLINK = "symlink"
    COPY = "copy"
    HARDLINK = "hardlink"
    PREFIX = "prefix"


class MetadataTableChoice(StrEnum):
    """What an action does with Hudi's metadata table, which would go stale."""

    UPDATE = "update"
    DROP = "drop"
    REFUSE = "refuse"


class ParquetCodec(StrEnum):
    """The compression of a base file; `AS_BEFORE` is the one of the base file it takes the place of (gzip where none)."""

    AS_BEFORE = "as-before"
    GZIP = "gzip"
    ZSTD = "zstd"
    SNAPPY = "snappy"
    UNCOMPRESSED = "uncompressed"


EVENT_TIME_FIELD = optional(
    "hoodie.payload.event.time.field",
    TEXT,
    "The field that holds the event time.",
    otherwise="what the table says, else its first ordering field",
)
EVENT_TIME_ZONE = optional(
    "eventide.event.time.zone",
    TEXT,
    "The time zone of times in that field that have none: timestamps without a zone, dates, and texts such as "
    "`2026-11-20 03:00:00`. A new table keeps it, and one whose field is such a timestamp or date needs it.",
    otherwise="what the table says, else UTC, and such a text is unreadable",
)
EVENT_TIME_FORMAT = optional(
    "eventide.event.time.format",
    TEXT,
    "The form of the texts in that field, a pattern of Java such as `MM/dd/yyyy HH:mm`. A new table keeps it.",
    otherwise="what the table says, else ISO-8601",
)
THRESHOLD = optional(
    "hoodie.compaction.event.time.threshold",
    TEXT,
    "T: everything before it is compacted. ISO-8601 with a zone, or epoch milliseconds.",
)
DATA_LATENCY = optional(
    "hoodie.compaction.event.time.data.latency.seconds",
    WHOLE_NUMBER,
    "T is the current time minus this many seconds. Cannot be combined with an explicit T.",
)
ALIGN = optional(
    "hoodie.compaction.event.time.align",
    DURATION,
    "Floors T to the start of a day (`1d`), an hour (`1h`), or a part of one.",
)
ALIGN_ZONE = optional(
    "hoodie.compaction.event.time.align.timezone",
    TEXT,
    "The time zone of the days and hours that T is floored to, such as Europe/Berlin.",
    otherwise="UTC",
)
CUT = Option(
    "hoodie.compaction.event.time.cut",
    one_of("file", "exact"),
    "file",
    "Compacts whole log files, as the RFC does, or exactly the records before T.",
)
MAX_LEFT_OVERS = Option(
    "hoodie.compaction.event.time.max.left.over.logs",
    WHOLE_NUMBER,
    30,
    "An exact cut compacts a slice in full where it would keep more log files than this.",
)
LINK_MODE = Option(
    "hoodie.compaction.partial.link.mode",
    choice(LinkChoice),
    LinkChoice.AUTO,
    "How left-over logs stay visible in the new slice.",
)
METADATA_TABLE = Option(
    "eventide.metadata.table",
    choice(MetadataTableChoice),
    MetadataTableChoice.UPDATE,
    "What happens to Hudi's metadata table where there is one: it is updated, it is dropped, or the action is refused.",
)
METADATA_COMPACT_AFTER = Option(
    "hoodie.metadata.compact.max.delta.commits",
    whole_number(at_least=1),
    10,
    "After how many delta commits Hudi's metadata table is compacted, inside the write that makes the last of them.",
)
EXCLUSIVE = Option(
    "eventide.table.exclusive",
    FLAG,
    False,
    "Declares that every reader and service of the table resolves symbolic links, and that no other engine runs its plans.",
)
CLOCK_SKEW_MS = Option(
    "hoodie.time.generator.max_expected_clock_skew_time_ms",
    WHOLE_NUMBER,
    200,
    "How far apart the clocks of writers may be. A compaction waits this long between its plan and its first file.",
)
FOREIGN_PLANS = Option(
    "eventide.foreign.plans",
    FLAG,
    True,
    "Whether `compact` and `serve` run compactions that another engine has planned but not started.",
)
STREAMS_COMPACT = Option(
    "eventide.streams.compact",
    FLAG,
    True,
    "Whether Hudi's streams of Spark that write to the table also compact it, as they do by default. If so, eventide leaves "
    "Hudi's plans to them, and refuses to make plans of its own: a stream that starts can take one up, and then stops "
    "without an error.",
)
PENDING_WRITE_WAIT_MS = Option(
    "eventide.pending.write.wait_ms",
    WHOLE_NUMBER,
    60_000,
    "How long a compaction waits for a quiet moment; on version 6, for writes that may not have seen its plan; and how long "
    "`compact` waits for what another engine has planned or begun.",
)
PARQUET_CODEC = Option(
    "hoodie.parquet.compression.codec",
    choice(ParquetCodec),
    ParquetCodec.AS_BEFORE,
    "The compression of base files. `as-before` is the compression of the previous base file, and gzip for a new one.",
)
