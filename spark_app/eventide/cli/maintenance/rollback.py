"""`eventide rollback`: undoes an action."""

import click

from eventide.cli.argument_types import INSTANT
from eventide.cli.settings import Settings, common_options, table_argument


@click.command()
@table_argument
@click.argument("instant", type=INSTANT)
@click.option(
    "--force", is_flag=True, help="Also undoes a pending write without a heartbeat, whose writer must be dead."
)
@common_options
def rollback(settings: Settings, table: str, instant: str, *, force: bool) -> None:
    """Undo a pending or completed action.

    Deletes what the action at INSTANT of TABLE wrote, including links and copies. Refuses a write with a fresh heartbeat. A
    write without a heartbeat, such as that of a Hudi writer that cleans eagerly, may be alive: it needs --force. Undoes a
    completed action only if nothing else is lost.
    """
    with settings.table(table) as opened:
        deleted = opened.rollback(instant, force=force)
    settings.console.result({"instant": instant, "deleted": list(deleted)}, *(f"deleted {path}" for path in deleted))
