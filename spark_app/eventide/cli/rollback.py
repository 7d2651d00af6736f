"""`eventide rollback`: undoes an action."""

import click

from eventide.cli.settings import Settings, common_options


@click.command()
@click.argument("table")
@click.argument("instant")
@click.option("--force", is_flag=True, help="Also a pending write without a heartbeat: see that its writer is dead.")
@common_options
def rollback(settings: Settings, table: str, instant: str, *, force: bool) -> None:
    """Undo a pending or completed action.

    Removes what the action at INSTANT of TABLE has made, links and copies too. A write whose heartbeat is fresh is left
    alone. One that keeps none, as Hudi's writers do that clean eagerly, may be alive: it takes --force. A completed action
    is undone only where nothing is lost with it.
    """
    with settings.table(table) as opened:
        deleted = opened.rollback(instant, force=force)
    settings.console.result({"instant": instant, "deleted": list(deleted)}, *(f"deleted {path}" for path in deleted))
