"""`eventide clean`: removes files that nothing needs any more."""

import click

from eventide.cli.settings import Settings, common_options


@click.command()
@click.argument("table")
@click.option(
    "--retain-commits", type=click.IntRange(min=1), help="Keep the slices of the last N commits; before any policy."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@common_options
def clean(settings: Settings, table: str, retain_commits: int | None, dry_run: bool) -> None:
    """Remove files that no retained slice needs.

    Nor a pending plan, a savepoint or a link of TABLE. By hoodie.cleaner.policy and its options, else the last 10 commits
    stay. Rolls back what dead writers left, first.
    """
    with settings.table(table) as opened:
        result = opened.clean(retain_commits, dry_run=dry_run)
    verb = "would delete" if dry_run else "deleted"
    settings.console.result(
        {"instant": result.instant, "deleted": list(result.deleted), "kept_targets": list(result.kept_targets)},
        *(f"{verb} {path}" for path in result.deleted),
        *(f"kept {path}: a link leads to it" for path in result.kept_targets),
    )
