"""A real NameNode and DataNode in one Java process, with symbolic links on or off.

The jars are those of this environment's PySpark, and three from Maven Central: Hadoop's mini cluster of the same version,
and two that its web server needs on Java 17. Python holds the reins through the gateway that PySpark brings, so nothing is
compiled; the process ends when its standard input does.

The mini cluster turns symbolic links on by itself, which a stock NameNode never does: where they are to be off, the switch
is put back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError

from eventide.spark.java_home import JavaNotFoundError, find_java_home
from eventide_adapters.storage.hdfs_config import HdfsConfig
from eventide_adapters.storage.webhdfs import WebHdfs
from eventide_core.config import Options
from support.maven import JarUnavailableError, MavenJar, maven_jar
from support.servers.server_process import ServerUnavailableError

# The version of the Hadoop that PySpark 4.1 brings; the rest of it comes from there.
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
    # The pause before a writer asks again whether its file is complete: 400 ms a file otherwise.
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
}


@dataclass(frozen=True, slots=True)
class HdfsServer:
    """A running NameNode, as it behaves now. Who needs it to stay so holds `lock`."""

    uri: str
    web_address: str
    has_symlinks: bool
    lock: Path
    gateway_port: int

    @property
    def options(self) -> dict[str, str]:
        """How a user of eventide reaches it; one who declares that all readers of the table resolve links."""
        return {
            "dfs.namenode.http-address": self.web_address,
            "hadoop.user.name": "lake",
            "eventide.table.exclusive": "true",
        }

    def client(self) -> WebHdfs:
        """A client of its own, for what is done behind the adapter's back."""
        return WebHdfs(HdfsConfig.of("hdfs", "localhost", Options(self.options)))

    def with_symlinks(self, has_symlinks: bool) -> HdfsServer:
        """The same one, with symbolic links on or off from now on."""
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
    spark_jars = Path(pyspark.__file__).parent / "jars"
    try:
        java_home = find_java_home()
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYTHON"))}
        environment |= {"JAVA_HOME": java_home, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        jars = [maven_jar(jar, python=Path(sys.executable), environment=environment) for jar in JARS]
    except (JavaNotFoundError, JarUnavailableError) as missing:
        raise ServerUnavailableError(str(missing)) from missing
    log = directory / "log"
    with log.open("wb") as output:
        port, process = cast(Any, launch_gateway)(
            jarpath=str(next(spark_jars.glob("py4j-*.jar"))),
            classpath=":".join([*map(str, jars), f"{spark_jars}/*"]),
            javaopts=["-Xmx512m", "--add-opens=java.base/java.lang=ALL-UNNAMED"],
            java_path=str(Path(java_home, "bin", "java")),
            die_on_exit=True,
            return_proc=True,
            redirect_stdout=output,
            redirect_stderr=output,
        )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        uri, web_address = _started(gateway.jvm, directory / "data")
        yield HdfsServer(uri, web_address, True, directory / "lock", port)
    except Py4JError as failure:
        last = (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        raise ServerUnavailableError(f"the NameNode did not start: {last}") from failure
    finally:
        gateway.close()
        process.stdin.close()
        process.wait()


def _started(java: Any, directory: Path) -> tuple[str, str]:
    hadoop = java.org.apache.hadoop
    settings = hadoop.conf.Configuration()
    settings.set("hdfs.minidfs.basedir", str(directory))
    for key, value in _SETTINGS.items():
        settings.set(key, value)
    cluster = getattr(hadoop.hdfs, "MiniDFSCluster$Builder")(settings).numDataNodes(1).build()
    cluster.waitActive()
    lake = hadoop.fs.Path("/lake")
    cluster.getFileSystem().mkdirs(lake)
    cluster.getFileSystem().setOwner(lake, "lake", "lake")
    web = cluster.getNameNode().getHttpAddress()
    return f"hdfs://localhost:{cluster.getNameNodePort()}", f"{web.getHostName()}:{web.getPort()}"
