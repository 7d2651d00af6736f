"""The options of streams, and of writes with format("eventide")."""

from eventide_core.config.option import BYTES, FLAG, TEXT, WHOLE_NUMBER, Option, choice, one_of, optional
from eventide_core.table.settings.write_shape import WriteOperation

WRITE_OPERATION = Option(
    "hoodie.datasource.write.operation",
    choice(WriteOperation),
    WriteOperation.UPSERT,
    'What a stream or a write by format("eventide") does with its rows.',
)
PARTITION_OVERWRITE_MODE = Option(
    "partitionOverwriteMode",
    one_of("static", "dynamic"),
    "static",
    'What a write by format("eventide") with mode("overwrite") replaces: static, the whole table; dynamic, the partitions '
    "of its rows. Spark does not pass its session's setting on.",
)
COMPACT_INLINE = Option(
    "hoodie.compact.inline", FLAG, False, "Compacts after each batch where the trigger says that a compaction is due."
)
COMPACT_SCHEDULE_INLINE = Option(
    "hoodie.compact.schedule.inline", FLAG, False, "Plans such a compaction and does not run it."
)
COMPACT_ASYNC = Option(
    "hoodie.datasource.compaction.async.enable",
    FLAG,
    False,
    "Plans such a compaction after the batch, and runs it beside the next ones.",
)
WRITE_BYTES_MAX = Option(
    "eventide.spark.write.bytes.max",
    BYTES,
    1 << 30,
    'The most rows that a write with format("eventide") takes, by their bytes in Arrow: they all reach the driver. '
    "A larger write is refused; use Table.upsert(frame), or stream_sink for a stream, whose rows stay on executors.",
)
STREAM_START = Option(
    "hoodie.datasource.streaming.startOffset",
    TEXT,
    "earliest",
    "Where a stream of the changes of a table begins: earliest, latest, or after an instant.",
)
STREAM_IDENTIFIER = optional(
    "hoodie.datasource.write.streaming.checkpoint.identifier",
    TEXT,
    "The name of the stream.",
    otherwise='the id of the query; format("eventide") needs a name',
)
STREAM_RETRY_COUNT = Option(
    "hoodie.datasource.write.streaming.retry.count",
    WHOLE_NUMBER,
    3,
    "How often a batch is retried where another writer was in the way.",
)
STREAM_RETRY_INTERVAL_MS = Option(
    "hoodie.datasource.write.streaming.retry.interval.ms", WHOLE_NUMBER, 2000, "The pause before a retry."
)
STREAM_WATERMARK_AS_THRESHOLD = Option(
    "eventide.stream.watermark.as.threshold", FLAG, False, "Takes the stream's own watermark as T."
)
STREAM_WATERMARK_AS_SOURCE = optional(
    "eventide.stream.watermark.as.source",
    TEXT,
    "The name of a source: each batch states that it has come as far as the stream's own watermark.",
)
SOURCES = optional(
    "eventide.sources",
    TEXT,
    'What the rows of a write or a stream were made of, as JSON: {"/lake/trips": STATE, ...}. STATE is the instant of the '
    "compaction after which the rows were read; a T, if they were made of everything before it; or `consumer:NAME`, the "
    f"window of the batch of a stream of windows, which has the same `{STREAM_IDENTIFIER}`.",
)
