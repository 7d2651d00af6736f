"""A real NameNode and DataNode in one Java process, with symbolic links on or off.

The jars come from this environment's PySpark, and three from Maven Central: Hadoop's mini cluster of the same version,
and two that its web server needs on Java 17. Python controls the process through a gateway, so nothing is compiled.

The mini cluster enables symbolic links, which a stock NameNode never does. `HdfsServer.with_symlinks` disables them.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from eventide.spark.java_home import JavaNotFoundError, find_java_home
from eventide_adapters.storage.hdfs.config import HdfsConfig
from eventide_adapters.storage.hdfs.webhdfs import WebHdfs
from eventide_core.config import Options
from support.run.maven import JarUnavailableError, MavenJar, maven_jar
from support.servers.java_process import SPARK_JARS, JavaProcess, java_process
from support.servers.server_process import ServerUnavailableError, last_line

# The Hadoop version of PySpark 4.1, which brings the other jars.
JARS = (
    MavenJar(
        "org.apache.hadoop:hadoop-client-minicluster:3.4.2",
        "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77",
        (
            "org.apache.hadoop:hadoop-client-api",
            "org.apache.hadoop:hadoop-client-runtime",
            "com.google.code.findbugs:jsr305",
            "commons-logging:commons-logging",
            "junit:junit",
            "org.hamcrest:hamcrest-core",
            "org.slf4j:slf4j-api",
            "org.xerial.snappy:snappy-java",
        ),
    ),
    MavenJar(
        "javax.xml.bind:jaxb-api:2.3.1",
        "88b955a0df57880a26a74708bc34f74dcaf8ebf4e78843a28b50eae945732b06",
        ("javax.activation:javax.activation-api",),
    ),
    MavenJar(
        "javax.activation:javax.activation-api:1.2.0",
        "43fdef0b5b6ceb31b0424b208b930c74ab58fac2ceeb7b3f6fd3aeb8b5ca4393",
    ),
)

_SETTINGS = {
    "dfs.replication": "1",
    "dfs.webhdfs.enabled": "true",
    # The pause before a writer asks again whether its file is complete; the default costs 400 ms per file.
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
}


@dataclass(frozen=True, slots=True)
class HdfsServer:
    """A running NameNode with its current setting of symbolic links. A test that depends on the setting holds `lock`."""

    uri: str
    web_address: str
    has_symlinks: bool
    lock: Path
    gateway_port: int

    @property
    def options(self) -> dict[str, str]:
        """The options with which eventide uses it. They declare that all readers of the table resolve links."""
        return {
            "dfs.namenode.http-address": self.web_address,
            "hadoop.user.name": "lake",
            "eventide.table.exclusive": "true",
        }

    def client(self) -> WebHdfs:
        """A separate client, for access that bypasses the adapter."""
        return WebHdfs(HdfsConfig.of("hdfs", "localhost", Options(self.options)))

    def with_symlinks(self, has_symlinks: bool) -> "HdfsServer":
        """The same server, with symbolic links enabled or disabled from now on."""
        gateway: Any = JavaGateway(gateway_parameters=GatewayParameters(port=self.gateway_port))
        try:
            file_system = gateway.jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileSystem")
            switch = file_system.getDeclaredField("symlinksEnabled")
            switch.setAccessible(True)
            switch.setBoolean(None, has_symlinks)
        finally:
            gateway.close()
        return replace(self, has_symlinks=has_symlinks)


@contextmanager
def hdfs(directory: Path) -> Iterator[HdfsServer]:
    """A NameNode for the length of the block. Raises ServerUnavailableError."""
    with hadoop_process(directory, []) as started:
        cluster = running_cluster(started.jvm, directory / "data")
        uri = f"hdfs://localhost:{cluster.getNameNodePort()}"
        yield HdfsServer(uri, web_address_of(cluster), True, directory / "lock", started.port)


@contextmanager
def hadoop_process(
    directory: Path, more_options: Sequence[str], *, more_classpath: Sequence[str] = ()
) -> Iterator[JavaProcess]:
    """A Java process that can start mini clusters. Raises ServerUnavailableError, also for an error of Java."""

    def classpath(python: Path, environment: Mapping[str, str]) -> list[str]:
        jars = [maven_jar(jar, python=python, environment=environment) for jar in JARS]
        return [*more_classpath, *map(str, jars), f"{SPARK_JARS}/*"]

    with process_of_hadoop("the NameNode", directory / "log", classpath, more_options) as started:
        yield started


@contextmanager
def process_of_hadoop(
    what: str, log: Path, classpath: Callable[[Path, Mapping[str, str]], list[str]], more_options: Sequence[str] = ()
) -> Iterator[JavaProcess]:
    """A Java process of Hadoop's jars, which `classpath` gets with a Python and an environment that can download them.

    Raises ServerUnavailableError, also for an error of Java.
    """
    try:
        java_home = find_java_home()
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYTHON"))}
        environment |= {"JAVA_HOME": java_home, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        jars = classpath(Path(sys.executable), environment)
    except (JavaNotFoundError, JarUnavailableError) as missing:
        raise ServerUnavailableError(str(missing)) from missing
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--add-opens=java.base/java.lang=ALL-UNNAMED"]
    with java_process(Path(java_home, "bin", "java"), jars, [*options, *more_options], log) as started:
        try:
            yield started
        except Py4JError as failure:
            raise ServerUnavailableError(f"{what} did not start: {last_line(log)}") from failure


def cluster_settings(java: Any, directory: Path, settings: Mapping[str, str]) -> Any:
    """Hadoop's settings of a mini cluster that keeps its data in a directory."""
    found = java.org.apache.hadoop.conf.Configuration()
    found.set("hdfs.minidfs.basedir", str(directory))
    for key, value in {**_SETTINGS, **settings}.items():
        found.set(key, value)
    return found


def make_lake(java: Any, file_system: Any) -> None:
    """The directory in which a test's user may write."""
    lake = java.org.apache.hadoop.fs.Path("/lake")
    file_system.mkdirs(lake)
    file_system.setOwner(lake, "lake", "lake")


def web_address_of(cluster: Any, name_node: int = 0) -> str:
    node = cluster.getNameNode(name_node)
    web = node.getHttpAddress() or node.getHttpsAddress()
    return f"{web.getHostName()}:{web.getPort()}"


def running_cluster(
    java: Any, directory: Path, *, data_nodes: int = 1, settings: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """A running mini cluster of a NameNode and DataNodes, with the directory in which a test's user may write."""
    builder = getattr(java.org.apache.hadoop.hdfs, "MiniDFSCluster$Builder")
    cluster = builder(cluster_settings(java, directory, settings)).numDataNodes(data_nodes).build()
    cluster.waitActive()
    make_lake(java, cluster.getFileSystem())
    return cluster
