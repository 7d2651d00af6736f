"""The options that a user gives, `hoodie.*` and `eventide.*` keys, as typed values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from eventide_core.errors import ConfigError

EVENT_TIME_FIELD = "hoodie.payload.event.time.field"
STRATEGY = "hoodie.compaction.strategy"
TARGET_IO_MB = "hoodie.compaction.target.io"
LOG_FILE_SIZE_THRESHOLD = "hoodie.compaction.logfile.size.threshold"
LOG_FILE_NUM_THRESHOLD = "hoodie.compaction.logfile.num.threshold"
TARGET_PARTITIONS = "hoodie.compaction.daybased.target.partitions"
PARTITION_REGEX = "hoodie.compaction.partition.path.regex"
PARQUET_MAX_FILE_SIZE = "hoodie.parquet.max.file.size"
TRIGGER = "hoodie.compact.inline.trigger.strategy"
MAX_DELTA_COMMITS = "hoodie.compact.inline.max.delta.commits"
MAX_DELTA_SECONDS = "hoodie.compact.inline.max.delta.seconds"
THRESHOLD = "hoodie.compaction.event.time.threshold"
DATA_LATENCY = "hoodie.compaction.event.time.data.latency.seconds"
CUT = "hoodie.compaction.event.time.cut"
MAX_LEFT_OVERS = "hoodie.compaction.event.time.max.left.over.logs"
LINK_MODE = "hoodie.compaction.partial.link.mode"
METADATA_TABLE = "eventide.metadata.table"
EXCLUSIVE = "eventide.table.exclusive"
INDEX_TYPE = "hoodie.index.type"
SIMPLE_INDEX_MOVES_KEYS = "hoodie.simple.index.update.partition.path"
BLOOM_INDEX_MOVES_KEYS = "hoodie.bloom.index.update.partition.path"
RECORD_INDEX_MOVES_KEYS = "hoodie.record.index.update.partition.path"
LOCK_PROVIDER = "hoodie.write.lock.provider"
LOCK_PATH = "hoodie.write.lock.filesystem.path"
LOCK_EXPIRE_MINUTES = "hoodie.write.lock.filesystem.expire"
LOCK_WAIT_MS = "hoodie.write.lock.wait_time_ms"
CLOCK_SKEW_MS = "hoodie.time.generator.max_expected_clock_skew_time_ms"
PENDING_WRITE_WAIT_MS = "eventide.pending.write.wait_ms"
PARQUET_CODEC = "hoodie.parquet.compression.codec"
HEARTBEAT_INTERVAL_MS = "hoodie.client.heartbeat.interval_in_ms"
HEARTBEAT_INTERVAL_MS_DEFAULT = 60_000  # Hudi's default
HEARTBEAT_TOLERABLE_MISSES = "hoodie.client.heartbeat.tolerable.misses"
ARCHIVE_MIN_COMMITS = "hoodie.keep.min.commits"
ARCHIVE_MAX_COMMITS = "hoodie.keep.max.commits"
ARCHIVE_BEYOND_SAVEPOINT = "hoodie.archive.beyond.savepoint"
COMMITS_RETAINED_KEYS = ("hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained")
COMMITS_RETAINED_DEFAULT = 10  # Hudi's
CLEANING_POLICIES = ("hoodie.clean.policy", "hoodie.cleaner.policy")
FILE_VERSIONS_RETAINED_KEYS = ("hoodie.clean.fileversions.retained", "hoodie.cleaner.fileversions.retained")
HOURS_RETAINED_KEYS = ("hoodie.clean.hours.retained", "hoodie.cleaner.hours.retained")
WRITE_OPERATION = "hoodie.datasource.write.operation"
COMPACT_INLINE = "hoodie.compact.inline"
COMPACT_SCHEDULE_INLINE = "hoodie.compact.schedule.inline"
COMPACT_ASYNC = "hoodie.datasource.compaction.async.enable"
STREAM_IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
STREAM_RETRY_COUNT = "hoodie.datasource.write.streaming.retry.count"
STREAM_RETRY_INTERVAL_MS = "hoodie.datasource.write.streaming.retry.interval.ms"
STREAM_WATERMARK_AS_THRESHOLD = "eventide.stream.watermark.as.threshold"
FAILED_WRITES = "hoodie.cleaner.policy.failed.writes"
TABLE_VERSION = "hoodie.write.table.version"
BUCKETS = "hoodie.bucket.index.num.buckets"
BUCKET_HASH_FIELDS = "hoodie.bucket.index.hash.field"
BUCKET_ENGINE = "hoodie.index.bucket.engine"
BLOOM_ENTRIES = "hoodie.index.bloom.num_entries"
BLOOM_FALSE_POSITIVES = "hoodie.index.bloom.fpp"
COMBINE_BEFORE_INSERT = "hoodie.combine.before.insert"
INSERT_DUPLICATES = "hoodie.datasource.insert.dup.policy"
DROP_INSERT_DUPLICATES = "hoodie.datasource.write.insert.drop.duplicates"
COMBINE_BEFORE_UPSERT = "hoodie.combine.before.upsert"
TRACK_EVENT_TIMES = "hoodie.write.track.event.time.watermark"
LOG_EVENT_TIMES = "eventide.log.event.times"
LOG_BLOCK_EVENT_TIME_BUCKET = "hoodie.log.block.event.time.bucket"
LOG_BLOCK_FORMAT = "hoodie.logfile.data.block.format"
LOG_BLOCK_BYTES_MAX = "hoodie.logfile.data.block.max.size"
LOG_FILE_BYTES_MAX = "hoodie.logfile.max.size"
BASE_FILE_BYTES_MAX = "hoodie.parquet.max.file.size"
METRICS_ON = "hoodie.metrics.on"
METRICS_REPORTER = "hoodie.metrics.reporter.type"
METRICS_PREFIX = "hoodie.metrics.reporter.metricsname.prefix"
METRICS_FILE = "hoodie.metrics.reporter.file.path"
DELETE_FIELD = "hoodie.payload.delete.field"
DELETE_MARKER = "hoodie.payload.delete.marker"
SMALL_FILE_BYTES = "hoodie.parquet.small.file.limit"
SMALL_FILES_MAX = "hoodie.merge.small.file.group.candidates.limit"
RECORD_SIZE_ESTIMATE = "hoodie.copyonwrite.record.size.estimate"

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
