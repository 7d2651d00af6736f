"""Strategies and triggers."""

from eventide_core.config.option import BYTES, TEXT, WHOLE_NUMBER, Option, one_of, optional

STRATEGY = Option(
    "hoodie.compaction.strategy",
    TEXT,
    "EventTimeBasedCompactionStrategy",
    "Which slices are compacted: names of strategies, separated by commas.",
)
TARGET_IO_MB = Option(
    "hoodie.compaction.target.io",
    WHOLE_NUMBER,
    500 * 1024,
    "Megabytes that a bounded strategy takes; the last slice may exceed it.",
)
LOG_FILE_SIZE_THRESHOLD = Option(
    "hoodie.compaction.logfile.size.threshold", BYTES, 0, "Bytes of logs from which LogFileSizeBased takes a slice."
)
LOG_FILE_NUM_THRESHOLD = Option(
    "hoodie.compaction.logfile.num.threshold",
    WHOLE_NUMBER,
    0,
    "Number of logs from which LogFileNumBased takes a slice.",
)
TARGET_PARTITIONS = Option(
    "hoodie.compaction.daybased.target.partitions",
    WHOLE_NUMBER,
    10,
    "How many day partitions the strategies by day take.",
)
PARTITION_REGEX = optional(
    "hoodie.compaction.partition.path.regex",
    TEXT,
    "PartitionRegexBased takes the partitions whose path contains a match of this pattern.",
    otherwise="none; that strategy needs one",
)
TRIGGER = optional(
    "hoodie.compact.inline.trigger.strategy",
    one_of(
        "EVENT_TIME_TRIGGER",
        "NUM_COMMITS",
        "NUM_COMMITS_AFTER_LAST_REQUEST",
        "TIME_ELAPSED",
        "NUM_AND_TIME",
        "NUM_OR_TIME",
    ),
    "When a compaction is due.",
    otherwise="EVENT_TIME_TRIGGER with the event-time strategy, NUM_COMMITS with the others",
)
MAX_DELTA_COMMITS = Option(
    "hoodie.compact.inline.max.delta.commits",
    WHOLE_NUMBER,
    5,
    "Delta commits after which NUM_COMMITS is due. Archiving keeps as many.",
)
MAX_DELTA_SECONDS = Option(
    "hoodie.compact.inline.max.delta.seconds", WHOLE_NUMBER, 3600, "Seconds after which TIME_ELAPSED is due."
)
