"""`eventide plan`: what a compaction would do."""

from collections.abc import Callable
from typing import Any

import click

from eventide import Table
from eventide.cli.argument_types import Duration
from eventide.cli.settings import (
    Settings,
    check_partition,
    common_options,
    detail_options,
    event_time_option,
    option_help,
    table_argument,
)
from eventide.results.detail import Detail
from eventide.results.plan import Plan
from eventide_core.config import ALIGN, ALIGN_ZONE, CUT, EVENT_TIME_FIELD, FOREIGN_PLANS, LINK_MODE

_BEFORE = click.option("--before", metavar="T", help="Compacts everything before T.")
_COMPACTION_OPTIONS = (
    click.option(
        "--data-latency",
        type=Duration(),
        metavar="DURATION",
        help="Takes the current time minus this duration as T: 90s, 30m, 2h, 1d.",
    ),
    click.option(
        "--cut",
        type=click.Choice(CUT.kind.choices),
        help=option_help(CUT),
    ),
    click.option(
        "--link-mode",
        type=click.Choice(LINK_MODE.kind.choices),
        help=option_help(LINK_MODE),
    ),
    click.option("--align", metavar="DURATION", help=option_help(ALIGN)),
    click.option("--time-zone", metavar="ZONE", help=option_help(ALIGN_ZONE)),
    event_time_option,
)

foreign_plans_option = click.option(
    "--foreign-plans/--no-foreign-plans",
    default=None,
    help=option_help(FOREIGN_PLANS),
)


def chosen(flag: bool | None) -> str | None:
    """A switch as the text of an option; None if it is not set."""
    return None if flag is None else str(flag).lower()


def plan_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a compaction, the same for `plan` and `compact`."""
    return _BEFORE(compaction_options(verb))


def compaction_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a compaction without T, for a series of compactions."""
    for decorate in reversed(_COMPACTION_OPTIONS):
        verb = decorate(verb)
    return verb


def plan_for(table: Table, words: dict[str, Any]) -> Plan:
    """The plan for the arguments of the command line."""
    if words["before"] is not None and words["data_latency"] is not None:
        raise click.UsageError("give either --before or --data-latency, not both")
    return table.plan_compaction(
        words["before"],
        data_latency_seconds=words["data_latency"],
        cut=words["cut"],
        link_mode=words["link_mode"],
        align=words["align"],
        time_zone=words["time_zone"],
    )


@click.command()
@table_argument
@plan_options
@detail_options
@common_options
def plan(settings: Settings, table: str, event_time: str | None, detail: Detail, **words: Any) -> None:
    """Explain what a compaction would do.

    Shows how many log files of TABLE are compacted for T and how many are left over, what it costs, which slices hold the
    watermark back, and the watermark that it reaches. Writes nothing.
    """
    with settings.having(EVENT_TIME_FIELD, event_time).table(table) as opened:
        check_partition(opened, detail)
        plan = plan_for(opened, words)
    settings.console.result(plan.to_json(), plan.explain(detail))
