"""`eventide metadata`: Hudi's metadata table of a table."""

from typing import Any

import click

from eventide.cli.settings import Settings, common_options, table_verb
from eventide_core.errors import counted
from eventide_core.table.settings.metadata_table import FILES, REBUILT_INDEXES, MetadataTableStatus


@table_verb
@click.option("--rebuild", is_flag=True, help="Rebuilds it, or builds one if there is none.")
@click.option(
    "--index",
    "indexes",
    type=click.Choice((FILES, *REBUILT_INDEXES)),
    multiple=True,
    help="With --rebuild: an index to make besides files; can be repeated. files: none. Default: those that it has.",
)
@common_options
def metadata(settings: Settings, table: str, rebuild: bool, indexes: tuple[str, ...]) -> None:
    """Show or rebuild Hudi's metadata table.

    Shows the partitions of the metadata table of TABLE, its last compaction, and the delta commits since. --rebuild builds
    it from the files of the table, under the table lock, which every writer has to share. No write may be pending. An
    interrupted run leaves the table without a metadata table; run it again.
    """
    if indexes and not rebuild:
        raise click.UsageError("--index needs --rebuild")
    with settings.table(table) as opened:
        if rebuild:
            done = opened.rebuild_metadata_table(indexes or None)
            settings.console.result(
                {
                    **_state(opened.metadata_table()),
                    "partitions": list(done.partitions),
                    "dropped": list(done.dropped),
                    "files": done.files,
                },
                f"made the metadata table: {', '.join(done.partitions)}, of {counted(done.files, 'file')}",
                *(f"dropped {name}: the next write of Hudi adds it, if it is configured to" for name in done.dropped),
            )
            return
        status = opened.metadata_table()
    settings.console.result(_state(status), "no metadata table" if status is None else str(status))


def _state(status: MetadataTableStatus | None) -> dict[str, Any]:
    """`logs` are what a reader merges with the base files of a partition: one for each delta commit."""
    delta_commits = None if status is None else status.delta_commits
    return {
        "partitions": [] if status is None else list(status.partitions),
        "delta_commits": delta_commits,
        "logs": delta_commits,
        "last_compaction": None if status is None else status.last_compaction,
    }
