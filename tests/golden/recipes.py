"""Which golden tables there are: the Hudi that writes each, its options and its history."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from golden.evolution import LAST_STAGE, a_schema_that_grows, grown
from golden.histories import (
    ORDERED_DELETES,
    PLAIN,
    REGIONAL,
    RICH,
    SEQUENCED,
    Step,
    a_writer_dies,
    changes_and_natural_deletes,
    changes_and_ordered_deletes,
    changes_in_event_time_order,
    changes_without_event_time,
    columns_are_updated,
    in_odd_partitions,
    in_partitions_of_days,
    logs_are_merged,
    partitions_are_replaced,
    the_table_goes_back,
)
from support.judge.options import (
    ARCHIVED_EARLY,
    AVRO_LOG_BLOCKS,
    BLOOM_INDEX,
    BUCKET_INDEX,
    COMMIT_TIME_ORDERING,
    COPY_ON_WRITE,
    DEFAULT_PAYLOAD,
    DELETED_PARTITION,
    DIRECTORIES_OF_DATES,
    EVENT_TIME_ORDERING,
    IN_MEMORY_INDEX,
    MERGE_ON_READ,
    METADATA_TABLE,
    NO_META_FIELDS,
    NO_METADATA_TABLE,
    NOT_PARTITIONED,
    OVERWRITE_WITH_LATEST,
    PARQUET_LOG_BLOCKS,
    SIMPLE_INDEX,
    SNAPPY,
    UNCOMPRESSED,
    URL_ENCODED_REGIONS,
    ZSTD,
    table_name,
    table_version,
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """`name` begins with the table version; `schema` is the one that the table ends with."""

    name: str
    bundle: str
    options: Mapping[str, str]
    history: Iterator[Step]
    schema: pa.Schema = PLAIN


_BUCKET = MERGE_ON_READ | NO_METADATA_TABLE | AVRO_LOG_BLOCKS | BUCKET_INDEX


def recipes() -> tuple[Recipe, ...]:
    """All golden tables, with fresh histories."""
    return (*_version_6(), *_versions_8_and_9())


def _version_6() -> tuple[Recipe, ...]:
    v6 = _BUCKET | DEFAULT_PAYLOAD
    return (
        _v6("v6_avro_defpay", v6, changes_and_natural_deletes()),
        _v6("v6_parquet_defpay", v6 | PARQUET_LOG_BLOCKS, changes_and_natural_deletes(rich=True), RICH),
        _v6("v6_avro_owl_simple", v6 | SIMPLE_INDEX | OVERWRITE_WITH_LATEST, changes_and_natural_deletes()),
        _named("v6_111_avro_bucket", "1.1.1", v6 | table_version(6), changes_and_natural_deletes()),
        _v6("v6_avro_types", v6, changes_and_natural_deletes(rich=True), RICH),
        _v6("v6_ordered_deletes", v6, changes_and_ordered_deletes(), ORDERED_DELETES),
        _v6("v6_no_deletes", v6, changes_in_event_time_order()),
        _v6("v6_log_only", v6 | IN_MEMORY_INDEX, changes_in_event_time_order(from_nothing=True)),
        _v6("v6_compacted", v6, changes_and_natural_deletes(compact_after=3)),
        _v6("v6_rolled_back", v6, a_writer_dies(work_goes_on=True)),
        _v6("v6_inflight", v6, a_writer_dies(work_goes_on=False)),
        _v6("v6_mdt", v6 | METADATA_TABLE, changes_and_natural_deletes()),
        _v6("v6_archived", v6 | ARCHIVED_EARLY, changes_and_natural_deletes()),
        _v6("v6_grown", v6 | SNAPPY, a_schema_that_grows(), grown(LAST_STAGE)),
        _v6("v6_grown_nested", v6, a_schema_that_grows(nested=True), grown(LAST_STAGE, nested=True)),
        _v6("v6_replaced", v6 | SIMPLE_INDEX | DELETED_PARTITION, partitions_are_replaced()),
        _v6("v6_copy_on_write", v6 | SIMPLE_INDEX | DELETED_PARTITION | COPY_ON_WRITE, partitions_are_replaced()),
        _v6("v6_clustering_planned", v6 | SIMPLE_INDEX, partitions_are_replaced(plan_only=True)),
        _v6("v6_log_compacted", v6, logs_are_merged()),
        _v6("v6_restored", v6, the_table_goes_back()),
        _v6("v6_encoded", v6 | URL_ENCODED_REGIONS, in_odd_partitions(), REGIONAL),
    )


def _versions_8_and_9() -> tuple[Recipe, ...]:
    v8 = _BUCKET | table_version(8) | EVENT_TIME_ORDERING
    v9 = _BUCKET | table_version(9) | EVENT_TIME_ORDERING
    by_seq = {
        "hoodie.datasource.write.precombine.field": "seq",
        "hoodie.payload.ordering.field": "seq",
    }
    return (
        _named("v8_event_bucket", "1.1.1", v8, changes_and_natural_deletes()),
        _named("v8_commit_no_deletes", "1.1.1", v8 | COMMIT_TIME_ORDERING, changes_in_event_time_order()),
        _v9("v9_event_bucket", v9, changes_and_natural_deletes()),
        _v9("v9_commit_bucket", v9 | COMMIT_TIME_ORDERING, changes_and_natural_deletes()),
        _v9("v9_event_bloom", v9 | BLOOM_INDEX, changes_and_natural_deletes()),
        _v9("v9_event_simple", v9 | SIMPLE_INDEX, changes_and_natural_deletes()),
        _v9("v9_parquet_event", v9 | PARQUET_LOG_BLOCKS, changes_and_natural_deletes(rich=True), RICH),
        _named("v9_120_event", "1.2.0", v9, changes_and_natural_deletes()),
        _v9("v9_avro_types", v9, changes_and_natural_deletes(rich=True), RICH),
        _v9("v9_event_ordered_deletes", v9, changes_and_ordered_deletes(), ORDERED_DELETES),
        _v9("v9_no_deletes", v9, changes_in_event_time_order()),
        _v9("v9_commit_no_deletes", v9 | COMMIT_TIME_ORDERING, changes_in_event_time_order()),
        _v9("v9_log_only", v9 | IN_MEMORY_INDEX, changes_in_event_time_order(from_nothing=True)),
        _v9("v9_null_event_time", v9 | by_seq, changes_without_event_time(), SEQUENCED),
        _v9("v9_compacted", v9, changes_and_natural_deletes(compact_after=3)),
        _v9("v9_rolled_back", v9, a_writer_dies(work_goes_on=True)),
        _v9("v9_inflight", v9, a_writer_dies(work_goes_on=False)),
        _v9("v9_archived", v9 | ARCHIVED_EARLY, changes_and_natural_deletes()),
        _v9("v9_grown_parquet", v9 | PARQUET_LOG_BLOCKS | ZSTD, a_schema_that_grows(), grown(LAST_STAGE)),
        _named(
            "v9_120_grown",
            "1.2.0",
            v9 | UNCOMPRESSED,
            a_schema_that_grows(promotes=False),
            grown(LAST_STAGE, promotes=False),
        ),
        _v9("v9_grown_nested", v9, a_schema_that_grows(nested=True), grown(LAST_STAGE, nested=True)),
        _v9("v9_replaced", v9 | SIMPLE_INDEX | DELETED_PARTITION, partitions_are_replaced()),
        _v9("v9_copy_on_write", v9 | SIMPLE_INDEX | METADATA_TABLE | COPY_ON_WRITE, changes_and_natural_deletes()),
        _v9("v9_clustering_planned", v9 | SIMPLE_INDEX, partitions_are_replaced(plan_only=True)),
        _v9("v9_log_compacted", v9, logs_are_merged()),
        _v9("v9_restored", v9, the_table_goes_back()),
        _v9("v9_dates", v9 | DIRECTORIES_OF_DATES, in_partitions_of_days()),
        _v9("v9_unpartitioned", v9 | NOT_PARTITIONED, changes_and_natural_deletes()),
        _v9("v9_virtual_keys", v9 | NO_META_FIELDS, changes_and_natural_deletes()),
        _v9("v9_partial_updates", v9 | SIMPLE_INDEX, columns_are_updated()),
        _v9("v9_mdt", v9 | METADATA_TABLE, changes_and_natural_deletes()),
    )


def _v6(name: str, options: dict[str, str], history: Iterator[Step], schema: pa.Schema = PLAIN) -> Recipe:
    return _named(name, "0.15.0", options, history, schema)


def _v9(name: str, options: dict[str, str], history: Iterator[Step], schema: pa.Schema = PLAIN) -> Recipe:
    return _named(name, "1.1.1", options, history, schema)


def _named(
    name: str, bundle: str, options: dict[str, str], history: Iterator[Step], schema: pa.Schema = PLAIN
) -> Recipe:
    return Recipe(name, bundle, options | table_name(name), history, schema)
