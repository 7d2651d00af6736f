"""`eventide archive`: shortens a table's active timeline."""

import click

from eventide.cli.settings import Settings, common_options, table_argument


@click.command()
@table_argument
@common_options
def archive(settings: Settings, table: str) -> None:
    """Move old instants to the archive.

    When TABLE has more than hoodie.keep.max.commits completed writes, archives all but the last hoodie.keep.min.commits.
    Keeps what cleaning, a savepoint, or a pending action needs.
    """
    with settings.table(table) as opened:
        archived = opened.archive()
    settings.console.result(
        {"instant": archived[-1] if archived else None, "archived": list(archived)},
        *([f"archived {time}" for time in archived] or ["nothing to archive"]),
    )
