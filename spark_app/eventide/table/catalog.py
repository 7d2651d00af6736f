"""A catalog that names tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eventide.catalog import hudi_tables, naming_catalog
from eventide.options.user_settings import settings_path, user_settings
from eventide.table.arguments import options_of, require_given_texts, require_texts
from eventide.table.open_table import task_engine
from eventide.table.table import Table
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.ports import Engine
from eventide_core.table.catalog.table_name import TableName

if TYPE_CHECKING:
    from eventide.rows.given import TaskEngine


@dataclass(frozen=True, slots=True)
class Catalog:
    """A catalog, such as a Hive Metastore or AWS Glue. Every method opens a new connection."""

    name: str
    options: Mapping[str, str] = field(repr=False)  # may contain secrets
    _engine: Engine | None = field(repr=False)

    @classmethod
    def connect(
        cls,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        engine: "TaskEngine | None" = None,
    ) -> "Catalog":
        """Connects to `hive`, `glue`, or the catalog of a package; by default to the one in the user's settings.

        `options` are for the catalog and for the storage, and take precedence over the user's settings. A SparkSession
        with Hive support as `engine` lends its client, and runs the tasks of the tables. Raises ConfigError, CatalogError.
        """
        require_given_texts(name=name)
        settings = user_settings()
        name = name or settings.catalog
        if name is None:
            raise ConfigError(f"no catalog is named: pass hive or glue, or set catalog in {settings_path()}")
        lender = None if engine is None else task_engine(engine)
        catalog = cls(name, {**settings.options, **options_of(options)}, lender)
        naming_catalog(name, Options(dict(catalog.options)), lender).close()
        return catalog

    def list_tables(self, database: str) -> tuple[str, ...]:
        """The Hudi tables of a database as DATABASE.TABLE, in order. Several names of one location are one table.

        Raises CatalogError, DatabaseNotFoundError.
        """
        require_texts(database=database)
        locations = hudi_tables(self.name, Options(dict(self.options)), database, self._engine)
        return tuple(sorted(f"{database}.{name}" for name in locations))

    def load_table(self, name: str) -> Table:
        """Opens the table DATABASE.TABLE. Raises CatalogError, and what `Table.open` raises."""
        require_texts(name=name)
        table_name = TableName.parse(name)
        if table_name is None or table_name.catalog not in (None, self.name):
            raise ConfigError(f"{name!r} does not name a table of the catalog {self.name}: pass DATABASE.TABLE")
        return Table.open(f"{self.name}://{table_name.qualified}", self.options, engine=self._engine)
