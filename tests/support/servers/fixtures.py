"""Fixtures of the real servers: each starts when a test first asks for it, and ends with the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import pytest

from support.real_parts import require_or_skip
from support.servers import hdfs_server, s3_servers
from support.servers import hive_metastore as hive
from support.servers import native_hdfs as libhdfs
from support.servers.hdfs_server import HdfsServer
from support.servers.hive_metastore import HiveMetastoreServer
from support.servers.native_hdfs import NativeHdfs, NativeHdfsUnavailableError
from support.servers.s3_servers import S3Server
from support.servers.server_process import ServerUnavailableError

Server = TypeVar("Server")


def started(
    start: Callable[[Path], AbstractContextManager[Server]], temporary: pytest.TempPathFactory
) -> Iterator[Server]:
    """The server while it runs; where it cannot, the test is skipped or fails, by what the run promises."""
    starting = start(temporary.mktemp("server"))
    try:
        found = starting.__enter__()
    except ServerUnavailableError as missing:
        require_or_skip(f"a server is missing here: {missing}")
    try:
        yield found
    finally:
        starting.__exit__(None, None, None)


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server in Python."""
    yield from started(s3_servers.moto, tmp_path_factory)


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server in Go."""
    yield from started(s3_servers.seaweedfs, tmp_path_factory)


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server that ignores conditions on writes."""
    yield from started(s3_servers.rclone, tmp_path_factory)


@pytest.fixture(scope="session")
def name_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """HDFS; ask for one of the two below."""
    yield from started(hdfs_server.hdfs, tmp_path_factory)


@pytest.fixture
def hdfs_with_symlinks(name_node: HdfsServer) -> HdfsServer:
    """HDFS whose NameNode was told to keep symbolic links."""
    return name_node.with_symlinks(True)


@pytest.fixture
def hdfs(name_node: HdfsServer) -> HdfsServer:
    """HDFS as it comes, without symbolic links."""
    return name_node.with_symlinks(False)


@pytest.fixture(scope="session")
def native_hdfs() -> NativeHdfs:
    """libhdfs, built from its source; where it cannot be, the test is skipped or fails, by what the run promises."""
    try:
        return libhdfs.native_hdfs()
    except NativeHdfsUnavailableError as missing:
        require_or_skip(f"libhdfs is missing here: {missing}")


@pytest.fixture(scope="session")
def hive_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastoreServer]:
    """A Hive Metastore; tests keep apart by the names of their databases."""
    yield from started(hive.hive_metastore, tmp_path_factory)
