"""Fixtures of the real servers: each starts once in a run, when a test first asks for it (support.run.parts)."""

import fcntl
from collections.abc import Iterator
from typing import TypeVar

import pytest

from support.run.parts import Parts, Start
from support.run.real_parts import require_or_skip
from support.servers import cloud_servers, kafka_server, s3_servers, zookeeper_server
from support.servers import hive_metastore as hive
from support.servers.cloud_servers import AzureServer, GoogleServer
from support.servers.hdfs import federated as federated
from support.servers.hdfs import mini_cluster
from support.servers.hdfs import native as libhdfs
from support.servers.hdfs import secured as secured
from support.servers.hdfs.mini_cluster import HdfsServer
from support.servers.hdfs.native import NativeHdfs, NativeHdfsUnavailableError
from support.servers.hdfs.secured import SecuredHdfs
from support.servers.hive_metastore import HiveMetastoreServer
from support.servers.kafka_server import KafkaServer
from support.servers.s3_servers import S3Server
from support.servers.server_process import ServerUnavailableError
from support.servers.zookeeper_server import ZookeeperServer

Server = TypeVar("Server")


def started(parts: Parts, start: Start[Server]) -> Server:
    """The server. If it can't start, the test is skipped or fails, depending on what the run requires."""
    try:
        return parts.get(start)
    except ServerUnavailableError as missing:
        require_or_skip(f"a server is missing here: {missing}")


@pytest.fixture(scope="session")
def moto(parts: Parts) -> S3Server:
    """An S3 server in Python."""
    return started(parts, s3_servers.moto)


@pytest.fixture(scope="session")
def seaweedfs(parts: Parts) -> S3Server:
    """An S3 server in Go."""
    return started(parts, s3_servers.seaweedfs)


@pytest.fixture(scope="session")
def rclone(parts: Parts) -> S3Server:
    """An S3 server that ignores conditions on writes."""
    return started(parts, s3_servers.rclone)


@pytest.fixture(scope="session")
def fake_gcs(parts: Parts) -> GoogleServer:
    """A server for Google Cloud Storage."""
    return started(parts, cloud_servers.fake_gcs)


@pytest.fixture(scope="session")
def azurite(parts: Parts) -> AzureServer:
    """A server for Azure's Blob Storage."""
    return started(parts, cloud_servers.azurite)


@pytest.fixture(scope="session")
def name_node(parts: Parts) -> HdfsServer:
    """HDFS; use one of the two fixtures below."""
    return started(parts, mini_cluster.hdfs)


@pytest.fixture
def name_node_alone(name_node: HdfsServer) -> Iterator[HdfsServer]:
    """HDFS for this test alone until it ends, because symbolic links are enabled or disabled for all tests."""
    with name_node.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield name_node


@pytest.fixture
def hdfs_with_symlinks(name_node_alone: HdfsServer) -> HdfsServer:
    """HDFS with symbolic links enabled in the NameNode."""
    return name_node_alone.with_symlinks(True)


@pytest.fixture
def hdfs(name_node_alone: HdfsServer) -> HdfsServer:
    """HDFS with the default of no symbolic links."""
    return name_node_alone.with_symlinks(False)


@pytest.fixture(scope="session")
def secured_hdfs(parts: Parts) -> SecuredHdfs:
    """HDFS with Kerberos and two NameNodes. Any test may fail over at any time."""
    return started(parts, secured.secured_hdfs)


@pytest.fixture(scope="session")
def federated_hdfs(parts: Parts) -> HdfsServer:
    """A Router of HDFS's router-based federation, before two name services."""
    return started(parts, federated.federated_hdfs)


@pytest.fixture(scope="session")
def native_hdfs() -> NativeHdfs:
    """libhdfs, built from source.

    If that is impossible, the test is skipped or fails, depending on what the run requires.
    """
    try:
        return libhdfs.native_hdfs()
    except NativeHdfsUnavailableError as missing:
        require_or_skip(f"libhdfs is missing here: {missing}")


@pytest.fixture(scope="session")
def hive_metastore(parts: Parts) -> HiveMetastoreServer:
    """A Hive Metastore. Tests use different database names."""
    return started(parts, hive.hive_metastore)


@pytest.fixture(scope="session")
def zookeeper(parts: Parts) -> ZookeeperServer:
    """ZooKeeper. Tests use different paths."""
    return started(parts, zookeeper_server.zookeeper)


@pytest.fixture(scope="session")
def kafka(parts: Parts) -> KafkaServer:
    """A Kafka broker. Tests use different topics."""
    return started(parts, kafka_server.kafka)
