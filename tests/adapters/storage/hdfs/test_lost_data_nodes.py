"""A DataNode that stops in the middle of a write, a read or a compaction, before the NameNode knows of it."""

import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from eventide_adapters.storage.paths import TEMPORARY
from eventide_core.errors import StorageError
from eventide_core.ports import Storage
from eventide_core.table.timeline.contents.plans import LinkMode
from support.pasts.life import Chapter, TableLife
from support.run.parts import Parts
from support.servers.fixtures import started
from support.servers.hdfs import lost_with_libhdfs
from support.servers.hdfs.native import NativeHdfs
from support.servers.hdfs.replicated import DATA, Midway, ReplicatedHdfs, replicated_hdfs
from support.tables.backends import Backend, files_of

pytestmark = pytest.mark.broad


@pytest.fixture(scope="module")
def running(parts: Parts) -> ReplicatedHdfs:
    return started(parts, replicated_hdfs)


@pytest.fixture
def cluster(running: ReplicatedHdfs, short_pauses: None) -> Iterator[ReplicatedHdfs]:  # noqa: ARG001
    """All its DataNodes run when a test begins. No other test has it meanwhile, because all are in this file."""
    yield running
    running.start_again()


def backend_on(cluster: ReplicatedHdfs) -> Backend:
    # Of three DataNodes at one address, the NameNode may name the lost one more often than on a cluster. A client that has
    # two addresses of NameNodes asks more often.
    address = cluster.server.web_address
    options = {**cluster.server.options, "dfs.namenode.http-address": f"{address},{address}"}
    return Backend(f"{cluster.server.uri}/lake/{uuid.uuid4().hex}", options, LinkMode.SYMLINK)


def at_next_transfer(
    cluster: ReplicatedHdfs,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    strike: Callable[[int, BinaryIO | None], BinaryIO | None],
    size_min: int = 0,
) -> list[int]:
    """Calls `strike` at the next request to a DataNode, with its web port and the content; returns it when it happened."""
    ports, struck_method = set(cluster.web_ports()), method
    struck: list[int] = []

    class Struck(HTTPConnection):
        def request(self, method: str, url: str, body: Any = None, headers: Any = None, **_: Any) -> None:
            size = int(headers.get("Content-Length", 0))
            if not struck and self.port in ports and method == struck_method and size >= size_min:
                struck.append(self.port)
                body = strike(self.port, body)
            super().request(method, url, body, headers)

    monkeypatch.setattr("eventide_adapters.storage.hdfs.webhdfs.HTTPConnection", Struck)
    return struck


def write_whole(storage: Storage, path: str) -> bool:
    output = storage.open_output(path)
    output.write(DATA)
    return output.commit()


@pytest.mark.parametrize("is_head", [True, False], ids=["the one that the client sends to", "one behind it"])
def test_a_file_of_many_blocks_is_whole_if_a_data_node_is_lost_while_it_is_sent(
    is_head: bool, cluster: ReplicatedHdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = backend_on(cluster).storage

    def lose(head: int) -> None:
        cluster.stop(head if is_head else next(port for port in cluster.web_ports() if port != head))

    def strike(head: int, content: BinaryIO | None) -> Any:
        assert content is not None
        return Midway(content, lambda: lose(head))

    struck = at_next_transfer(cluster, monkeypatch, "PUT", strike)
    assert write_whole(storage, "part/file")
    assert (len(struck), len(cluster.web_ports())) == (1, 2)
    assert storage.read_range("part/file", 0, 2 * len(DATA)) == DATA
    assert not write_whole(storage, "part/file")
    assert storage.list(TEMPORARY) == ()


@pytest.mark.parametrize("moment", ["before the first byte", "in the middle of the answer"])
def test_a_file_is_read_whole_if_the_data_node_that_is_asked_is_lost(
    moment: str, cluster: ReplicatedHdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = backend_on(cluster).storage
    assert write_whole(storage, "file")
    read = HTTPResponse.read

    def strike(port: int, content: BinaryIO | None) -> BinaryIO | None:
        if moment == "before the first byte":
            cluster.stop(port)
            return content

        def read_some(response: HTTPResponse, size: int | None = None) -> bytes:
            monkeypatch.setattr(HTTPResponse, "read", read)
            cluster.stop(port)
            return read(response, size)

        monkeypatch.setattr(HTTPResponse, "read", read_some)
        return content

    struck = at_next_transfer(cluster, monkeypatch, "GET", strike)
    with storage.open_input("file") as stream:
        assert stream.read() == DATA
    assert (len(struck), len(cluster.web_ports())) == (1, 2)


def test_if_every_data_node_is_lost_the_error_names_the_file_and_no_name_appears(
    cluster: ReplicatedHdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = backend_on(cluster).storage

    def strike(_: int, content: BinaryIO | None) -> Any:
        assert content is not None
        return Midway(content, cluster.stop)

    at_next_transfer(cluster, monkeypatch, "PUT", strike)
    with pytest.raises(StorageError, match=r"cannot write 'part/file' in hdfs://.*") as failure:
        write_whole(storage, "part/file")
    assert failure.value.exit_code == 5
    assert (storage.stat("part/file"), files_of(storage, "part")) == (None, {})
    cluster.start_again()
    assert write_whole(storage, "part/file")
    assert storage.read_range("part/file", 0, len(DATA)) == DATA


def first_compaction(there: Backend) -> list[Chapter]:
    return list(islice(TableLife(there).chapters(), 3))


def test_a_compaction_that_loses_a_data_node_leaves_the_same_rows_and_files(
    cluster: ReplicatedHdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, known = backend_on(cluster), first_compaction(Backend("memory://known", {}, LinkMode.COPY))
    chapters = TableLife(there).chapters()
    earlier = list(islice(chapters, 2))

    def strike(port: int, content: BinaryIO | None) -> BinaryIO | None:
        cluster.stop(port)
        return content

    struck = at_next_transfer(cluster, monkeypatch, "PUT", strike, size_min=2000)
    earlier.append(next(chapters))
    assert (len(struck), len(cluster.web_ports())) == (1, 2)
    assert [chapter.as_with_copies() for chapter in earlier] == [chapter.as_with_copies() for chapter in known]


def test_bytes_survive_two_data_nodes_lost_while_libhdfs_sends_and_reads_them(
    cluster: ReplicatedHdfs, native_hdfs: NativeHdfs, tmp_path: Path
) -> None:
    """By libhdfs's Java in another process, which stops the DataNodes itself."""
    described = tmp_path / "cluster"
    described.write_bytes(pickle.dumps(cluster))
    done = subprocess.run(
        [sys.executable, lost_with_libhdfs.__file__, str(described)],
        env={**os.environ, **native_hdfs.environment, "PYTHONPATH": str(Path(__file__).parents[3])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
