"""Connects a sync to its catalog: a Hive Metastore over Thrift, or a SparkSession with Hive support."""

from collections.abc import Iterable, Mapping
from typing import Any

from eventide_adapters.catalog.hive_metastore import HiveMetastore
from eventide_adapters.catalog.metastore_address import URIS_DEFAULT, metastore_addresses
from eventide_core.action.catalog_tables import is_hudi_table
from eventide_core.config import METASTORE_URIS, Options
from eventide_core.errors import DatabaseNotFoundError, UnsupportedEngineError
from eventide_core.ports import Catalog, Engine
from eventide_core.table.catalog_table import CatalogTable


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


def hudi_tables(options: Options, database: str) -> Mapping[str, str]:
    """The locations of a database's Hudi tables in the Hive Metastore, by name.

    Tables of one location, such as NAME_ro and NAME_rt, are one, with the shortest of their names without these endings.
    Raises CatalogError, ConfigError, DatabaseNotFoundError.
    """
    metastore = HiveMetastore(metastore_addresses(options.get(METASTORE_URIS) or URIS_DEFAULT, METASTORE_URIS))
    try:
        if not metastore.has_database(database):
            raise DatabaseNotFoundError(f"database {database!r} does not exist in the catalog")
        found = [metastore.table(database, name) for name in metastore.table_names(database)]
    finally:
        metastore.close()
    return locations_of(table for table in found if table is not None)


def locations_of(tables: Iterable[CatalogTable]) -> Mapping[str, str]:
    """The locations of the Hudi tables among these, by name."""
    by_location: dict[str, set[str]] = {}
    for table in tables:
        if is_hudi_table(table):
            location = table.location.removeprefix("file:") if table.location.startswith("file:/") else table.location
            by_location.setdefault(location, set()).add(table.name)
    # A table that has a name itself keeps it, before those that have it with an ending.
    of_locations = sorted((_short(names) not in names, location) for location, names in by_location.items())
    found: dict[str, str] = {}
    for _, location in of_locations:
        names = by_location[location]
        short = _short(names)
        found[min(names) if short in found else short] = location
    return found


def _short(names: Iterable[str]) -> str:
    return min((name.removesuffix("_ro").removesuffix("_rt") for name in names), key=lambda name: (len(name), name))
