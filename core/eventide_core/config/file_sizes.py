"""Sizes of files and blocks."""

from eventide_core.config.option import BYTES, DURATION, FLAG, WHOLE_NUMBER, Option, one_of

LOG_BLOCK_EVENT_TIME_BUCKET = Option(
    "hoodie.log.block.event.time.bucket",
    DURATION,
    0,
    "The span of event time of one log block, such as 1h, so that an exact cut decodes fewer blocks. 0 turns it off.",
)
LOG_BLOCK_FORMAT = Option(
    "hoodie.logfile.data.block.format", one_of("avro", "parquet"), "avro", "The format of log blocks."
)
LOG_BLOCK_BYTES_MAX = Option("hoodie.logfile.data.block.max.size", BYTES, 256 << 20, "Bytes of a log block.")
LOG_FILE_BYTES_MAX = Option("hoodie.logfile.max.size", BYTES, 1 << 30, "Bytes of a log file.")
PARQUET_MAX_FILE_SIZE = Option(
    "hoodie.parquet.max.file.size",
    BYTES,
    120 << 20,
    "Bytes of a base file. A bounded strategy counts a slice without a base file as this many.",
)
SMALL_FILE_BYTES = Option(
    "hoodie.parquet.small.file.limit", BYTES, 100 << 20, "Base files below this size take new keys."
)
SMALL_FILES_MAX = Option(
    "hoodie.merge.small.file.group.candidates.limit",
    WHOLE_NUMBER,
    1,
    "How many of them a write fills up in each partition.",
)
RECORD_SIZE_ESTIMATE = Option(
    "hoodie.copyonwrite.record.size.estimate", BYTES, 1024, "Bytes of a record, where no earlier commit shows them."
)
INSERT_AUTO_SPLIT = Option(
    "hoodie.copyonwrite.insert.auto.split",
    FLAG,
    True,
    "New file groups get as many records as fit into hoodie.parquet.max.file.size.",
)
INSERT_SPLIT_SIZE = Option(
    "hoodie.copyonwrite.insert.split.size",
    WHOLE_NUMBER,
    500_000,
    "The records of a new file group where hoodie.copyonwrite.insert.auto.split is false.",
)
