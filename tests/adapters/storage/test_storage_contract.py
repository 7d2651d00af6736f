"""The one contract, kept by every storage."""

from pathlib import Path

import pytest

from eventide.testing.storage_contract import (
    BehindContract,
    LinkContract,
    StorageCase,
    StorageContract,
    VersionContract,
)
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryFile, MemoryStorage


class TestLocalStorage(StorageContract, LinkContract, BehindContract):
    @pytest.fixture
    def case(self, tmp_path: Path) -> StorageCase:
        root = tmp_path / "a table"

        def write_behind(path: str, data: bytes) -> None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)

        return StorageCase(
            LocalStorage(root),
            read_behind=lambda path: (root / path).read_bytes(),
            write_behind=write_behind,
        )


class TestMemoryStorage(StorageContract, LinkContract, BehindContract, VersionContract):
    @pytest.fixture
    def case(self, tmp_path: Path) -> StorageCase:
        return _memory_case(str(tmp_path))


class TestFaultyStorageWithoutFaults(StorageContract, LinkContract, BehindContract, VersionContract):
    @pytest.fixture
    def case(self, tmp_path: Path) -> StorageCase:
        case = _memory_case(str(tmp_path))
        return StorageCase(FaultyStorage(case.storage), case.read_behind, case.write_behind)


def _memory_case(name: str) -> StorageCase:
    storage = MemoryStorage(name)

    def write_behind(path: str, data: bytes) -> None:
        MemoryStorage.from_dump(name, {**storage.dump(), path: MemoryFile(data, 1)})

    return StorageCase(storage, lambda path: storage.dump()[path].data, write_behind)
