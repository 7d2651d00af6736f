"""The partition values in a partition's path: Hudi's partition value extractors, by their class names.

NonPartitionedExtractor                  none
SinglePartPartitionValueExtractor        the whole path
HiveStylePartitionValueExtractor         of `dt=2026-11-21` what follows the equals sign
MultiPartKeysValueExtractor              each directory's, with or without `name=`
SlashEncodedDayPartitionValueExtractor   of 2026/11/21, or yyyy=2026/mm=11/dd=21, 2026-11-21
SlashEncodedHourPartitionValueExtractor  of 2026/11/21/08 2026-11-21-08
"""

from collections.abc import Sequence
from enum import StrEnum
from urllib.parse import unquote

from eventide_core.errors import ConfigError


class PartitionExtractor(StrEnum):
    """The values are the class names without their packages, in lower case."""

    NONE = "nonpartitionedextractor"
    SINGLE = "singlepartpartitionvalueextractor"
    HIVE_STYLE = "hivestylepartitionvalueextractor"
    MULTI = "multipartkeysvalueextractor"
    DAY = "slashencodeddaypartitionvalueextractor"
    HOUR = "slashencodedhourpartitionvalueextractor"

    @classmethod
    def named(cls, class_name: str, option: str) -> "PartitionExtractor":
        """The extractor of a Hudi class, named with or without its package. Raises ConfigError, which names `option`."""
        name = class_name.rpartition(".")[2].lower()
        if name not in list(cls):
            raise ConfigError(
                f"option {option}={class_name!r} is not one of Hudi's extractors that eventide supports: "
                f"{', '.join(cls)}"
            )
        return cls(name)

    @classmethod
    def of(cls, fields: Sequence[str], *, is_hive_style: bool) -> "PartitionExtractor":
        """Hudi's default extractor."""
        if len(fields) == 1:
            return cls.HIVE_STYLE if is_hive_style else cls.SINGLE
        return cls.MULTI if fields else cls.NONE


def partition_values(
    path: str, extractor: PartitionExtractor, fields: Sequence[str], *, decodes: bool
) -> tuple[str, ...]:
    """The values of a partition's path, one for each field; `decodes` what is %-encoded in them.

    Raises ConfigError if the path has a different number of values.
    """
    values = [part.partition("=")[2] if "=" in part else part for part in path.split("/")]
    match extractor:
        case PartitionExtractor.NONE:
            values = []
        case PartitionExtractor.SINGLE:
            values = [path]
        case PartitionExtractor.HIVE_STYLE:
            values = [path.partition("=")[2] if "=" in path else path]
        case PartitionExtractor.MULTI:
            values = values if path else []
        case PartitionExtractor.DAY:
            values = ["-".join(values)] if len(values) == 3 else values
        case PartitionExtractor.HOUR:
            values = ["-".join(values)] if len(values) == 4 else values
    if len(values) != len(fields):
        raise ConfigError(
            f"the partition {path!r} has {len(values)} values by {extractor}, and the table is partitioned "
            f"by {', '.join(fields) or 'nothing'}: set the class that fits as "
            "hoodie.datasource.hive_sync.partition_extractor_class, or the fields as "
            "hoodie.datasource.hive_sync.partition_fields"
        )
    return tuple(unquote(value) if decodes else value for value in values)
