"""`eventide report`: one page on how fresh a table is and what holds it back."""

from pathlib import Path

import click

from eventide.cli.argument_types import FilePath
from eventide.cli.settings import Settings, common_options, event_time_option, table_argument
from eventide_core.action.freshness.freshness import watermark_text
from eventide_core.errors import counted


@click.command()
@table_argument
@click.option("--to", "path", required=True, type=FilePath(), metavar="FILE.html", help="Where to write the page.")
@event_time_option
@common_options
def report(settings: Settings, table: str, path: Path) -> None:
    """Draw the freshness of a table and its causes.

    Writes one self-contained page: the event times of each slice of TABLE, freshness over time, the backlog, and what holds
    the watermark back. Writes nothing to the table.
    """
    with settings.table(table) as opened:
        report = opened.report(path)
    fresh = report.freshness
    watermark = "not known" if fresh is None else watermark_text(fresh)
    held_back = counted(len(report.late), "slice")
    if fresh is not None and fresh.unreadable_event_time_records:
        held_back = f"{counted(fresh.unreadable_event_time_records, 'record')} whose event time cannot be read"
    settings.console.result(
        {"file": str(path), **report.to_json()},
        f"report     {path}",
        f"watermark  {watermark}, held back by {held_back}",
    )
