"""`eventide update`: new values for the rows that a condition keeps."""

from collections.abc import Sequence

import click

from eventide.cli.settings import Settings, common_options, pairs_of, table_verb
from eventide_core.errors import counted


@table_verb
@click.option(
    "--set",
    "values",
    multiple=True,
    required=True,
    metavar="COLUMN=VALUE",
    help="A column and its new value as in SQL, such as fare=fare * 2 or word='a text'. Repeatable.",
)
@click.option("--where", metavar="CONDITION", help="Which rows to update, as in SQL's WHERE.")
@click.option("--all", "takes_all", is_flag=True, help="Updates every row, instead of --where.")
@common_options
def update(settings: Settings, table: str, values: Sequence[str], where: str | None, *, takes_all: bool) -> None:
    """Change rows in place.

    Gives the rows of TABLE that a condition keeps new values, in one commit. Columns of the record key and the partition
    can't change. If another writer changes the same file groups in the meantime, nothing is written, and the exit code is 4.
    """
    if (where is None) is not takes_all:
        raise click.UsageError("give either --where, or --all for every row")
    pairs = pairs_of(values, "--set")
    with settings.table(table) as opened, settings.console.progress() as progress:
        result = opened.update(pairs, where, all=takes_all, progress=progress)
    settings.console.report_dropped(result.dropped_indexes)
    rows = result.rows_updated or 0
    document = {
        "instant": result.instant,
        "completion_time": result.completion_time,
        "rows": rows,
        "files": result.files,
    }
    settings.console.result(document, f"update at {result.instant}: {counted(rows, 'row')}")
