"""A storage that can't hold the file-system-based lock: the error names what is missing."""

import pytest

from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import Options
from eventide_core.errors import ConfigError, StorageError
from eventide_core.ports import Capability
from support.doubles.clocks import ManualClock


class WithoutExclusiveNames(MemoryStorage):
    capabilities = Capability.NONE


class ReadOnly(WithoutExclusiveNames):
    def put(self, path: str, data: bytes) -> None:
        raise StorageError(f"cannot write {len(data)} bytes to {path!r}: Read-only file system")


def test_without_exclusive_names_it_advises_another_lock_and_leaves_no_file() -> None:
    storage = WithoutExclusiveNames("without-exclusive-names")
    with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.provider"):
        FileSystemBasedLock(storage, Options({}), ManualClock(), "us").acquire()
    assert storage.list(".hoodie") == ()


def test_on_a_read_only_mount_it_says_so() -> None:
    with pytest.raises(StorageError, match="Read-only file system"):
        FileSystemBasedLock(ReadOnly("read-only"), Options({}), ManualClock(), "us").acquire()
