"""The options that name a fleet: a file, or a database of a catalog."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from eventide.catalog import hudi_tables
from eventide.cli.argument_types import NAME, Duration, FilePath
from eventide.cli.settings import Settings
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


def fleet_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that name a fleet."""
    for decorate in reversed(_OPTIONS):
        verb = decorate(verb)
    return verb


def target_lag_text(seconds: int | None) -> str:
    return f"{_HOUR if seconds is None else seconds}s"


def fleet_of(
    settings: Settings, fleet: Path | None, catalog: str | None, database: str | None, target_lag: int | None
) -> FleetSettings:
    """The fleet that the options name. Raises ConfigError, CatalogError, DatabaseNotFoundError."""
    if fleet is not None:
        if catalog is not None or database is not None or target_lag is not None:
            raise click.UsageError(
                "--fleet has its own tables and targets: omit --catalog, --database and --target-lag"
            )
        return fleet_of_file(fleet, settings.options)
    if catalog is None or database is None:
        raise click.UsageError("--catalog and --database belong together")
    locations = hudi_tables(catalog, Options(dict(settings.options)), database)
    if not locations:
        raise ConfigError(f"database {database!r} has no Hudi table")
    return fleet_of_locations(locations, settings.options, target_lag=target_lag_text(target_lag))
