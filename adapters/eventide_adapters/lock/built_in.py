"""The factories of the built-in locks that need more than their class, as open.py and pyproject.toml declare them."""

from typing import Final

import xxhash

from eventide_core import config as keys
from eventide_core.config import Option, Options
from eventide_core.errors import ConfigError
from eventide_core.ports import Clock, Storage, TableLock
from eventide_core.table.property_keys import TABLE_NAME
from eventide_core.table.settings.properties import parse_properties, settings_text

_PATH_HASH_SEED: Final = 0xFFFFFFFFDABADABA  # Hudi's, for each hash of a path
_IMPLICIT_ZOOKEEPER_KEY: Final = "lock_key"  # Hudi's


def open_zookeeper(storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:  # noqa: ARG001
    from eventide_adapters.lock.zookeeper_based import ZookeeperBasedLock

    return ZookeeperBasedLock(lambda: _zookeeper_path(storage, options), options, owner)


def open_zookeeper_implicit(storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:  # noqa: ARG001
    from eventide_adapters.lock.zookeeper_based import ZookeeperBasedLock

    hashed = _path_hash(storage, options)
    return ZookeeperBasedLock(lambda: f"/tmp/{hashed}/{_IMPLICIT_ZOOKEEPER_KEY}", options, owner)


def open_dynamodb(storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:
    from eventide_adapters.lock.dynamodb_based import DynamoDBBasedLock

    return DynamoDBBasedLock(lambda: _table_name(keys.DYNAMODB_PARTITION_KEY, storage, options), options, clock, owner)


def open_dynamodb_implicit(storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:
    from eventide_adapters.lock.dynamodb_based import DynamoDBBasedLock

    hashed = _path_hash(storage, options)
    return DynamoDBBasedLock(lambda: hashed, options, clock, owner)


def open_hive_metastore(storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:  # noqa: ARG001
    from eventide_adapters.lock.hivemetastore_based import HiveMetastoreBasedLock

    return HiveMetastoreBasedLock(options, clock, owner)


def _zookeeper_path(storage: Storage, options: Options) -> str:
    base = options.get(keys.ZOOKEEPER_BASE_PATH)
    if base is None:
        raise ConfigError(
            f"option {keys.ZOOKEEPER_BASE_PATH} is missing: name the path in ZooKeeper below which the table's writers "
            f"keep their locks, or set {keys.LOCK_PROVIDER} to zookeeper-based-implicit for every writer"
        )
    return f"{base}/{_table_name(keys.ZOOKEEPER_LOCK_KEY, storage, options)}"


def _table_name(option: Option[str | None], storage: Storage, options: Options) -> str:
    """The value of the option, otherwise the table's name, as in Hudi."""
    named = options.get(option) or options.values.get(TABLE_NAME)
    return named or parse_properties(settings_text(storage.read_range, storage.root))[TABLE_NAME]


def _path_hash(storage: Storage, options: Options) -> str:
    """The hash of the table's path in Hudi's implicit locks. The path must be the same text for every writer."""
    path = options.get(keys.LOCK_BASE_PATH)
    if path is None and not storage.root.startswith(("s3://", "s3a://")):
        raise ConfigError(
            f"option {keys.LOCK_BASE_PATH} is missing: an implicit lock derives its name from the text of the table's "
            "path, so give the path exactly as the other writers write it"
        )
    path = path or storage.root
    path = f"s3://{path.removeprefix('s3a://')}" if path.startswith("s3a://") else path
    return xxhash.xxh64_hexdigest(path.encode(), _PATH_HASH_SEED).upper()
