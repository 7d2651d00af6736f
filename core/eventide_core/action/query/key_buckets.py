"""Which file groups of a bucket index can hold some keys.

The bucket index decides only if the table itself states that it has one with a fixed number of buckets, as tables that
eventide made do. Hudi's writers refuse another number then. A file group that is not of one of these buckets shows that
they were written otherwise, and nothing is left out.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import product

from eventide_core import config as keys
from eventide_core.table.files.bucket import bucket_of, bucket_of_file_id
from eventide_core.table.settings.table_config import TableConfig

_COMBINATIONS_MAX = 1000
_SEPARATORS = (":", ",")  # Hudi takes a key with them apart before it hashes the key


def combinations(values: Iterable[Collection[str]]) -> tuple[tuple[str, ...], ...] | None:
    """One of each value with one of each other; None if they are too many to be worth it."""
    parts, count = [tuple(part) for part in values], 1
    for part in parts:
        count *= len(part)
    return tuple(product(*parts)) if count <= _COMBINATIONS_MAX else None


def kept_groups(
    config: TableConfig, file_ids: Iterable[str], values: Mapping[str, Collection[str]]
) -> frozenset[str] | None:
    """Of these file groups those that can hold a key. None if it is not known.

    `values` are those that a key can have, by key field, as texts; of the other key fields, it may have any.
    """
    setting = config.properties.get(keys.BUCKETS, "")
    is_bucket = config.properties.get(keys.INDEX_TYPE, "").upper() == "BUCKET"
    is_simple = config.properties.get(keys.BUCKET_ENGINE, "SIMPLE").upper() == "SIMPLE"
    if not (is_bucket and is_simple and setting.isdecimal() and int(setting) > 0):
        return None
    hashed = config.properties.get(keys.BUCKET_HASH_FIELDS)
    names = config.record_key_fields if hashed is None else tuple(name.strip() for name in hashed.split(","))
    known = [values[name] for name in names if name in values]
    if (
        not names
        or len(known) < len(names)
        or any(mark in one for part in known for one in part for mark in _SEPARATORS)
    ):
        return None
    buckets = {file_id: bucket_of_file_id(file_id) for file_id in file_ids}
    if any(bucket is None or bucket >= int(setting) for bucket in buckets.values()):
        return None
    chosen = combinations(known)
    if chosen is None:
        return None
    wanted = {bucket_of(one, int(setting)) for one in chosen}
    return frozenset(file_id for file_id, bucket in buckets.items() if bucket in wanted)
