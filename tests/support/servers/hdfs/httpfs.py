"""HttpFS, the gateway that speaks WebHDFS's protocol before a NameNode, in a process of its own.

Its jars are not in the mini cluster: Spark's resolver downloads them from Maven Central, 66 MB.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from getpass import getuser
from pathlib import Path
from typing import Any, Final

from support.run.maven import MavenJar, maven_jars
from support.servers.hdfs.mini_cluster import (
    HdfsServer,
    hadoop_process,
    process_of_hadoop,
    running_cluster,
    web_address_of,
)
from support.servers.server_process import free_ports

_VERSION: Final = "3.4.2"
_HTTPFS: Final = MavenJar(
    ",".join(
        f"org.apache.hadoop:{name}:{_VERSION}"
        for name in ("hadoop-hdfs-httpfs", "hadoop-common", "hadoop-hdfs", "hadoop-hdfs-client")
    ),
    "1a9854a220660c85070ec81dceb8f158b10b1a7901f5c61a8008608de215d621",
)
_PROGRAM: Final = "org.apache.hadoop.fs.http.server.HttpFSServerWebServer"


@contextmanager
def httpfs(directory: Path) -> Iterator[tuple[HdfsServer, HdfsServer]]:
    """A NameNode, by its own web address and by HttpFS's. Raises ServerUnavailableError."""
    with hadoop_process(directory, []) as started:
        # HttpFS asks the NameNode for its users.
        trusted = {f"hadoop.proxyuser.{getuser()}.{what}": "*" for what in ("hosts", "groups")}
        cluster = running_cluster(started.jvm, directory / "data", settings=trusted)
        uri = f"hdfs://localhost:{cluster.getNameNodePort()}"
        of_name_node = HdfsServer(uri, web_address_of(cluster), True, directory / "lock", started.port)
        of_name_node = of_name_node.with_symlinks(False)
        with _gateway(directory, uri) as address:
            yield of_name_node, replace(of_name_node, web_address=address)


@contextmanager
def _gateway(directory: Path, name_node: str) -> Iterator[str]:
    """Its address."""
    home = directory / "httpfs"
    for name in ("etc/hadoop", "log", "temp"):
        (home / name).mkdir(parents=True)
    (home / "etc/hadoop/httpfs-signature.secret").write_text("of the test")
    (home / "etc/hadoop/core-site.xml").write_text(
        f"<configuration><property><name>fs.defaultFS</name><value>{name_node}</value></property></configuration>"
    )

    def classpath(python: Path, environment: Mapping[str, str]) -> list[str]:
        return [*map(str, maven_jars(_HTTPFS, python=python, environment=environment))]

    places = {"home": "", "config": "etc/hadoop", "log": "log", "temp": "temp"}
    options = [f"-Dhttpfs.{name}.dir={home / place}" for name, place in places.items()]
    with process_of_hadoop("HttpFS", directory / "httpfs.log", classpath, options) as started:
        yield _started(started.jvm)


def _array(java: Any, *values: Any) -> Any:
    found = java.java.util.ArrayList()
    for value in values:
        found.add(value)
    return found.toArray()


def _started(java: Any) -> str:
    (port,) = free_ports(1)
    settings = java.org.apache.hadoop.conf.Configuration()
    settings.set("httpfs.http.hostname", "localhost")
    settings.set("httpfs.http.port", str(port))
    # Its main program would wait for its end, and its constructor is for its package alone.
    (constructor,) = java.java.lang.Class.forName(_PROGRAM).getDeclaredConstructors()
    constructor.setAccessible(True)
    constructor.newInstance(_array(java, settings, java.org.apache.hadoop.conf.Configuration(False))).start()
    return f"localhost:{port}"
