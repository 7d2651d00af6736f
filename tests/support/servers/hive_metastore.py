"""A real Hive Metastore of the jars that PySpark brings, on a database that lives in its memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from eventide.spark.java_home import JavaNotFoundError, find_java_home
from eventide_adapters.catalog.hive_metastore import HiveMetastore
from eventide_adapters.catalog.metastore_address import metastore_addresses
from eventide_core.config import METASTORE_URIS, SYNC_DATABASE
from support.servers.server_process import ServerUnavailableError, answers, free_ports, server

_SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
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
    """Raises ServerUnavailableError if there is no Java, or no Hive among PySpark's jars."""
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
    command = [
        str(java),
        # It starts once, for a few calls.
        *("-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dderby.stream.error.file={directory}/derby.log"),
        *("-cp", f"{jars}/*", "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)),
        *(word for key, value in settings.items() for word in ("--hiveconf", f"{key}={value}")),
    ]
    with server(command, directory / "log", lambda: answers(port)):
        yield HiveMetastoreServer(f"thrift://127.0.0.1:{port}")
