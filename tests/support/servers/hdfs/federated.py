"""Two real name services, each with a NameNode and a DataNode, and a Router before them: HDFS's router-based federation.

The Router's jars are not in the mini cluster, and its web server needs the unrelocated ones of Hadoop. So it is a process of
its own, with what Spark's resolver downloads from Maven Central: 67 MB.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import requests

from support.run.maven import MavenJar, maven_jar, maven_jars
from support.servers.hdfs.mini_cluster import (
    JARS,
    HdfsServer,
    hadoop_process,
    process_of_hadoop,
    running_cluster,
    web_address_of,
)
from support.servers.server_process import ServerUnavailableError, free_ports

_VERSION: Final = "3.4.2"
_ROUTER: Final = MavenJar(
    ",".join(
        f"org.apache.hadoop:{name}:{_VERSION}"
        for name in (
            "hadoop-hdfs-rbf",
            "hadoop-federation-balance",
            "hadoop-common",
            "hadoop-hdfs",
            "hadoop-hdfs-client",
        )
    ),
    "9d81ba1d98b78bed7362cfcba10a7b4402cab039ac93da7f15c2bf257f1d00b5",
)
_NAME_SERVICES: Final = ("ns1", "ns2")
_WEB_XML: Final = '<web-app xmlns="http://java.sun.com/xml/ns/javaee" version="2.4"/>'
_START_SECONDS: Final = 60
"""What the Router may take to know its NameNodes and their DataNodes; it asks them each second."""

_ROUTER_SETTINGS: Final = {
    "dfs.nameservices": ",".join(_NAME_SERVICES),
    "dfs.federation.router.default.nameserviceId": _NAME_SERVICES[0],
    "dfs.federation.router.monitor.namenode": ",".join(_NAME_SERVICES),
    "dfs.federation.router.monitor.localnamenode.enable": "false",
    "dfs.federation.router.heartbeat.interval": "1000",
    "dfs.federation.router.cache.ttl": "1s",
    "dfs.federation.router.dn-report.cache-expire": "1s",
    "dfs.federation.router.safemode.enable": "false",
    "dfs.federation.router.handler.count": "4",
    "dfs.federation.router.store.driver.class": (
        "org.apache.hadoop.hdfs.server.federation.store.driver.impl.StateStoreFileImpl"
    ),
}


@contextmanager
def federated_hdfs(directory: Path) -> Iterator[HdfsServer]:
    """A Router whose `/lake` lies in the first name service. Raises ServerUnavailableError."""
    with hadoop_process(directory, []) as started:
        clusters = [running_cluster(started.jvm, directory / name) for name in _NAME_SERVICES]
        with _router(directory, clusters) as (rpc, web):
            server = HdfsServer(f"hdfs://localhost:{rpc}", f"localhost:{web}", True, directory / "lock", started.port)
            _wait_for(server)
            yield server


@contextmanager
def _router(directory: Path, clusters: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """The Router's ports for RPC and for WebHDFS."""
    web_files = directory / "web"
    # Its web server asks for these, and its jar does not have them.
    for name in ("router/WEB-INF", "static"):
        (web_files / "webapps" / name).mkdir(parents=True)
    (web_files / "webapps/router/WEB-INF/web.xml").write_text(_WEB_XML)

    def classpath(python: Path, environment: Mapping[str, str]) -> list[str]:
        jars = maven_jars(_ROUTER, python=python, environment=environment)
        jars += [maven_jar(jar, python=python, environment=environment) for jar in JARS[1:]]
        return [*map(str, jars), str(web_files)]

    with process_of_hadoop("the Router", directory / "router.log", classpath) as started:
        yield _started(started.jvm, directory / "mounts", clusters)


def _started(java: Any, mounts: Path, clusters: Sequence[Any]) -> tuple[int, int]:
    settings = java.org.apache.hadoop.conf.Configuration()
    rpc, web, admin = free_ports(3)
    places = {
        "dfs.federation.router.rpc-address": f"localhost:{rpc}",
        "dfs.federation.router.http-address": f"localhost:{web}",
        "dfs.federation.router.admin-address": f"localhost:{admin}",
        "dfs.federation.router.store.driver.file.directory": str(mounts),
        # The DataNodes write by the Router's RPC, whose address it states with this machine's name.
        "dfs.federation.router.rpc-bind-host": "0.0.0.0",
    }
    for name, cluster in zip(_NAME_SERVICES, clusters, strict=True):
        places[f"dfs.namenode.rpc-address.{name}"] = f"localhost:{cluster.getNameNodePort()}"
        places[f"dfs.namenode.http-address.{name}"] = web_address_of(cluster)
    for key, value in {**_ROUTER_SETTINGS, **places}.items():
        settings.set(key, value)
    federation = java.org.apache.hadoop.hdfs.server.federation
    router = federation.router.Router()
    router.init(settings)
    router.start()
    client = federation.router.RouterClient(java.java.net.InetSocketAddress("localhost", admin), settings)
    for path, name in zip(("/lake", "/other"), _NAME_SERVICES, strict=True):
        target = java.java.util.HashMap()
        target.put(name, "/lake")
        mount = federation.store.records.MountTable.newInstance(path, target)
        request = federation.store.protocol.AddMountTableEntryRequest.newInstance(mount)
        client.getMountTableManager().addMountTableEntry(request)
    return rpc, web


def _wait_for(server: HdfsServer) -> None:
    """Returns as soon as the Router finds a DataNode for a file. Raises ServerUnavailableError."""
    address = f"http://{server.web_address}/webhdfs/v1/lake/first?op=CREATE&user.name=lake&noredirect=true"
    end = time.monotonic() + _START_SECONDS
    while (answer := requests.put(address, timeout=10)).status_code != HTTPStatus.OK:
        if time.monotonic() > end:
            raise ServerUnavailableError(f"the Router finds no DataNode: {answer.text}")
        time.sleep(0.2)
