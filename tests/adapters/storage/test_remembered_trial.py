"""The trial of a store is remembered in the table for a day, and counts only where it was made."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from eventide_adapters.storage.object_storage import ObjectStorage
from eventide_adapters.storage.objects.contract import UNSAFE_WRITES
from eventide_adapters.storage.open import open_storage
from eventide_adapters.storage.remembered_trial import PATH
from eventide_core.config import Options
from eventide_core.errors import RefusedError, StorageAccessError
from eventide_core.ports import Capability
from eventide_core.table.settings.properties import PROPERTIES_PATH
from support.doubles.metered import Cost, requests_counted
from support.servers.s3_servers import BUCKET, S3Server

DAY_MS = 86_400_000
TRIED = 2  # the memory is read, and the right to delete is tried: it depends on who asks


def opened(server: S3Server, name: str) -> ObjectStorage:
    """A storage of a new process."""
    storage = open_storage(f"s3a://{BUCKET}/{name}", Options(server.options))
    assert isinstance(storage, ObjectStorage)
    return storage


def requests_of_trial(storage: ObjectStorage) -> int:
    cost = Cost()
    with requests_counted(cost):
        assert Capability.PUT_IF_ABSENT in storage.capabilities
    return cost.requests


@pytest.fixture
def table(moto: S3Server) -> str:
    """The name of a table, of which the store has been tried."""
    name = uuid.uuid4().hex
    opened(moto, name).put(PROPERTIES_PATH, b"")
    assert requests_of_trial(opened(moto, name)) > TRIED
    return name


def test_the_next_process_does_not_try_the_store_again(moto: S3Server, table: str) -> None:
    assert requests_of_trial(opened(moto, table)) == TRIED


def test_nothing_is_remembered_where_there_is_no_table(moto: S3Server) -> None:
    name = uuid.uuid4().hex
    for _ in range(2):
        assert requests_of_trial(opened(moto, name)) > TRIED
    assert opened(moto, name).list("") == ()


def test_the_memory_of_a_copied_table_does_not_count(moto: S3Server, table: str) -> None:
    copy = uuid.uuid4().hex
    for path in (PROPERTIES_PATH, PATH):
        opened(moto, copy).put(path, opened(moto, table).read(path))
    assert requests_of_trial(opened(moto, copy)) > TRIED
    assert requests_of_trial(opened(moto, copy)) == TRIED


@pytest.mark.parametrize(
    "changed",
    [
        {"tried_ms": -DAY_MS},
        {"tried_ms": 3_600_000},
        {"tried_ms": "yesterday"},
        {"store": "0" * 64},
        {"version": 2},
        {"version": 0},
    ],
    ids=str,
)
def test_a_memory_that_is_old_or_of_another_does_not_count(
    changed: Mapping[str, Any], moto: S3Server, table: str
) -> None:
    storage = opened(moto, table)
    known = json.loads(storage.read(PATH))
    new = {
        key: known[key] + value if type(value) is int and key == "tried_ms" else value for key, value in changed.items()
    }
    storage.put(PATH, json.dumps(known | new).encode())
    assert requests_of_trial(opened(moto, table)) > TRIED


def test_a_damaged_memory_does_not_count(moto: S3Server, table: str) -> None:
    for damaged in (b"", b"[]", b"\xff", b"[" * 50_000):
        opened(moto, table).put(PATH, damaged)
        assert requests_of_trial(opened(moto, table)) > TRIED


def test_the_memory_of_a_store_that_the_environment_names_is_of_that_store(
    moto: S3Server, seaweedfs: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bucket and prefix, but another server, as after a mirror."""
    name = uuid.uuid4().hex
    for seconds, server, is_known in (("31", moto, False), ("32", moto, True), ("33", seaweedfs, False)):
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        unnamed = {key: value for key, value in server.options.items() if key != "fs.s3a.endpoint"}
        # With other settings, as another process has them, a new client is made.
        storage = open_storage(f"s3a://{BUCKET}/{name}", Options(unnamed | {"s3.request-timeout": seconds}))
        assert isinstance(storage, ObjectStorage)
        if server is seaweedfs:
            storage.put(PATH, opened(moto, name).read(PATH))
        storage.put(PROPERTIES_PATH, b"")
        assert (requests_of_trial(storage) == TRIED) is is_known


def test_a_store_that_ignores_conditions_is_refused_each_time(rclone: S3Server) -> None:
    name = uuid.uuid4().hex
    opened(rclone, name).put(PROPERTIES_PATH, b"")
    for _ in range(2):
        with pytest.raises(RefusedError, match=f"{UNSAFE_WRITES}=true"):
            opened(rclone, name).put_if_absent("file", b"ours")
    assert opened(rclone, name).stat(PATH) is None


def test_a_user_who_may_not_delete_is_refused_although_the_store_is_known(
    moto: S3Server, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = opened(moto, table)

    def forbidden(_: object, key: str) -> None:
        raise StorageAccessError(f"cannot delete {key!r}: Access Denied")

    monkeypatch.setattr("eventide_adapters.storage.objects.s3.S3Objects.delete", forbidden)
    with pytest.raises(StorageAccessError, match="Access Denied"):
        storage.put_if_absent("file", b"ours")
