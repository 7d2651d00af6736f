"""The storage contract on real HDFS, with symbolic links and without, and through a Router of a federation."""

import io
import uuid

import pytest

from eventide.testing.storage_contract import BehindContract, StorageCase, StorageContract, SymbolicLinkContract
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from support.servers.hdfs.mini_cluster import HdfsServer


class TestHdfsWithSymlinks(StorageContract, SymbolicLinkContract, BehindContract):
    rounds = 3

    @pytest.fixture
    def case(self, hdfs_with_symlinks: HdfsServer) -> StorageCase:
        return _case(hdfs_with_symlinks)


class TestHdfs(StorageContract, BehindContract):
    rounds = 3

    @pytest.fixture
    def case(self, hdfs: HdfsServer) -> StorageCase:
        return _case(hdfs)


@pytest.mark.proof
class TestFederatedHdfs(StorageContract, SymbolicLinkContract, BehindContract):
    rounds = 2

    @pytest.fixture
    def case(self, federated_hdfs: HdfsServer) -> StorageCase:
        return _case(federated_hdfs)


def _case(server: HdfsServer) -> StorageCase:
    directory, web = f"/lake/{uuid.uuid4().hex}", server.client()

    def write_behind(path: str, data: bytes) -> None:
        web.write(f"{directory}/{path}", io.BytesIO(data), len(data))

    return StorageCase(
        open_storage(f"{server.uri}{directory}", Options(server.options)),
        lambda path: web.read(f"{directory}/{path}"),
        write_behind,
    )
