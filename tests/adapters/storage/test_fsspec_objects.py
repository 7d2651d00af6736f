"""Object stores by fsspec, which packages with storages of their own use, on a store in memory."""

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from eventide.testing.storage_contract import BehindContract, KeyContract, StorageCase, StorageContract
from eventide_adapters.storage.fsspec_objects import FsspecObjects
from eventide_adapters.storage.object_storage import ObjectStorage
from eventide_core.errors import RefusedError, StorageError

LOCK = threading.Lock()


class Bucket(MemoryFileSystem):  # type: ignore[misc]
    """Settles creates one after the other, as a store does."""

    protocol = "bucket"

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        with LOCK:
            super().pipe_file(path, value, mode, **kwargs)


class CarelessBucket(MemoryFileSystem):  # type: ignore[misc]
    """Takes every create for a replacement."""

    protocol = "careless"

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        del mode
        super().pipe_file(path, value, "overwrite", **kwargs)


@pytest.fixture(autouse=True)
def stores() -> Iterator[None]:
    for kind in (Bucket, CarelessBucket):
        fsspec.register_implementation(kind.protocol, kind, clobber=True)
    yield
    MemoryFileSystem.store.clear()


def storage_on(protocol: str) -> ObjectStorage:
    bucket = uuid.uuid4().hex
    objects = FsspecObjects(protocol, bucket, (), allows_unsafe_writes=False)
    return ObjectStorage(f"{protocol}://{bucket}/trips", "trips/", objects)


class TestFsspec(StorageContract, BehindContract, KeyContract):
    rounds = 3

    @pytest.fixture
    def case(self) -> StorageCase:
        storage = storage_on("bucket")
        directory, behind = storage.root.removeprefix("bucket://"), Bucket()
        return StorageCase(
            storage,
            lambda path: bytes(behind.cat_file(f"{directory}/{path}")),
            lambda path, data: behind.pipe_file(f"{directory}/{path}", data),
        )


def test_a_store_that_ignores_mode_create_is_refused_and_left_clean() -> None:
    storage = storage_on("careless")
    with pytest.raises(RefusedError, match=r"ignores or refuses the condition.*unsafe\.writes=true"):
        storage.put_if_absent("file", b"data")
    assert MemoryFileSystem.store == {}


def test_any_failure_of_a_package_is_a_storage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the package's own")

    storage = storage_on("bucket")
    storage.put("file", b"data")
    for method in ("cat_file", "pipe_file", "ls", "rm_file"):
        monkeypatch.setattr(Bucket, method, fail)
    for operation in (
        lambda: storage.read("file"),
        lambda: storage.put("file", b""),
        lambda: storage.list(""),
        lambda: storage.delete("file"),
    ):
        with pytest.raises(StorageError, match="the package's own"):
            operation()


def test_a_secret_that_a_package_quotes_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("403 for the key hidden-key")

    objects = FsspecObjects("bucket", "lake", (("account_key", "hidden-key"),), False)
    monkeypatch.setattr(Bucket, "cat_file", fail)
    with pytest.raises(StorageError, match=r"403 for the key \*\*\*") as refused:
        objects.read("file")
    assert refused.value.__cause__ is None
