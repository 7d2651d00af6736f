"""The storage contract on servers for Google Cloud Storage and Azure."""

import uuid

import pytest

from eventide.testing.storage_contract import BehindContract, KeyContract, StorageCase, StorageContract, VersionContract
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from support.servers.cloud_servers import AzureServer, CloudServer, GoogleServer


class TestFakeGcs(StorageContract, BehindContract, VersionContract, KeyContract):
    rounds = 3

    @pytest.fixture
    def case(self, fake_gcs: GoogleServer) -> StorageCase:
        return _case(fake_gcs)


class TestAzurite(StorageContract, BehindContract, VersionContract, KeyContract):
    rounds = 3

    @pytest.fixture
    def case(self, azurite: AzureServer) -> StorageCase:
        return _case(azurite)


def _case(server: CloudServer) -> StorageCase:
    prefix = f"contract/{uuid.uuid4().hex}"
    return StorageCase(
        open_storage(server.uri(prefix), Options(server.options)),
        lambda path: server.read(f"{prefix}/{path}"),
        lambda path, data: server.write(f"{prefix}/{path}", data),
    )
