"""Tests that tests/conformance/test_hdfs_by_libhdfs.py runs in a separate process, whose JVM ends with it."""

import io
import os
import uuid
from itertools import islice
from pathlib import Path

import pytest

from eventide.testing.storage_contract import BehindContract, StorageCase, SymbolicLinkContract
from eventide.testing.storage_contract.content import ContentContract
from eventide_adapters.storage.hdfs.config import BYTES
from eventide_adapters.storage.hdfs.webhdfs import WebHdfs
from eventide_core.config import EXCLUSIVE, LINK_MODE
from eventide_core.errors import StorageError
from eventide_core.ports import Storage
from eventide_core.table.timeline.contents.plans import LinkMode
from support.pasts.life import Chapter, TableLife
from support.servers.hdfs.mini_cluster import HdfsServer
from support.tables.backends import Backend

URI, WEB_ADDRESS, HAS_SYMLINKS = "EVENTIDE_TEST_HDFS", "EVENTIDE_TEST_HDFS_WEB", "EVENTIDE_TEST_HDFS_SYMLINKS"
SERVER = HdfsServer(os.environ[URI], os.environ[WEB_ADDRESS], os.environ[HAS_SYMLINKS] == "True", Path(), 0)
BY_LIBHDFS: dict[str, str] = {BYTES: "libhdfs", "dfs.replication": "1"}


def new_place(**more: str) -> Backend:
    linked = LinkMode.SYMLINK if SERVER.has_symlinks else LinkMode.COPY
    return Backend(f"{SERVER.uri}/lake/{uuid.uuid4().hex}", SERVER.options | more, linked)


@pytest.fixture
def no_bytes_by_webhdfs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("these bytes went by WebHDFS")

    monkeypatch.setattr(WebHdfs, "read", refuse)
    monkeypatch.setattr(WebHdfs, "write", refuse)


def case() -> StorageCase:
    there, web = new_place(**BY_LIBHDFS), SERVER.client()
    directory = there.uri.removeprefix(SERVER.uri)

    def write_behind(path: str, data: bytes) -> None:
        web.write(f"{directory}/{path}", io.BytesIO(data), len(data))

    return StorageCase(there.storage, lambda path: web.read(f"{directory}/{path}"), write_behind)


class TestHdfsByLibhdfs(ContentContract, BehindContract):
    """Without the contract of names, which holds without libhdfs."""

    @pytest.fixture
    def case(self) -> StorageCase:
        return case()

    def test_a_partition_may_have_any_value(self, storage: Storage) -> None:
        for partition in ("date=2024-01-01 10.00", "city=S%C3%A3o Paulo", "city=São+Paulo", "a=b/c=#?&[*]{d}"):
            assert storage.put_if_absent(f"{partition}/file", partition.encode())
            assert storage.read(f"{partition}/file") == partition.encode()


@pytest.mark.skipif(not SERVER.has_symlinks, reason="this NameNode keeps no links")
class TestLinksByLibhdfs(SymbolicLinkContract):
    rounds = 1

    @pytest.fixture
    def case(self) -> StorageCase:
        return case()


def first_compaction(there: Backend) -> list[Chapter]:
    """Up to the compaction of the table to its second hour, including a plan that was rolled back before it."""
    return list(islice(TableLife(there).chapters(), 3))


@pytest.mark.usefixtures("no_bytes_by_webhdfs")
def test_a_compaction_leaves_the_rows_and_files_that_it_leaves_in_memory() -> None:
    """By tests/adapters/storage/test_life_on_every_storage.py, these are also the ones that it leaves by WebHDFS."""
    linked: dict[str, str] = {EXCLUSIVE: "true", LINK_MODE: "symlink"} if SERVER.has_symlinks else {}
    found = first_compaction(new_place(**BY_LIBHDFS))
    known = first_compaction(Backend("memory://known", linked, LinkMode.COPY))
    assert [chapter.as_with_copies() for chapter in found] == [chapter.as_with_copies() for chapter in known]
    assert found[-1].links == known[-1].links
    assert bool(found[-1].links) == SERVER.has_symlinks


@pytest.mark.usefixtures("no_bytes_by_webhdfs")
def test_a_file_has_as_many_replicas_as_the_settings_say() -> None:
    there = new_place(**BY_LIBHDFS | {"dfs.replication": "2"})
    assert there.storage.put_if_absent("file", b"data")
    at = there.uri.removeprefix(SERVER.uri)
    status = SERVER.client().call("GET", "GETFILESTATUS", f"{at}/file")["FileStatus"]
    assert (status["replication"], status["owner"]) == (2, "lake")


@pytest.mark.skipif(not SERVER.has_symlinks, reason="this NameNode keeps no links")
@pytest.mark.usefixtures("no_bytes_by_webhdfs")
def test_nothing_is_written_through_a_link_to_a_directory() -> None:
    there, real, web = new_place(**BY_LIBHDFS), new_place(**BY_LIBHDFS), SERVER.client()
    assert real.storage.put_if_absent("file", b"data")
    link, target = (place.uri.removeprefix(SERVER.uri) for place in (there, real))
    web.call("PUT", "CREATESYMLINK", link, destination=target, createParent="false")
    with pytest.raises(StorageError, match="UnresolvedPathException"):
        there.storage.put_if_absent("other", b"data")
    assert names_of(real.storage) == ["file"]


def names_of(storage: Storage) -> list[str]:
    return [info.path for info in storage.list("") if not info.is_directory]
