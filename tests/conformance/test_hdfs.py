"""Real HDFS behind a storage: its links, its NameNodes, and answers that get lost on the way."""

import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from eventide_adapters.storage.hdfs.webhdfs import RemoteError
from eventide_adapters.storage.open import open_storage
from eventide_adapters.storage.paths import TEMPORARY
from eventide_core.config import Options
from eventide_core.errors import StorageError, UnsafePathError
from eventide_core.ports import Capability, Storage
from support.doubles.metered import Cost, requests_counted
from support.faults.stores import shorten_pauses
from support.servers.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from support.servers.hdfs.mini_cluster import HdfsServer
from support.servers.server_process import free_ports


def storage_on(server: HdfsServer, **options: str) -> Storage:
    return open_storage(f"{server.uri}/lake/{uuid.uuid4().hex}", Options(server.options | options))


def path_of(storage: Storage, server: HdfsServer) -> str:
    return storage.root.removeprefix(server.uri)


def temporary_files(storage: Storage, server: HdfsServer) -> list[str]:
    found = server.client().call("GET", "LISTSTATUS", f"{path_of(storage, server)}/{TEMPORARY}")
    return [entry["pathSuffix"] for entry in found["FileStatuses"]["FileStatus"]]


def test_a_large_range_comes_in_pieces_and_is_the_same(hdfs_with_symlinks: HdfsServer) -> None:
    storage = storage_on(hdfs_with_symlinks)
    data = bytes(range(251)) * (80 << 10)  # 20 MB, of which a request reads 8 MiB at most
    storage.put("file", data)
    assert storage.link_if_absent("file", "link", is_symbolic=True)
    cost = Cost()
    with requests_counted(cost):
        assert storage.read_range("link", 100, len(data)) == data[100:]
    # For each of the three pieces, the NameNode names the target, then a DataNode.
    assert (cost.requests, cost.received) == (9, len(data) - 100)
    with storage.open_input("file") as stream:
        stream.seek(70_001)
        assert stream.read(18_000_000) == data[70_001:18_070_001]
        storage.delete("file")
        with pytest.raises(StorageError, match="file"):
            stream.read(300_000)


def test_a_links_target_is_absolute_and_names_no_name_node(hdfs_with_symlinks: HdfsServer) -> None:
    storage = storage_on(hdfs_with_symlinks)
    storage.put("part=a/source", b"data")
    assert storage.link_if_absent("part=a/source", "part=b/link", is_symbolic=True)
    directory = path_of(storage, hdfs_with_symlinks)
    listed = hdfs_with_symlinks.client().call("GET", "LISTSTATUS", f"{directory}/part=b")["FileStatuses"]["FileStatus"]
    assert [(e["pathSuffix"], e["type"], e["symlink"]) for e in listed] == [
        ("link", "SYMLINK", f"{directory}/part=a/source")
    ]


def test_a_link_that_leads_outside_the_table_is_not_followed(hdfs_with_symlinks: HdfsServer) -> None:
    table, other = storage_on(hdfs_with_symlinks), storage_on(hdfs_with_symlinks)
    table.put("file", b"data")
    other.put("secret", b"theirs")
    outside = f"{path_of(other, hdfs_with_symlinks)}/secret"
    hdfs_with_symlinks.client().call(
        "PUT", "CREATESYMLINK", f"{path_of(table, hdfs_with_symlinks)}/link", destination=outside, createParent="false"
    )
    for look in (table.read, table.open_input, table.stat):
        with pytest.raises(UnsafePathError, match="outside"):
            look("link")
    found = {info.path: (info.size, info.link_target) for info in table.list("")}
    assert found["link"] == (0, outside)
    assert table.delete("link")
    assert other.read("secret") == b"theirs"


def test_links_that_lead_to_each_other_are_an_error(hdfs_with_symlinks: HdfsServer) -> None:
    table = storage_on(hdfs_with_symlinks)
    table.put("file", b"data")
    directory = path_of(table, hdfs_with_symlinks)
    for name, target in (("one", "two"), ("two", "one")):
        hdfs_with_symlinks.client().call(
            "PUT", "CREATESYMLINK", f"{directory}/{name}", destination=f"{directory}/{target}", createParent="false"
        )
    with pytest.raises(StorageError):
        table.read("one")


def test_a_name_node_with_links_off_is_found_out_and_left_clean(hdfs: HdfsServer) -> None:
    storage = storage_on(hdfs)
    storage.put("source", b"data")
    assert storage.capabilities == Capability.PUT_IF_ABSENT
    with pytest.raises(StorageError, match="not supported"):
        storage.link_if_absent("source", "link", is_symbolic=True)
    assert temporary_files(storage, hdfs) == []


def test_what_the_dead_had_begun_is_removed_after_a_day(hdfs: HdfsServer) -> None:
    storage = storage_on(hdfs)
    storage.put("file", b"data")
    directory = f"{path_of(storage, hdfs)}/{TEMPORARY}"
    for name, age_seconds in (("old", 90_000), ("young", 60)):
        storage.put(f"{TEMPORARY}/{name}", b"")
        modified = str(int((time.time() - age_seconds) * 1000))
        hdfs.client().call("PUT", "SETTIMES", f"{directory}/{name}", modificationtime=modified)
    assert Capability.PUT_IF_ABSENT in storage.capabilities
    assert temporary_files(storage, hdfs) == ["young"]


def test_the_next_name_node_is_asked_where_one_is_gone(hdfs: HdfsServer) -> None:
    (nobody,) = free_ports(1)
    storage = storage_on(hdfs, **{"dfs.namenode.http-address": f"localhost:{nobody},{hdfs.web_address}"})
    assert storage.put_if_absent("file", b"data")
    assert storage.read("file") == b"data"


def test_a_directory_one_may_not_write_to_can_do_nothing(hdfs: HdfsServer) -> None:
    storage = open_storage(f"{hdfs.uri}/private", Options(hdfs.options))
    assert storage.capabilities == Capability.NONE
    with pytest.raises(StorageError, match="AccessControlException"):
        storage.put("file", b"")


@pytest.fixture
def proxy(hdfs_with_symlinks: HdfsServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    shorten_pauses(monkeypatch)
    with faulty_proxy(hdfs_with_symlinks.web_address) as found:
        yield found


def through(proxy: FaultyProxy, server: HdfsServer) -> Storage:
    found = storage_on(server, **{"dfs.namenode.http-address": proxy.address, "hdfs.request-timeout": "2"})
    found.put("source", b"source")
    return found


CREATES: dict[str, Callable[[Storage], bool]] = {
    "put_if_absent": lambda storage: storage.put_if_absent("p/new", b"source"),
    "copy_if_absent": lambda storage: storage.copy_if_absent("source", "p/new"),
    "link_if_absent": lambda storage: storage.link_if_absent("source", "p/new", is_symbolic=True),
}


@pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.UNAVAILABLE, Fault.FAILED_AFTER, Fault.SILENT])
@pytest.mark.parametrize(
    ("create", "operation"),
    [
        ("put_if_absent", "op=CREATE&"),
        ("put_if_absent", "op=MKDIRS"),
        ("put_if_absent", "op=RENAME"),
        ("copy_if_absent", "op=RENAME"),
        ("link_if_absent", "op=CREATESYMLINK"),
        ("link_if_absent", "op=RENAME"),
    ],
)
def test_who_creates_a_name_knows_it_whatever_happens_to_one_request(
    hdfs_with_symlinks: HdfsServer, proxy: FaultyProxy, create: str, operation: str, fault: Fault
) -> None:
    storage = through(proxy, hdfs_with_symlinks)
    proxy.strike_once(fault, "PUT", operation)
    assert CREATES[create](storage)
    assert proxy.struck == {fault: 1}
    assert storage.read("p/new") == b"source"
    assert not CREATES[create](storage)
    assert temporary_files(storage, hdfs_with_symlinks) == []


@pytest.mark.parametrize("theirs", [b"theirs", b"source"], ids=["other content", "the same content"])
@pytest.mark.parametrize("create", CREATES)
def test_a_lost_answer_does_not_make_anothers_name_ours(
    hdfs_with_symlinks: HdfsServer, proxy: FaultyProxy, create: str, theirs: bytes
) -> None:
    storage = through(proxy, hdfs_with_symlinks)
    assert storage.put_if_absent("p/new", theirs)
    proxy.strike_once(Fault.REPLY_LOST, "PUT", "op=RENAME")
    assert not CREATES[create](storage)
    assert storage.read("p/new") == theirs


def test_a_name_node_that_stays_away_is_an_error_and_leaves_no_name(
    hdfs_with_symlinks: HdfsServer, proxy: FaultyProxy
) -> None:
    storage = through(proxy, hdfs_with_symlinks)
    proxy.choose = lambda _method, path, _number: Fault.UNAVAILABLE if "op=RENAME" in path else None
    with pytest.raises(StorageError, match="p/new"):
        storage.put_if_absent("p/new", b"ours")
    assert storage.stat("p/new") is None


def test_what_hdfs_answers_is_reported_by_its_kind(hdfs: HdfsServer) -> None:
    with pytest.raises(RemoteError, match="FileNotFoundException"):
        hdfs.client().call("GET", "GETFILESTATUS", "/none")
