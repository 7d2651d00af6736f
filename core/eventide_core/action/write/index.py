"""How a table's writers find the file group of a key, and the groups of new keys.

1. The user's setting applies, otherwise the table's, otherwise its file ids decide: ids of buckets mean the bucket
   index, and a record index in the metadata table means the record index. Ids of Flink's state index are refused.
   Without any of these, the table is written with Hudi's default for Spark, a join.
2. The user or the table must state the number of buckets, because the files do not.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from eventide_core import config as keys
from eventide_core.config import Option, Options
from eventide_core.errors import ConfigError, UnsupportedTableError
from eventide_core.table.files.bucket import bucket_of_file_id, is_flink_file_id
from eventide_core.table.settings.metadata_table import RECORD_INDEX
from eventide_core.table.settings.table_config import TableConfig


class IndexType(StrEnum):
    """BUCKET: by hash. SIMPLE: by a join with the keys of the files. BLOOM: the same, if the filters allow a key.

    A key is unique in its partition; under the global indexes, it is unique in the table. The record index of Hudi's
    metadata table, global or not, has the same result as a join with the keys of the files, so it is treated as one
    here.
    """

    BUCKET = "BUCKET"
    SIMPLE = "SIMPLE"
    BLOOM = "BLOOM"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    RECORD_INDEX = "RECORD_INDEX"
    RECORD_LEVEL_INDEX = "RECORD_LEVEL_INDEX"


_OTHER_NAMES = {"GLOBAL_RECORD_LEVEL_INDEX": IndexType.RECORD_INDEX}
_MOVES_KEYS = {
    IndexType.GLOBAL_SIMPLE: keys.SIMPLE_INDEX_MOVES_KEYS,
    IndexType.GLOBAL_BLOOM: keys.BLOOM_INDEX_MOVES_KEYS,
    IndexType.RECORD_INDEX: keys.RECORD_INDEX_MOVES_KEYS,
}


@dataclass(frozen=True, slots=True)
class Index:
    """The index of a table, by its `type`. `buckets` and `hash_fields` are the bucket index's.

    `moves_keys`, for a global index: a record whose key is in another partition moves the key to its own partition.
    Otherwise, the record goes to the partition that has the key.
    """

    type: IndexType
    buckets: int = 0
    hash_fields: tuple[str, ...] = ()
    moves_keys: bool = False

    @property
    def is_global(self) -> bool:
        return self.type in _MOVES_KEYS

    @property
    def is_by_bloom(self) -> bool:
        return self.type in (IndexType.BLOOM, IndexType.GLOBAL_BLOOM)


def choose_index(config: TableConfig, options: Options, file_ids: Iterable[str]) -> Index:
    """The index by which this table is written. Raises ConfigError, UnsupportedTableError."""
    ids = tuple(file_ids)
    kind = _setting(config, options, keys.INDEX_TYPE)
    buckets = [bucket_of_file_id(file_id) for file_id in ids]
    if kind is None:
        is_bucket = bool(ids) and all(bucket is not None for bucket in buckets)
        flink = next(filter(is_flink_file_id, ids), None)
        if flink is not None and not is_bucket:
            raise UnsupportedTableError(
                f"the file group {flink} is of Flink's state index, which would not find the keys that eventide writes; "
                f"write with Flink, or set the index that all writers use from now on ({keys.INDEX_TYPE})"
            )
        kind = IndexType.BUCKET if is_bucket else _joined(config)
    chosen = index_type(kind)
    if chosen in _MOVES_KEYS:
        return Index(chosen, moves_keys=options.get(_MOVES_KEYS[chosen]))
    if chosen is not IndexType.BUCKET:
        return Index(chosen)
    engine = _setting(config, options, keys.BUCKET_ENGINE) or "SIMPLE"
    if engine.upper() != "SIMPLE":
        raise UnsupportedTableError(
            f"option {keys.BUCKET_ENGINE}={engine}: only SIMPLE buckets are supported; use Hudi"
        )
    return Index(chosen, _buckets(config, options, buckets), _hash_fields(config, options))


def index_type(name: str) -> IndexType:
    """The index with that name, in any case. Raises UnsupportedTableError for an unsupported index."""
    kind = _OTHER_NAMES.get(name.upper(), name.upper())
    if kind not in list(IndexType):
        raise UnsupportedTableError(
            f"option {keys.INDEX_TYPE}={name!r}: eventide writes tables with one of {', '.join(IndexType)}; "
            "use Hudi for others"
        )
    return IndexType(kind)


def may_leave_keys(config: TableConfig, options: Options) -> bool:
    """Whether a row may be in another partition than the one that its fields name: the one that had its key before.

    The options, otherwise the table's settings or its metadata table, state the index; a table that states none has none
    that does so.
    """
    kind = options.text(keys.INDEX_TYPE) or config.properties.get(keys.INDEX_TYPE) or _joined(config)
    name = _OTHER_NAMES.get(kind.upper(), kind.upper())
    return any(name == one and not options.get(moves) for one, moves in _MOVES_KEYS.items())


def _joined(config: TableConfig) -> IndexType:
    return IndexType.RECORD_INDEX if RECORD_INDEX in config.metadata_partitions else IndexType.SIMPLE


def _buckets(config: TableConfig, options: Options, buckets: Iterable[int | None]) -> int:
    setting = _setting(config, options, keys.BUCKETS)
    if setting is None:
        raise ConfigError(
            f"the table does not state its number of buckets: set {keys.BUCKETS} to the number that its "
            "other writers use; with another number, keys would be duplicated"
        )
    if not setting.isdecimal() or int(setting) < 1:
        raise ConfigError(f"option {keys.BUCKETS}={setting!r} is not a number of buckets")
    beyond = [bucket for bucket in buckets if bucket is None or bucket >= int(setting)]
    if beyond:
        group = "a file group without a bucket" if beyond[0] is None else f"a file group of bucket {beyond[0]}"
        raise ConfigError(
            f"option {keys.BUCKETS}={setting}: the table has {group}; set the number that its other writers use"
        )
    return int(setting)


def _hash_fields(config: TableConfig, options: Options) -> tuple[str, ...]:
    setting = _setting(config, options, keys.BUCKET_HASH_FIELDS)
    names = config.record_key_fields if setting is None else tuple(name.strip() for name in setting.split(","))
    unknown = [name for name in names if name not in config.record_key_fields]
    if unknown:
        raise ConfigError(
            f"option {keys.BUCKET_HASH_FIELDS}={setting!r}: {unknown[0]!r} is not a record key field; these are "
            f"{', '.join(config.record_key_fields)}"
        )
    return names


def _setting(config: TableConfig, options: Options, key: Option[Any]) -> str | None:
    """The user's setting, which must not contradict the table's."""
    asked, table = options.text(key), config.properties.get(key)
    if asked is not None and table is not None and asked.lower() != table.lower():
        raise ConfigError(f"option {key}={asked!r}: the table was created with {table!r}; omit the option")
    return asked if asked is not None else table
