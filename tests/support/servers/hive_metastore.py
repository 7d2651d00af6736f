"""A real Hive Metastore, from the jars that PySpark brings, on a database in its memory.

Python controls it through a gateway, because the tables of the metastore's lock manager have to be created in its process.
In a real installation, `schematool` creates them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from eventide_adapters.catalog.hive_metastore import HiveMetastore
from eventide_adapters.catalog.metastore_address import metastore_addresses
from eventide_core.config import METASTORE_URIS, SYNC_DATABASE
from support.servers.java_process import SPARK_JARS, java_for_spark_jars, java_process
from support.servers.server_process import ServerUnavailableError, free_ports, last_line

_SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    # PySpark leaves out the default pool.
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
        """The options with which eventide uses it."""
        return {METASTORE_URIS: self.uri, SYNC_DATABASE: database}

    def client(self) -> HiveMetastore:
        """A client, which the caller closes."""
        return HiveMetastore(metastore_addresses(self.uri, METASTORE_URIS))


@contextmanager
def hive_metastore(directory: Path) -> Iterator[HiveMetastoreServer]:
    """A Hive Metastore for the length of the block. Raises ServerUnavailableError."""
    java = java_for_spark_jars("hive-metastore-*.jar", "Hive")
    (port,) = free_ports(1)
    warehouse = directory / "warehouse"
    warehouse.mkdir()
    settings = {**_SETTINGS, "hive.metastore.warehouse.dir": str(warehouse)}
    # Compiles quickly, because it starts once for a few calls.
    options = [
        "-Xmx512m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        f"-Dderby.stream.error.file={directory}/derby.log",
    ]
    log = directory / "log"
    with java_process(java, [f"{SPARK_JARS}/*"], options, log) as started:
        try:
            _start(started.jvm, port, settings)
            yield HiveMetastoreServer(f"thrift://127.0.0.1:{port}")
        except Py4JError as failure:
            raise ServerUnavailableError(f"the Hive Metastore did not start: {last_line(log)}") from failure


def _start(java: Any, port: int, settings: dict[str, str]) -> None:
    """Starts the metastore. Returns when it answers."""
    conf = java.org.apache.hadoop.hive.conf.HiveConf()
    for key, value in settings.items():
        conf.set(key, value)
    hive = java.org.apache.hadoop.hive
    hive.metastore.txn.TxnDbUtil.prepDb(conf)
    hive.metastore.MetaStoreUtils.startMetaStore(port, hive.shims.ShimLoader.getHadoopThriftAuthBridge(), conf)
