"""Connects a sync to its catalog: AWS Glue, a Hive Metastore over Thrift, or a SparkSession with Hive support."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any, Final

from eventide_adapters.catalog.glue import GlueCatalog
from eventide_adapters.catalog.hive_metastore import HiveMetastore
from eventide_adapters.catalog.metastore_address import URIS_DEFAULT, metastore_addresses
from eventide_core.action.catalog_tables import is_hudi_table
from eventide_core.config import METASTORE_URIS, SYNC_TOOLS, Options
from eventide_core.errors import ConfigError, DatabaseNotFoundError, UnsupportedEngineError
from eventide_core.ports import Catalog, Engine
from eventide_core.table.catalog_table import CatalogTable

HIVE_TOOL: Final = "org.apache.hudi.hive.HiveSyncTool"
GLUE_TOOL: Final = "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"


def is_glue(options: Options) -> bool:
    """Whether the options name AWS Glue, not a Hive Metastore. Raises ConfigError for another catalog, or for both."""
    named = options.get(SYNC_TOOLS) or (HIVE_TOOL,)
    found = {tool for tool in (HIVE_TOOL, GLUE_TOOL) if any(_short_name(one) == _short_name(tool) for one in named)}
    if len(found) != 1:
        raise ConfigError(
            f"option {SYNC_TOOLS}={','.join(named)}: a sync has one catalog: name either {HIVE_TOOL} or {GLUE_TOOL}, "
            "or run `eventide sync --catalog` for each"
        )
    return found == {GLUE_TOOL}


def open_catalog(options: Options, engine: Engine) -> Catalog:
    """Connects to the catalog in the options.

    A Hive Metastore is reached through the engine's SparkSession, with its identity, if that has Hive support. The address
    is the one in the options, otherwise the session's, otherwise Hudi's default. Raises CatalogError and ConfigError. Raises
    UnsupportedEngineError for a session of Spark Connect with Hive support if the options contain no address: the session's
    address is on the server only.
    """
    if is_glue(options):
        return GlueCatalog(options)
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
    """The locations of a database's Hudi tables in the catalog in the options, by name.

    Tables of one location, such as NAME_ro and NAME_rt, are one, with the shortest of their names without these endings.
    Raises CatalogError, ConfigError, DatabaseNotFoundError.
    """
    with closing(_listing(options)) as catalog:
        if not catalog.has_database(database):
            raise DatabaseNotFoundError(f"database {database!r} does not exist in the catalog")
        found = [catalog.table(database, name) for name in catalog.table_names(database)]
    return locations_of(table for table in found if table is not None)


def _listing(options: Options) -> HiveMetastore | GlueCatalog:
    if is_glue(options):
        return GlueCatalog(options)
    return HiveMetastore(metastore_addresses(options.get(METASTORE_URIS) or URIS_DEFAULT, METASTORE_URIS))


def _short_name(class_name: str) -> str:
    return class_name.rpartition(".")[2]


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
