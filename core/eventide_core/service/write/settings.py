"""The options of writing records."""

from collections.abc import Iterable
from dataclasses import replace

from eventide_core import config as keys
from eventide_core.action.write.base_file_sizes import BaseFileSizes
from eventide_core.config import InsertDuplicates, Options, ParquetCodec, SchemaMode
from eventide_core.errors import UnsupportedTableError
from eventide_core.service.common.facts.event_time_field import has_named_event_time, write_event_time_field
from eventide_core.service.common.state.table import TableState
from eventide_core.table.property_keys import POPULATE_META_FIELDS
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.key_format import KeyFormat
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.settings.write_shape import (
    LogBlockFormat,
    SchemaRules,
    WriteLayout,
    WriteOperation,
    WriteShape,
)
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata


def write_shape(state: TableState, schema: AvroSchema, options: Options, root: str) -> WriteShape:
    """How records of that Avro schema are written to the table. Raises ConfigError, UnsupportedTableError."""
    config = state.config
    if config.properties.get(POPULATE_META_FIELDS, "true").lower() != "true":
        raise UnsupportedTableError(f"{root} has no meta fields, which eventide needs to write; write to it with Hudi")
    has_bare_keys = options.get(keys.COMPLEX_KEY_NEW_ENCODING)
    event_time_field = write_event_time_field(state, schema, options)
    return WriteShape(
        # Hudi's writers use the table's own marker; its readers never read it.
        replace(state.shape_of(schema, event_time_field), delete_marker=state.delete_marker or config.delete_marker),
        KeyFormat.of(config, root, has_bare_keys=has_bare_keys, times=options.values),
        write_layout(options),
        config.layout,
        refuses_unreadable_times=has_named_event_time(state, options),
    )


def schema_rules(config: TableConfig, options: Options) -> SchemaRules:
    """What a write may do to the table's columns. Partial updates leave columns out: the merge keeps their old values."""
    return SchemaRules(
        adds_columns=options.get(keys.SCHEMA_MODE) is SchemaMode.MERGE,
        nulls_missing=config.partial_update is not None or options.get(keys.NULL_FOR_MISSING_COLUMNS),
    )


def write_layout(options: Options) -> WriteLayout:
    """Raises ConfigError for a value that cannot be used."""
    codec = options.get(keys.PARQUET_CODEC)
    log_file_bytes_max = max(1, options.get(keys.LOG_FILE_BYTES_MAX))
    return WriteLayout(
        log_block_format=LogBlockFormat(options.get(keys.LOG_BLOCK_FORMAT)),
        # A file has at least one block.
        log_block_bytes_max=min(options.get(keys.LOG_BLOCK_BYTES_MAX), log_file_bytes_max),
        log_file_bytes_max=log_file_bytes_max,
        log_block_span_ms=1000 * options.get(keys.LOG_BLOCK_EVENT_TIME_BUCKET),
        codec=ParquetCodec.GZIP if codec is ParquetCodec.AS_BEFORE else codec,
        bloom_entries=max(options.get(keys.BLOOM_ENTRIES), 1),
        bloom_false_positives=options.get(keys.BLOOM_FALSE_POSITIVES),
        notes_event_times=options.get(keys.LOG_EVENT_TIMES),
        tracks_event_times=options.get(keys.TRACK_EVENT_TIMES),
    )


def combines(operation: WriteOperation, options: Options) -> bool:
    """Whether one version of each key is kept of the records of a write."""
    match operation:
        case WriteOperation.UPSERT:
            return options.get(keys.COMBINE_BEFORE_UPSERT)
        case WriteOperation.DELETE:
            return True
        case _:
            drops = insert_duplicates(operation, options) is InsertDuplicates.DROP
            combines_inserts = options.get(keys.COMBINE_BEFORE_INSERT)
            return drops if combines_inserts is None else combines_inserts


def insert_duplicates(operation: WriteOperation, options: Options) -> InsertDuplicates:
    """What becomes of records whose keys the table has; NONE for operations other than an insert."""
    if operation is not WriteOperation.INSERT:
        return InsertDuplicates.NONE
    policy = options.get(keys.INSERT_DUPLICATES)
    if policy is not None:
        return policy
    return InsertDuplicates.DROP if options.get(keys.DROP_INSERT_DUPLICATES) else InsertDuplicates.NONE


def base_file_sizes(
    operation: WriteOperation, newest_first: Iterable[CommitMetadata], options: Options
) -> BaseFileSizes:
    """The target size of base files, and the limit below which a file counts as small.

    The size of a record comes from the last write that made enough base files; otherwise, the option's value.
    Clusterings don't count, as in Hudi.
    """
    small_bytes = options.get(keys.SMALL_FILE_BYTES)
    fills_up = operation in (WriteOperation.UPSERT, WriteOperation.INSERT) and small_bytes > 0
    return BaseFileSizes(
        bytes_max=options.get(keys.PARQUET_MAX_FILE_SIZE),
        small_bytes=small_bytes,
        small_files_max=options.get(keys.SMALL_FILES_MAX) if fills_up else 0,
        record_bytes=_record_bytes(newest_first, small_bytes, options),
        new_group_rows=None if options.get(keys.INSERT_AUTO_SPLIT) else options.get(keys.INSERT_SPLIT_SIZE),
    )


def _record_bytes(newest_first: Iterable[CommitMetadata], enough: int, options: Options) -> float:
    for commit in newest_first:
        bases = [stat for stat in commit.stats if stat.log_version is None]
        size, records = sum(stat.file_size_bytes for stat in bases), sum(stat.num_writes for stat in bases)
        if size > enough and records:
            return size / records
    return max(1, options.get(keys.RECORD_SIZE_ESTIMATE))
