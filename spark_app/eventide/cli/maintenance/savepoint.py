"""`eventide savepoint` and `eventide restore`: keep a table as of a commit, and return to that state."""

import click

from eventide.cli.argument_types import INSTANT
from eventide.cli.settings import Settings, common_options, table_argument


@click.command()
@table_argument
@click.argument("instant", type=INSTANT)
@click.option("--tag", metavar="NAME", help="A name for `read --tag`.")
@click.option("--delete", is_flag=True, help="Deletes the savepoint.")
@common_options
def savepoint(settings: Settings, table: str, instant: str, tag: str | None, delete: bool) -> None:
    """Keep the table as of a commit.

    Until the savepoint is deleted, nothing of TABLE as of the completed write at INSTANT is cleaned, rolled back, or
    archived.
    """
    if delete and tag is not None:
        raise click.UsageError("--delete needs only the instant; to delete by tag, run `tag --delete`")
    with settings.table(table) as opened:
        if delete:
            opened.delete_savepoint(instant)
        else:
            opened.savepoint(instant, tag=tag)
    how = "deleted" if delete else "kept" if tag is None else f"kept as {tag}"
    settings.console.result({"instant": instant, "tag": tag}, f"savepoint {instant} {how}")


@click.command()
@table_argument
@click.argument("instant", type=INSTANT)
@common_options
def restore(settings: Settings, table: str, instant: str) -> None:
    """Undo every write after a savepoint.

    Returns TABLE to its state at the savepoint INSTANT. Stop its writers first.
    """
    with settings.table(table) as opened:
        undone = opened.restore(instant)
    settings.console.result(
        {"instant": instant, "rolled_back": list(undone)},
        *([f"rolled back {time}" for time in undone] or ["nothing to roll back"]),
    )
