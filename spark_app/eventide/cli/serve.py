"""`eventide serve`: the table service, with one line for each round."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from eventide.cli.plan import chosen, compaction_options, foreign_plans_option
from eventide.cli.settings import Duration, Settings, common_options
from eventide.table_service import Round
from eventide_core.action.freshness import watermark_text
from eventide_core.config import ALIGN, ALIGN_ZONE, DATA_LATENCY, EVENT_TIME_FIELD, FOREIGN_PLANS
from eventide_core.errors import counted, format_timestamp

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@click.command()
@click.argument("table")
@click.option(
    "--every",
    type=Duration(),
    metavar="DURATION",
    default="10m",
    show_default=True,
    help="The time from round to round.",
)
@click.option("--rounds", type=click.IntRange(min=1), help="Ends after this many rounds, with the last exit code.")
@compaction_options
@foreign_plans_option
@common_options
@click.pass_context
def serve(
    ctx: click.Context,
    settings: Settings,
    table: str,
    every: int,
    rounds: int | None,
    data_latency: int | None,
    cut: str | None,
    link_mode: str | None,
    align: str | None,
    time_zone: str | None,
    event_time: str | None,
    foreign_plans: bool | None,
) -> None:
    """Serve a table, round after round.

    Each round completes interrupted work on TABLE, runs what Hudi has planned but not started, compacts what is due, cleans,
    archives, and reports the freshness in one line. It reports a step that is busy or refused, and retries it in the next
    round.
    SIGTERM ends the service after the current step. The next process completes whatever a killed one leaves.
    """
    settings = settings.having(EVENT_TIME_FIELD, event_time)
    settings = settings.having(DATA_LATENCY, None if data_latency is None else str(data_latency))
    settings = settings.having(FOREIGN_PLANS, chosen(foreign_plans))
    settings = settings.having(ALIGN, align).having(ALIGN_ZONE, time_zone)
    with settings.table(table, on_spark_by_default=True) as opened, _stop_on_signal() as ending:
        service = opened.service(cut=cut, link_mode=link_mode)
        opened.publish_metrics()  # a scraper finds its endpoint before the first round ends
        number, exit_code = 0, 0
        while not ending.is_set() and number != rounds:
            due = time.monotonic() + every
            number += 1
            at = format_timestamp(int(time.time()) * 1000)
            with settings.console.progress() as progress:
                done = service.round(progress, is_leaving=ending.is_set)
            settings.console.result({"round": number, "at": at, **done.to_json()}, f"{at} {_line(done)}")
            exit_code = done.exit_code
            if number != rounds:
                ending.wait(max(0.0, due - time.monotonic()))
    ctx.exit(0 if ending.is_set() else exit_code)


@contextmanager
def _stop_on_signal() -> Iterator[threading.Event]:
    """An event that the first SIGTERM or Ctrl-C sets. The second one interrupts at once, which is as safe as a kill."""
    ending = threading.Event()

    def end(_: int, __: FrameType | None) -> None:
        if ending.is_set():
            raise KeyboardInterrupt
        ending.set()

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield ending
    finally:
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
        *([f"deleted {counted(len(done.deleted), 'file')}"] if done.deleted else []),
        *([f"updated the catalog: {', '.join(changed)}"] if (changed := _changed(done)) else []),
        *([f"archived {counted(len(done.archived), 'instant')}"] if done.archived else []),
        *(str(trouble) for trouble in done.troubles),
    ]
    if fresh is not None:
        parts.append(
            f"watermark {watermark_text(fresh)}, cut {format_timestamp(fresh.cut_ms)}, "
            f"{counted(fresh.late_records, 'late record')}"
        )
    return "; ".join(parts)
