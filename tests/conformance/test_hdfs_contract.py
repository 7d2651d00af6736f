"""The storage contract on real HDFS, with symbolic links and without."""

import uuid

import pytest

from eventide.testing.storage_contract import StorageCase, StorageContract
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.ports import Capability
from support.servers.hdfs_server import HdfsServer


class TestHdfsWithSymlinks(StorageContract):
    rounds = 3

    @pytest.fixture
    def case(self, hdfs_with_symlinks: HdfsServer) -> StorageCase:
        case = _case(hdfs_with_symlinks)
        assert case.storage.capabilities == Capability.PUT_IF_ABSENT | Capability.SYMLINK
        return case


class TestHdfs(StorageContract):
    rounds = 3

    @pytest.fixture
    def case(self, hdfs: HdfsServer) -> StorageCase:
        case = _case(hdfs)
        assert case.storage.capabilities == Capability.PUT_IF_ABSENT
        return case


def _case(server: HdfsServer) -> StorageCase:
    return StorageCase(open_storage(f"{server.uri}/lake/{uuid.uuid4().hex}", Options(server.options)))
