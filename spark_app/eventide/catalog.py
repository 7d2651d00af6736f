"""Connects a sync to its catalog: a Hive Metastore over Thrift, or a SparkSession with Hive support."""

from typing import Any

from eventide_adapters.catalog.hive_metastore import HiveMetastore
from eventide_adapters.catalog.metastore_address import URIS_DEFAULT, metastore_addresses
from eventide_core.config import METASTORE_URIS, Options
from eventide_core.errors import UnsupportedEngineError
from eventide_core.ports import Catalog, Engine


def open_catalog(options: Options, engine: Engine) -> Catalog:
    """Connects to the Hive Metastore: through the engine's SparkSession, with its identity, if it has Hive support.

    The address is the one in the options, otherwise the session's, otherwise Hudi's default. Raises CatalogError and
    ConfigError. Raises UnsupportedEngineError for a session of Spark Connect with Hive support if the options contain no
    address: the session's address is on the server only.
    """
    uris = options.get(METASTORE_URIS)
    addresses = metastore_addresses(uris or URIS_DEFAULT, METASTORE_URIS)
    session: Any = getattr(engine, "session", None)
    if session is not None:
        # Imported here: a sync works where PySpark is not installed.
        from eventide.spark.catalog import SparkHiveCatalog, has_hive_support
        from eventide.spark.engine import is_connect

        if has_hive_support(session):
            if not is_connect(session):
                return SparkHiveCatalog(session, uris)
            if uris is None:
                raise UnsupportedEngineError(
                    "over Spark Connect, a sync cannot use the session's metastore: set its address as "
                    f"{METASTORE_URIS}"
                )
    return HiveMetastore(addresses)
