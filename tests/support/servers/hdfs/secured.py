"""A mini cluster as secured clusters are: Kerberos, HTTPS, and an active NameNode, one on standby, and an observer.

RPC requires Kerberos, the web ports TLS and SPNEGO, and the transfer of data SASL. The observer is asked first, and reads
the edits of the active NameNode only once a minute, as is Hadoop's default.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject

from support.servers.hdfs.kdc import SERVICES, USER, KerberosServer, kerberos
from support.servers.hdfs.mini_cluster import cluster_settings, hadoop_process, make_lake, web_address_of

_PASSWORD = "of the test"


@dataclass(frozen=True, slots=True)
class SecuredHdfs:
    """The running NameNodes of the name service `lake`, and their KDC. `cluster` names the mini cluster in its process.

    `authority` is the file with the certificate that the web ports show.
    """

    web_addresses: tuple[str, ...]
    rpc_addresses: tuple[str, ...]
    kdc: KerberosServer
    authority: Path
    gateway_port: int
    cluster: str

    @property
    def addresses(self) -> dict[str, str]:
        """As in hdfs-site.xml."""
        each = {f"dfs.namenode.https-address.lake.nn{n}": address for n, address in enumerate(self.web_addresses)}
        return {
            "dfs.http.policy": "HTTPS_ONLY",
            "dfs.nameservices": "lake",
            "dfs.ha.namenodes.lake": "nn2,nn0,nn1",
            **each,
        }

    @property
    def options(self) -> dict[str, str]:
        return {
            **self.addresses,
            "hdfs.kerberos.principal": USER,
            "hdfs.kerberos.keytab": str(self.kdc.user),
        }

    def write_client_settings(self, directory: Path) -> None:
        """core-site.xml and hdfs-site.xml of Hadoop's own clients."""
        provider = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        hdfs = {
            **self.addresses,
            **{f"dfs.namenode.rpc-address.lake.nn{n}": address for n, address in enumerate(self.rpc_addresses)},
            "dfs.client.failover.proxy.provider.lake": provider,
            "dfs.namenode.kerberos.principal": SERVICES[0],
            "dfs.data.transfer.protection": "authentication",
        }
        _write_settings(directory / "hdfs-site.xml", hdfs)
        _write_settings(directory / "core-site.xml", {"hadoop.security.authentication": "kerberos"})

    def fail_over(self) -> None:
        """The active NameNode becomes the standby, and the other one active."""
        with self._mini_cluster() as cluster:
            active = _active_of(cluster)
            cluster.transitionToStandby(active)
            cluster.transitionToActive(1 - active)

    def update_observer(self) -> None:
        """The observer learns what has happened until now."""
        with self._mini_cluster() as cluster:
            cluster.getNameNodeRpc(_active_of(cluster)).rollEditLog()
            cluster.getNamesystem(2).getEditLogTailer().doTailEdits()

    @contextmanager
    def _mini_cluster(self) -> Iterator[Any]:
        gateway: Any = JavaGateway(
            gateway_parameters=GatewayParameters(port=self.gateway_port, enable_memory_management=False)
        )
        try:
            yield JavaObject(self.cluster, gateway._gateway_client)
        finally:
            gateway.close()


def _write_settings(file: Path, settings: Mapping[str, str]) -> None:
    properties = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())
    file.write_text(f"<configuration>{''.join(properties)}</configuration>")


def _active_of(cluster: Any) -> int:
    return 0 if cluster.getNameNode(0).isActiveState() else 1


@contextmanager
def secured_hdfs(directory: Path) -> Iterator[SecuredHdfs]:
    """The cluster for the length of the block. Raises ServerUnavailableError."""
    of_kdc = directory / "kdc"
    of_kdc.mkdir()
    of_tls = directory / "tls"
    of_tls.mkdir()
    authority = _make_certificate(of_tls)
    with (
        kerberos(of_kdc) as kdc,
        hadoop_process(
            directory, [f"-Djava.security.krb5.conf={kdc.settings}"], more_classpath=[str(of_tls)]
        ) as started,
    ):
        cluster = _started(started.jvm, directory / "data", kdc)
        addresses = tuple(web_address_of(cluster, n) for n in range(3))
        ports = tuple(f"localhost:{cluster.getNameNodePort(n)}" for n in range(3))
        yield SecuredHdfs(addresses, ports, kdc, authority, started.port, cluster._target_id)


def _make_certificate(directory: Path) -> Path:
    """The web ports' key and its certificate of localhost, as Hadoop's ssl-server.xml names them."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encryption = serialization.BestAvailableEncryption(_PASSWORD.encode())
    (directory / "keys").write_bytes(pkcs12.serialize_key_and_certificates(b"web", key, certificate, None, encryption))
    of_server = {
        "ssl.server.keystore.location": str(directory / "keys"),
        "ssl.server.keystore.type": "PKCS12",
        "ssl.server.keystore.password": _PASSWORD,
        "ssl.server.keystore.keypassword": _PASSWORD,
    }
    _write_settings(directory / "ssl-server.xml", of_server)
    authority = directory / "authority.pem"
    authority.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return authority


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
            "dfs.http.policy": "HTTPS_ONLY",
            "dfs.namenode.https-address": "localhost:0",
            "dfs.datanode.https.address": "localhost:0",
        },
    )
    user = java.org.apache.hadoop.security.UserGroupInformation
    user.setConfiguration(settings)
    user.loginUserFromKeytab(hdfs, keytab)
    mini = java.org.apache.hadoop.hdfs
    three = mini.MiniDFSNNTopology.simpleHATopology(3)
    cluster = getattr(mini, "MiniDFSCluster$Builder")(settings).nnTopology(three).numDataNodes(1).build()
    cluster.waitActive()
    cluster.transitionToActive(0)
    cluster.transitionToObserver(2)
    make_lake(java, cluster.getFileSystem(0))
    return cluster
