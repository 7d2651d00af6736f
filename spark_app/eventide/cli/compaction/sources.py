"""`eventide sources`: what vouches that everything before T has come."""

from typing import Any

import click

from eventide import Table
from eventide.cli.argument_types import NAME
from eventide.cli.console import Console, table_of
from eventide.cli.settings import Settings, common_options, pairs_of, table_verb
from eventide_core.action.freshness.arrival import with_arrival
from eventide_core.action.freshness.freshness import Freshness, watermark_text
from eventide_core.errors import EventideError, format_timestamp
from eventide_core.table.settings.declared_sources import STATED
from eventide_core.table.timeline.source_progress import SourceProgress


@table_verb
@click.option("--declare", type=NAME, metavar="NAME", help="Makes `freshness` need this source from now on.")
@click.option(
    "--kind",
    metavar="KIND",
    help="What it is: stated (by the commits of its writers), table, kafka, counts, or the kind of an installed package.  "
    "[default: stated]",
)
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="SETTING=VALUE",
    help="A setting of the source, which the table keeps: idle=2h, or what its kind needs. Repeatable.",
)
@click.option(
    "--forget",
    type=NAME,
    metavar="NAME",
    help="Makes `freshness` do without this source, until a later commit states it or it is declared again.",
)
@common_options
def sources(
    settings: Settings, table: str, declare: str | None, kind: str | None, given: tuple[str, ...], forget: str | None
) -> None:
    """Show how far the sources of a table have come.

    `freshness` of TABLE is no later than its sources. A commit that states how far a source has come declares it.
    """
    if declare is None and (kind is not None or given):
        raise click.UsageError("--kind and --set need --declare")
    if declare is not None and forget is not None:
        raise click.UsageError("give either --declare or --forget, not both")
    with settings.table(table) as opened:
        known = opened.sources
        if declare is not None:
            known.declare(declare, kind or STATED, **pairs_of(given, "--set"))
        elif forget is not None:
            known.forget(forget)
        found = known.progress()
    rows = [(one.name, one.kind, one.progress_text, format_timestamp(one.idle_since_ms), one.evidence) for one in found]
    settings.console.result(
        {"sources": [source_json(one) for one in found]},
        table_of("", ("source", "kind", "progress", "heard of", "evidence"), rows)
        if rows
        else "no sources: the freshness of the table rests on its files alone",
    )


def gate_of(console: Console, opened: Table, own: Freshness) -> Freshness:
    """The lower of a freshness by files and sources. Sources that cannot be asked fail nothing that is done."""
    try:
        return with_arrival(own, opened.sources.progress())
    except EventideError as error:
        console.say(f"warning: what the sources leave of the watermark is unknown: {error}")
        return own


def held_json(fresh: Freshness, prefix: str = "") -> dict[str, Any]:
    """What the sources leave of a watermark, each key with this prefix; nothing without a source."""
    if not fresh.sources:
        return {}
    return {
        f"{prefix}watermark_ms": fresh.watermark_ms,
        f"{prefix}files_watermark_ms": fresh.files_watermark_ms,
        f"{prefix}held_back_by": fresh.held_back_by,
    }


def held_lines(fresh: Freshness) -> list[str]:
    """What the sources leave of a watermark, for people; nothing without a source."""
    if not fresh.sources:
        return []
    return [
        f"that is of the table's files; with its sources {watermark_text(fresh)}, held back by {fresh.held_back_by}"
    ]


def source_json(one: SourceProgress) -> dict[str, Any]:
    """A source as plain values."""
    return {
        "name": one.name,
        "kind": one.kind,
        "progress": None if one.progress_ms is None else format_timestamp(one.progress_ms),
        "progress_ms": one.progress_ms,
        "complete": one.is_complete,
        "evidence": one.evidence,
        "idle_since": None if one.idle_since_ms is None else format_timestamp(one.idle_since_ms),
        "idle_since_ms": one.idle_since_ms,
        "cure": one.cure,
    }
