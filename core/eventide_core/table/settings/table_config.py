"""The settings in a table's `.hoodie/hoodie.properties`.

Raises UnsupportedTableError for settings that eventide does not know, so that no later step has to check.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from eventide_core.errors import NotAHudiTableError, UnsupportedTableError
from eventide_core.table import property_keys as keys
from eventide_core.table.property_keys import KEY_GENERATORS, POPULATE_META_FIELDS, RECORDKEY_FIELDS
from eventide_core.table.records.custom_merger import CustomMerger, CustomMergers
from eventide_core.table.records.event_time_texts import ISO_WITH_ZONE, ZONE_KEY, EventTimeTexts
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import DeleteMarker, PartialUpdate
from eventide_core.table.settings.merge_config import MergeConfig
from eventide_core.table.settings.properties import has_utc_instants, names, parse_properties
from eventide_core.table.timeline.layout import Layout, layout_of

_KEY_GENERATORS = ("", "SIMPLE", "COMPLEX", "TIMESTAMP", "TIMESTAMPBASED", "CUSTOM", "NONPARTITION", "NONPARTITIONED")
"""The key generators, by type or by class, that build keys from the record key fields alone."""


def virtual_key_fields(properties: Mapping[str, str], root: str) -> tuple[str, ...]:
    """The columns that make up a record's key if the files have no meta fields; empty if they have.

    Raises UnsupportedTableError if Hudi's readers would build another key from the columns.
    """
    if properties.get(POPULATE_META_FIELDS, "true").lower() == "true":
        return ()
    fields = names(properties, RECORDKEY_FIELDS)
    named = next((key for key in KEY_GENERATORS if properties.get(key)), KEY_GENERATORS[0])
    generator = properties.get(named, "")
    kind = re.sub(r"(_AVRO|Avro)?(KeyGenerator)?$", "", generator.rpartition(".")[2]).replace("_", "").upper()
    place, cure = f"{root}: {POPULATE_META_FIELDS}=false", f"rewrite it with {POPULATE_META_FIELDS}=true"
    if not fields:
        raise UnsupportedTableError(
            f"{place}: a table with neither meta fields nor record key fields ({RECORDKEY_FIELDS}); {cure}"
        )
    if kind not in _KEY_GENERATORS:
        raise UnsupportedTableError(
            f"{place}: without meta fields, the keys of {named}={generator} are unknown; {cure}"
        )
    if kind == "COMPLEX" and len(fields) == 1:
        # Its writers write `id:k1` or `k1`, depending on an option of each write. Hudi's readers assume the latter.
        raise UnsupportedTableError(
            f"{place}: without meta fields, the form of the ComplexKeyGenerator's keys of one field is unknown; {cure}"
        )
    return fields


SUPPORTED_VERSIONS = (6, 8, 9)
_COPY_ON_WRITE, _MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"


@dataclass(frozen=True, slots=True)
class TableConfig:
    """A table's own settings.

    `name`: as in `hoodie.table.name`, empty if it is missing.
    `version`: the table version, 6, 8 or 9.
    `is_copy_on_write`: it has base files alone: every query reads them as they are, so that its merge rule decides nothing.
    `merge_rule`: the one by which compactions merge.
    `reader_rules`: the rules by which the engines that can read the table merge it, `merge_rule` among them. Hudi 0.x has
        rules of its own for a version 6 table that it wrote (one that Hudi 1.x wrote names its ordering field under a key
        that 0.x does not know, so 0.x does not read it reliably).
    `payload_class`, `delete_marker`, `partial_update`, `orders_deletes`, `merger`: see MergeConfig.
    `record_key_fields`: those that the table states; empty if Hudi generates keys.
    `virtual_key_fields`: make up a record's key where the files have no meta fields; there are none where they have.
    `partition_fields`: in the order of the path, without their kinds; empty for a table with one partition.
    `ordering_fields`: compared one after another; empty without an order.
    `event_time_texts`: how texts of event times are read: as the table states, otherwise as the user does.
    `timeline_path`: the directory of the active timeline, relative to the table's root.
    `metadata_partitions`: the partitions of Hudi's metadata table that readers may use; empty if they must list directories.
    `properties`: the raw lines, unescaped.
    """

    name: str
    version: int
    is_copy_on_write: bool
    merge_rule: MergeRule
    reader_rules: tuple[MergeRule, ...]
    payload_class: str | None
    record_key_fields: tuple[str, ...]
    virtual_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    delete_marker: DeleteMarker | None
    partial_update: PartialUpdate | None
    orders_deletes: bool
    merger: CustomMerger | None
    event_time_texts: EventTimeTexts
    timeline_path: str
    metadata_partitions: tuple[str, ...]
    properties: Mapping[str, str]

    @property
    def layout(self) -> Layout:
        """How the table lies on disk."""
        return layout_of(self.version)

    @property
    def is_new_since_version_8(self) -> bool:
        """Whether version 8 or later created the table, so that it has no log file of version 6."""
        initial = self.properties.get(keys.INITIAL_VERSION, "")
        return self.layout.names_logs_by_write and initial.isdecimal() and int(initial) >= 8

    @property
    def marks_local_times(self) -> bool:
        """Whether Parquet files of this table version's Hudi, 1.1 or later, distinguish local timestamps from numbers."""
        return self.version >= 9

    @property
    def archive_path(self) -> str:
        """The directory of the archived timeline."""
        return self.layout.archive_path(self.timeline_path, self.properties)

    @property
    def captures_changes(self) -> bool:
        """Whether Hudi's incremental queries of format `cdc` read the table's changes."""
        return self.properties.get(keys.CDC_ENABLED, "false").lower() == "true"

    @property
    def has_utc_instants(self) -> bool:
        """Whether instants are UTC; otherwise, they are in the local time zone of whoever writes, Hudi's default."""
        return has_utc_instants(self.properties)

    @property
    def identity_settings(self) -> Mapping[str, str]:
        """The settings by which records are keyed, ordered and partitioned, by the keys of version 9; and the version."""
        ordering = names(self.properties, keys.ORDERING_FIELDS)
        values = {
            keys.TABLE_VERSION: str(self.version),
            keys.RECORDKEY_FIELDS: ",".join(self.record_key_fields),
            keys.PARTITION_FIELDS: ",".join(self.partition_fields),
            keys.ORDERING_FIELDS: ",".join(ordering or names(self.properties, keys.PRECOMBINE_FIELD)),
        }
        return {key: value for key, value in values.items() if value}

    @property
    def recorded_settings(self) -> Mapping[str, str]:
        """What a commit of eventide records of the settings: also those that its writers need, and no other file shows."""
        kept = {key: value for key, value in self.properties.items() if key.startswith(keys.WRITER_SETTINGS)}
        return {ZONE_KEY: "", **kept, **self.identity_settings}

    @property
    def partition_kinds(self) -> Mapping[str, str]:
        """How a CustomKeyGenerator treats each partition field, in capitals; empty if the table doesn't state it."""
        texts = self.properties.get(keys.PARTITION_FIELDS, "").split(",")
        pairs = (text.strip().partition(":") for text in texts if text.strip())
        return {name: kind.upper() for name, _, kind in pairs}

    @property
    def first_ordering_field(self) -> str | None:
        return self.ordering_fields[0] if self.ordering_fields else None

    @property
    def event_time_field(self) -> str | None:
        """The event-time field that the table was created with; Hudi's own tables do not state it."""
        return self.properties.get("hoodie.payload.event.time.field") or None

    @classmethod
    @lru_cache(maxsize=16)  # a use case reads the settings again and again, and hardly ever other ones
    def parse(
        cls, text: str, root: str, mergers: CustomMergers = (), times: EventTimeTexts = ISO_WITH_ZONE
    ) -> "TableConfig":
        """The settings in the text of hoodie.properties; `root` names the table in errors.

        `mergers` are the user-defined mergers that may merge the table, `times` the user's options for its texts of
        event times.
        """
        properties = parse_properties(text)
        if keys.TABLE_VERSION not in properties:
            raise NotAHudiTableError(f"{root}: hoodie.properties has no {keys.TABLE_VERSION}; is this a Hudi table?")
        try:
            version = int(properties[keys.TABLE_VERSION])
        except ValueError:
            version = -1
        if version not in SUPPORTED_VERSIONS:
            raise UnsupportedTableError(
                f"{root}: {keys.TABLE_VERSION}={properties[keys.TABLE_VERSION]} is not one of "
                f"{', '.join(map(str, SUPPORTED_VERSIONS))}; {_cure_of_version(version)}"
            )
        _refuse_unknown(properties, root)
        is_copy_on_write = properties.get(keys.TABLE_TYPE, _COPY_ON_WRITE) == _COPY_ON_WRITE
        merge = (
            MergeConfig.unused(properties) if is_copy_on_write else MergeConfig.of(properties, version, root, mergers)
        )
        return cls(
            name=properties.get(keys.TABLE_NAME, ""),
            version=version,
            is_copy_on_write=is_copy_on_write,
            merge_rule=merge.rule,
            reader_rules=merge.reader_rules,
            payload_class=merge.payload_class,
            record_key_fields=names(properties, keys.RECORDKEY_FIELDS),
            virtual_key_fields=virtual_key_fields(properties, root),
            # A field may carry its key generator's kind after a colon, as in `ts:TIMESTAMP`.
            partition_fields=tuple(field.split(":")[0] for field in names(properties, keys.PARTITION_FIELDS)),
            ordering_fields=merge.ordering_fields,
            delete_marker=merge.delete_marker,
            partial_update=merge.partial_update,
            orders_deletes=merge.orders_deletes,
            merger=merge.merger,
            event_time_texts=EventTimeTexts.of(properties).or_else(times, root),
            timeline_path=layout_of(version).timeline_path(properties),
            metadata_partitions=names(properties, keys.METADATA_PARTITIONS),
            properties=properties,
        )


def _cure_of_version(version: int) -> str:
    if version < 0:
        return "restore hoodie.properties from hoodie.properties.backup, or from a copy"
    if version < SUPPORTED_VERSIONS[0]:
        return (
            "Hudi 0.14 and 0.15 upgrade the table to version 6 with their next write, or by "
            "`call upgrade_table(table => '...', to_version => 'SIX')` in Spark SQL"
        )
    if version < SUPPORTED_VERSIONS[-1]:
        return "Hudi 1.1 upgrades it by `call upgrade_table(table => '...', to_version => 'EIGHT')` in Spark SQL"
    return "Hudi downgrades it by `call downgrade_table(table => '...', to_version => 'NINE')` in Spark SQL"


def _refuse_unknown(properties: Mapping[str, str], root: str) -> None:
    kind = properties.get(keys.TABLE_TYPE, _COPY_ON_WRITE)
    if kind not in (_COPY_ON_WRITE, _MERGE_ON_READ):
        raise UnsupportedTableError(
            f"{root}: {keys.TABLE_TYPE}={kind} is neither {_COPY_ON_WRITE} nor {_MERGE_ON_READ}; set the type that the "
            "table has"
        )
    base_format = properties.get(keys.BASE_FILE_FORMAT, "PARQUET")
    if base_format != "PARQUET":
        raise UnsupportedTableError(
            f"{root}: {keys.BASE_FILE_FORMAT}={base_format}: its base files are {base_format}, and eventide reads and "
            "writes PARQUET; compact this table with Hudi itself, or write it again in PARQUET"
        )
    refused = {
        keys.MULTIPLE_BASE_FILE_FORMATS: "base files may be of other formats than PARQUET, which eventide "
        "does not read; compact this table with Hudi itself",
        keys.DROP_PARTITION_COLUMNS: "partition columns are left out of the files, and eventide does "
        "not put them back; use this table with Hudi itself",
    }
    for key, why in refused.items():
        if properties.get(key, "false").lower() == "true":
            raise UnsupportedTableError(f"{root}: {key}=true: {why}")
    bootstrapped_from = properties.get(keys.BOOTSTRAP_BASE_PATH)
    if bootstrapped_from:
        raise UnsupportedTableError(
            f"{root}: {keys.BOOTSTRAP_BASE_PATH}={bootstrapped_from}: a bootstrapped table keeps columns outside of it, in "
            f"{bootstrapped_from}, where eventide does not read; write it again with Hudi first"
        )
