"""Opens the table lock of a provider, by its name. Imports only that provider."""

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Final

import xxhash

from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_core.config import (
    DYNAMODB_PARTITION_KEY,
    LOCK_BASE_PATH,
    LOCK_PROVIDER,
    ZOOKEEPER_BASE_PATH,
    ZOOKEEPER_LOCK_KEY,
    Option,
    Options,
)
from eventide_core.errors import ConfigError, NotAHudiTableError
from eventide_core.ports import Clock, Lease, Storage, TableLock
from eventide_core.table.settings.properties import parse_properties, settings_text

_HUDI_PACKAGE = "org.apache.hudi.client.transaction.lock."
_HUDI_AWS_PACKAGE = "org.apache.hudi.aws.transaction.lock."
_FILE_SYSTEM_BASED = ("file-system-based", f"{_HUDI_PACKAGE}FileSystemBasedLockProvider")
_STORAGE_BASED = ("storage-based", f"{_HUDI_PACKAGE}StorageBasedLockProvider")
_ZOOKEEPER_BASED = ("zookeeper-based", f"{_HUDI_PACKAGE}ZookeeperBasedLockProvider")
_ZOOKEEPER_IMPLICIT = ("zookeeper-based-implicit", f"{_HUDI_PACKAGE}ZookeeperBasedImplicitBasePathLockProvider")
_DYNAMODB_BASED = ("dynamodb-based", f"{_HUDI_AWS_PACKAGE}DynamoDBBasedLockProvider")
_DYNAMODB_IMPLICIT = ("dynamodb-based-implicit", f"{_HUDI_AWS_PACKAGE}DynamoDBBasedImplicitPartitionKeyLockProvider")
_METASTORE_BASED = ("hivemetastore-based", "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider")

_PATH_HASH_SEED: Final = 0xFFFFFFFFDABADABA  # Hudi's, for each hash of a path
_IMPLICIT_ZOOKEEPER_KEY: Final = "lock_key"  # Hudi's


def open_lock(provider: str | None, storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:
    """The lock with that name, or the default lock. Makes no request.

    A plug-in is `module:factory`, and the factory is called as factory(storage, options, clock, owner). The name must
    come from the user, never from the table, because it selects the code to run. Raises ConfigError for an unknown name.
    """
    if provider is None:
        return _DefaultLock(FileSystemBasedLock(storage, options, clock, owner), storage)
    if provider in _FILE_SYSTEM_BASED:
        return FileSystemBasedLock(storage, options, clock, owner)
    if provider in _STORAGE_BASED:
        from eventide_adapters.lock.storage_based import StorageBasedLock

        return StorageBasedLock(storage, options, clock, owner)
    if provider in _METASTORE_BASED:
        from eventide_adapters.lock.hivemetastore_based import HiveMetastoreBasedLock

        return HiveMetastoreBasedLock(options, clock, owner)
    if provider in _ZOOKEEPER_BASED:
        from eventide_adapters.lock.zookeeper_based import ZookeeperBasedLock

        return ZookeeperBasedLock(lambda: _zookeeper_path(storage, options), options, owner)
    if provider in _ZOOKEEPER_IMPLICIT:
        from eventide_adapters.lock.zookeeper_based import ZookeeperBasedLock

        hashed = _path_hash(storage, options)
        return ZookeeperBasedLock(lambda: f"/tmp/{hashed}/{_IMPLICIT_ZOOKEEPER_KEY}", options, owner)
    if provider in _DYNAMODB_BASED:
        from eventide_adapters.lock.dynamodb_based import DynamoDBBasedLock

        return DynamoDBBasedLock(lambda: _table_name(DYNAMODB_PARTITION_KEY, storage, options), options, clock, owner)
    if provider in _DYNAMODB_IMPLICIT:
        from eventide_adapters.lock.dynamodb_based import DynamoDBBasedLock

        hashed = _path_hash(storage, options)
        return DynamoDBBasedLock(lambda: hashed, options, clock, owner)
    if ":" in provider:
        return _factory(provider)(storage, options, clock, owner)
    raise ConfigError(
        f"option {LOCK_PROVIDER}={provider!r} names a lock that eventide doesn't support: set it, for "
        f"every writer of the table, to {_FILE_SYSTEM_BASED[0]} ({_FILE_SYSTEM_BASED[1]} in Hudi), on "
        f"S3 to {_STORAGE_BASED[0]} ({_STORAGE_BASED[1]}), to {_ZOOKEEPER_BASED[0]}, {_DYNAMODB_BASED[0]} or "
        f"{_METASTORE_BASED[0]}, or plug in the lock that the other writers use as MODULE:FACTORY"
    )


class _DefaultLock:
    """The default lock. Raises ConfigError if the table's settings name another: a lock must be the one of all writers."""

    def __init__(self, lock: FileSystemBasedLock, storage: Storage) -> None:
        self._lock = lock
        self._storage = storage
        self._is_checked = False

    def acquire(self) -> Lease:
        if not self._is_checked:
            with suppress(NotAHudiTableError):  # a table that is being created
                text = settings_text(self._storage.read_range, self._storage.root)
                named = parse_properties(text).get(LOCK_PROVIDER)
                if named is not None and named not in _FILE_SYSTEM_BASED:
                    raise ConfigError(
                        f"{self._storage.root} names its lock in hoodie.properties, {LOCK_PROVIDER}={named}, which eventide "
                        f"is not configured to use: set {LOCK_PROVIDER} to the lock that the table's writers share"
                    )
            self._is_checked = True
        return self._lock.acquire()


def _factory(provider: str) -> Callable[[Storage, Options, Clock, str], TableLock]:
    module_name, _, name = provider.partition(":")
    try:
        factory: Callable[[Storage, Options, Clock, str], TableLock] = getattr(import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as failure:
        raise ConfigError(
            f"option {LOCK_PROVIDER}={provider!r} cannot be loaded: {failure}; it must be MODULE:FACTORY"
        ) from failure
    return factory


def _zookeeper_path(storage: Storage, options: Options) -> str:
    base = options.get(ZOOKEEPER_BASE_PATH)
    if base is None:
        raise ConfigError(
            f"option {ZOOKEEPER_BASE_PATH} is missing: name the path in ZooKeeper below which the table's writers "
            f"keep their locks, or set {LOCK_PROVIDER} to {_ZOOKEEPER_IMPLICIT[0]} for every writer"
        )
    return f"{base}/{_table_name(ZOOKEEPER_LOCK_KEY, storage, options)}"


def _table_name(option: Option[str | None], storage: Storage, options: Options) -> str:
    """The value of the option, otherwise the table's name, as in Hudi."""
    named = options.get(option) or options.values.get("hoodie.table.name")
    return named or parse_properties(settings_text(storage.read_range, storage.root))["hoodie.table.name"]


def _path_hash(storage: Storage, options: Options) -> str:
    """The hash of the table's path in Hudi's implicit locks. The path must be the same text for every writer."""
    path = options.get(LOCK_BASE_PATH)
    if path is None and not storage.root.startswith(("s3://", "s3a://")):
        raise ConfigError(
            f"option {LOCK_BASE_PATH} is missing: an implicit lock derives its name from the text of the table's path, so "
            "give the path exactly as the other writers write it"
        )
    path = path or storage.root
    path = f"s3://{path.removeprefix('s3a://')}" if path.startswith("s3a://") else path
    return xxhash.xxh64_hexdigest(path.encode(), _PATH_HASH_SEED).upper()
