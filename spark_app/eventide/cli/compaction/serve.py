"""`eventide serve`: the service of a table or of a fleet, with one line for each round."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

import click
from click.core import ParameterSource

from eventide import Table
from eventide.cli.argument_types import Duration
from eventide.cli.compaction.fleet import FleetChoice, table_or_fleet
from eventide.cli.compaction.mark_done import marks_text
from eventide.cli.compaction.plan import compaction_options, foreign_plans_option
from eventide.cli.compaction.pulse import WAIT_SECONDS, BeatingProgress, Pulse
from eventide.cli.settings import Settings, common_options
from eventide.fleet.service import FleetRound, FleetService
from eventide.fleet.settings import FleetSettings
from eventide.formatting import format_duration
from eventide.results.detail import WORST
from eventide.table.table_service import Round
from eventide_core.action.freshness.freshness import watermark_text
from eventide_core.errors import counted, format_timestamp
from eventide_core.ports import Engine

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)


@click.command()
@table_or_fleet
@click.option(
    "--every",
    type=Duration(is_positive=True),
    metavar="DURATION",
    default="10m",
    show_default=True,
    help="The time from round to round of a single table.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    help="Ends after this many rounds, of all tables together, with the last exit code.",
)
@click.option(
    "--health",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="A local file for probes: touched at each sign of life, empty before the first round.",
)
@click.option(
    "--grace",
    type=Duration(is_positive=True),
    metavar="DURATION",
    help="After SIGTERM, how long the current step may go on; then it is interrupted.  [default: until it ends]",
)
@compaction_options
@foreign_plans_option
@common_options
@click.pass_context
def serve(
    ctx: click.Context,
    settings: Settings,
    table: str | None,
    chosen: FleetChoice,
    every: int,
    rounds: int | None,
    health: str | None,
    grace: int | None,
) -> None:
    """Serve a table or a fleet, round after round.

    Each round completes interrupted work on TABLE, runs what Hudi has planned but not started, compacts what is due, cleans,
    archives, and reports the freshness in one line. It reports a step that is busy or refused, and retries it in the next
    round. With --fleet or --catalog, one process serves many tables. The next table is the one that would miss its target
    lag soonest, by what its compactions cost so far. A table that fails is retried later, and never stops the others.

    SIGTERM ends the service after the current step, or interrupts it after --grace. The next process completes whatever a
    killed or interrupted one leaves. Under systemd (Type=notify), the service says when it is ready, and that it lives.
    """
    pulse = Pulse.started(health)
    if table is None:
        if ctx.get_parameter_source("every") is ParameterSource.COMMANDLINE:
            raise click.UsageError("--every is for a single TABLE: a fleet serves each table by its target lag")
        ctx.exit(_serve_fleet(settings, chosen.tables(settings), rounds, pulse, grace))
    for option, value in (("--database", chosen.database), ("--target-lag", chosen.target_lag)):
        if value is not None:
            raise click.UsageError(
                f"{option} goes with --catalog: a single TABLE is served in rounds, one each --every"
            )
    with settings.engine_by_size() as engine, _stop_on_signal(pulse, grace) as ending:
        opened = Table.open(table, settings.options, engine=engine)
        service = opened.service()
        opened.publish_metrics()  # a scraper finds its endpoint before the first round ends
        number, exit_code = 0, 0
        while not ending.is_set() and number != rounds:
            due = time.monotonic() + every
            number += 1
            at = format_timestamp(int(time.time()) * 1000)
            with settings.console.progress() as progress:
                done = service.round(BeatingProgress(progress, pulse), is_leaving=ending.is_set)
            event = {"round": number, "at": at, **done.to_json()}
            settings.console.event(event, f"{at} {_line(done)}")
            pulse.round_ended(event)
            exit_code = done.exit_code
            while number != rounds and not ending.is_set() and (left := due - time.monotonic()) > 0:
                ending.wait(min(left, WAIT_SECONDS))
                pulse.beat()
    ctx.exit(0 if ending.is_set() else exit_code)


def _serve_fleet(settings: Settings, fleet: FleetSettings, rounds: int | None, pulse: Pulse, grace: int | None) -> int:
    """Serves a fleet. Returns the exit code: 0 after a signal, otherwise the last round's."""
    with ExitStack() as running, _stop_on_signal(pulse, grace) as ending:
        service = FleetService(fleet, _shared_engine(settings, running))
        exit_code, unmet = 0, _say_unmet(settings, service, ())
        for done in service.run(ending, rounds=rounds, beat=pulse.beat):
            settings.console.event(done.to_json(), _fleet_line(done))
            pulse.round_ended(done.to_json())
            unmet = _say_unmet(settings, service, unmet)
            exit_code = done.exit_code
        return 0 if ending.is_set() else exit_code


def _shared_engine(settings: Settings, running: ExitStack) -> Callable[[], Engine | None]:
    """The engine of all large tables, which starts with the first of them; None on the local engine."""
    lock, started = threading.Lock(), list[Engine | None]()

    def engine() -> Engine | None:
        with lock:
            if not started:
                started.append(settings.spark_engine(running))
            return started[0]

    return engine


def _say_unmet(settings: Settings, service: FleetService, before: tuple[str, ...]) -> tuple[str, ...]:
    """Warns of tables that can't meet their targets when these change. Returns them."""
    forecast = service.forecast()
    unmet, workers = forecast.unmet, forecast.more_workers
    if unmet and unmet != before:
        more = f"{counted(workers, 'more worker')} would do" if workers else "no more workers help"
        left_out = len(unmet) - WORST
        names = ", ".join(unmet[:WORST]) + (f" and {left_out:,} more" if left_out > 0 else "")
        settings.console.say(f"warning: {counted(len(unmet), 'table')} will miss the target lag: {names}; {more}")
    return unmet


def _fleet_line(fleet_round: FleetRound) -> str:
    table, retry_at_ms = fleet_round.table, fleet_round.retry_at_ms
    at = format_timestamp(fleet_round.at_ms // 1000 * 1000)
    lag = f"lag {format_duration(fleet_round.lag_ms, 'unknown')} of {format_duration(table.target.lag_ms)}"
    retry = "" if retry_at_ms is None else f"; next try {format_timestamp(retry_at_ms // 1000 * 1000)}"
    done = fleet_round.error or "failed" if fleet_round.done is None else _line(fleet_round.done)
    return f"{at} {table.name}: {lag}, took {format_duration(fleet_round.took_ms)}; {done}{retry}"


@contextmanager
def _stop_on_signal(pulse: Pulse, grace_seconds: int | None) -> Iterator[threading.Event]:
    """An event that the first SIGTERM or Ctrl-C sets.

    The second one, or the end of the grace period, interrupts at once, which is as safe as a kill.
    """
    ending = threading.Event()

    def end(_: int, __: FrameType | None) -> None:
        if ending.is_set():
            raise KeyboardInterrupt
        ending.set()
        pulse.ending()
        if grace_seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, grace_seconds)

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield ending
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _changed(done: Round) -> list[str]:
    """The catalog tables that the round changed."""
    return [] if done.synced is None else [one.name for one in done.synced.tables if one.is_changed]


def _line(done: Round) -> str:
    fresh = done.freshness
    parts = [
        *(f"rolled back {instant}" for instant in done.rolled_back),
        *(f"compacted at {instant}, which was pending" for instant in done.resumed),
        *([f"compacted at {done.compacted}"] if done.compacted else []),
        *([f"nothing to compact: {done.idle}"] if done.idle else []),
        *([f"tagged {done.tagged.made}"] if done.tagged.made else []),
        *(f"deleted the tag {name}" for name in done.tagged.deleted),
        *marks_text(done.marked),
        *([f"deleted {counted(len(done.deleted), 'file')}"] if done.deleted else []),
        *([f"updated the catalog: {', '.join(changed)}"] if (changed := _changed(done)) else []),
        *([f"archived {counted(len(done.archived), 'instant')}"] if done.archived else []),
        *done.failures,
    ]
    if fresh is not None:
        parts.append(
            f"watermark {watermark_text(fresh)}, cut {format_timestamp(fresh.cut_ms)}, "
            f"{counted(fresh.late_records, 'late record')}"
        )
    return "; ".join(parts) or "ended before its first step"
