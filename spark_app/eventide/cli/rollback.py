"""`eventide rollback`: undoes an action."""

import click

from eventide.cli.settings import Settings, common_options


@click.command()
@click.argument("table")
@click.argument("instant")
@common_options
def rollback(settings: Settings, table: str, instant: str) -> None:
    """Undo a pending compaction.

    Removes what the compaction at INSTANT of TABLE has made, its links and copies too.
    """
    with settings.table(table) as opened:
        deleted = opened.rollback(instant)
    settings.console.result({"instant": instant, "deleted": list(deleted)}, *(f"deleted {path}" for path in deleted))
