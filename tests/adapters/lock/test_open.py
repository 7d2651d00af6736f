import sys
from types import ModuleType

import pytest

from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_adapters.lock.open import open_lock
from eventide_adapters.lock.storage_based import StorageBasedLock
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import LOCK_PROVIDER, Options
from eventide_core.errors import ConfigError
from eventide_core.ports import Clock, Storage, TableLock
from eventide_core.table.settings.properties import table_checksum
from support.doubles.clocks import StoppedClock

STORAGE = MemoryStorage("open_lock")
OPTIONS = Options({})
CLOCK = StoppedClock()


@pytest.mark.parametrize(
    "provider",
    [
        "file-system-based",
        "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    ],
)
def test_the_file_lock_has_a_short_name_and_hudis_name(provider: str | None) -> None:
    assert isinstance(open_lock(provider, STORAGE, OPTIONS, CLOCK, "us"), FileSystemBasedLock)


def _table_that_names(provider: str) -> MemoryStorage:
    names = {"hoodie.table.name": "trips"}
    properties = {**names, "hoodie.table.checksum": table_checksum(names), LOCK_PROVIDER: provider}
    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    storage = MemoryStorage(f"named {provider}")
    storage.put(".hoodie/hoodie.properties", text.encode())
    return storage


def test_the_file_lock_is_the_default_and_is_what_a_table_may_name() -> None:
    named = _table_that_names("org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider")
    for storage in (MemoryStorage("no table yet"), named):
        with open_lock(None, storage, OPTIONS, CLOCK, "us").acquire():
            assert storage.stat(".hoodie/lock")


def test_a_table_that_names_another_lock_is_locked_only_with_the_option() -> None:
    zookeeper = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
    storage = _table_that_names(zookeeper)
    with pytest.raises(ConfigError, match=rf"{LOCK_PROVIDER}={zookeeper}.*not configured to use: set {LOCK_PROVIDER}"):
        open_lock(None, storage, OPTIONS, CLOCK, "us").acquire()
    assert storage.stat(".hoodie/lock") is None
    with open_lock("file-system-based", storage, OPTIONS, CLOCK, "us").acquire():
        assert storage.stat(".hoodie/lock")


@pytest.mark.parametrize(
    "provider", ["storage-based", "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"]
)
def test_the_storage_lock_has_a_short_name_and_hudis_name(provider: str) -> None:
    assert isinstance(open_lock(provider, STORAGE, OPTIONS, CLOCK, "us"), StorageBasedLock)


@pytest.mark.parametrize(
    "provider",
    [
        "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        "org.apache.hudi.client.transaction.lock.NoopLockProvider",
        "file_system_based",
    ],
)
def test_another_lock_is_refused_with_the_cure(provider: str) -> None:
    with pytest.raises(ConfigError, match=r"file-system-based.*FileSystemBasedLockProvider.*MODULE:FACTORY") as answer:
        open_lock(provider, STORAGE, OPTIONS, CLOCK, "us")
    assert provider in str(answer.value)


def test_a_plug_in_is_called_with_what_a_lock_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Storage, Options, Clock, str]] = []
    lock = FileSystemBasedLock(STORAGE, OPTIONS, CLOCK, "plugged in")

    def factory(storage: Storage, options: Options, clock: Clock, owner: str) -> TableLock:
        calls.append((storage, options, clock, owner))
        return lock

    module = ModuleType("pipeline_locks")
    module.__dict__["zookeeper"] = factory
    monkeypatch.setitem(sys.modules, "pipeline_locks", module)
    assert open_lock("pipeline_locks:zookeeper", STORAGE, OPTIONS, CLOCK, "us") is lock
    assert calls == [(STORAGE, OPTIONS, CLOCK, "us")]


@pytest.mark.parametrize("provider", ["no_such_module:lock", "json:no_such_factory", ":lock", "json:"])
def test_a_plug_in_that_cannot_be_loaded_is_a_config_error(provider: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot be loaded.*MODULE:FACTORY"):
        open_lock(provider, STORAGE, OPTIONS, CLOCK, "us")
