"""Hudi's options that change where a key lives, what a value is, or which row wins, and that eventide doesn't honor.

1. `REFUSED` has those that eventide cannot honor, with the values that change nothing: any other value is refused.
2. Those that state what the table itself states are refused if the two differ: a table's settings are fixed.
3. Options that eventide honors are declared as an `Option`. All other options of Hudi change none of the three; they
   have no effect here.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.table import property_keys as keys
from eventide_core.table.settings.key_format import KeyGenerator, key_generator_of
from eventide_core.table.settings.merge_config import words_of_merge
from eventide_core.table.settings.table_config import TableConfig

_NOTHING: Final = ""
_HUDIS_OWN: Final = r"(\s*org\.apache\.hudi\.[\w.$]+\s*,?)*"
_FORMER_TIMES: Final = (
    "input.dateformat",
    "input.dateformat.list.delimiter.regex",
    "input.timezone",
    "output.dateformat",
    "output.timezone",
    "timestamp.scalar.time.unit",
    "timestamp.type",
    "timezone",
)
"""Of partition times, under names that `hoodie.keygen.timebased.*` has replaced."""
_MERGERS: Final = (
    "hoodie.datasource.write.record.merger.impls",
    "hoodie.write.record.merge.custom.implementation.classes",
)

REFUSED: Final[Mapping[str, str]] = {
    # Where a key lives.
    "hoodie.bucket.index.partition.expressions": _NOTHING,
    "hoodie.index.class": _NOTHING,
    "hoodie.keygen.datetime.parser.class": _HUDIS_OWN,
    "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "false",
    "hoodie.deltastreamer.keygen.datetime.parser.class": _HUDIS_OWN,
    **{f"hoodie.deltastreamer.keygen.timebased.{name}": _NOTHING for name in _FORMER_TIMES},
    # What a value is.
    "hoodie.allow.operation.metadata.field": "false",
    "hoodie.avro.write.support.class": _HUDIS_OWN,
    "hoodie.base.file.format": "parquet",
    "hoodie.parquet.flink.rowdata.write.support.class": _HUDIS_OWN,
    "hoodie.parquet.spark.row.write.support.class": _HUDIS_OWN,
    "hoodie.parquet.write.utc-timezone.enabled": "true",
    keys.POPULATE_META_FIELDS: "true",
    keys.BASE_FILE_FORMAT: "parquet",
    "hoodie.table.ro.file.format": "parquet",
    "hoodie.write.partial.update.schema": _NOTHING,
    "hoodie.write.schema": _NOTHING,
    # Which row wins.
    "hoodie.bulkinsert.overwrite.operation.type": _NOTHING,
    "hoodie.compact.merge.handle.class": _HUDIS_OWN,
    "hoodie.datasource.overwrite.mode": "dynamic",
    "hoodie.merge.allow.duplicate.on.inserts": "true",
    "hoodie.static.overwrite.partition.paths": _NOTHING,
    "hoodie.write.concat.handle.class": _HUDIS_OWN,
    "hoodie.write.merge.handle.class": _HUDIS_OWN,
    **dict.fromkeys(_MERGERS, _HUDIS_OWN),
}
"""For writes: the key, and as a regular expression the values that change nothing, in any case."""

REFUSED_FOR_QUERIES: Final[Mapping[str, str]] = {
    "hoodie.datasource.merge.type": "payload_combine",
    "hoodie.datasource.read.extract.partition.values.from.path": "false",
    "hoodie.datasource.read.incr.filters": _NOTHING,
    "hoodie.datasource.read.incr.path.glob": _NOTHING,
    "hoodie.datasource.read.partition.value.extractor.enabled": "false",
    "hoodie.datasource.read.paths": _NOTHING,
}
"""The options that no query honors: the key, and the values that change nothing."""


@dataclass(frozen=True, slots=True)
class TableSetting:
    """A setting of a table that options of writers name, too, by these `keys`.

    `read` makes one text of all that mean the same, `of` returns those that mean what the table states.
    """

    keys: tuple[str, ...]
    read: Callable[[str], str]
    of: Callable[[TableConfig], Collection[str]]


def _fields(text: str) -> str:
    return ",".join(part.partition(":")[0].strip() for part in text.split(","))


def _class(text: str) -> str:
    return text.rpartition(".")[2]


def _stated(key: str, default: str) -> TableSetting:
    return TableSetting((key,), str.lower, lambda config: (config.properties.get(key, default).lower(),))


OF_THE_TABLE: Final = (
    TableSetting(
        (keys.RECORDKEY_FIELDS, keys.WRITTEN_RECORD_KEY),
        _fields,
        lambda config: (",".join(config.record_key_fields),),
    ),
    TableSetting(
        (keys.PARTITION_FIELDS, keys.WRITTEN_PARTITION_PATH),
        _fields,
        lambda config: (",".join(config.partition_fields),),
    ),
    TableSetting(
        (keys.ORDERING_FIELDS, keys.PRECOMBINE_FIELD, keys.WRITTEN_ORDERING, "hoodie.payload.ordering.field"),
        _fields,
        lambda config: (",".join(config.ordering_fields),),
    ),
    TableSetting(
        (*keys.KEY_GENERATORS, keys.WRITTEN_KEY_GENERATOR_CLASS, keys.WRITTEN_KEY_GENERATOR_TYPE),
        lambda text: KeyGenerator.named(text) or text,
        lambda config: (key_generator_of(config, config.name),),
    ),
    _stated(keys.HIVE_STYLE_PARTITIONING, "false"),
    _stated(keys.URL_ENCODE_PARTITIONING, "false"),
    _stated("hoodie.datasource.write.slash.separated.date.partitioning", "false"),
    _stated(keys.PARTIAL_UPDATE_MODE, "none"),
    TableSetting(
        (
            keys.RECORD_MERGE_MODE,
            keys.RECORD_MERGE_STRATEGY_ID,
            keys.RECORD_MERGER_STRATEGY,
            keys.PAYLOAD_CLASS_NAME,
            keys.LEGACY_PAYLOAD_CLASS_NAME,
            keys.WRITTEN_MERGE_MODE,
            "hoodie.write.record.merge.strategy.id",
            "hoodie.datasource.write.record.merger.strategy",
            "hoodie.datasource.write.payload.class",
        ),
        _class,
        lambda config: words_of_merge(config.properties, config.merge_rule),
    ),
)


def refuse_unhonored(options: Options, refused: Mapping[str, str]) -> None:
    """Raises ConfigError for one of these options, if its value changes something."""
    for key, harmless in refused.items():
        text = _given(options, key)
        if text is not None and re.fullmatch(harmless, text, re.IGNORECASE) is None:
            raise ConfigError(
                f"option {key}={text!r}: eventide can't honor it, and rows would differ from the rows of a Hudi that does; "
                "omit it if no writer or reader of the table needs it, or use Hudi"
            )


def refuse_for_write(options: Options, config: TableConfig, root: str) -> None:
    """Raises ConfigError for an option of a write that eventide would ignore and Hudi wouldn't."""
    has_merger = config.merger is not None  # a class of Python's stands for it
    refuse_unhonored(options, {k: v for k, v in REFUSED.items() if not (has_merger and k in _MERGERS)})
    for setting in OF_THE_TABLE:
        for key in setting.keys:
            text = _given(options, key)
            if text is not None and setting.read(text) not in (own := setting.of(config)):
                stated = " or ".join(sorted(filter(None, own))) or "none"
                raise ConfigError(
                    f"option {key}={text!r}: the settings of the table {root} say otherwise ({stated}), and they don't "
                    "change; omit the option, or write to another table"
                )


def _given(options: Options, key: str) -> str | None:
    return (options.values.get(key) or "").strip() or None
