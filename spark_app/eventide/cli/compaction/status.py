"""`eventide status`: the tables of a fleet, each with its lag against its target."""

from itertools import chain
from pathlib import Path

import click

from eventide import Table
from eventide.bootstrap import SystemClock
from eventide.cli.argument_types import FilePath
from eventide.cli.compaction.fleet import FleetChoice, table_or_fleet
from eventide.cli.console import table_of
from eventide.cli.settings import Settings, common_options
from eventide.fleet.settings import FleetSettings, fleet_of_locations
from eventide.fleet.status import COLUMNS, cells_of, fleet_status, reasons_of, write_fleet_page
from eventide.results.detail import more
from eventide_core.errors import counted

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
    Table.open(table, settings.options)  # what is no table is an error here, and in a fleet the state of one row
    name = table.rstrip("/").rpartition("/")[2] or "table"
    return fleet_of_locations({name: table}, settings.options, target_lag=chosen.target_lag_text)
