"""Catalog sync."""

from enum import StrEnum

from eventide_core.config.option import FLAG, NAMES, TEXT, Option, choice, one_of, optional, whole_number


class SyncStrategy(StrEnum):
    """Which tables there are to be: read-optimized, snapshot (`real time`), or both."""

    RO = "ro"
    RT = "rt"
    ALL = "all"


HIVE_SYNC_ENABLED = Option(
    "hoodie.datasource.hive_sync.enable",
    FLAG,
    False,
    "Compactions and the table service update the catalog where this option or one of the next two is true.",
)
DATASOURCE_SYNC_ENABLED = Option("hoodie.datasource.meta.sync.enable", FLAG, False, "The same.")
SYNC_ENABLED = Option("hoodie.meta.sync.enable", FLAG, False, "The same.")
SYNC_TOOLS = optional(
    "hoodie.meta.sync.client.tool.class",
    NAMES,
    "The catalogs, by the classes of Hudi that sync them: HiveSyncTool, AwsGlueCatalogSyncTool, DataHubSyncTool.",
    otherwise="a Hive Metastore",
)
SYNC_MODE = Option(
    "hoodie.datasource.hive_sync.mode",
    one_of("hms", "jdbc", "hiveql"),
    "hms",
    "How to reach Hive. Of Hudi's modes, eventide supports hms, which uses the metastore itself, and refuses the others.",
)
METASTORE_URIS = optional(
    "hoodie.datasource.hive_sync.metastore.uris",
    TEXT,
    "The addresses of the metastore, separated by commas.",
    otherwise="the addresses of the SparkSession, else `thrift://localhost:9083`",
)
SYNC_DATABASE = optional(
    "hoodie.datasource.hive_sync.database",
    TEXT,
    "The database in the catalog.",
    otherwise="hoodie.database.name of the table, else `default`",
)
SYNC_TABLE = optional(
    "hoodie.datasource.hive_sync.table",
    TEXT,
    "The name of the table in the catalog, before _ro and _rt.",
    otherwise="the name of the table",
)
SYNC_BASE_PATH = optional(
    "hoodie.datasource.meta.sync.base.path",
    TEXT,
    "The directory of the table as readers of the catalog name it, such as s3a://lake/trips.",
    otherwise="the URI that eventide was given",
)
SYNC_PARTITION_FIELDS = optional(
    "hoodie.datasource.hive_sync.partition_fields",
    NAMES,
    "The partition columns in the catalog.",
    otherwise="the partition fields of the table",
)
SYNC_PARTITION_EXTRACTOR = optional(
    "hoodie.datasource.hive_sync.partition_extractor_class",
    TEXT,
    "The class of Hudi that turns the path of a partition into its values.",
    otherwise="by the number of fields",
)
SYNC_DECODE_PARTITION = Option(
    "hoodie.meta.sync.decode_partition",
    FLAG,
    False,
    "Whether values decode the %-encoded characters in the path of a partition. Hudi's own metastore sync never does.",
)
SYNC_STRATEGY = Option(
    "hoodie.datasource.hive_sync.table.strategy",
    choice(SyncStrategy),
    SyncStrategy.ALL,
    "Which tables the catalog gets: read-optimized, snapshot, or both.",
)
SYNC_SKIP_RO_SUFFIX = Option(
    "hoodie.datasource.hive_sync.skip_ro_suffix",
    FLAG,
    False,
    "Gives the read-optimized table the name of the table itself.",
)
SYNC_SNAPSHOT_WITH_TABLE_NAME = Option(
    "hoodie.meta.sync.sync_snapshot_with_table_name",
    FLAG,
    True,
    "Adds a snapshot table that has the name of the table itself.",
)
SYNC_AUTO_CREATE_DATABASE = Option(
    "hoodie.datasource.hive_sync.auto_create_database", FLAG, True, "Creates the database where it does not exist."
)
SYNC_SUPPORT_TIMESTAMP = Option(
    "hoodie.datasource.hive_sync.support_timestamp",
    FLAG,
    False,
    "Uses Hive's timestamp for timestamps, not bigint. Spark reads them as timestamps either way.",
)
SYNC_AS_DATA_SOURCE = Option(
    "hoodie.datasource.hive_sync.sync_as_datasource",
    FLAG,
    True,
    "Adds the properties by which Spark reads the tables through Hudi.",
)
SYNC_SCHEMA_PART_LENGTH = Option(
    "hoodie.datasource.hive_sync.schema_string_length_thresh",
    whole_number(at_least=1),
    4000,
    "Characters of Spark's schema in one property.",
)
SYNC_OMIT_META_FIELDS = Option(
    "hoodie.datasource.hive_sync.omit_metadata_fields", FLAG, False, "Leaves out Hudi's meta columns."
)
SYNC_TABLE_PROPERTIES = optional(
    "hoodie.datasource.hive_sync.table_properties",
    TEXT,
    "Additional properties of the tables: `name=value`, one a line.",
)
SYNC_SERDE_PROPERTIES = optional(
    "hoodie.datasource.hive_sync.serde_properties", TEXT, "The same for the serde of the tables."
)
SYNC_SPARK_VERSION = optional("hoodie.meta_sync.spark.version", TEXT, "The Spark version that the properties name.")
SYNC_CONDITIONAL = Option(
    "hoodie.datasource.meta_sync.condition.sync",
    FLAG,
    False,
    "Leaves a table alone where only the time of the last commit would change.",
)
SYNC_MANAGED_TABLE = Option(
    "hoodie.datasource.hive_sync.create_managed_table",
    FLAG,
    False,
    "Refused where true: dropping a managed table removes its data.",
)
