"""`eventide compact`: schedules a compaction and runs it."""

from typing import Any

import click

from eventide import Table
from eventide.cli.console import Console
from eventide.cli.plan import plan_for, plan_options
from eventide.cli.settings import Settings, common_options
from eventide.moment import moment
from eventide.plan import Plan
from eventide_core.config import EVENT_TIME_FIELD
from eventide_core.service.compaction.run import CompactionResult
from eventide_core.table.event_time import parse_threshold


@click.command()
@click.argument("table")
@plan_options
@click.option("--schedule-only", is_flag=True, help="Put the plan on the timeline, and run nothing.")
@click.option("--execute", "scheduled", metavar="INSTANT", help="Run the compaction that was scheduled at INSTANT.")
@common_options
def compact(
    settings: Settings,
    table: str,
    event_time: str | None,
    schedule_only: bool,
    scheduled: str | None,
    **words: Any,
) -> None:
    """Compact everything before T.

    Schedules a compaction of TABLE and executes it, on Spark where PySpark is installed. Without --before and
    --data-latency by the strategy and the trigger that the options name; a trigger that is not due says so.
    """
    if scheduled is not None and (schedule_only or any(word is not None for word in words.values())):
        raise click.UsageError("--execute runs a plan as it was scheduled: it goes with none of the plan's options")
    if words["before"] is not None:
        parse_threshold(words["before"])  # before Spark starts
    console = settings.console
    settings = settings.having(EVENT_TIME_FIELD, event_time)
    if schedule_only:
        with settings.table(table) as opened:
            made = opened.schedule(plan_for(opened, words))
            if made.idle is not None:
                _say_idle(console, opened, made.idle)
                return
        console.result(_scheduled(made), made.explain(), f"scheduled at {made.instant}")
        return
    with settings.table(table, on_spark_by_default=True) as opened:
        if scheduled is None:
            made = opened.schedule(plan_for(opened, words), is_for_later=False)
            if made.idle is not None:
                _say_idle(console, opened, made.idle)
                return
            scheduled = made.instant
            console.say(made.explain())
        with console.progress() as progress:
            result = opened.execute(scheduled, progress=progress)
    console.result(_completed(result), *_told(result))
    if result.sync_error is not None:
        # No second document: the first one says it, too.
        click.echo(f"error: the compaction stands, and the catalog was not told: {result.sync_error}", err=True)
        click.get_current_context().exit(result.sync_error.exit_code)


def _say_idle(console: Console, table: Table, why: str) -> None:
    """Nothing was to be done, which is no failure."""
    cut_ms = table.state().cut_ms
    watermark_ms = None if cut_ms is None else table.freshness().watermark_ms
    document: dict[str, Any] = {
        "instant": None,
        "state": "idle",
        "idle": why,
        "watermark_ms": watermark_ms,
        "cut_ms": cut_ms,
        "metrics": {},
    }
    console.result(document, f"nothing to do: {why}")


def _scheduled(plan: Plan) -> dict[str, Any]:
    return {
        "instant": plan.instant,
        "state": "requested",
        "watermark_ms": None,
        "predicted_watermark_ms": plan.predicted_watermark_ms,
        "cut_ms": plan.cut_ms,
        "metrics": {},
    }


def _completed(result: CompactionResult) -> dict[str, Any]:
    return {
        "instant": result.instant,
        "state": "completed",
        "watermark_ms": result.freshness.watermark_ms,
        "cut_ms": result.freshness.cut_ms,
        "late_records": result.freshness.late_records,
        "sync_error": None if result.sync_error is None else str(result.sync_error),
        "metrics": dict(result.metrics),
    }


def _told(result: CompactionResult) -> tuple[str, str]:
    fresh, metrics = result.freshness, result.metrics
    done = (
        f"compacted at {result.instant}: {metrics['operations']} slices, {metrics['log_files_compacted']} logs merged, "
        f"{metrics['log_files_linked']} left-over files made, "
        f"{metrics['records_written']} records and {metrics['bytes_written']} bytes written"
    )
    reached = f"watermark {moment(fresh.watermark_ms)}, cut {moment(fresh.cut_ms)}, {fresh.late_records} late records"
    return done, reached
