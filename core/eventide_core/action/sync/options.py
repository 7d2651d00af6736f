"""How a table is to stand in a catalog, by the keys of Hudi's hive sync."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eventide_core import config as keys
from eventide_core.config import Option, Options, SyncStrategy
from eventide_core.errors import ConfigError
from eventide_core.table.property_keys import DATABASE_NAME, HIVE_STYLE_PARTITIONING
from eventide_core.table.records.partition_values import PartitionExtractor
from eventide_core.table.settings.table_config import TableConfig

_NAME = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class DatasetOptions:
    """How a table is to stand in DataHub, with names as the user spells them.

    `database`: before the table's name in the dataset's; DataHub's own option, else the option for every catalog, else
        `hoodie.database.name` of the table, else `default`.
    `table`: DataHub's own option, else the catalog's, else the table's name.
    `base_path`: the table's directory as readers name it; None if the table's own URI is what readers know it by.
    `partition_fields`: those that a property of the dataset names; the table's own unless the user names others.
    `table_properties`: the user's own, by name.
    `is_conditional`: what is there stays as it is if only the time of its last commit would change.
    """

    database: str
    table: str
    base_path: str | None
    partition_fields: tuple[str, ...]
    table_properties: Mapping[str, str]
    is_conditional: bool

    @classmethod
    def of(cls, options: Options, config: TableConfig) -> "DatasetOptions":
        """Raises ConfigError for an option that cannot be used."""
        fields = options.get(keys.SYNC_PARTITION_FIELDS)
        return cls(
            database=options.get(keys.DATAHUB_DATABASE) or _database(options, config),
            table=options.get(keys.DATAHUB_TABLE) or options.get(keys.SYNC_TABLE) or config.name,
            base_path=options.get(keys.SYNC_BASE_PATH),
            partition_fields=config.partition_fields if fields is None else fields,
            table_properties=_pairs(options, keys.SYNC_TABLE_PROPERTIES),
            is_conditional=options.get(keys.SYNC_CONDITIONAL),
        )


@dataclass(frozen=True, slots=True)
class SyncOptions(DatasetOptions):
    """How a table is to stand in a Hive catalog, where names are in lower case, and `table` is without `_ro` and `_rt`.

    `partition_fields` are the partition columns there, in the order of the path.
    `extractor`: how a partition's path gives their values.
    `decodes_partitions`: values decode the %-encoded characters of the path. Hudi's own sync never does.
    `strategy`: which tables there are, read-optimized, snapshot or both (catalog_tables.py).
    `skips_ro_suffix`: under strategy ALL, the read-optimized table has the plain name.
    `has_snapshot_by_table_name`: under strategy ALL, a second snapshot table has it, if the read-optimized one doesn't.
    `creates_database`: a missing database is made; otherwise, it is an error.
    `supports_timestamp`: Hive's timestamp is used for timestamps, not bigint.
    `is_for_spark`: the properties by which Spark reads the tables through Hudi are added, and the next two matter.
    `schema_part_length`: the most characters of Spark's schema in one property.
    `spark_version`: the version that these properties name; None for none.
    `omits_meta_fields`: Hudi's meta columns are left out.
    `serde_properties`: the user's own, by name.
    """

    extractor: PartitionExtractor
    decodes_partitions: bool
    strategy: SyncStrategy
    skips_ro_suffix: bool
    has_snapshot_by_table_name: bool
    creates_database: bool
    supports_timestamp: bool
    is_for_spark: bool
    schema_part_length: int
    omits_meta_fields: bool
    serde_properties: Mapping[str, str]
    spark_version: str | None

    @classmethod
    def of(cls, options: Options, config: TableConfig) -> "SyncOptions":
        """Raises ConfigError for an option that cannot be used."""
        mode = options.get(keys.SYNC_MODE)
        if mode != keys.SYNC_MODE.default:
            raise ConfigError(
                f"option {keys.SYNC_MODE}={mode}: eventide uses the metastore itself: {keys.SYNC_MODE.default}"
            )
        if options.get(keys.SYNC_MANAGED_TABLE):
            raise ConfigError(
                f"option {keys.SYNC_MANAGED_TABLE}=true: dropping such a table removes its data, and the data of the "
                "other tables; eventide creates external tables"
            )
        stated_fields = options.get(keys.SYNC_PARTITION_FIELDS)
        fields = config.partition_fields if stated_fields is None else stated_fields
        extractor = options.get(keys.SYNC_PARTITION_EXTRACTOR)
        is_hive_style = config.properties.get(HIVE_STYLE_PARTITIONING) == "true"
        return cls(
            database=_name(_database(options, config), keys.SYNC_DATABASE),
            table=_name(options.get(keys.SYNC_TABLE) or config.name, keys.SYNC_TABLE),
            base_path=options.get(keys.SYNC_BASE_PATH),
            partition_fields=fields,
            extractor=PartitionExtractor.of(fields, is_hive_style=is_hive_style)
            if extractor is None
            else PartitionExtractor.named(extractor, keys.SYNC_PARTITION_EXTRACTOR),
            decodes_partitions=options.get(keys.SYNC_DECODE_PARTITION),
            strategy=options.get(keys.SYNC_STRATEGY),
            skips_ro_suffix=options.get(keys.SYNC_SKIP_RO_SUFFIX),
            has_snapshot_by_table_name=options.get(keys.SYNC_SNAPSHOT_WITH_TABLE_NAME),
            creates_database=options.get(keys.SYNC_AUTO_CREATE_DATABASE),
            supports_timestamp=options.get(keys.SYNC_SUPPORT_TIMESTAMP),
            is_for_spark=options.get(keys.SYNC_AS_DATA_SOURCE),
            schema_part_length=options.get(keys.SYNC_SCHEMA_PART_LENGTH),
            omits_meta_fields=options.get(keys.SYNC_OMIT_META_FIELDS),
            table_properties=_pairs(options, keys.SYNC_TABLE_PROPERTIES),
            serde_properties=_pairs(options, keys.SYNC_SERDE_PROPERTIES),
            spark_version=options.get(keys.SYNC_SPARK_VERSION),
            is_conditional=options.get(keys.SYNC_CONDITIONAL),
        )


def is_sync_enabled(options: Options) -> bool:
    """Whether compactions and the table service update the catalog by themselves."""
    return any(map(options.get, (keys.HIVE_SYNC_ENABLED, keys.DATASOURCE_SYNC_ENABLED, keys.SYNC_ENABLED)))


def _database(options: Options, config: TableConfig) -> str:
    return options.get(keys.SYNC_DATABASE) or config.properties.get(DATABASE_NAME) or "default"


def _name(text: str, option: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ConfigError(
            f"{text!r} is not a name that Hive accepts (letters, digits and underscores): set another one as {option}"
        )
    return text.lower()


def _pairs(options: Options, key: Option[str | None]) -> dict[str, str]:
    """Hudi's form: `name=value`, a line each."""
    pairs: dict[str, str] = {}
    for number, line in enumerate((options.get(key) or "").splitlines(), start=1):
        name, equals, value = line.partition("=")
        if line.strip() and not (equals and name.strip()):
            raise ConfigError(f"option {key}: line {number} does not have the form name=value")
        if line.strip():
            pairs[name.strip()] = value.strip()
    return pairs
