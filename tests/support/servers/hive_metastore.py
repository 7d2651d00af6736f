"""A real Hive Metastore of the jars that PySpark brings, on a database that lives in its memory.

Python holds the reins through the gateway that PySpark brings: the tables of the metastore's lock manager, which
`schematool` makes elsewhere, have to be made in its process. The process ends when its standard input does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError

from eventide.spark.java_home import JavaNotFoundError, find_java_home
from eventide_adapters.catalog.hive_metastore import HiveMetastore
from eventide_adapters.catalog.metastore_address import metastore_addresses
from eventide_core.config import METASTORE_URIS, SYNC_DATABASE
from support.servers.server_process import ServerUnavailableError, free_ports

_SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    # The pool that it takes by itself is left out by PySpark.
    "datanucleus.connectionPoolingType": "none",
    "hive.metastore.schema.verification": "false",
    # Needs a library that PySpark leaves out.
    "hive.async.log.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class HiveMetastoreServer:
    """A running metastore."""

    uri: str

    def options(self, database: str) -> dict[str, str]:
        """How a user of eventide reaches it."""
        return {METASTORE_URIS: self.uri, SYNC_DATABASE: database}

    def client(self) -> HiveMetastore:
        """What looks into it; to be closed."""
        return HiveMetastore(metastore_addresses(self.uri, METASTORE_URIS))


@contextmanager
def hive_metastore(directory: Path) -> Iterator[HiveMetastoreServer]:
    """Raises ServerUnavailableError where there is no Java, or no Hive among PySpark's jars."""
    jars = Path(pyspark.__file__).parent / "jars"
    if not list(jars.glob("hive-metastore-*.jar")):
        raise ServerUnavailableError("this PySpark was installed without Hive")
    try:
        java = Path(find_java_home(), "bin", "java")
    except JavaNotFoundError as missing:
        raise ServerUnavailableError(str(missing)) from missing
    (port,) = free_ports(1)
    warehouse = directory / "warehouse"
    warehouse.mkdir()
    settings = {**_SETTINGS, "hive.metastore.warehouse.dir": str(warehouse)}
    with (directory / "log").open("w") as output:
        gateway_port, process = cast(Any, launch_gateway)(
            jarpath=str(next(jars.glob("py4j-*.jar"))),
            classpath=f"{jars}/*",
            # It starts once, for a few calls.
            javaopts=["-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dderby.stream.error.file={directory}/derby.log"],
            java_path=str(java),
            die_on_exit=True,
            return_proc=True,
            redirect_stdout=output,
            redirect_stderr=output,
        )
        gateway: Any = JavaGateway(
            gateway_parameters=GatewayParameters(port=gateway_port, enable_memory_management=False)
        )
        try:
            _start(gateway.jvm, port, settings)
            yield HiveMetastoreServer(f"thrift://127.0.0.1:{port}")
        except Py4JError as failure:
            raise ServerUnavailableError(f"the Hive Metastore did not start: {_last_words(directory)}") from failure
        finally:
            gateway.close()
            process.stdin.close()
            process.wait()


def _start(java: Any, port: int, settings: dict[str, str]) -> None:
    """Returns when it answers."""
    conf = java.org.apache.hadoop.hive.conf.HiveConf()
    for key, value in settings.items():
        conf.set(key, value)
    hive = java.org.apache.hadoop.hive
    hive.metastore.txn.TxnDbUtil.prepDb(conf)
    hive.metastore.MetaStoreUtils.startMetaStore(port, hive.shims.ShimLoader.getHadoopThriftAuthBridge(), conf)


def _last_words(directory: Path) -> str:
    return ((directory / "log").read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
