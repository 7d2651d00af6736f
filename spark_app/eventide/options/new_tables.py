"""The options of new tables."""

from eventide_core.config.option import FLAG, NAMES, TEXT, Option, OptionType, one_of, optional
from eventide_core.table import property_keys
from eventide_core.table.settings.new_table import CREATED_VERSIONS


def _version(text: str) -> int:
    if text not in _VERSIONS:
        raise ValueError
    return int(text)


_VERSIONS = tuple(map(str, CREATED_VERSIONS))

TABLE_NAME = optional(
    property_keys.TABLE_NAME, TEXT, "The name of the new table.", otherwise="the last part of its path"
)
TABLE_VERSION = Option(
    "hoodie.write.table.version",
    OptionType(", ".join(_VERSIONS), f"one of {', '.join(_VERSIONS)}", _version, _VERSIONS),
    9,
    "The version of the new table.",
)
TABLE_TYPE = Option(
    "hoodie.datasource.write.table.type",
    one_of("MERGE_ON_READ"),
    "MERGE_ON_READ",
    "The type of the new table. Only MERGE_ON_READ is supported; Hudi's own default is COPY_ON_WRITE.",
    aliases=("hoodie.datasource.write.storage.type",),
)
DROP_PARTITION_COLUMNS = Option(
    property_keys.DROP_PARTITION_COLUMNS,
    one_of("false"),
    "false",
    "Whether the files of the new table lack its partition columns. Only false is supported.",
)
CAPTURES_CHANGES = Option(
    property_keys.CDC_ENABLED,
    one_of("false"),
    "false",
    "Whether the new table captures its changes. Only false is supported, because eventide writes no change logs.",
)
MERGE_MODE = optional(
    property_keys.WRITTEN_MERGE_MODE,
    one_of("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"),
    "Which of two records with one key wins.",
    otherwise="EVENT_TIME_ORDERING where an ordering or event-time field is given, else COMMIT_TIME_ORDERING",
)
RECORD_KEY = optional(
    property_keys.WRITTEN_RECORD_KEY,
    NAMES,
    'The fields of the record key, for a table that a write by format("eventide") creates.',
    otherwise="none; nothing is created",
)
PARTITION_PATH = optional(
    property_keys.WRITTEN_PARTITION_PATH,
    NAMES,
    "The fields of the partition path of that table.",
    otherwise="none; the table has no partitions",
)
ORDERING = optional(
    property_keys.WRITTEN_ORDERING, TEXT, "The ordering field of that table.", otherwise="the event-time field"
)
HIVE_STYLE = Option(
    property_keys.HIVE_STYLE_PARTITIONING, FLAG, True, "Whether partition paths have the form `field=value`."
)
URL_ENCODE = Option(property_keys.URL_ENCODE_PARTITIONING, FLAG, False, "Whether partition paths are URL-encoded.")
KEY_GENERATOR = optional(
    property_keys.WRITTEN_KEY_GENERATOR_CLASS,
    TEXT,
    "The key generator, by class or type.",
    otherwise="the one that fits the fields",
    aliases=(property_keys.WRITTEN_KEY_GENERATOR_TYPE,),
)
