"""A real ZooKeeper, from the jars that PySpark brings."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.servers.java_process import SPARK_JARS, java_for_spark_jars
from support.servers.server_process import answers, free_ports, server


@dataclass(frozen=True, slots=True)
class ZookeeperServer:
    """A running ZooKeeper; `url` is what `hoodie.write.lock.zookeeper.url` takes."""

    url: str


@contextmanager
def zookeeper(directory: Path) -> Iterator[ZookeeperServer]:
    """A ZooKeeper for the length of the block. Raises ServerUnavailableError."""
    java = java_for_spark_jars("zookeeper-3*.jar", "ZooKeeper")
    (port,) = free_ports(1)
    # A session can't be shorter than two ticks.
    settings = {"dataDir": directory / "data", "clientPort": port, "tickTime": 500, "admin.enableServer": "false"}
    config = directory / "zoo.cfg"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [str(java), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{SPARK_JARS}/*"]
    command += ["org.apache.zookeeper.server.ZooKeeperServerMain", str(config)]
    with server(command, directory / "log", lambda: answers(port)):
        yield ZookeeperServer(f"127.0.0.1:{port}")
