"""A real ZooKeeper of the jars that PySpark brings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from eventide.spark.java_home import JavaNotFoundError, find_java_home
from support.servers.server_process import ServerUnavailableError, answers, free_ports, server


@dataclass(frozen=True, slots=True)
class ZookeeperServer:
    """A running ZooKeeper; `url` is what `hoodie.write.lock.zookeeper.url` takes."""

    url: str


@contextmanager
def zookeeper(directory: Path) -> Iterator[ZookeeperServer]:
    """Raises ServerUnavailableError where there is no Java, or no ZooKeeper among PySpark's jars."""
    jars = Path(pyspark.__file__).parent / "jars"
    if not list(jars.glob("zookeeper-3*.jar")):
        raise ServerUnavailableError("this PySpark was installed without ZooKeeper")
    try:
        java = Path(find_java_home(), "bin", "java")
    except JavaNotFoundError as missing:
        raise ServerUnavailableError(str(missing)) from missing
    (port,) = free_ports(1)
    # A tick bounds how short a session may be: twice that long.
    settings = {"dataDir": directory / "data", "clientPort": port, "tickTime": 500, "admin.enableServer": "false"}
    config = directory / "zoo.cfg"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [str(java), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    command += ["org.apache.zookeeper.server.ZooKeeperServerMain", str(config)]
    with server(command, directory / "log", lambda: answers(port)):
        yield ZookeeperServer(f"127.0.0.1:{port}")
