"""The storage contract on two S3 servers that share no code."""

import uuid

import pytest

from eventide.testing.storage_contract import BehindContract, KeyContract, StorageCase, StorageContract, VersionContract
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from support.servers.s3_servers import BUCKET, S3Server


class TestMoto(StorageContract, BehindContract, VersionContract, KeyContract):
    @pytest.fixture
    def case(self, moto: S3Server) -> StorageCase:
        return _case(moto)


class TestSeaweedFS(StorageContract, BehindContract, VersionContract, KeyContract):
    rounds = 1  # it makes a loser wait for a second or more

    @pytest.fixture
    def case(self, seaweedfs: S3Server) -> StorageCase:
        return _case(seaweedfs)


def _case(server: S3Server) -> StorageCase:
    prefix = f"contract/{uuid.uuid4().hex}"
    client = server.client()

    def read_behind(path: str) -> bytes:
        with client.get_object(Bucket=BUCKET, Key=f"{prefix}/{path}")["Body"] as body:
            data: bytes = body.read()
        return data

    def write_behind(path: str, data: bytes) -> None:
        client.put_object(Bucket=BUCKET, Key=f"{prefix}/{path}", Body=data)

    return StorageCase(open_storage(f"s3://{BUCKET}/{prefix}", Options(server.options)), read_behind, write_behind)
