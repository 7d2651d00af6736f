"""How the record key and the partition path of a record are made of its fields: Hudi's key generators.

key         value                          of one key field
            field:value,field:value,...    of several; also of one under ComplexKeyGenerator
partition   ""                             NonpartitionedKeyGenerator
            value[/value...]               Simple- and ComplexKeyGenerator, `field=value` in Hive's style
            time by a format               TimestampBasedKeyGenerator
            either of the two, by field    CustomKeyGenerator, whose fields state it: `field:SIMPLE`, `field:TIMESTAMP`
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from eventide_core.errors import UnsupportedTableError
from eventide_core.table.property_keys import (
    HIVE_STYLE_PARTITIONING,
    KEY_GENERATOR_CLASS_NAME,
    KEY_GENERATOR_TYPE,
    TIME_PREFIX,
    URL_ENCODE_PARTITIONING,
)
from eventide_core.table.records.partition_values import PartitionExtractor
from eventide_core.table.settings.table_config import TableConfig

_OFFSET = re.compile(r"(?:GMT|UTC|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?")
_OLD_TIME_PREFIX = "hoodie.deltastreamer.keygen.timebased."

_SLASH_SEPARATED = ("slash.separated.date.partitioning", "slash.separated.date.partitionpath")  # Hudi 1.2, and before
_PLAIN_EXTRACTORS = (
    PartitionExtractor.NONE,
    PartitionExtractor.SINGLE,
    PartitionExtractor.HIVE_STYLE,
    PartitionExtractor.MULTI,
)
_SLASHED_EXTRACTORS: Mapping[str, int] = {PartitionExtractor.DAY: 3, PartitionExtractor.HOUR: 4}

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class KeyGenerator(StrEnum):
    """Hudi's names of the types. Version 6 names the corresponding class."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    NON_PARTITION = "NON_PARTITION"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"

    @property
    def class_name(self) -> str:
        return f"org.apache.hudi.keygen.{_CLASSES[self]}"

    @classmethod
    def named(cls, text: str) -> "KeyGenerator | None":
        """The generator of that type or class, including Hudi's Avro classes; None for any other."""
        name = text.rpartition(".")[2].removesuffix("_AVRO").replace("AvroKeyGenerator", "KeyGenerator")
        return next((generator for generator in cls if name in (generator.value, _CLASSES[generator])), None)


_CLASSES = {
    KeyGenerator.SIMPLE: "SimpleKeyGenerator",
    KeyGenerator.COMPLEX: "ComplexKeyGenerator",
    KeyGenerator.NON_PARTITION: "NonpartitionedKeyGenerator",
    KeyGenerator.TIMESTAMP: "TimestampBasedKeyGenerator",
    KeyGenerator.CUSTOM: "CustomKeyGenerator",
}


class PartitionKind(StrEnum):
    """How CustomKeyGenerator treats a partition field."""

    SIMPLE = "SIMPLE"
    TIMESTAMP = "TIMESTAMP"


class TimeKind(StrEnum):
    """The values of a partition field whose directory is a time. A column of times or dates is used unchanged."""

    SECONDS = "UNIX_TIMESTAMP"
    MILLISECONDS = "EPOCHMILLISECONDS"
    MICROSECONDS = "EPOCHMICROSECONDS"
    TEXT = "DATE_STRING"


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """A partition path that is a time. Formats are Java's patterns; `zone` is an IANA name or an offset, `+08:00`.

    `kind` is what the values of the field are. `input_format` is how a text among them is read, None if the table doesn't
    state it; `output_format` is how the directory is written, as of the zone.
    """

    kind: TimeKind
    input_format: str | None
    output_format: str
    zone: str


@dataclass(frozen=True, slots=True)
class Slashes:
    """A table whose paths may be `2026/01/05` for the value `2026-01-05`, by `setting`, a line of its properties.

    `directories` is how many of them a value has; None if only the extractor's own code knows.
    """

    setting: str
    directories: int | None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "Slashes | None":
        """None if the values of partition fields are their directories.

        The class of the partition value extractor is all that Hudi 1.2 keeps of slash-separated dates.
        """
        for key, value in properties.items():
            if key.endswith(_SLASH_SEPARATED) and value.lower() == "true":
                return cls(f"{key}={value}", 3)
            if "partition" in key and "extractor" in key and value:
                name = value.rpartition(".")[2].lower()
                if name not in _PLAIN_EXTRACTORS:
                    return cls(f"{key}={value}", _SLASHED_EXTRACTORS.get(name))
        return None


@dataclass(frozen=True, slots=True)
class KeyFormat:
    """How a record's key and its partition's path are made of its columns.

    `key_fields` and `partition_fields` are in the order in which they are joined. `names_key_fields`: whether a record key
    contains its fields' names. `is_hive_style`: directories are `field=value`. `is_url_encoded`: characters of values that a
    path can't have are %-encoded. The directories of `time_fields` are times, by `partition_time`; None if there are none.
    `slashes`: set if the table states that the directories of the other fields may not be their values as they are.
    """

    key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    is_hive_style: bool
    is_url_encoded: bool
    names_key_fields: bool
    partition_time: PartitionTime | None = None
    time_fields: tuple[str, ...] = ()
    slashes: "Slashes | None" = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that determine a record's partition and key, without duplicates."""
        return tuple(dict.fromkeys((*self.key_fields, *self.partition_fields)))

    @classmethod
    def of(
        cls,
        config: TableConfig,
        root: str,
        *,
        has_bare_keys: bool | None = None,
        times: Mapping[str, str] | None = None,
    ) -> "KeyFormat":
        """The format of an existing table; `root` names it in errors. Raises UnsupportedTableError.

        `has_bare_keys`: what is known about the keys if Hudi versions differ (ComplexKeyGenerator with one key field,
        before version 9). `times` are options of a TimestampBasedKeyGenerator that the table does not state: Hudi 0.x
        omits the content of the partition field from its properties.
        """
        properties = config.properties
        if not config.record_key_fields:
            raise UnsupportedTableError(
                f"{root} has no record key fields: keys that Hudi generates are not supported; write to it with Hudi"
            )
        generator = key_generator_of(config, root)
        is_complex = generator is KeyGenerator.COMPLEX
        names_key_fields = len(config.record_key_fields) > 1 or is_complex
        if is_complex and len(config.record_key_fields) == 1 and config.version < 9:
            if has_bare_keys is None:
                raise UnsupportedTableError(
                    f"{root}: ComplexKeyGenerator with one key field: Hudi versions differ in whether keys name it; "
                    "set hoodie.write.complex.keygen.new.encoding=true if keys are bare values, false if they are "
                    "field:value"
                )
            names_key_fields = not has_bare_keys
        time_fields = _time_fields(config, generator, root)
        return cls(
            key_fields=config.record_key_fields,
            partition_fields=config.partition_fields,
            is_hive_style=properties.get(HIVE_STYLE_PARTITIONING, "false").lower() == "true",
            is_url_encoded=properties.get(URL_ENCODE_PARTITIONING, "false").lower() == "true",
            names_key_fields=names_key_fields,
            partition_time=_partition_time({**(times or {}), **properties}, generator, root) if time_fields else None,
            time_fields=time_fields,
            slashes=Slashes.of(properties),
        )


def key_generator_of(config: TableConfig, root: str) -> KeyGenerator:
    """The table's key generator; `root` names the table in errors. Raises UnsupportedTableError for an unknown one."""
    stated = config.properties.get(KEY_GENERATOR_TYPE) or config.properties.get(KEY_GENERATOR_CLASS_NAME)
    if stated is None:
        if not config.partition_fields:
            return KeyGenerator.NON_PARTITION
        is_single = len(config.partition_fields) == 1 and len(config.record_key_fields) == 1
        return KeyGenerator.SIMPLE if is_single else KeyGenerator.COMPLEX
    generator = KeyGenerator.named(stated)
    if generator is None:
        raise UnsupportedTableError(
            f"{root}: key generator {stated} is not one of {', '.join(_CLASSES.values())}; write to the table with Hudi"
        )
    return generator


def _time_fields(config: TableConfig, generator: KeyGenerator, root: str) -> tuple[str, ...]:
    if generator is KeyGenerator.TIMESTAMP:
        return config.partition_fields
    if generator is not KeyGenerator.CUSTOM:
        return ()
    kinds = config.partition_kinds
    for name, kind in kinds.items():
        if kind not in list(PartitionKind):
            raise UnsupportedTableError(
                f"{root}: CustomKeyGenerator, and partition field {name!r} is of kind {kind or '(none)'}, which "
                f"is not one of {', '.join(PartitionKind)}; write to the table with Hudi"
            )
    return tuple(name for name, kind in kinds.items() if kind == PartitionKind.TIMESTAMP)


def _partition_time(properties: Mapping[str, str], generator: KeyGenerator, root: str) -> PartitionTime:
    def setting(key: str) -> str | None:
        return properties.get(TIME_PREFIX + key) or properties.get(_OLD_TIME_PREFIX + key)

    kind, output = setting("timestamp.type"), setting("output.dateformat")
    if kind not in list(TimeKind) or output is None:
        raise UnsupportedTableError(
            f"{root}: {_CLASSES[generator]} with {TIME_PREFIX}timestamp.type={kind} and "
            f"output.dateformat={output}: known types are {', '.join(TimeKind)}, and a format is needed; set "
            "what the table does not state as options"
        )
    zone = setting("output.timezone") or setting("timezone") or "UTC"
    return PartitionTime(TimeKind(kind), setting("input.dateformat"), output, _zone(zone))


def _zone(name: str) -> str:
    """The zone without the letters that Java's names of offsets begin with: `GMT+8` and `GMT+08:00` are `+08:00`."""
    match = _OFFSET.fullmatch(name)
    return name if match is None else f"{match['sign']}{int(match['hours']):02}:{match['minutes'] or '00'}"
