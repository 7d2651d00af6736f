"""Which partition fields a query shows as null, because their directory is the one of no value.

Hudi puts a record into `__HIVE_DEFAULT_PARTITION__` if the field is null, an empty text or that very name. Every query of
Hudi in Spark takes the value from the directory, and shows null for all three, whatever the file holds.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from eventide_core.errors import EventideError
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.settings.key_format import NULL_PARTITION, KeyFormat
from eventide_core.table.settings.table_config import TableConfig


def with_null_fields(slices: Iterable[SliceRead], config: TableConfig) -> tuple[SliceRead, ...]:
    """The reads, those of such a partition with its null fields: their rows are no longer those of the file alone."""
    reads: list[SliceRead] = []

    @lru_cache(maxsize=1)
    def fields_of(partition: str) -> tuple[str, ...]:
        return null_fields(partition, config)

    for one in slices:
        fields = fields_of(one.partition) if NULL_PARTITION in one.partition else ()
        reads.append(replace(one, null_fields=fields, is_plain=False) if fields else one)
    return tuple(reads)


def null_fields(partition: str, config: TableConfig) -> tuple[str, ...]:
    """The fields without a value in this path. Times are taken from the file, as in Hudi: a path holds them formatted."""
    try:
        # Only partitions matter here, so it makes no difference whether keys name their fields.
        keys = KeyFormat.of(config, "", has_bare_keys=True)
    except EventideError:
        return ()  # its key generator is unknown to eventide
    directories = partition.split("/")
    if len(directories) != len(keys.partition_fields):
        return ()  # a value contains a slash
    return tuple(
        field
        for field, directory in zip(keys.partition_fields, directories, strict=True)
        if field not in keys.time_fields
        and (directory.removeprefix(f"{field}=") if keys.is_hive_style else directory) == NULL_PARTITION
    )
