"""A mini cluster as secured clusters are: Kerberos, and two NameNodes, of which one is active.

RPC requires Kerberos, the web ports SPNEGO, and the transfer of data SASL. Hadoop would also demand HTTPS or a privileged
port of the DataNode; the mini cluster is told to do without.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject

from support.servers.hdfs_server import cluster_settings, hadoop_process, make_lake, web_address_of
from support.servers.kerberos_server import SERVICES, USER, KerberosServer, kerberos


@dataclass(frozen=True, slots=True)
class SecuredHdfs:
    """Two running NameNodes of the name service `lake`, and their KDC. `cluster` names the mini cluster in its process."""

    web_addresses: tuple[str, str]
    kdc: KerberosServer
    gateway_port: int
    cluster: str

    @property
    def addresses(self) -> dict[str, str]:
        """As in hdfs-site.xml."""
        each = {f"dfs.namenode.http-address.lake.nn{n}": address for n, address in enumerate(self.web_addresses)}
        return {"dfs.nameservices": "lake", "dfs.ha.namenodes.lake": "nn0,nn1", **each}

    @property
    def options(self) -> dict[str, str]:
        return {
            **self.addresses,
            "hdfs.kerberos.principal": USER,
            "hdfs.kerberos.keytab": str(self.kdc.user),
        }

    def fail_over(self) -> None:
        """The active NameNode becomes the standby, and the other one active."""
        gateway: Any = JavaGateway(
            gateway_parameters=GatewayParameters(port=self.gateway_port, enable_memory_management=False)
        )
        try:
            cluster: Any = JavaObject(self.cluster, gateway._gateway_client)
            active = 0 if cluster.getNameNode(0).isActiveState() else 1
            cluster.transitionToStandby(active)
            cluster.transitionToActive(1 - active)
        finally:
            gateway.close()


@contextmanager
def secured_hdfs(directory: Path) -> Iterator[SecuredHdfs]:
    """The cluster for the length of the block. Raises ServerUnavailableError."""
    of_kdc = directory / "kdc"
    of_kdc.mkdir()
    with (
        kerberos(of_kdc) as kdc,
        hadoop_process(directory, [f"-Djava.security.krb5.conf={kdc.settings}"]) as started,
    ):
        cluster = _started(started.jvm, directory / "data", kdc)
        yield SecuredHdfs(
            (web_address_of(cluster, 0), web_address_of(cluster, 1)), kdc, started.port, cluster._target_id
        )


def _started(java: Any, directory: Path, kdc: KerberosServer) -> Any:
    hdfs, http = SERVICES
    keytab = str(kdc.services)
    settings = cluster_settings(
        java,
        directory,
        {
            "hadoop.security.authentication": "kerberos",
            "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.principal": http,
            "hadoop.http.authentication.kerberos.keytab": keytab,
            "dfs.web.authentication.kerberos.principal": http,
            "dfs.web.authentication.kerberos.keytab": keytab,
            "dfs.namenode.kerberos.principal": hdfs,
            "dfs.namenode.keytab.file": keytab,
            "dfs.datanode.kerberos.principal": hdfs,
            "dfs.datanode.keytab.file": keytab,
            "dfs.block.access.token.enable": "true",
            "dfs.data.transfer.protection": "authentication",
            "ignore.secure.ports.for.testing": "true",
        },
    )
    user = java.org.apache.hadoop.security.UserGroupInformation
    user.setConfiguration(settings)
    user.loginUserFromKeytab(hdfs, keytab)
    mini = java.org.apache.hadoop.hdfs
    two = mini.MiniDFSNNTopology.simpleHATopology()
    cluster = getattr(mini, "MiniDFSCluster$Builder")(settings).nnTopology(two).numDataNodes(1).build()
    cluster.waitActive()
    cluster.transitionToActive(0)
    make_lake(java, cluster.getFileSystem(0))
    return cluster
