"""The options that a user gives, `hoodie.*` and `eventide.*` keys, as typed values.

What stands below a key is its line in docs/reference/configuration.md; type and default come from where it is read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from eventide_core.errors import ConfigError

# Compaction by event time
EVENT_TIME_FIELD = "hoodie.payload.event.time.field"
"""The field that holds the event time. Default: what the table says, else its first ordering field."""
THRESHOLD = "hoodie.compaction.event.time.threshold"
"""T: everything before it is compacted; ISO-8601 with a zone, or epoch milliseconds. Default: none."""
DATA_LATENCY = "hoodie.compaction.event.time.data.latency.seconds"
"""T is the time now less so many seconds; goes not with the key above. Default: none."""
ALIGN = "hoodie.compaction.event.time.align"
"""T is floored to the start of a day (`1d`), an hour (`1h`) or a part of one. Default: none."""
ALIGN_ZONE = "hoodie.compaction.event.time.align.timezone"
"""The time zone in which days and hours of the key above begin, such as Europe/Berlin. Default: UTC."""
CUT = "hoodie.compaction.event.time.cut"
"""Whole log files, as the RFC has it, or exactly the records before T."""
MAX_LEFT_OVERS = "hoodie.compaction.event.time.max.left.over.logs"
"""An exact cut compacts a slice in full where it would keep more logs than this."""
LINK_MODE = "hoodie.compaction.partial.link.mode"
"""How left-over logs stay visible in the new slice."""
METADATA_TABLE = "eventide.metadata.table"
"""What becomes of Hudi's metadata table where one is: it is updated, or dropped, or the action is refused."""
EXCLUSIVE = "eventide.table.exclusive"
"""Declares that every reader and service of the table resolves symbolic links, and that no other engine runs its plans."""
CLOCK_SKEW_MS = "hoodie.time.generator.max_expected_clock_skew_time_ms"
"""How far the clocks of writers may be apart: a compaction waits so long between its plan and its first file."""
FOREIGN_PLANS = "eventide.foreign.plans"
"""Whether `compact` and `serve` run compactions that another engine has planned and not begun."""
PENDING_WRITE_WAIT_MS = "eventide.pending.write.wait_ms"
"""How long a compaction waits for a quiet moment, on version 6 for writes that may not have seen its plan, and `compact` for
what another engine has planned or begun."""
PARQUET_CODEC = "hoodie.parquet.compression.codec"
"""The compression of base files. `as-before` is that of the base file before it, and gzip for a new one."""

# Strategies and triggers
STRATEGY = "hoodie.compaction.strategy"
"""Which slices are compacted: names of strategies, with commas between. Default: EventTimeBasedCompactionStrategy."""
TARGET_IO_MB = "hoodie.compaction.target.io"
"""Megabytes that a bounded strategy takes; the last slice may pass it."""
LOG_FILE_SIZE_THRESHOLD = "hoodie.compaction.logfile.size.threshold"
"""Bytes of logs from which LogFileSizeBased takes a slice."""
LOG_FILE_NUM_THRESHOLD = "hoodie.compaction.logfile.num.threshold"
"""Logs from which LogFileNumBased takes a slice."""
TARGET_PARTITIONS = "hoodie.compaction.daybased.target.partitions"
"""How many day partitions the strategies by day mean."""
PARTITION_REGEX = "hoodie.compaction.partition.path.regex"
"""PartitionRegexBased takes partitions in whose path this pattern is found. Default: none; that strategy needs one."""
TRIGGER = "hoodie.compact.inline.trigger.strategy"
"""When a compaction is due. Default: EVENT_TIME_TRIGGER with the event-time strategy, NUM_COMMITS with the others."""
MAX_DELTA_COMMITS = "hoodie.compact.inline.max.delta.commits"
"""Delta commits after which NUM_COMMITS is due; archiving keeps as many."""
MAX_DELTA_SECONDS = "hoodie.compact.inline.max.delta.seconds"
"""Seconds after which TIME_ELAPSED is due."""

# Queries by format("eventide") and `eventide read`
QUERY_TYPE = "hoodie.datasource.query.type"
"""Which of the queries."""
AS_OF = "as.of.instant"
"""A snapshot as of this instant, it included. Default: now."""
AS_OF_WATERMARK = "as.of.watermark"
"""A read-optimized query as of a watermark, a T; Hudi has no such key. Default: none."""
AS_OF_TAG = "as.of.tag"
"""A snapshot or read-optimized query as of the savepoint that bears this tag; Hudi has no such key. Default: none."""
BEGIN = "hoodie.datasource.read.begin.instanttime"
"""An incremental query's begin, not included. Default: none; an incremental query needs one."""
END = "hoodie.datasource.read.end.instanttime"
"""An incremental query's end, included. Default: the last commit."""
DELETE_FIELD = "hoodie.payload.delete.field"
"""The column by which a record deletes its key, for readers; goes with the marker. Default: none."""
DELETE_MARKER = "hoodie.payload.delete.marker"
"""The value of that column which deletes. Default: none."""

# New tables
TABLE_NAME = "hoodie.table.name"
"""The name of a table to be made. Default: the last part of its path."""
TABLE_VERSION = "hoodie.write.table.version"
"""The version of a table to be made: 6, 8 or 9."""
MERGE_MODE = "hoodie.write.record.merge.mode"
"""COMMIT_TIME_ORDERING or EVENT_TIME_ORDERING. Default: by event time where an ordering or event-time field is given."""
RECORD_KEY = "hoodie.datasource.write.recordkey.field"
"""The record key's fields, for a table that a write by format("eventide") makes. Default: none; nothing is made."""
PARTITION_PATH = "hoodie.datasource.write.partitionpath.field"
"""The partition's fields, likewise. Default: none; the table has no partitions."""
ORDERING = "hoodie.datasource.write.precombine.field"
"""The ordering field, likewise. Default: the event-time field."""
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
"""Whether partition paths are `field=value`."""
URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
"""Whether partition paths are url-encoded."""
KEY_GENERATORS = ("hoodie.datasource.write.keygenerator.class", "hoodie.datasource.write.keygenerator.type")
"""The key generator, by class or type. Default: the one that the fields make."""

# Writes
WRITE_OPERATION = "hoodie.datasource.write.operation"
"""What a stream or a write by format("eventide") does with its rows."""
COMBINE_BEFORE_UPSERT = "hoodie.combine.before.upsert"
"""Whether one version of each key is kept of the records of an upsert."""
COMBINE_BEFORE_INSERT = "hoodie.combine.before.insert"
"""The same of an insert and a bulk_insert. Default: false, but true where duplicates are dropped."""
INSERT_DUPLICATES = "hoodie.datasource.insert.dup.policy"
"""What becomes of inserts whose keys the table has: none (written all the same), drop, fail. Default: none."""
DROP_INSERT_DUPLICATES = "hoodie.datasource.write.insert.drop.duplicates"
"""The older name of dropping them."""
INDEX_TYPE = "hoodie.index.type"
"""How a key finds its file group. Default: BUCKET for new tables, else what the table or its file names say."""
BUCKETS = "hoodie.bucket.index.num.buckets"
"""Buckets a partition; for a table that does not say it, what its other writers have."""
BUCKET_HASH_FIELDS = "hoodie.bucket.index.hash.field"
"""The fields that are hashed into buckets. Default: the record key's."""
BUCKET_ENGINE = "hoodie.index.bucket.engine"
"""SIMPLE is the only one that is supported. Default: SIMPLE."""
SIMPLE_INDEX_MOVES_KEYS = "hoodie.simple.index.update.partition.path"
"""Under GLOBAL_SIMPLE: whether a key moves to the partition that its record comes with. Default: true."""
BLOOM_INDEX_MOVES_KEYS = "hoodie.bloom.index.update.partition.path"
"""The same under GLOBAL_BLOOM. Default: true."""
RECORD_INDEX_MOVES_KEYS = "hoodie.record.index.update.partition.path"
"""The same under RECORD_INDEX. Default: false."""
BLOOM_ENTRIES = "hoodie.index.bloom.num_entries"
"""Keys that a new base file's bloom filter is made for."""
BLOOM_FALSE_POSITIVES = "hoodie.index.bloom.fpp"
"""The share of false answers that it may give."""
TRACK_EVENT_TIMES = "hoodie.write.track.event.time.watermark"
"""Whether write stats have the event times of what was written."""
LOG_EVENT_TIMES = "eventide.log.event.times"
"""Whether headers of log blocks have them, so that no log is opened to tell them."""

# Sizes of files and blocks
LOG_BLOCK_EVENT_TIME_BUCKET = "hoodie.log.block.event.time.bucket"
"""The span of event time of one log block, such as 1h: an exact cut decodes fewer blocks then. 0 is off."""
LOG_BLOCK_FORMAT = "hoodie.logfile.data.block.format"
"""What log blocks are made of."""
LOG_BLOCK_BYTES_MAX = "hoodie.logfile.data.block.max.size"
"""Bytes of a log block."""
LOG_FILE_BYTES_MAX = "hoodie.logfile.max.size"
"""Bytes of a log file."""
PARQUET_MAX_FILE_SIZE = "hoodie.parquet.max.file.size"
"""Bytes of a base file; also what a bounded strategy takes a slice without a base file for."""
SMALL_FILE_BYTES = "hoodie.parquet.small.file.limit"
"""Base files below so many bytes take new keys."""
SMALL_FILES_MAX = "hoodie.merge.small.file.group.candidates.limit"
"""How many of them a write fills up in a partition."""
RECORD_SIZE_ESTIMATE = "hoodie.copyonwrite.record.size.estimate"
"""Bytes of a record, where no earlier commit tells."""

# Streams
COMPACT_INLINE = "hoodie.compact.inline"
"""After each batch: a compaction where the trigger says that it is due. Default: false."""
COMPACT_SCHEDULE_INLINE = "hoodie.compact.schedule.inline"
"""The same, planned alone. Default: false."""
COMPACT_ASYNC = "hoodie.datasource.compaction.async.enable"
"""The same, planned after the batch and run beside the next ones. Default: false."""
STREAM_START = "hoodie.datasource.streaming.startOffset"
"""Where a stream of a table's changes begins: earliest, latest, or after an instant. Default: earliest"""
STREAM_IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
"""The stream's name. Default: the id of the query; format("eventide") needs a name."""
STREAM_RETRY_COUNT = "hoodie.datasource.write.streaming.retry.count"
"""How often a batch is tried again where another writer was in the way."""
STREAM_RETRY_INTERVAL_MS = "hoodie.datasource.write.streaming.retry.interval.ms"
"""The pause before that."""
STREAM_WATERMARK_AS_THRESHOLD = "eventide.stream.watermark.as.threshold"
"""T is the stream's own watermark."""

# Lock, heartbeats, failed writes
LOCK_PROVIDER = "hoodie.write.lock.provider"
"""The table lock: file-system-based, storage-based (S3), Hudi's class of either, or a plug-in MODULE:FACTORY.
Default: file-system-based."""
LOCK_PATH = "hoodie.write.lock.filesystem.path"
"""The folder of the lock file, inside the table. Default: .hoodie"""
LOCK_EXPIRE_MINUTES = "hoodie.write.lock.filesystem.expire"
"""Minutes after which a lock counts as left behind; 0 is never. Every writer must have the same."""
LOCK_VALIDITY_SECONDS = "hoodie.write.lock.storage.validity.timeout.secs"
"""How long a storage-based lock holds that nobody renews; at least ten times the seconds below."""
LOCK_RENEWAL_KEYS = ("hoodie.write.lock.storage.renew.interval.secs", "hoodie.write.lock.storage.heartbeat.poll.secs")
"""How often its holder renews it, in seconds."""
LOCK_WAIT_MS = "hoodie.write.lock.wait_time_ms"
"""How long to wait for the lock."""
HEARTBEAT_INTERVAL_MS = "hoodie.client.heartbeat.interval_in_ms"
"""How often a writer gives a sign of life."""
HEARTBEAT_TOLERABLE_MISSES = "hoodie.client.heartbeat.tolerable.misses"
"""So many signs may be missing before a writer counts as dead."""
PENDING_SERVICE_STALE_MS = "eventide.pending.service.stale_ms"
"""How long the clean or rollback of another engine, which keeps no heartbeat, must have stood until eventide ends it."""
CONCURRENCY_MODE = "hoodie.write.concurrency.mode"
"""Whether other writers write to the table. Any but SINGLE_WRITER, or the lazy policy of failed writes, lets eventide write
beside a pending write without a heartbeat. Default: SINGLE_WRITER"""
SINGLE_WRITER = "SINGLE_WRITER"
FAILED_WRITES = "hoodie.cleaner.policy.failed.writes"
"""When writes of dead writers are rolled back: by the next write, by a clean, or by hand alone."""

# Cleaning and archiving
CLEANING_POLICIES = ("hoodie.clean.policy", "hoodie.cleaner.policy")
"""KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS or KEEP_LATEST_BY_HOURS. Default: KEEP_LATEST_COMMITS."""
COMMITS_RETAINED_KEYS = ("hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained")
"""Commits whose files stay."""
FILE_VERSIONS_RETAINED_KEYS = ("hoodie.clean.fileversions.retained", "hoodie.cleaner.fileversions.retained")
"""Slices of a file group that stay."""
HOURS_RETAINED_KEYS = ("hoodie.clean.hours.retained", "hoodie.cleaner.hours.retained")
"""Hours whose files stay."""
ARCHIVE_MIN_COMMITS = "hoodie.keep.min.commits"
"""How many commits archiving leaves on the active timeline."""
ARCHIVE_MAX_COMMITS = "hoodie.keep.max.commits"
"""From how many on it archives."""
ARCHIVE_BEYOND_SAVEPOINT = "hoodie.archive.beyond.savepoint"
"""Whether commits after a savepoint are archived too."""

# Metrics
METRICS_ON = "hoodie.metrics.on"
"""Whether metrics are told."""
METRICS_REPORTER = "hoodie.metrics.reporter.type"
"""To whom. One that only Hudi has is told of, and goes nowhere. Default: `PROMETHEUS_TEXTFILE` where there is a file"""
METRICS_CLASS = "hoodie.metrics.reporter.class"
"""A reporter of one's own, for Hudi: where no type of eventide's stands beside it, metrics go nowhere. Default: none"""
METRICS_PREFIX = "hoodie.metrics.reporter.metricsname.prefix"
"""What stands before each name. Default: eventide"""
METRICS_FILE = "hoodie.metrics.reporter.file.path"
"""The local file of a textfile or of JSON lines, which need one. Default: none"""
PROMETHEUS_PORT = "hoodie.metrics.prometheus.port"
"""The port at which this process is scraped."""
PUSHGATEWAY_HOST = "hoodie.metrics.pushgateway.host"
"""The push gateway's host. Default: localhost"""
PUSHGATEWAY_PORT = "hoodie.metrics.pushgateway.port"
"""The push gateway's port."""
PUSHGATEWAY_JOB = "hoodie.metrics.pushgateway.job.name"
"""The job of what is pushed; with the table's name and the labels it makes the group. Default: eventide"""
PUSHGATEWAY_LABELS = "hoodie.metrics.pushgateway.report.labels"
"""More labels of the group, as key:value,key:value. Default: none"""
PUSHGATEWAY_RANDOM_JOB = "hoodie.metrics.pushgateway.random.job.name.suffix"
"""Whether each process is a job of its own. Hudi's default is true."""
PUSHGATEWAY_DELETE = "hoodie.metrics.pushgateway.delete.on.shutdown"
"""Whether the group is removed when the process ends. Hudi's default is true."""
OTLP_ENDPOINT = "eventide.metrics.otlp.endpoint"
"""The whole URL for metrics by OTLP over HTTP. Default: as OpenTelemetry's own variables say"""

HEARTBEAT_INTERVAL_MS_DEFAULT = 60_000  # Hudi's default
LOCK_WAIT_MS_DEFAULT = 60_000  # Hudi's
COMMITS_RETAINED_DEFAULT = 10  # Hudi's

# Catalog sync
SYNC_ENABLED_KEYS = (
    "hoodie.datasource.hive_sync.enable",
    "hoodie.datasource.meta.sync.enable",
    "hoodie.meta.sync.enable",
)
"""Compactions and the table service tell the catalog by themselves, where one of these is true. Default: false."""
SYNC_MODE = "hoodie.datasource.hive_sync.mode"
"""How to speak to Hive; of Hudi's modes eventide has the one that speaks to the metastore itself."""
METASTORE_URIS = "hoodie.datasource.hive_sync.metastore.uris"
"""Where the metastore listens, several behind commas. Default: a SparkSession's own, else `thrift://localhost:9083`."""
SYNC_DATABASE = "hoodie.datasource.hive_sync.database"
"""The catalog's database. Default: the table's hoodie.database.name, else `default`."""
SYNC_TABLE = "hoodie.datasource.hive_sync.table"
"""The table's name in the catalog, before _ro and _rt. Default: the table's own."""
SYNC_BASE_PATH = "hoodie.datasource.meta.sync.base.path"
"""The table's folder as the catalog's readers name it, such as s3a://lake/trips. Default: as eventide was given it."""
SYNC_PARTITION_FIELDS = "hoodie.datasource.hive_sync.partition_fields"
"""The catalog's partition columns. Default: the table's partition fields."""
SYNC_PARTITION_EXTRACTOR = "hoodie.datasource.hive_sync.partition_extractor_class"
"""How a partition's path becomes their values: one of Hudi's extractors. Default: by the number of fields."""
SYNC_DECODE_PARTITION = "hoodie.meta.sync.decode_partition"
"""Whether what is %-encoded in a partition's path is decoded in its values; Hudi's own sync by metastore never does."""
SYNC_STRATEGY = "hoodie.datasource.hive_sync.table.strategy"
"""Which tables: read-optimized, snapshot, or all."""
SYNC_SKIP_RO_SUFFIX = "hoodie.datasource.hive_sync.skip_ro_suffix"
"""The read-optimized table has the table's own name."""
SYNC_SNAPSHOT_WITH_TABLE_NAME = "hoodie.meta.sync.sync_snapshot_with_table_name"
"""There is a snapshot table of the table's own name, too."""
SYNC_AUTO_CREATE_DATABASE = "hoodie.datasource.hive_sync.auto_create_database"
"""Makes the database where there is none."""
SYNC_SUPPORT_TIMESTAMP = "hoodie.datasource.hive_sync.support_timestamp"
"""Timestamps are Hive's timestamp, not bigint; Spark has them as timestamps anyway."""
SYNC_AS_DATA_SOURCE = "hoodie.datasource.hive_sync.sync_as_datasource"
"""Says in properties what makes Spark read the tables by Hudi."""
SYNC_SCHEMA_PART_LENGTH = "hoodie.datasource.hive_sync.schema_string_length_thresh"
"""Characters of Spark's schema in one property."""
SYNC_OMIT_META_FIELDS = "hoodie.datasource.hive_sync.omit_metadata_fields"
"""Leaves Hudi's meta columns out."""
SYNC_TABLE_PROPERTIES = "hoodie.datasource.hive_sync.table_properties"
"""Properties of your own for the tables: `name=value`, a line each. Default: none."""
SYNC_SERDE_PROPERTIES = "hoodie.datasource.hive_sync.serde_properties"
"""The same for the tables' serde. Default: none."""
SYNC_SPARK_VERSION = "hoodie.meta_sync.spark.version"
"""The Spark version to be named in the tables. Default: none is named."""
SYNC_CONDITIONAL = "hoodie.datasource.meta_sync.condition.sync"
"""Leaves a table alone where nothing but the last commit's time would change."""
SYNC_MANAGED_TABLE = "hoodie.datasource.hive_sync.create_managed_table"
"""Refused where it is true: dropping a managed table removes its data."""

E = TypeVar("E", bound=StrEnum)


_DURATION = re.compile(r"(\d{1,9}[smhd])+", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def duration_seconds(text: str) -> int | None:
    """What 90s, 30m, 2h, 1d or 1d12h is in seconds; None for what is no duration."""
    if not _DURATION.fullmatch(text):
        return None
    return sum(int(count) * _SECONDS[unit] for count, unit in re.findall(r"(\d+)([smhd])", text))


class LinkChoice(StrEnum):
    AUTO = "auto"
    SYMLINK = "symlink"
    COPY = "copy"
    HARDLINK = "hardlink"
    PREFIX = "prefix"


class MetadataTable(StrEnum):
    """What an action does with Hudi's metadata table, which would go stale."""

    UPDATE = "update"
    DROP = "drop"
    REFUSE = "refuse"


class ParquetCodec(StrEnum):
    """The compression of a base file; `AS_BEFORE` is that of the base file it takes the place of (gzip where none)."""

    AS_BEFORE = "as-before"
    GZIP = "gzip"
    ZSTD = "zstd"
    SNAPPY = "snappy"
    UNCOMPRESSED = "uncompressed"


class InsertDuplicates(StrEnum):
    """What becomes of inserts whose keys the table has: they are written all the same, left out, or refused."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


class FailedWrites(StrEnum):
    """When writes of dead writers are rolled back: at the next write, by a clean, or by hand alone."""

    EAGER = "eager"
    LAZY = "lazy"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Options:
    """Options by key, as the user wrote them; each method parses one, and raises ConfigError for a bad value.

    Some are secrets, so no value is shown.
    """

    values: Mapping[str, str] = field(repr=False)

    def text(self, key: str) -> str | None:
        value = self.values.get(key)
        return value.strip() if value is not None and value.strip() else None

    def integer(self, key: str, default: int) -> int:
        value = self.text(key)
        if value is None:
            return default
        if not value.isdecimal():
            raise ConfigError(f"option {key}={value!r} is not a whole number of 0 or more")
        return int(value)

    def duration(self, key: str, default: int) -> int:
        """Whole seconds, written as 90s, 30m, 2h or 1d, or several of these one after another."""
        value = self.text(key)
        seconds = default if value is None else duration_seconds(value)
        if seconds is None:
            raise ConfigError(f"option {key}={value!r} is no duration: give one such as 90s, 30m, 2h or 1d")
        return seconds

    def first(self, names: tuple[str, ...]) -> str | None:
        """The first of these keys, Hudi's names of one option, that is given."""
        return next((name for name in names if self.text(name) is not None), None)

    def first_integer(self, names: tuple[str, ...], default: int) -> int:
        named = self.first(names)
        return default if named is None else self.integer(named, default)

    def fraction(self, key: str, default: float) -> float:
        """A number above 0 and below 1."""
        text = self.text(key)
        try:
            value = default if text is None else float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < 1:
            raise ConfigError(f"option {key}={text!r} is no number between 0 and 1")
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        value = (self.text(key) or str(default)).lower()
        if value not in ("true", "false"):
            raise ConfigError(f"option {key}={value!r} is neither true nor false")
        return value == "true"

    def choice(self, key: str, default: E) -> E:
        value = self.text(key)
        if value is None:
            return default
        kind = type(default)
        if value.lower() not in list(kind):
            raise ConfigError(f"option {key}={value!r} is not one of {', '.join(kind)}")
        return kind(value.lower())
