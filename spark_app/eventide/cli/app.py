"""The group of all verbs. Each verb is imported when it is called, so that `--help` and `--version` respond at once."""

from importlib import import_module
from typing import Final

import click

from eventide.cli.errors import GroupWithExitCodes

# For each verb, its module, and the first sentence of its help.
VERBS: Final[dict[str, tuple[str, str]]] = {
    "demo": ("compaction.demo", "Run the main job on real data, from scratch."),
    "show": ("maintenance.show", "Show what a table is."),
    "read": ("rows.read", "Read the rows of a query."),
    "ingest": ("rows.ingest", "Write rows into a table."),
    "update": ("rows.update", "Change rows in place."),
    "alter": ("rows.update", "Change the schema."),
    "plan": ("compaction.plan", "Explain what a compaction would do."),
    "compact": ("compaction.compact", "Compact everything before T."),
    "clean": ("maintenance.clean", "Delete files that nothing needs."),
    "rollback": ("maintenance.savepoint", "Undo a pending or completed action."),
    "savepoint": ("maintenance.savepoint", "Keep the table as of a commit."),
    "tag": ("maintenance.savepoint", "Name a state of a table and keep it."),
    "restore": ("maintenance.savepoint", "Undo every write after a savepoint."),
    "archive": ("maintenance.clean", "Move old instants to the archive."),
    "freshness": ("compaction.freshness", "Show how fresh a table is."),
    "sources": ("compaction.sources", "Show how far the sources of a table have come."),
    "report": ("compaction.freshness", "Draw the freshness of a table and its causes."),
    "sync": ("compaction.sync", "Publish a table and its freshness in a catalog."),
    "verify": ("maintenance.verify", "Check the invariants of a table."),
    "metadata": ("maintenance.metadata", "Show or rebuild Hudi's metadata table."),
    "repair": ("maintenance.repair", "Repair what `verify` finds."),
    "serve": ("compaction.serve", "Serve a table or a fleet, round after round."),
    "mark-done": ("compaction.mark_done", "Mark windows as done, for tools that know files and calls."),
    "windows": ("rows.windows", "Deliver closed windows of event time."),
    "status": ("compaction.fleet", "Show the lag of tables against their targets."),
    "storage": ("maintenance.storage", "Check what a store guarantees and costs."),
}


class _Verbs(GroupWithExitCodes):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in VERBS:
            return None
        module, _ = VERBS[cmd_name]
        verb: click.Command = getattr(import_module(f"eventide.cli.{module}"), cmd_name.replace("-", "_"))
        return verb

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS and not args[0].startswith("-"):
            from difflib import get_close_matches

            meant = get_close_matches(args[0], VERBS, n=1)
            ctx.fail(f"No such command {args[0]!r}" + (f"; the nearest is {meant[0]!r}" if meant else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, VERBS[name][1]) for name in self.list_commands(ctx)])


def _version(ctx: click.Context, _parameter: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        from eventide import __version__

        click.echo(f"eventide {__version__}")
        ctx.exit()


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version and exit."
)
def eventide() -> None:
    """Compact everything before a time T of an Apache Hudi merge-on-read table, and see how fresh the table is.

    `eventide demo` shows all of it on real data. `eventide plan TABLE --before T` explains what a compaction of your own
    table would do, and writes nothing.

    TABLE is a path or a URI. T is ISO-8601 with a time zone (2026-11-21T00:00Z) or epoch milliseconds; "before T" excludes
    T itself. INSTANT is the time that names an action of the table; `eventide show TABLE` lists them.

    Exit codes: 0 done or met, 1 a check failed, 2 wrong usage or bad input, 3 refused as unsafe or unsupported, 4 busy: try
    again, 5 storage or engine failed: try again, 130 interrupted by Ctrl-C, 141 nobody reads the results any more.
    """
