"""Writes."""

from enum import StrEnum

from eventide_core.config.option import (
    FLAG,
    FRACTION,
    NAMES,
    TEXT,
    WHOLE_NUMBER,
    Option,
    choice,
    optional,
    whole_number,
)


class SchemaMode(StrEnum):
    """Whether a write may add columns to the table: strict refuses them, merge adds them."""

    STRICT = "strict"
    MERGE = "merge"


class InsertDuplicates(StrEnum):
    """What becomes of inserts whose keys the table has: they are written anyway, left out, or refused."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


SCHEMA_MODE = Option(
    "eventide.write.schema.mode",
    choice(SchemaMode),
    SchemaMode.STRICT,
    "What happens to columns that the table does not have, or that are wider than the table's: strict refuses the records, "
    "or the values that do not fit; merge adds or widens the columns.",
    aliases=("schema_mode",),
)
NULL_FOR_MISSING_COLUMNS = Option(
    "hoodie.write.set.null.for.missing.columns",
    FLAG,
    False,
    "Whether columns of the table that the records lack become null. If false, such records are refused, except where the "
    "table's merge keeps the old values (partial updates).",
)
SCHEMA_ON_READ = Option(
    "hoodie.schema.on.read.enable",
    FLAG,
    False,
    "Whether all readers and writers of the table set this Hudi option, so that `alter` may rename columns. eventide reads "
    "such tables without it.",
)
COMBINE_BEFORE_UPSERT = Option(
    "hoodie.combine.before.upsert", FLAG, True, "Whether an upsert keeps one version of each key among its records."
)
COMBINE_BEFORE_INSERT = optional(
    "hoodie.combine.before.insert",
    FLAG,
    "The same for an insert and a bulk_insert.",
    otherwise="false, but true where duplicates are dropped",
)
INSERT_DUPLICATES = optional(
    "hoodie.datasource.insert.dup.policy",
    choice(InsertDuplicates),
    "What happens to inserts whose keys the table has: none (they are written anyway), drop, or fail.",
    otherwise="none, but drop where the option below is true",
)
DROP_INSERT_DUPLICATES = Option(
    "hoodie.datasource.write.insert.drop.duplicates", FLAG, False, "The older name of dropping them."
)
INDEX_TYPE = optional(
    "hoodie.index.type",
    TEXT,
    "How a key finds its file group: BUCKET, SIMPLE, BLOOM, GLOBAL_SIMPLE, GLOBAL_BLOOM, RECORD_INDEX, or "
    "RECORD_LEVEL_INDEX. With RECORD_INDEX, filters on record keys read by that index, too.",
    otherwise="BUCKET for new tables, else what the table or its file names say",
)
BUCKETS = Option(
    "hoodie.bucket.index.num.buckets",
    whole_number(at_least=1),
    4,
    "Buckets in each partition of a new table. For a table that does not record it, what its other writers use.",
)
BUCKET_HASH_FIELDS = optional(
    "hoodie.bucket.index.hash.field", NAMES, "The fields that are hashed into buckets.", otherwise="the record key's"
)
BUCKET_ENGINE = optional(
    "hoodie.index.bucket.engine", TEXT, "The kind of buckets. Only SIMPLE is supported.", otherwise="SIMPLE"
)
SIMPLE_INDEX_MOVES_KEYS = Option(
    "hoodie.simple.index.update.partition.path",
    FLAG,
    True,
    "Under GLOBAL_SIMPLE, whether a key moves to the partition that its record names.",
)
BLOOM_INDEX_MOVES_KEYS = Option("hoodie.bloom.index.update.partition.path", FLAG, True, "The same under GLOBAL_BLOOM.")
RECORD_INDEX_MOVES_KEYS = Option(
    "hoodie.record.index.update.partition.path", FLAG, False, "The same under RECORD_INDEX."
)
BLOOM_ENTRIES = Option(
    "hoodie.index.bloom.num_entries",
    WHOLE_NUMBER,
    60_000,
    "How many keys the bloom filter of a new base file is sized for.",
)
BLOOM_FALSE_POSITIVES = Option(
    "hoodie.index.bloom.fpp", FRACTION, 1e-9, "The share of false positives that the filter may have."
)
TRACK_EVENT_TIMES = Option(
    "hoodie.write.track.event.time.watermark",
    FLAG,
    True,
    "Whether write stats record the event times of what was written. Given as true with `hoodie.payload.event.time.field`, "
    "it also states that Hudi's writers recorded them, and that each has 10 or 13 digits.",
)
UPSTREAM_EVENT_TIMES = Option(
    "hoodie.write.track.event.time.propagate.from.upstream",
    FLAG,
    False,
    "Whether Hudi's write stats hold the event times of upstream commits; then they are not used.",
)
LOG_EVENT_TIMES = Option(
    "eventide.log.event.times",
    FLAG,
    True,
    "Whether the headers of log blocks record them, so that no log has to be opened for them.",
)
SANITIZE_NAMES = Option(
    "hoodie.streamer.source.sanitize.invalid.schema.field.names",
    FLAG,
    False,
    "Whether column names that Avro cannot hold are changed, each such character to two underscores, instead of refused.",
    aliases=("hoodie.deltastreamer.source.sanitize.invalid.schema.field.names",),
)
