"""`eventide compact`: schedules a compaction and runs it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import click
from click.core import ParameterSource

from eventide import Table
from eventide.cli.argument_types import INSTANT
from eventide.cli.compaction.plan import foreign_plans_option, plan_for, plan_options
from eventide.cli.compaction.sources import gate_of, held_json, held_lines
from eventide.cli.console import Console
from eventide.cli.settings import Settings, check_partition, common_options, detail_options, table_verb
from eventide.formatting import format_size
from eventide.results.detail import Detail
from eventide.results.plan import Plan
from eventide_core.action.freshness.freshness import NO_CUT
from eventide_core.errors import EngineError, StorageError, counted, format_moment
from eventide_core.service.compaction.result import CompactionResult, Ended
from eventide_core.table.records.event_time import parse_threshold

_OF_A_PLAN = ("before", "data_latency", "cut", "link_mode", "align", "time_zone", "schedule_only")


@table_verb
@plan_options
@click.option("--schedule-only", is_flag=True, help="Puts the plan on the timeline and does not run it.")
@click.option(
    "--execute",
    "scheduled",
    type=INSTANT,
    metavar="INSTANT",
    help="Runs the compaction that was scheduled at INSTANT.",
)
@click.option(
    "--force",
    is_flag=True,
    help="With --execute: also runs a plan that another engine, now dead, has started, or whose rollback was interrupted.",
)
@foreign_plans_option
@detail_options
@common_options
def compact(
    settings: Settings,
    table: str,
    before: str | None,
    data_latency: int | None,
    schedule_only: bool,
    scheduled: str | None,
    force: bool,
    detail: Detail,
) -> None:
    """Compact everything before T.

    First completes or rolls back what dead runs on TABLE left, and runs compactions that Hudi has planned but not started.
    Then schedules a compaction and runs it: on Spark if that is large and PySpark is installed, otherwise on threads.

    Without --before and --data-latency, the strategy and the trigger in the options decide. A trigger that is not due is
    reported. After any interruption, run the command again.
    """
    is_given = click.get_current_context().get_parameter_source
    if scheduled is not None and any(is_given(word) is ParameterSource.COMMANDLINE for word in _OF_A_PLAN):
        raise click.UsageError("--execute runs a plan as it was scheduled: omit the options of the plan")
    threshold_ms = None if before is None else parse_threshold(before)  # before Spark starts
    if force and scheduled is None:
        raise click.UsageError("--force takes over the plan that you name: add --execute INSTANT")
    console = settings.console
    if schedule_only:
        with settings.table(table) as opened:
            check_partition(opened, detail)
            made = opened.schedule(plan_for(opened, threshold_ms, data_latency))
            if made.idle is not None:
                _say_idle(console, opened, made, Ended())
                return
        console.result(_scheduled(made), made.explain(detail), f"scheduled at {made.instant}")
        return
    with settings.engine_by_size() as engine:
        opened = Table.open(table, settings.options, engine=engine)
        check_partition(opened, detail)
        if scheduled is not None:
            result = _run(console, opened, scheduled, force=force)
        else:
            ended = _end_pending(console, opened)
            made = plan_for(opened, threshold_ms, data_latency)
            if made.idle is None:
                engine.prepare(made.draft.plan.bytes_read)  # before anything is written
                made = opened.schedule(made, is_for_later=False)
            if made.idle is not None:
                _say_idle(console, opened, made, ended)
                return
            console.say(made.explain(detail) if detail.shows_files else made.summary())
            result = replace(_run(console, opened, made, force=False), ended=ended)
        gate = gate_of(console, opened, result.freshness)
    console.report_dropped(result.dropped_indexes)
    document = {**_completed(result), **held_json(gate), "engine": engine.name}
    console.result(document, *_summary(result), *held_lines(gate))
    if result.sync_error is not None:
        # No second document: the first one contains this, too.
        console.error(f"the compaction is complete, but the catalog was not updated: {result.sync_error}")
        click.get_current_context().exit(result.sync_error.exit_code)


def _end_pending(console: Console, table: Table) -> Ended:
    """First completes or rolls back what dead runs left."""
    if not table.has_pending_runs():
        return Ended()
    with _interruptible("what was pending is still pending"), console.progress() as progress:
        ended = table.resume(progress=progress)
    for instant in ended.rolled_back:
        console.tell(f"rolled back {instant}, which a dead run left")
    for instant in ended.resumed:
        console.tell(f"completed the compaction at {instant}, which was pending")
    return ended


def _run(console: Console, table: Table, scheduled: str | Plan, *, force: bool) -> CompactionResult:
    instant = scheduled if isinstance(scheduled, str) else scheduled.instant
    is_pending = f"the compaction at {instant} is pending, and no reader sees any of it"
    with _interruptible(is_pending), console.progress() as progress:
        return table.execute(scheduled, progress=progress, force=force)


@contextmanager
def _interruptible(state: str) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block in order, so that the next run need not wait for this one's heartbeat to expire."""
    cure = f"{state}; run the same command again to continue"

    def stop(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop) if threading.current_thread() is threading.main_thread() else None
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted: {cure}") from None
    except (StorageError, EngineError) as failure:
        failure.add_note(cure)
        raise
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _say_idle(console: Console, table: Table, plan: Plan, ended: Ended) -> None:
    """Reports that there was nothing to do, which is not a failure."""
    state = table.state()
    cut_ms = state.cut_ms
    fresh = NO_CUT if cut_ms is None else table.freshness()
    document: dict[str, Any] = {
        "instant": None,
        "state": "idle",
        "idle": plan.idle,
        "already_reached": plan.is_reached,
        "resumed": list(ended.resumed),
        "rolled_back": list(ended.rolled_back),
        "watermark_ms": fresh.watermark_ms,
        "cut_ms": cut_ms,
        "metrics": {},
        **held_json(fresh),
    }
    if state.config.is_copy_on_write:
        console.result(document, f"nothing to do: {plan.idle}")
        return
    reached = (
        "no compaction by event time yet"
        if cut_ms is None
        else f"watermark {format_moment(fresh.files_watermark_ms if fresh.sources else fresh.watermark_ms)}, "
        f"cut {format_moment(cut_ms)}"
    )
    console.result(document, f"nothing to do: {plan.idle}", reached, *held_lines(fresh))


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
        "already_reached": result.is_already_reached,
        "resumed": list(result.ended.resumed),
        "rolled_back": list(result.ended.rolled_back),
        "watermark_ms": result.freshness.watermark_ms,
        "cut_ms": result.freshness.cut_ms,
        "late_records": result.freshness.late_records,
        "sync_error": None if result.sync_error is None else str(result.sync_error),
        "metrics": dict(result.metrics),
        "dropped_indexes": list(result.dropped_indexes),
    }


def _summary(result: CompactionResult) -> tuple[str, str]:
    fresh, metrics = result.freshness, result.metrics
    done = (
        "nothing to do: others have compacted everything before T"
        if result.is_already_reached
        else (
            f"compacted at {result.instant}: {counted(metrics['operations'], 'slice')}, "
            f"{counted(metrics['log_files_compacted'], 'log file')} merged, "
            f"{counted(metrics['log_files_linked'], 'left-over file')} made, "
            f"{counted(metrics['records_written'], 'record')} and {format_size(metrics['bytes_written'])} written"
        )
    )
    reached = (
        f"watermark {format_moment(fresh.watermark_ms)}, cut {format_moment(fresh.cut_ms)}, "
        f"{counted(fresh.late_records, 'late record')}"
    )
    return done, reached
