"""A real Hive Metastore, from the jars that PySpark brings, on a database in its memory.

Python controls it through a gateway, because the tables of the metastore's lock manager have to be created in its process.
In a real installation, `schematool` creates them.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Event
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
_IMPATIENT = {"hive.txn.timeout": "5s"}
_HOUSEKEEPING_SECONDS = 1


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
def hive_metastore(directory: Path, *, drops_dead_locks: bool = False) -> Iterator[HiveMetastoreServer]:
    """A Hive Metastore for the length of the block. Raises ServerUnavailableError.

    With `drops_dead_locks`, its housekeeping runs, as Hive's server has it run, and drops a lock that had no heartbeat
    for five seconds instead of five minutes.
    """
    java = java_for_spark_jars("hive-metastore-*.jar", "Hive")
    (port,) = free_ports(1)
    warehouse = directory / "warehouse"
    warehouse.mkdir()
    settings = {**_SETTINGS, "hive.metastore.warehouse.dir": str(warehouse)}
    settings |= _IMPATIENT if drops_dead_locks else {}
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
            transactions = _start(started.jvm, port, settings)
            with _repeated(transactions.performTimeOuts) if drops_dead_locks else nullcontext():
                yield HiveMetastoreServer(f"thrift://127.0.0.1:{port}")
        except Py4JError as failure:
            raise ServerUnavailableError(f"the Hive Metastore did not start: {last_line(log)}") from failure


def _start(java: Any, port: int, settings: dict[str, str]) -> Any:
    """Starts the metastore. When it answers, returns its store of transactions and locks."""
    conf = java.org.apache.hadoop.hive.conf.HiveConf()
    for key, value in settings.items():
        conf.set(key, value)
    hive = java.org.apache.hadoop.hive
    hive.metastore.txn.TxnDbUtil.prepDb(conf)
    hive.metastore.MetaStoreUtils.startMetaStore(port, hive.shims.ShimLoader.getHadoopThriftAuthBridge(), conf)
    return hive.metastore.txn.TxnUtils.getTxnStore(conf)


@contextmanager
def _repeated(call: Callable[[], object]) -> Iterator[None]:
    """Makes the call again and again until the block ends. Raises what it raised."""
    is_over = Event()

    def repeat() -> None:
        while not is_over.wait(_HOUSEKEEPING_SECONDS):
            call()

    with ThreadPoolExecutor(1) as thread:
        end = thread.submit(repeat)
        try:
            yield
        finally:
            is_over.set()
        end.result()
