"""How a table is to stand in a catalog, by the keys of Hudi's hive sync."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from eventide_core import config as keys
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.table.partition_values import PartitionExtractor
from eventide_core.table.table_config import TableConfig

SCHEMA_PART_LENGTH_DEFAULT = 4000  # Hudi's
_NAME = re.compile(r"\w+")


class SyncStrategy(StrEnum):
    """Which tables there are to be: read-optimized, snapshot (`real time`), or both."""

    RO = "ro"
    RT = "rt"
    ALL = "all"


class SyncMode(StrEnum):
    """How Hudi's sync speaks to Hive."""

    HMS = "hms"
    JDBC = "jdbc"
    HIVEQL = "hiveql"


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """`base_path` is None where the table's own URI is what readers know it by. Names are in lower case."""

    database: str
    table: str
    base_path: str | None
    partition_fields: tuple[str, ...]
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
    table_properties: Mapping[str, str]
    serde_properties: Mapping[str, str]
    spark_version: str | None
    is_conditional: bool

    @classmethod
    def of(cls, options: Options, config: TableConfig) -> "SyncOptions":
        """Raises ConfigError for an option that cannot be used."""
        mode = options.choice(keys.SYNC_MODE, SyncMode.HMS)
        if mode is not SyncMode.HMS:
            raise ConfigError(
                f"option {keys.SYNC_MODE}={mode}: eventide speaks to the metastore itself: {SyncMode.HMS}"
            )
        if options.flag(keys.SYNC_MANAGED_TABLE):
            raise ConfigError(
                f"option {keys.SYNC_MANAGED_TABLE}=true: to drop such a table removes its data, the other tables' too; "
                "eventide makes external tables"
            )
        said = options.text(keys.SYNC_PARTITION_FIELDS)
        fields = config.partition_fields if said is None else tuple(f.strip() for f in said.split(",") if f.strip())
        extractor = options.text(keys.SYNC_PARTITION_EXTRACTOR)
        is_hive_style = config.properties.get("hoodie.datasource.write.hive_style_partitioning") == "true"
        length = options.integer(keys.SYNC_SCHEMA_PART_LENGTH, SCHEMA_PART_LENGTH_DEFAULT)
        if length == 0:
            raise ConfigError(
                f"option {keys.SYNC_SCHEMA_PART_LENGTH}=0: a part of the schema has at least one character"
            )
        database = options.text(keys.SYNC_DATABASE) or config.properties.get("hoodie.database.name") or "default"
        return cls(
            database=_name(database, keys.SYNC_DATABASE),
            table=_name(options.text(keys.SYNC_TABLE) or config.name, keys.SYNC_TABLE),
            base_path=options.text(keys.SYNC_BASE_PATH),
            partition_fields=fields,
            extractor=PartitionExtractor.of(fields, is_hive_style=is_hive_style)
            if extractor is None
            else PartitionExtractor.named(extractor, keys.SYNC_PARTITION_EXTRACTOR),
            decodes_partitions=options.flag(keys.SYNC_DECODE_PARTITION),
            strategy=options.choice(keys.SYNC_STRATEGY, SyncStrategy.ALL),
            skips_ro_suffix=options.flag(keys.SYNC_SKIP_RO_SUFFIX),
            has_snapshot_by_table_name=options.flag(keys.SYNC_SNAPSHOT_WITH_TABLE_NAME, default=True),
            creates_database=options.flag(keys.SYNC_AUTO_CREATE_DATABASE, default=True),
            supports_timestamp=options.flag(keys.SYNC_SUPPORT_TIMESTAMP),
            is_for_spark=options.flag(keys.SYNC_AS_DATA_SOURCE, default=True),
            schema_part_length=length,
            omits_meta_fields=options.flag(keys.SYNC_OMIT_META_FIELDS),
            table_properties=_pairs(options, keys.SYNC_TABLE_PROPERTIES),
            serde_properties=_pairs(options, keys.SYNC_SERDE_PROPERTIES),
            spark_version=options.text(keys.SYNC_SPARK_VERSION),
            is_conditional=options.flag(keys.SYNC_CONDITIONAL),
        )


def is_sync_enabled(options: Options) -> bool:
    """Whether compactions and the table service are to tell the catalog by themselves."""
    return any(options.flag(key) for key in keys.SYNC_ENABLED_KEYS)


def _name(text: str, option: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise ConfigError(
            f"{text!r} is no name that Hive takes, which has letters, digits and underscores: give another as {option}"
        )
    return text.lower()


def _pairs(options: Options, key: str) -> dict[str, str]:
    """Hudi's form: `name=value`, a line each."""
    pairs: dict[str, str] = {}
    for number, line in enumerate((options.text(key) or "").splitlines(), start=1):
        name, equals, value = line.partition("=")
        if line.strip() and not (equals and name.strip()):
            raise ConfigError(f"option {key}: line {number} is not of the form name=value")
        if line.strip():
            pairs[name.strip()] = value.strip()
    return pairs
