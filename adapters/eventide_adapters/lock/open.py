"""Opens the table lock that a provider's name means."""

from collections.abc import Callable
from importlib import import_module

from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_adapters.lock.storage_based import StorageBasedLock
from eventide_core.config import LOCK_PROVIDER, Options
from eventide_core.errors import ConfigError
from eventide_core.ports import Clock, Storage, TableLock

_HUDI_PACKAGE = "org.apache.hudi.client.transaction.lock."
_FILE_SYSTEM_BASED = ("file-system-based", f"{_HUDI_PACKAGE}FileSystemBasedLockProvider")
_STORAGE_BASED = ("storage-based", f"{_HUDI_PACKAGE}StorageBasedLockProvider")


def open_lock(provider: str | None, storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:
    """The lock of that name, or the default; touches nothing.

    A plug-in is `module:factory`, and the factory is called as factory(storage, options, clock, owner). The name must
    come from the user, never from the table: it says which code to run. Raises ConfigError for a name that means
    nothing here.
    """
    if provider is None or provider in _FILE_SYSTEM_BASED:
        return FileSystemBasedLock(storage, options, clock, owner)
    if provider in _STORAGE_BASED:
        return StorageBasedLock(storage, options, clock, owner)
    if ":" in provider:
        return _factory(provider)(storage, options, clock, owner)
    raise ConfigError(
        f"option {LOCK_PROVIDER}={provider!r} names a lock that eventide doesn't support: set it, for "
        f"every writer of the table, to {_FILE_SYSTEM_BASED[0]} ({_FILE_SYSTEM_BASED[1]} in Hudi) or, on "
        f"S3, to {_STORAGE_BASED[0]} ({_STORAGE_BASED[1]}), or plug in the lock that the other writers "
        "use as MODULE:FACTORY"
    )


def _factory(provider: str) -> Callable[[Storage, Options, Clock, str], TableLock]:
    module_name, _, name = provider.partition(":")
    try:
        factory: Callable[[Storage, Options, Clock, str], TableLock] = getattr(import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as failure:
        raise ConfigError(
            f"option {LOCK_PROVIDER}={provider!r} cannot be loaded: {failure}; it must be MODULE:FACTORY"
        ) from failure
    return factory
