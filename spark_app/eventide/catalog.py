"""Which way a sync speaks to its catalog: by Thrift to a Hive Metastore, or through a SparkSession with Hive support."""

import sys

from eventide_adapters.catalog.hive_metastore import HiveMetastore
from eventide_adapters.catalog.metastore_address import URIS_DEFAULT, metastore_addresses
from eventide_core.config import METASTORE_URIS, Options
from eventide_core.errors import UnsupportedEngineError
from eventide_core.ports import Catalog, Engine


def open_catalog(options: Options, engine: Engine) -> Catalog:
    """Connects to the Hive Metastore: through the engine's SparkSession, as who that is, where it has Hive support.

    The address is the one that the options name, else the session's own, else Hudi's default. Raises CatalogError and
    ConfigError; and UnsupportedEngineError for a session of Spark Connect with Hive support where the options name none, for
    the session's own address stays on the server.
    """
    uris = options.text(METASTORE_URIS)
    addresses = metastore_addresses(uris or URIS_DEFAULT, METASTORE_URIS)
    if "pyspark" in sys.modules:  # else nobody can have made a session
        from eventide.spark.catalog import SparkHiveCatalog, has_hive_support
        from eventide.spark.engine import SparkEngine, is_connect

        if isinstance(engine, SparkEngine) and has_hive_support(engine.session):
            if not is_connect(engine.session):
                return SparkHiveCatalog(engine.session, uris)
            if uris is None:
                raise UnsupportedEngineError(
                    f"over Spark Connect a sync cannot use the session's metastore: give its address by {METASTORE_URIS}"
                )
    return HiveMetastore(addresses)
