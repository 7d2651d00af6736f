"""The settings of a new Hudi table, and its `hoodie.properties`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from eventide_core.errors import ConfigError
from eventide_core.table import property_keys as keys
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.schema.avro_names import refuse_invalid_names
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.key_format import KeyGenerator, PartitionKind
from eventide_core.table.settings.properties import stored_properties, table_checksum

CREATED_VERSIONS: Final = (6, 8, 9)
_MODEL: Final = "org.apache.hudi.common.model"
_PAYLOADS: Final = {
    MergeRule.COMMIT_TIME_ORDERING: f"{_MODEL}.OverwriteWithLatestAvroPayload",
    MergeRule.EVENT_TIME_ORDERING: f"{_MODEL}.DefaultHoodieRecordPayload",
}
_DEFAULT_MERGER: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_MERGERS: Final = {
    MergeRule.COMMIT_TIME_ORDERING: "ce9acb64-bde0-424c-9b91-f6ebba25356d",
    MergeRule.EVENT_TIME_ORDERING: _DEFAULT_MERGER,
}


@dataclass(frozen=True, slots=True)
class NewTable:
    """The settings of a merge-on-read table.

    `name`: as in `hoodie.table.name`.
    `schema`: its Avro schema, without meta fields.
    `version`: the table version, 6, 8 or 9.
    `merge_rule`: by commit time or by event time.
    `record_key_fields`: at least one, in the order in which they make up the key.
    `partition_fields`: in the order of the path; without any, the table has one partition.
    `ordering_field`: decides which version is newer; None if the last commit wins, which EVENT_TIME_ORDERING does not allow.
    `is_hive_style`: partition directories are `field=value`.
    `is_url_encoded`: values in them are %-encoded.
    `writer_options`: options that every writer needs and that Hudi expects in each write (the index, the number of buckets,
        the event-time field); eventide's writers find them here, and Hudi's ignore them.
    `partition_times`: the options of a TimestampBasedKeyGenerator, which the table has if any is given.
    `partition_kinds`: the options of a CustomKeyGenerator, which the table has if they are given, for every partition field.
    `wished_generator`: can turn a SimpleKeyGenerator into a ComplexKeyGenerator; any other must be the generator that the
        fields require.
    """

    name: str
    schema: AvroSchema
    version: int
    merge_rule: MergeRule
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...] = ()
    ordering_field: str | None = None
    is_hive_style: bool = True
    is_url_encoded: bool = False
    writer_options: Mapping[str, str] = field(default_factory=dict[str, str])
    partition_times: Mapping[str, str] = field(default_factory=dict[str, str])
    partition_kinds: Mapping[str, str] = field(default_factory=dict[str, str])
    wished_generator: KeyGenerator | None = None

    def __post_init__(self) -> None:
        if self.version not in CREATED_VERSIONS:
            raise ConfigError(
                f"table version {self.version}: new tables have {' or '.join(map(str, CREATED_VERSIONS))}"
            )
        if self.merge_rule not in _PAYLOADS:
            raise ConfigError(f"merge rule {self.merge_rule} is not one of {', '.join(_PAYLOADS)}")
        if not self.record_key_fields:
            raise ConfigError("a table needs a record key field")
        if self.merge_rule is MergeRule.EVENT_TIME_ORDERING and self.ordering_field is None:
            raise ConfigError(f"{self.merge_rule} needs an ordering field")
        if self.partition_kinds:
            self._check_kinds()
        elif self.partition_times and len(self.partition_fields) != 1:
            raise ConfigError("a partition path that is a time must have exactly one field")
        if self.wished_generator not in (None, self.key_generator):
            raise ConfigError(
                f"key generator {self.wished_generator}: keys of {', '.join(self.record_key_fields)} and partitions of "
                f"{', '.join(self.partition_fields) or 'nothing'} make a {self.key_generator.class_name}; omit it, or "
                "choose other fields"
            )
        if self.version < 9 and self.key_generator is KeyGenerator.COMPLEX and len(self.record_key_fields) == 1:
            raise ConfigError(
                f"one key field and {len(self.partition_fields)} partition fields: Hudi versions differ in how they write "
                f"such keys into tables of version {self.version}; use version 9, or another key or partition"
            )
        known = self.schema.field_names
        refuse_invalid_names(self.schema.all_names)
        for name in (*self.record_key_fields, *self.partition_fields, self.ordering_field):
            if name is not None and name not in known:
                raise ConfigError(f"field {name!r} is not in the schema, which has {', '.join(known)}")

    @property
    def key_generator(self) -> KeyGenerator:
        """Hudi's choice for these fields."""
        if self.partition_kinds:
            return KeyGenerator.CUSTOM
        if self.partition_times:
            return KeyGenerator.TIMESTAMP
        if not self.partition_fields:
            return KeyGenerator.NON_PARTITION
        is_single = len(self.partition_fields) == 1 and len(self.record_key_fields) == 1
        is_simple = is_single and self.wished_generator is not KeyGenerator.COMPLEX
        return KeyGenerator.SIMPLE if is_simple else KeyGenerator.COMPLEX

    def properties(self) -> str:
        """The text of hoodie.properties."""
        pairs = {
            keys.TABLE_NAME: self.name,
            keys.TABLE_TYPE: "MERGE_ON_READ",
            keys.TABLE_VERSION: str(self.version),
            keys.CREATE_SCHEMA: self.schema.text,
            keys.RECORDKEY_FIELDS: ",".join(self.record_key_fields),
            keys.BASE_FILE_FORMAT: "PARQUET",
            keys.TIMELINE_TIMEZONE: "UTC",
            keys.CDC_ENABLED: "false",
            keys.TABLE_CHECKSUM: table_checksum({keys.TABLE_NAME: self.name}),
            keys.DATABASE_NAME: "",
            keys.POPULATE_META_FIELDS: "true",
            keys.PARTITION_METAFILE_USE_BASE_FORMAT: "false",
            keys.DROP_PARTITION_COLUMNS: "false",
            keys.HIVE_STYLE_PARTITIONING: str(self.is_hive_style).lower(),
            keys.URL_ENCODE_PARTITIONING: str(self.is_url_encoded).lower(),
            **self._of_version(),
            **self.writer_options,
            **self.partition_times,
        }
        if self.partition_fields:
            kinds = self.partition_kinds
            texts = (f"{name}:{kinds[name]}" if kinds else name for name in self.partition_fields)
            pairs[keys.PARTITION_FIELDS] = ",".join(texts)
        return stored_properties(pairs)

    def _check_kinds(self) -> None:
        if self.version < 9:
            raise ConfigError(f"kinds of partition fields in a table of version {self.version}: use version 9")
        for name in self.partition_fields:
            if self.partition_kinds.get(name) not in list(PartitionKind):
                raise ConfigError(
                    f"partition field {name!r}: state the kind of each field, {' or '.join(PartitionKind)}, as in "
                    f"{name}:{PartitionKind.SIMPLE}"
                )
        if PartitionKind.TIMESTAMP in self.partition_kinds.values() and not self.partition_times:
            raise ConfigError(f"a partition path with a time needs the options {keys.TIME_PREFIX}*")

    def _of_version(self) -> dict[str, str]:
        if self.version < 8:
            return self._version_6()
        ordering = keys.PRECOMBINE_FIELD if self.version == 8 else keys.ORDERING_FIELDS
        pairs = self._version_9() if self.version > 8 else {**self._version_9(), **self._version_8()}
        return pairs if self.ordering_field is None else {**pairs, ordering: self.ordering_field}

    def _version_8(self) -> dict[str, str]:
        """The properties that Hudi 1.0 reads in addition to the merge mode."""
        return {
            keys.PAYLOAD_CLASS_NAME: _PAYLOADS[self.merge_rule],
            keys.RECORD_MERGE_STRATEGY_ID: _MERGERS[self.merge_rule],
        }

    def _version_6(self) -> dict[str, str]:
        ordering = {} if self.ordering_field is None else {keys.PRECOMBINE_FIELD: self.ordering_field}
        return {
            keys.TIMELINE_LAYOUT_VERSION: "1",
            keys.ARCHIVELOG_FOLDER: "archived",
            **ordering,
            keys.KEY_GENERATOR_CLASS_NAME: self.key_generator.class_name,
            keys.PAYLOAD_CLASS_NAME: _PAYLOADS[self.merge_rule],
            keys.RECORD_MERGER_STRATEGY: _DEFAULT_MERGER,
        }

    def _version_9(self) -> dict[str, str]:
        return {
            keys.INITIAL_VERSION: str(self.version),
            keys.TABLE_FORMAT: "native",
            keys.TIMELINE_LAYOUT_VERSION: "2",
            keys.TIMELINE_PATH: "timeline",
            keys.TIMELINE_HISTORY_PATH: "history",
            keys.ARCHIVELOG_FOLDER: "history",
            keys.KEY_GENERATOR_TYPE: self.key_generator.value,
            keys.RECORD_MERGE_MODE: self.merge_rule,
            keys.MULTIPLE_BASE_FILE_FORMATS: "false",
        }
