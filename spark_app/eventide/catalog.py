"""The catalogs by name, and the connection of a sync to each.

A Hive Metastore is reached over Thrift, or through a SparkSession with Hive support; AWS Glue and DataHub by their APIs.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any, Final

from eventide_adapters.catalog.datahub import DataHubCatalog
from eventide_adapters.catalog.glue import GlueCatalog
from eventide_adapters.catalog.hive_metastore import HiveMetastore
from eventide_adapters.catalog.metastore_address import URIS_DEFAULT, metastore_addresses
from eventide_adapters.entry_points import Adapters
from eventide_core.action.sync.catalog_tables import is_hudi_table
from eventide_core.config import METASTORE_URIS, SYNC_TOOLS, Options
from eventide_core.errors import ConfigError, DatabaseNotFoundError, UnsupportedEngineError
from eventide_core.ports import Catalog, DatasetCatalog, Engine
from eventide_core.table.catalog.catalog_table import CatalogTable

CATALOGS: Final = Adapters(
    "eventide.catalogs",
    {
        "hive": "eventide.catalog:open_hive",
        "glue": "eventide.catalog:open_glue",
        "datahub": "eventide.catalog:open_datahub",
    },
)
"""The catalogs by name. A factory gets the options and the engine, and returns a ports.Catalog (DataHub: DatasetCatalog)."""

_HOW_TO_ADD: Final = f'or install a package with an entry point of "{CATALOGS.group}"'
_TOOLS: Final = {
    "hive": "org.apache.hudi.hive.HiveSyncTool",
    "glue": "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool",
    "datahub": "org.apache.hudi.sync.datahub.DataHubSyncTool",
}


def tool_of(catalog: str) -> str:
    """The class of Hudi that syncs the catalog, or the name of a package's. Raises ConfigError for an unknown name."""
    if CATALOGS.find(catalog) is None:
        raise ConfigError(f"catalog {catalog!r} is not supported: use {', '.join(CATALOGS.names())}, {_HOW_TO_ADD}")
    return _TOOLS.get(catalog, catalog)


def catalogs_of(options: Options) -> tuple[str, ...]:
    """The names of the catalogs in the options. Raises ConfigError for one that neither eventide nor a package has."""
    names = {_short_name(tool): name for name, tool in _TOOLS.items()}
    found: list[str] = []
    tools = options.get(SYNC_TOOLS) or (_TOOLS["hive"],)
    for tool in tools:
        name = names.get(_short_name(tool), tool)
        if CATALOGS.find(name) is None:
            of_packages = [name for name in CATALOGS.names() if name not in _TOOLS]
            raise ConfigError(
                f"option {SYNC_TOOLS}={','.join(tools)}: eventide has no sync by {tool}: use "
                f"{', '.join([*_TOOLS.values(), *of_packages])}, {_HOW_TO_ADD}"
            )
        found.append(name)
    return tuple(dict.fromkeys(found))


def open_catalog(name: str, options: Options, engine: Engine) -> Any:
    """Connects to a catalog: a ports.Catalog, or a ports.DatasetCatalog for DataHub. Raises CatalogError and ConfigError."""
    adapter = CATALOGS.find(name)
    assert adapter is not None, "catalogs_of returns only catalogs that are there"
    return adapter.load()(options, engine)


def open_datahub(options: Options, engine: Engine) -> DatasetCatalog:  # noqa: ARG001  # as every factory
    return DataHubCatalog(options)


def open_glue(options: Options, engine: Engine) -> Catalog:  # noqa: ARG001  # as every factory
    return GlueCatalog(options)


def open_hive(options: Options, engine: Engine) -> Catalog:
    """Connects to a Hive Metastore.

    It is reached through the engine's SparkSession, with its identity, if that has Hive support. The address is the one in
    the options, otherwise the session's, otherwise Hudi's default. Raises CatalogError and ConfigError. Raises
    UnsupportedEngineError for a session of Spark Connect with Hive support if the options contain no address: the session's
    address is on the server only.
    """
    uris = options.get(METASTORE_URIS)
    addresses = metastore_addresses(uris or URIS_DEFAULT, METASTORE_URIS)
    session: Any = getattr(engine, "session", None)
    if session is not None:
        # Imported here: a sync works where PySpark is not installed.
        from eventide.spark.catalog import SparkHiveCatalog, has_hive_support
        from eventide.spark.workers import is_connect

        if has_hive_support(session):
            if not is_connect(session):
                return SparkHiveCatalog(session, uris)
            if uris is None:
                raise UnsupportedEngineError(
                    "over Spark Connect, a sync cannot use the session's metastore: set its address as "
                    f"{METASTORE_URIS}"
                )
    return HiveMetastore(addresses)


def hudi_tables(catalog: str, options: Options, database: str) -> Mapping[str, str]:
    """The locations of a database's Hudi tables in Hive or Glue, by name.

    Tables of one location, such as NAME_ro and NAME_rt, are one, with the shortest of their names without these endings.
    Raises CatalogError, ConfigError, DatabaseNotFoundError.
    """
    with closing(_listing(catalog, options)) as listed:
        if not listed.has_database(database):
            raise DatabaseNotFoundError(f"database {database!r} does not exist in the catalog")
        found = [listed.table(database, name) for name in listed.table_names(database)]
    return locations_of(table for table in found if table is not None)


def _listing(catalog: str, options: Options) -> HiveMetastore | GlueCatalog:
    if catalog == "glue":
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
