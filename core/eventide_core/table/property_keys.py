"""The keys of a table's own settings, `.hoodie/hoodie.properties`, under the names of Hudi's HoodieTableConfig.

Writers' options that a table happens to keep are declared where they are read.
"""

from typing import Final

TABLE_NAME: Final = "hoodie.table.name"
DATABASE_NAME: Final = "hoodie.database.name"
TABLE_TYPE: Final = "hoodie.table.type"
TABLE_VERSION: Final = "hoodie.table.version"
INITIAL_VERSION: Final = "hoodie.table.initial.version"
TABLE_FORMAT: Final = "hoodie.table.format"
TABLE_CHECKSUM: Final = "hoodie.table.checksum"
CREATE_SCHEMA: Final = "hoodie.table.create.schema"
BOOTSTRAP_BASE_PATH: Final = "hoodie.bootstrap.base.path"

RECORDKEY_FIELDS: Final = "hoodie.table.recordkey.fields"
POPULATE_META_FIELDS: Final = "hoodie.populate.meta.fields"
KEY_GENERATOR_CLASS_NAME: Final = "hoodie.table.keygenerator.class"
KEY_GENERATOR_TYPE: Final = "hoodie.table.keygenerator.type"
"""The key generator from version 8 on; below, the table names its class."""
KEY_GENERATORS: Final = (KEY_GENERATOR_TYPE, KEY_GENERATOR_CLASS_NAME)
"""Where the key generator is; the first one that is set counts."""

PARTITION_FIELDS: Final = "hoodie.table.partition.fields"
HIVE_STYLE_PARTITIONING: Final = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE_PARTITIONING: Final = "hoodie.datasource.write.partitionpath.urlencode"
DROP_PARTITION_COLUMNS: Final = "hoodie.datasource.write.drop.partition.columns"
PARTITION_METAFILE_USE_BASE_FORMAT: Final = "hoodie.partition.metafile.use.base.format"

ORDERING_FIELDS: Final = "hoodie.table.ordering.fields"
PRECOMBINE_FIELD: Final = "hoodie.table.precombine.field"
"""The ordering field below version 9."""
RECORD_MERGE_MODE: Final = "hoodie.record.merge.mode"
RECORD_MERGE_STRATEGY_ID: Final = "hoodie.record.merge.strategy.id"
RECORD_MERGER_STRATEGY: Final = "hoodie.compaction.record.merger.strategy"
"""The strategy on version 6."""
RECORD_MERGE_PROPERTY_PREFIX: Final = "hoodie.record.merge.property."
DELETE_FIELD: Final = f"{RECORD_MERGE_PROPERTY_PREFIX}hoodie.payload.delete.field"
DELETE_MARKER: Final = f"{RECORD_MERGE_PROPERTY_PREFIX}hoodie.payload.delete.marker"
PAYLOAD_CLASS_NAME: Final = "hoodie.compaction.payload.class"
LEGACY_PAYLOAD_CLASS_NAME: Final = "hoodie.table.legacy.payload.class"
PARTIAL_UPDATE_MODE: Final = "hoodie.table.partial.update.mode"

BASE_FILE_FORMAT: Final = "hoodie.table.base.file.format"
MULTIPLE_BASE_FILE_FORMATS: Final = "hoodie.table.multiple.base.file.formats.enable"
CDC_ENABLED: Final = "hoodie.table.cdc.enabled"
CDC_SUPPLEMENTAL_LOGGING_MODE: Final = "hoodie.table.cdc.supplemental.logging.mode"

TIMELINE_TIMEZONE: Final = "hoodie.table.timeline.timezone"
TIMELINE_LAYOUT_VERSION: Final = "hoodie.timeline.layout.version"
TIMELINE_PATH: Final = "hoodie.timeline.path"
TIMELINE_HISTORY_PATH: Final = "hoodie.timeline.history.path"
ARCHIVELOG_FOLDER: Final = "hoodie.archivelog.folder"

METADATA_PARTITIONS: Final = "hoodie.table.metadata.partitions"
"""The partitions of the metadata table that readers may use."""
METADATA_PARTITIONS_INFLIGHT: Final = "hoodie.table.metadata.partitions.inflight"
"""The partitions of the metadata table that are being made, which no reader uses."""
INDEX_DEFINITIONS_PATH: Final = "hoodie.table.index.defs.path"

# The names of some of these settings as options of writers.
WRITTEN_RECORD_KEY: Final = "hoodie.datasource.write.recordkey.field"
WRITTEN_PARTITION_PATH: Final = "hoodie.datasource.write.partitionpath.field"
WRITTEN_ORDERING: Final = "hoodie.datasource.write.precombine.field"
WRITTEN_KEY_GENERATOR_CLASS: Final = "hoodie.datasource.write.keygenerator.class"
WRITTEN_KEY_GENERATOR_TYPE: Final = "hoodie.datasource.write.keygenerator.type"
WRITTEN_MERGE_MODE: Final = "hoodie.write.record.merge.mode"

TIME_PREFIX: Final = "hoodie.keygen.timebased."
"""What the keys of a TimestampBasedKeyGenerator begin with."""

WRITER_SETTINGS: Final = (
    TIME_PREFIX,
    "eventide.",
    "hoodie.bucket.index.",
    "hoodie.index.",
    "hoodie.payload.event.time.field",
)
"""What the keys begin with of the settings that a table has for its writers: Hudi's expect them as options."""

IDENTITY_SETTINGS: Final = frozenset((TABLE_VERSION, RECORDKEY_FIELDS, PARTITION_FIELDS, ORDERING_FIELDS))
"""The settings by which records are keyed, ordered and partitioned, by the keys of version 9; and the version."""
