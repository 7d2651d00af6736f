"""The options that name a fleet: a file, or a database of a catalog."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from eventide.catalog import hudi_tables
from eventide.cli.argument_types import NAME, Duration, FilePath
from eventide.cli.settings import Settings, decorated
from eventide.fleet.settings import FleetSettings, fleet_of_file, fleet_of_locations
from eventide_core.config import Options
from eventide_core.errors import ConfigError

_HOUR: Final = 3600
_OPTIONS: Final = (
    click.option("--fleet", type=FilePath(), metavar="FILE.toml", help="The tables, with their target lags."),
    click.option("--catalog", type=click.Choice(("hive", "glue")), help="Takes the Hudi tables of a database."),
    click.option("--database", type=NAME, metavar="NAME", help="The database of --catalog."),
    click.option(
        "--target-lag",
        type=Duration(is_positive=True),
        metavar="DURATION",
        help="The target lag of each table of --catalog, or with `status` of TABLE.  [default: 1h]",
    ),
)


@dataclass(frozen=True, slots=True)
class FleetChoice:
    """The arguments that name a fleet; None for one that is not given.

    `file` names its tables, or `catalog` and `database` have them, each with the same `target_lag` in seconds.
    """

    file: Path | None
    catalog: str | None
    database: str | None
    target_lag: int | None

    @property
    def target_lag_text(self) -> str:
        return f"{_HOUR if self.target_lag is None else self.target_lag}s"

    def tables(self, settings: Settings) -> FleetSettings:
        """The fleet. Raises UsageError, ConfigError, CatalogError, DatabaseNotFoundError."""
        if self.file is not None:
            if self != FleetChoice(self.file, None, None, None):
                raise click.UsageError(
                    "--fleet has its own tables and targets: omit --catalog, --database and --target-lag"
                )
            return fleet_of_file(self.file, settings.options)
        if self.catalog is None or self.database is None:
            raise click.UsageError("--catalog and --database belong together")
        locations = hudi_tables(self.catalog, Options(dict(settings.options)), self.database)
        if not locations:
            raise ConfigError(f"database {self.database!r} has no Hudi table")
        return fleet_of_locations(locations, settings.options, target_lag=self.target_lag_text)


def table_or_fleet(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Adds TABLE, and the options that name a fleet instead, and passes those to the verb as `chosen`."""

    @functools.wraps(verb)
    def run(
        *,
        table: str | None,
        fleet: Path | None,
        catalog: str | None,
        database: str | None,
        target_lag: int | None,
        **words: Any,
    ) -> Any:
        if (table is None) == (fleet is None and catalog is None):
            raise click.UsageError("give either TABLE, --fleet or --catalog")
        return verb(table=table, chosen=FleetChoice(fleet, catalog, database, target_lag), **words)

    return decorated(run, (click.argument("table", required=False), *_OPTIONS))
