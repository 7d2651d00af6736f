"""The tables of a catalog for one Hudi table, as Hudi's Hive sync makes them.

strategy  skip_ro_suffix  tables
ALL       false           t_ro read-optimized, t_rt snapshot, and t snapshot (unless sync_snapshot_with_table_name=false)
ALL       true            t read-optimized, t_rt snapshot
RO, RT                    t

A copy-on-write table is one table t, whatever the strategy. It has the read-optimized format, which reads base files, and
is a snapshot to Spark.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eventide_core.action.freshness.freshness import Freshness
from eventide_core.action.sync.options import SyncOptions
from eventide_core.config import SyncStrategy
from eventide_core.table.catalog.catalog_columns import TableColumns
from eventide_core.table.catalog.catalog_table import EXTERNAL_TABLE, CatalogColumn, CatalogTable
from eventide_core.table.timeline.contents.compaction_extra_metadata import CUT_KEY, LATE_RECORDS_KEY, WATERMARK_KEY

READ_OPTIMIZED_FORMAT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
SNAPSHOT_FORMAT = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
IS_READ_OPTIMIZED_KEY = "hoodie.query.as.ro.table"
PATH_KEY = "path"
PROVIDER_KEY = "spark.sql.sources.provider"
SCHEMA_PREFIX = "spark.sql.sources.schema."
LAST_COMMIT_KEY = "last_commit_time_sync"
LAST_COMPLETION_KEY = "last_commit_completion_time_sync"
UNREADABLE_RECORDS_KEY = "hoodie.ro.unreadable.records"
BASIS_KEY = "hoodie.ro.basis"
FRESHNESS_KEYS = (CUT_KEY, WATERMARK_KEY, BASIS_KEY, LATE_RECORDS_KEY, UNREADABLE_RECORDS_KEY)


@dataclass(frozen=True, slots=True)
class SyncFacts:
    """What the catalog should state. `location` is the table's directory as the catalog's readers name it.

    `columns` come with the types that the catalog has for them. `last_commit` and `last_completion` are the latest requested
    and the latest completion time of completed writes, not necessarily of one; both are None if there is no commit yet,
    `last_completion` also on table version 6, which has none. `freshness` goes into the properties of the tables.
    `is_copy_on_write`: one table is enough, whatever the strategy.
    """

    location: str
    columns: TableColumns
    last_commit: str | None
    last_completion: str | None
    freshness: Freshness
    is_copy_on_write: bool = False


def wanted_tables(facts: SyncFacts, options: SyncOptions) -> tuple[CatalogTable, ...]:
    """The tables, the read-optimized ones first."""
    name = options.table
    if facts.is_copy_on_write:
        return (replace(_table(name, facts, options, is_read_optimized=False), input_format=READ_OPTIMIZED_FORMAT),)
    match options.strategy:
        case SyncStrategy.RO:
            return (_table(name, facts, options, is_read_optimized=True),)
        case SyncStrategy.RT:
            return (_table(name, facts, options, is_read_optimized=False),)
        case SyncStrategy.ALL:
            read_optimized = name if options.skips_ro_suffix else f"{name}_ro"
            plain = (name,) if options.has_snapshot_by_table_name and not options.skips_ro_suffix else ()
            return (
                _table(read_optimized, facts, options, is_read_optimized=True),
                *(_table(one, facts, options, is_read_optimized=False) for one in (f"{name}_rt", *plain)),
            )


def published(last_commit: str | None, last_completion: str | None, fresh: Freshness) -> dict[str, str]:
    """The properties that change from commit to commit: how far the catalog follows, and the freshness.

    While log records have event times that cannot be read, there is no watermark, and their number stands in its place.
    """
    times = {} if last_commit is None else {LAST_COMMIT_KEY: last_commit}
    if last_completion is not None:
        times[LAST_COMPLETION_KEY] = last_completion
    if fresh.cut_ms is None:
        return times
    unreadable = fresh.unreadable_event_time_records
    watermark = {} if fresh.watermark_ms is None else {WATERMARK_KEY: str(fresh.watermark_ms)}
    return {
        **times,
        CUT_KEY: str(fresh.cut_ms),
        **watermark,
        BASIS_KEY: fresh.basis,
        LATE_RECORDS_KEY: str(fresh.late_records),
        **({UNREADABLE_RECORDS_KEY: str(unreadable)} if unreadable else {}),
    }


def _table(name: str, facts: SyncFacts, options: SyncOptions, *, is_read_optimized: bool) -> CatalogTable:
    columns = {column.name: column for column in facts.columns.hive}
    keys = tuple(columns.get(field, CatalogColumn(field, "string")) for field in options.partition_fields)
    serde = {**options.serde_properties, "serialization.format": "1"}
    if options.is_for_spark:
        serde |= {PATH_KEY: facts.location, IS_READ_OPTIMIZED_KEY: str(is_read_optimized).lower()}
    return CatalogTable(
        database=options.database,
        name=name,
        kind=EXTERNAL_TABLE,
        location=facts.location,
        columns=tuple(_lower(column) for column in facts.columns.hive if column.name not in options.partition_fields),
        partition_columns=tuple(_lower(column) for column in keys),
        input_format=READ_OPTIMIZED_FORMAT if is_read_optimized else SNAPSHOT_FORMAT,
        output_format=OUTPUT_FORMAT,
        serde=SERDE,
        serde_properties=serde,
        properties={
            **options.table_properties,
            **(_for_spark(facts.columns, options) if options.is_for_spark else {}),
            **published(facts.last_commit, facts.last_completion, facts.freshness),
        },
    )


def _lower(column: CatalogColumn) -> CatalogColumn:
    return CatalogColumn(column.name.lower(), column.type)


def _for_spark(columns: TableColumns, options: SyncOptions) -> Mapping[str, str]:
    """Properties that make Spark read the table with Hudi.

    They come in parts, as a catalog's database may limit their length.
    """
    text, length = columns.spark_schema(options.partition_fields), options.schema_part_length
    parts = [text[start : start + length] for start in range(0, len(text), length)]
    fields = options.partition_fields
    return {
        PROVIDER_KEY: "hudi",
        **({"spark.sql.create.version": options.spark_version} if options.spark_version else {}),
        f"{SCHEMA_PREFIX}numParts": str(len(parts)),
        **{f"{SCHEMA_PREFIX}part.{number}": part for number, part in enumerate(parts)},
        **({f"{SCHEMA_PREFIX}numPartCols": str(len(fields))} if fields else {}),
        **{f"{SCHEMA_PREFIX}partCol.{number}": field for number, field in enumerate(fields)},
    }


def is_hudi_table(table: CatalogTable) -> bool:
    """Whether a catalog's table is one of Hudi, as its sync or Spark registers it."""
    formats = (READ_OPTIMIZED_FORMAT, SNAPSHOT_FORMAT)
    return table.properties.get(PROVIDER_KEY, "").lower() == "hudi" or table.input_format in formats
