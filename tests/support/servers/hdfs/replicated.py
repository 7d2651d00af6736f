"""A NameNode with three DataNodes that each keep a replica of every block, and that a test stops at a moment it chooses.

A NameNode needs ten minutes to notice that a DataNode is gone. Until then it keeps naming it to readers and writers, so
they have to get on without it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject

from support.servers.hdfs.mini_cluster import HdfsServer, hadoop_process, running_cluster, web_address_of

DATA_NODES: Final = 3
BLOCK_BYTES: Final = 1 << 20
"""The smallest size that a NameNode accepts."""

DATA: Final = bytes(range(256)) * (12 * BLOCK_BYTES // 256)
"""Of twelve blocks. A client sends it in three pieces."""


class Midway:
    """Content that is being sent. Calls `lose` when the first piece has been taken."""

    def __init__(self, content: BinaryIO, lose: Callable[[], None]) -> None:
        self._content, self._lose, self._pieces = content, lose, 0

    def read(self, size: int) -> bytes:
        self._pieces += 1
        if self._pieces == 2:
            self._lose()
        return self._content.read(size)

    def seek(self, offset: int) -> int:
        return self._content.seek(offset)


@dataclass(slots=True)
class ReplicatedHdfs:
    """The running cluster. `cluster` names the mini cluster in its process, `_stopped` the stopped DataNodes."""

    server: HdfsServer
    cluster: str
    _stopped: list[str] = field(default_factory=list[str])

    def stop(self, web_port: int | None = None) -> None:
        """Stops the DataNode with this web port; without one, all that run."""
        with self._mini_cluster() as (cluster, _):
            for index, node in reversed(list(enumerate(cluster.getDataNodes()))):
                if web_port in (None, node.getInfoPort()):
                    self._stopped.append(cluster.stopDataNode(index)._target_id)

    def web_ports(self) -> list[int]:
        """The web ports of the DataNodes that run."""
        with self._mini_cluster() as (cluster, _):
            return [node.getInfoPort() for node in cluster.getDataNodes()]

    def start_again(self) -> None:
        """Starts what was stopped, with the data that it had."""
        with self._mini_cluster() as (cluster, client):
            while self._stopped:
                cluster.restartDataNode(JavaObject(self._stopped.pop(), client), True)
            cluster.waitActive()

    @contextmanager
    def _mini_cluster(self) -> Iterator[tuple[Any, Any]]:
        gateway: Any = JavaGateway(
            gateway_parameters=GatewayParameters(port=self.server.gateway_port, enable_memory_management=False)
        )
        try:
            yield JavaObject(self.cluster, gateway._gateway_client), gateway._gateway_client
        finally:
            gateway.close()


@contextmanager
def replicated_hdfs(directory: Path) -> Iterator[ReplicatedHdfs]:
    """The cluster for the length of the block. Raises ServerUnavailableError."""
    with hadoop_process(directory, []) as started:
        replicated = {"dfs.replication": str(DATA_NODES), "dfs.blocksize": str(BLOCK_BYTES)}
        cluster = running_cluster(started.jvm, directory / "data", data_nodes=DATA_NODES, settings=replicated)
        uri = f"hdfs://localhost:{cluster.getNameNodePort()}"
        server = HdfsServer(uri, web_address_of(cluster), True, directory / "lock", started.port)
        yield ReplicatedHdfs(server, cluster._target_id)
