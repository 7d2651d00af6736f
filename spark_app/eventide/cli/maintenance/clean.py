"""`eventide clean` and `eventide archive`: remove files that nothing needs any more, and shorten the active timeline."""

import click

from eventide.cli.settings import Settings, common_options, table_verb


@table_verb
@click.option(
    "--retain-commits",
    type=click.IntRange(min=1),
    help="Retains the slices of the last N commits, by any policy.",
)
@click.option("--dry-run", is_flag=True, help="Only shows what would be deleted.")
@common_options
def clean(settings: Settings, table: str, retain_commits: int | None, dry_run: bool) -> None:
    """Delete files that nothing needs.

    Keeps each file of TABLE that a retained slice, a pending plan, a savepoint, or a link needs. hoodie.clean.policy and its
    options set which slices are retained; by default, of the last 10 commits. First rolls back what dead writers left.
    """
    with settings.table(table) as opened:
        result = opened.clean(retain_commits, dry_run=dry_run)
    verb = "would delete" if dry_run else "deleted"
    nothing = [] if result.deleted else ["nothing to delete"]
    settings.console.result(
        {"instant": result.instant, "deleted": list(result.deleted), "kept_targets": list(result.kept_targets)},
        *nothing,
        *(f"{verb} {path}" for path in result.deleted),
        *(f"kept {path}: a link points to it" for path in result.kept_targets),
    )


@table_verb
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
