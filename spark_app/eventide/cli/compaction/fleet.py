"""`eventide status`, and the options that name a fleet: a file, or a database of a catalog."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import click

from eventide import Table
from eventide.bootstrap import SystemClock
from eventide.catalog import hudi_tables
from eventide.cli.argument_types import NAME, Duration, FilePath
from eventide.cli.console import table_of
from eventide.cli.settings import Settings, common_options, decorated
from eventide.fleet.settings import FleetSettings, fleet_of_file, fleet_of_locations
from eventide.fleet.status import COLUMNS, cells_of, fleet_status, reasons_of, write_fleet_page
from eventide.results.detail import more
from eventide_core.config import Options
from eventide_core.errors import ConfigError, counted

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


_SCREEN = 15


@click.command()
@table_or_fleet
@click.option(
    "--to",
    "path",
    type=FilePath(),
    metavar="FILE.html",
    help="Also writes a page, and each table's report to a directory beside it.",
)
@click.option("--verbose", "-v", is_flag=True, help=f"Shows all tables, not only the {_SCREEN} most urgent.")
@common_options
def status(
    settings: Settings,
    table: str | None,
    chosen: FleetChoice,
    path: Path | None,
    verbose: bool,
) -> None:
    """Show the lag of tables against their targets.

    Shows the lag, the backlog, the last error, and what holds the watermark back, of TABLE or of each table of a fleet, the
    most urgent first. Writes nothing to the tables.
    """
    tables = chosen.tables(settings) if table is None else _alone(settings, table, chosen)
    reports = None if path is None else path.with_name(f"{path.stem}_tables")
    now_ms = SystemClock().now_ms()
    statuses = fleet_status(tables, reports)
    if path is not None and reports is not None:
        write_fleet_page(path, statuses, reports.name, now_ms)
    shown = statuses if verbose else statuses[:_SCREEN]
    settings.console.result(
        {"tables": [one.to_json() for one in statuses], "file": None if path is None else str(path)},
        table_of("", COLUMNS, map(cells_of, shown)),
        *more(len(statuses) - len(shown)),
        *reasons_of(shown),
        *chain.from_iterable(
            [*one.chain.lines(), f"held back by {one.chain.holder}"] for one in shown if one.chain is not None
        ),
        f"{sum(one.is_met for one in statuses):,} of {counted(len(statuses), 'table')} within the target",
        *(() if path is None else (f"page  {path}",)),
    )


def _alone(settings: Settings, table: str, chosen: FleetChoice) -> FleetSettings:
    if chosen.database is not None:
        raise click.UsageError("--database goes with --catalog: omit it beside TABLE")
    # A directory without a table is an error here, and in a fleet the state of one row.
    Table.open(table, settings.options)
    name = table.rstrip("/").rpartition("/")[2] or "table"
    return fleet_of_locations({name: table}, settings.options, target_lag=chosen.target_lag_text)
