"""The catalogs by name, the connection to each, and where the tables are that they name.

A Hive Metastore is reached over Thrift, or through a SparkSession with Hive support; AWS Glue and DataHub by their APIs.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from difflib import get_close_matches
from typing import Any, Final

from eventide.options.user_settings import user_settings
from eventide_adapters.catalog.datahub import DataHubCatalog
from eventide_adapters.catalog.glue import GlueCatalog
from eventide_adapters.catalog.hive_metastore import HiveMetastore
from eventide_adapters.catalog.metastore_address import URIS_DEFAULT, metastore_addresses
from eventide_adapters.entry_points import Adapters
from eventide_core.action.sync.catalog_tables import is_hudi_table
from eventide_core.config import METASTORE_URIS, SYNC_TOOLS, Options
from eventide_core.errors import ConfigError, DatabaseNotFoundError, NotAHudiTableError, UnsupportedEngineError
from eventide_core.ports import Catalog, DatasetCatalog, Engine
from eventide_core.table.catalog.catalog_table import CatalogTable
from eventide_core.table.catalog.table_name import TableName

CATALOGS: Final = Adapters(
    "eventide.catalogs",
    {
        "hive": "eventide.catalog:open_hive",
        "glue": "eventide.catalog:open_glue",
        "datahub": "eventide.catalog:open_datahub",
    },
)
"""The catalogs by name. A factory gets the options and the engine, and returns a ports.Catalog (DataHub: DatasetCatalog).

The engine is None if a table is sought by its name without one.
"""

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
    catalogs: list[str] = []
    tools = options.get(SYNC_TOOLS) or (_TOOLS["hive"],)
    for tool in tools:
        name = names.get(_short_name(tool), tool)
        if CATALOGS.find(name) is None:
            of_packages = [name for name in CATALOGS.names() if name not in _TOOLS]
            raise ConfigError(
                f"option {SYNC_TOOLS}={','.join(tools)}: eventide has no sync by {tool}: use "
                f"{', '.join([*_TOOLS.values(), *of_packages])}, {_HOW_TO_ADD}"
            )
        catalogs.append(name)
    return tuple(dict.fromkeys(catalogs))


def open_catalog(name: str, options: Options, engine: Engine | None) -> Any:
    """Connects to a catalog: a ports.Catalog, or a ports.DatasetCatalog for DataHub. Raises CatalogError and ConfigError."""
    adapter = CATALOGS.find(name)
    assert adapter is not None, "catalogs_of returns only catalogs that are there"
    return adapter.load()(options, engine)


def open_datahub(options: Options, engine: Engine | None) -> DatasetCatalog:  # noqa: ARG001  # as every factory
    return DataHubCatalog(options)


def open_glue(options: Options, engine: Engine | None) -> Catalog:  # noqa: ARG001  # as every factory
    return GlueCatalog(options)


def open_hive(options: Options, engine: Engine | None) -> Catalog:
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
        from eventide.spark.hive_catalog import SparkHiveCatalog, has_hive_support
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


def located(target: str, options: Mapping[str, str], engine: Engine | None = None) -> tuple[str, dict[str, str]]:
    """The location of a table, and the options to open it with. Anything but the name of a table returns as it is.

    A table that is opened by name has the options of the user's settings, below the others. Raises ConfigError,
    CatalogError, and NotAHudiTableError if the catalog has no such table.
    """
    name = TableName.parse(target)
    if name is None or name.catalog is None:
        scheme, slashes, _ = target.partition("://")
        if slashes and scheme in CATALOGS.built_in:
            raise ConfigError(f"{target} does not name a table: write {scheme}://DATABASE.TABLE")
        return target, dict(options)
    if CATALOGS.find(name.catalog) is None:
        return target, dict(options)
    merged = {**user_settings().options, **options}
    with closing(naming_catalog(name.catalog, Options(merged), engine)) as catalog:
        return _location_of(name, catalog), merged


def naming_catalog(name: str, options: Options, engine: Engine | None = None) -> Catalog:
    """Connects to a catalog that has the locations of tables. Raises ConfigError for DataHub, and as `open_catalog` does."""
    tool_of(name)
    if name == "datahub":
        raise ConfigError("the catalog datahub does not say where tables are: use another one, or the table's path")
    catalog: Catalog = open_catalog(name, options, engine)
    return catalog


def _location_of(name: TableName, catalog: Catalog) -> str:
    """The location of the table, or of NAME_ro or NAME_rt if a sync made only these."""
    other = None
    for end in ("", "_ro", "_rt"):
        table = catalog.table(name.database, name.table + end)
        if table is not None and is_hudi_table(table):
            return _plain_location(table)
        other = other or table
    if other is not None:
        has = f"a {other.kind} with the input format {other.input_format or 'none'}"
        raise NotAHudiTableError(f"{name} is not a Hudi table: the catalog has {has}")
    if not catalog.has_database(name.database):
        raise NotAHudiTableError(f"{name}: the catalog has no database {name.database!r}")
    near = get_close_matches(name.table, catalog.table_names(name.database), n=1)
    hint = f"; did you mean {name.database}.{near[0]}?" if near else ""
    raise NotAHudiTableError(f"{name}: the database {name.database!r} has no such table{hint}")


def hudi_tables(catalog: str, options: Options, database: str, engine: Engine | None = None) -> Mapping[str, str]:
    """The locations of a database's Hudi tables, by name.

    Tables of one location, such as NAME_ro and NAME_rt, are one, with the shortest of their names without these endings.
    Raises CatalogError, ConfigError, DatabaseNotFoundError.
    """
    with closing(naming_catalog(catalog, options, engine)) as listed:
        if not listed.has_database(database):
            raise DatabaseNotFoundError(f"database {database!r} does not exist in the catalog")
        tables = [listed.table(database, name) for name in listed.table_names(database)]
    return locations_of(table for table in tables if table is not None)


def _short_name(class_name: str) -> str:
    return class_name.rpartition(".")[2]


def locations_of(tables: Iterable[CatalogTable]) -> Mapping[str, str]:
    """The locations of the Hudi tables among these, by name."""
    by_location: dict[str, set[str]] = {}
    for table in tables:
        if is_hudi_table(table):
            by_location.setdefault(_plain_location(table), set()).add(table.name)
    # A table that has a name itself keeps it, before those that have it with an ending.
    of_locations = sorted((_short(names) not in names, location) for location, names in by_location.items())
    locations: dict[str, str] = {}
    for _, location in of_locations:
        names = by_location[location]
        short = _short(names)
        locations[min(names) if short in locations else short] = location
    return locations


def _plain_location(table: CatalogTable) -> str:
    return table.location.removeprefix("file:") if table.location.startswith("file:/") else table.location


def _short(names: Iterable[str]) -> str:
    return min((name.removesuffix("_ro").removesuffix("_rt") for name in names), key=lambda name: (len(name), name))
