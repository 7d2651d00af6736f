"""Opens the table lock of a provider, by its name. Imports only that provider."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast

from eventide_adapters.entry_points import Adapters, loaded
from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_core.config import LOCK_PROVIDER, Options
from eventide_core.errors import ConfigError, NotAHudiTableError
from eventide_core.ports import Clock, Lease, Storage, TableLock, Tracer
from eventide_core.table.settings.properties import parse_properties, settings_text

LOCKS: Final = Adapters(
    "eventide.locks",
    {
        "file-system-based": "eventide_adapters.lock.file_system_based:FileSystemBasedLock",
        "storage-based": "eventide_adapters.lock.storage_based:StorageBasedLock",
        "zookeeper-based": "eventide_adapters.lock.zookeeper_based:open_zookeeper",
        "zookeeper-based-implicit": "eventide_adapters.lock.zookeeper_based:open_zookeeper_implicit",
        "dynamodb-based": "eventide_adapters.lock.dynamodb_based:open_dynamodb",
        "dynamodb-based-implicit": "eventide_adapters.lock.dynamodb_based:open_dynamodb_implicit",
        "hivemetastore-based": "eventide_adapters.lock.hivemetastore_based:open_hive_metastore",
    },
)
"""The locks by name. A factory is called as factory(storage, options, clock, owner), and makes no request."""

_HUDI_PACKAGE: Final = "org.apache.hudi.client.transaction.lock."
_HUDI_AWS_PACKAGE: Final = "org.apache.hudi.aws.transaction.lock."
_OF_HUDI: Final = {
    f"{_HUDI_PACKAGE}FileSystemBasedLockProvider": "file-system-based",
    f"{_HUDI_PACKAGE}StorageBasedLockProvider": "storage-based",
    f"{_HUDI_PACKAGE}ZookeeperBasedLockProvider": "zookeeper-based",
    f"{_HUDI_PACKAGE}ZookeeperBasedImplicitBasePathLockProvider": "zookeeper-based-implicit",
    f"{_HUDI_AWS_PACKAGE}DynamoDBBasedLockProvider": "dynamodb-based",
    f"{_HUDI_AWS_PACKAGE}DynamoDBBasedImplicitPartitionKeyLockProvider": "dynamodb-based-implicit",
    "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider": "hivemetastore-based",
}


def open_lock(provider: str | None, storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:
    """The lock with that name, Hudi's or its own, or the default lock. Makes no request.

    A plug-in is the name of a package's entry point, or `module:factory`. The name must come from the user, never from the
    table, because it selects the code to run. Raises ConfigError for an unknown name.
    """
    if provider is None:
        return _DefaultLock(FileSystemBasedLock(storage, options, clock, owner), storage)
    adapter = LOCKS.find(_OF_HUDI.get(provider, provider))
    if adapter is not None:
        return cast(TableLock, adapter.load()(storage, options, clock, owner))
    if ":" in provider:
        return _factory(provider)(storage, options, clock, owner)
    others = [name for name in LOCKS.names() if name not in ("file-system-based", "storage-based")]
    raise ConfigError(
        f"option {LOCK_PROVIDER}={provider!r} names a lock that eventide doesn't support: set it, for every writer of the "
        f"table, to file-system-based ({_HUDI_PACKAGE}FileSystemBasedLockProvider in Hudi), on S3 to storage-based "
        f"({_HUDI_PACKAGE}StorageBasedLockProvider), to {', '.join(others)}, or plug in the lock that the "
        f'other writers use as MODULE:FACTORY, or as a package with an entry point of "{LOCKS.group}"'
    )


@dataclass(frozen=True, slots=True)
class TracedLock:
    """ports.TableLock over another one. Waits for it are spans of the trace."""

    lock: TableLock
    tracer: Tracer

    def acquire(self) -> Lease:
        with self.tracer.span("wait for the lock"):
            return self.lock.acquire()


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
                if named is not None and _OF_HUDI.get(named, named) != "file-system-based":
                    raise ConfigError(
                        f"{self._storage.root} names its lock in hoodie.properties, {LOCK_PROVIDER}={named}, which eventide "
                        f"is not configured to use: set {LOCK_PROVIDER} to the lock that the table's writers share"
                    )
            self._is_checked = True
        return self._lock.acquire()


def _factory(provider: str) -> Callable[[Storage, Options, Clock, str], TableLock]:
    try:
        return loaded(provider)
    except (ImportError, AttributeError, ValueError) as failure:
        raise ConfigError(
            f"option {LOCK_PROVIDER}={provider!r} cannot be loaded: {failure}; it must be MODULE:FACTORY"
        ) from failure
