"""`eventide freshness` and `eventide report`: how fresh the read-optimized table is, and what holds it back."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from eventide import Table
from eventide.cli.argument_types import Duration, FilePath
from eventide.cli.compaction.sources import source_json
from eventide.cli.console import table_of
from eventide.cli.settings import Settings, common_options, event_time_option, table_verb
from eventide.cli.text_table import Lines
from eventide.results.detail import more
from eventide.table.cut import reached
from eventide_core.action.freshness.arrival import lowest
from eventide_core.action.freshness.freshness import Freshness, watermark_text
from eventide_core.config import IDLE_SOURCES
from eventide_core.errors import counted, format_moment, format_timestamp
from eventide_core.ports import UnreadableEventTime
from eventide_core.table.records.event_time import is_ahead, parse_threshold

NOT_MET = 1
_POLL_SECONDS = 1.0


@table_verb
@click.argument("others", nargs=-1, metavar="[TABLE]...")
@click.option("--by", type=click.Choice(["partition"]), help="Also shows the freshness of each partition.")
@click.option("--require", metavar="T", help="Exits with 1 unless everything before T is in the read-optimized table.")
@click.option(
    "--no-nulls", is_flag=True, help="Also requires that no record without an event time waits in a log file."
)
@click.option("--wait", type=Duration(), metavar="DURATION", help="Waits until --require is met, at most this long.")
@click.option(
    "--idle",
    type=Duration(),
    metavar="DURATION",
    help="How long the silence of a source counts as progress.  [default: never]",
)
@event_time_option
@common_options
@click.pass_context
def freshness(
    ctx: click.Context,
    settings: Settings,
    table: str,
    others: tuple[str, ...],
    by: str | None,
    require: str | None,
    wait: int | None,
    idle: int | None,
    *,
    no_nulls: bool,
) -> None:
    """Show how fresh a table is.

    Every committed record before the watermark is in the read-optimized TABLE. Only sources can say that none is still on
    its way (`eventide sources`): the watermark is the lower one of the table's files and its sources. Without a source, it
    rests on the files alone. Of several tables, the answer is the lowest one.
    """
    if others and by is not None:
        raise click.UsageError("--by is of one table")
    if wait is not None and require is None:
        raise click.UsageError("--wait needs --require")
    if no_nulls and require is None:
        raise click.UsageError("--no-nulls needs --require")
    required_ms = None if require is None else parse_threshold(require)
    if idle is not None:
        settings = settings.having(IDLE_SOURCES, f"{idle}s")
    if others:
        if not _all_reach(settings, (table, *others), require, wait or 0, nulls_count=no_nulls):
            ctx.exit(NOT_MET)
        return
    with settings.table(table) as opened:
        fresh = _awaited(opened, require, wait or 0, nulls_count=no_nulls)
        unreadable = opened.unreadable_event_times() if fresh.unreadable_event_time_records else ()
        by_partition = opened.freshness_by_partition() if by else None
        opened.publish_metrics()
    is_met = None if require is None else fresh.has_reached(require, nulls_count=no_nulls)
    ahead = required_ms is not None and is_ahead(required_ms, time.time_ns() // 1_000_000)
    settings.console.result(
        {
            **_json(fresh),
            "by_partition": None if by_partition is None else {name: _json(one) for name, one in by_partition.items()},
            "unreadable_event_times": [asdict(one) for one in unreadable],
            "required_ms": required_ms,
            "met": is_met,
            "required_is_ahead": ahead,
            "notes": list(fresh.notes),
        },
        _table(table, fresh, by_partition),
        *(() if fresh.is_exact is None else (_about_exactness(fresh),)),
        *_about_unreadable(fresh, unreadable),
        *_about_sources(fresh),
        *(f"note: {note}" for note in fresh.notes),
        *(() if is_met is None else (_answer(fresh, format_moment(required_ms), is_met=is_met),)),
        *((f"T {format_moment(required_ms)} is more than a day later than the clock",) if ahead else ()),
    )
    if is_met is False:
        ctx.exit(NOT_MET)


def _all_reach(
    settings: Settings, tables: Sequence[str], require: str | None, wait_seconds: int, *, nulls_count: bool
) -> bool:
    """Reports several tables as one answer. Whether all of them meet what is required."""
    deadline = time.monotonic() + wait_seconds
    while True:  # all of them in one look: one may lose what it had reached while another one is awaited
        found: dict[str, Freshness] = {}
        for uri in tables:
            with settings.table(uri) as opened:
                found[opened.uri] = opened.freshness()
        behind = [
            uri
            for uri, fresh in found.items()
            if require is not None and not fresh.has_reached(require, nulls_count=nulls_count)
        ]
        left = deadline - time.monotonic()
        if not behind or left <= 0:
            break
        time.sleep(min(_POLL_SECONDS, left))
    for uri in tables:
        with settings.table(uri) as opened:
            opened.publish_metrics()
    least = lowest(fresh.watermark_ms for fresh in found.values() if not fresh.is_complete)
    required_ms = None if require is None else parse_threshold(require)
    settings.console.result(
        {
            "watermark_ms": least,
            "required_ms": required_ms,
            "met": None if require is None else not behind,
            "behind": behind,
            "tables": [
                {"table": uri, "met": None if require is None else uri not in behind, **_json(fresh)}
                for uri, fresh in found.items()
            ],
        },
        _rows_of(list(found.items())),
        *_about_all(found),
        *(f"{uri} is at {reached(fresh)}" for uri, fresh in found.items() if uri in behind),
        *(() if required_ms is None else (f"{format_moment(required_ms)} is {'not met' if behind else 'met'}",)),
    )
    return not behind


def _about_exactness(fresh: Freshness) -> str:
    kept = "holds nothing" if fresh.is_exact else "also holds records"
    return f"the read-optimized table {kept} at or after the cut"


def _about_all(found: Mapping[str, Freshness]) -> list[str]:
    """On what the answer of several tables rests, and what holds each back."""
    by_files = [uri for uri, fresh in found.items() if not fresh.sources]
    basis = [f"of {', '.join(by_files)}: {_about_sources(found[by_files[0]])[0]}"] if by_files else []
    lines = (f"of {uri}: {line}" for uri, fresh in found.items() if fresh.sources for line in _about_sources(fresh))
    return [*basis, *lines]


def _about_sources(fresh: Freshness) -> list[str]:
    """On what the answer rests, and what holds it back."""
    if not fresh.sources:
        return ["basis: files (no source says how far it has come, so what is still on its way is unknown)"]
    lines = [f"{one.kind} {one.name} up to {one.progress_text}: {one.evidence}" for one in fresh.sources]
    holder = next((one for one in fresh.sources if one.name == fresh.held_back_by), None)
    if holder is not None:
        lines.append(f"held back by {holder.name}; what would change it: {holder.cure}")
    elif fresh.held_back_by is not None:
        lines.append(f"held back by the table's files, which reach {format_timestamp(fresh.files_watermark_ms)}")
    return lines


def _about_unreadable(fresh: Freshness, named: Sequence[UnreadableEventTime]) -> list[str]:
    count = fresh.unreadable_event_time_records
    if not count:
        return []
    why = "may be before any T, because the event time cannot be read"
    return [
        f"no watermark: {counted(count, 'record')} in log files {why}; a compaction by event time merges them first",
        *(f"  {one}" for one in named),
        *more(count - len(named)),
    ]


def _answer(fresh: Freshness, moment: str, *, is_met: bool) -> str:
    """The gate's answer, and beside it the records without an event time: they are before no T, except with --no-nulls."""
    nulls = fresh.unknown_event_time_records
    beside = f"; {counted(nulls, 'record')} without an event time in log files" if nulls else ""
    return f"{moment} is {'met' if is_met else 'not met'}{beside}"


def _awaited(table: Table, require: str | None, wait_seconds: int, *, nulls_count: bool) -> Freshness:
    deadline = time.monotonic() + wait_seconds
    while require is not None and (left := deadline - time.monotonic()) > 0:
        if table.freshness(is_exact=False).has_reached(require, nulls_count=nulls_count):
            break
        time.sleep(min(_POLL_SECONDS, left))
    return table.freshness()


def _json(fresh: Freshness) -> dict[str, Any]:
    return {
        "complete": fresh.is_complete,
        "watermark_ms": fresh.watermark_ms,
        "cut_ms": fresh.cut_ms,
        "exact": fresh.is_exact,
        "late_records": fresh.late_records,
        "unknown_event_time_records": fresh.unknown_event_time_records,
        "unreadable_event_time_records": fresh.unreadable_event_time_records,
        "earliest_log_event_time_ms": fresh.earliest_log_event_time_ms,
        "basis": fresh.basis,
        "files_watermark_ms": fresh.files_watermark_ms if fresh.sources else fresh.watermark_ms,
        "held_back_by": fresh.held_back_by,
        "sources": [source_json(one) for one in fresh.sources],
    }


def _table(name: str, whole: Freshness, by_partition: Mapping[str, Freshness] | None) -> Lines:
    """The table, and its partitions."""
    return _rows_of([(name, whole), *(by_partition or {}).items()])


def _rows_of(named: Sequence[tuple[str, Freshness]]) -> Lines:
    """A row each. A count of records without a usable event time has a column if there are any."""
    counts = [("late", [fresh.late_records for _, fresh in named])]
    for head, numbers in (
        ("unknown", [fresh.unknown_event_time_records for _, fresh in named]),
        ("unreadable", [fresh.unreadable_event_time_records for _, fresh in named]),
    ):
        if any(numbers):
            counts.append((head, numbers))
    rows = (
        (label or ".", watermark_text(fresh), format_timestamp(fresh.cut_ms), *(numbers[at] for _, numbers in counts))
        for at, (label, fresh) in enumerate(named)
    )
    return table_of("", ("table", "watermark", "cut", *(head for head, _ in counts)), rows)


@table_verb
@click.option("--to", "path", required=True, type=FilePath(), metavar="FILE.html", help="Where to write the page.")
@event_time_option
@common_options
def report(settings: Settings, table: str, path: Path) -> None:
    """Draw the freshness of a table and its causes.

    Writes one self-contained page: the event times of each slice of TABLE, freshness over time, the backlog, and what holds
    the watermark back. Writes nothing to the table.
    """
    with settings.table(table) as opened:
        report = opened.report(path)
    fresh = report.freshness
    watermark = "not known" if fresh is None else watermark_text(fresh)
    held_back = counted(len(report.late), "slice")
    if fresh is not None and fresh.unreadable_event_time_records:
        held_back = f"{counted(fresh.unreadable_event_time_records, 'record')} whose event time cannot be read"
    settings.console.result(
        {"file": str(path), **report.to_json()},
        f"report     {path}",
        f"watermark  {watermark}, held back by {held_back}",
    )
