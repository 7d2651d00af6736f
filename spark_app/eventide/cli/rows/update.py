"""`eventide update`: new values for the rows that a condition keeps; and `eventide alter`: changes a table's schema."""

from collections.abc import Mapping, Sequence
from typing import Any

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


_FORMS = {
    "add": "'COLUMN TYPE', 'COLUMN TYPE first' or 'COLUMN TYPE after OTHER'",
    "widen": "'COLUMN TYPE'",
    "move": "'COLUMN first' or 'COLUMN after OTHER'",
    "rename": "OLD=NEW",
}


@table_verb
@click.argument("change", type=click.Choice(["add", "widen", "move", "drop", "rename"]))
@click.argument("columns", nargs=-1, required=True, metavar="COLUMN...")
@click.option("--dry-run", is_flag=True, help="Checks the change and shows the schema after it. Writes nothing.")
@common_options
def alter(settings: Settings, table: str, change: str, columns: Sequence[str], *, dry_run: bool) -> None:
    """Change the schema.

    Adds, widens, moves, drops or renames columns of TABLE in one commit without files. COLUMN is 'fare double', or 'fare
    double after ms', to add a column; 'n long' to widen one; 'fare first' or 'fare after ms' to move one; a name to drop
    one; and OLD=NEW to rename one.

    A change that not every reader of Hudi tables follows is refused, with exit code 3: each change within a nested column,
    and a rename, unless the schema evolves on read (--option hoodie.schema.on.read.enable=true). The message says what to do
    instead.
    """
    asked: Any = list(columns) if change == "drop" else _pairs(change, columns)
    words: Mapping[str, Any] = {change: asked}
    with settings.table(table) as opened:
        result = opened.alter(**words, dry_run=dry_run)
    document = {
        "instant": result.instant,
        "completion_time": result.completion_time,
        "schema": result.schema,
        "columns": list(result.columns),
        "added_columns": list(result.changes.added),
        "widened_columns": list(result.changes.widened),
        "dropped_columns": list(result.changes.dropped),
        "renamed_columns": dict(result.changes.renamed),
        "note": result.note,
    }
    when = f"altered at {result.instant}" if result.instant else "nothing was written"
    note = "" if result.note is None else f"; {result.note}"
    settings.console.result(document, f"{when}; columns: {', '.join(result.columns)}{note}")


def _pairs(change: str, texts: Sequence[str]) -> dict[str, str]:
    separator = "=" if change == "rename" else None
    pairs: dict[str, str] = {}
    for text in texts:
        words = text.strip().split(separator, 1)
        if len(words) != 2 or not all(words):
            raise click.UsageError(f"{change} {text!r}: write {_FORMS[change]}")
        if words[0] in pairs:
            raise click.UsageError(f"{change}: the column {words[0]!r} comes twice")
        pairs[words[0]] = words[1]
    return pairs
