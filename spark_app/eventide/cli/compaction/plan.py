"""`eventide plan`: what a compaction would do."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from eventide import Table
from eventide.cli.argument_types import Duration
from eventide.cli.compaction.sources import gate_of, held_json, held_lines
from eventide.cli.settings import (
    Settings,
    check_partition,
    common_options,
    decorated,
    detail_options,
    event_time_option,
    stating,
    table_verb,
)
from eventide.results.detail import Detail
from eventide.results.plan import Plan
from eventide_core.config import ALIGN, ALIGN_ZONE, CUT, DATA_LATENCY, FOREIGN_PLANS, LINK_MODE
from eventide_core.table.records.event_time import Moment

_BEFORE = click.option("--before", metavar="T", help="Compacts everything before T.")
_LATENCY: Final[Mapping[str, Any]] = {
    "type": Duration(),
    "metavar": "DURATION",
    "help": "Takes the current time minus this duration as T: 90s, 30m, 2h, 1d.",
}
_OTHERS = (
    stating(CUT, "--cut", type=click.Choice(CUT.kind.choices)),
    stating(LINK_MODE, "--link-mode", type=click.Choice(LINK_MODE.kind.choices)),
    stating(ALIGN, "--align", metavar="DURATION"),
    stating(ALIGN_ZONE, "--time-zone", metavar="ZONE"),
    event_time_option,
)

foreign_plans_option = stating(FOREIGN_PLANS, "--foreign-plans/--no-foreign-plans", default=None)


def plan_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The options of one compaction. The options of its T are passed to the verb, the others are in `settings`."""
    return decorated(verb, (_BEFORE, click.option("--data-latency", **_LATENCY), *_OTHERS))


def compaction_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a series of compactions, all of them in `settings`."""
    return decorated(verb, (stating(DATA_LATENCY, "--data-latency", **_LATENCY), *_OTHERS))


def plan_for(table: Table, before: Moment | None, data_latency: int | None) -> Plan:
    """The plan for the arguments of the command line."""
    if before is not None and data_latency is not None:
        raise click.UsageError("give either --before or --data-latency, not both")
    return table.plan_compaction(before, data_latency_seconds=data_latency)


@table_verb
@plan_options
@detail_options
@common_options
def plan(settings: Settings, table: str, before: str | None, data_latency: int | None, detail: Detail) -> None:
    """Explain what a compaction would do.

    Shows how many log files of TABLE are compacted for T and how many are left over, what it costs, which slices hold the
    watermark back, and the watermark that it reaches. Writes nothing.
    """
    with settings.table(table) as opened:
        check_partition(opened, detail)
        plan = plan_for(opened, before, data_latency)
        gate = gate_of(settings.console, opened, plan.draft.predicted)
    document = {**plan.to_json(), **held_json(gate, "predicted_")}
    settings.console.result(document, plan.explain(detail), *held_lines(gate))
