"""`eventide mark-done`: a file or a call for each window that is complete."""

from collections.abc import Sequence

import click

from eventide.cli.settings import Settings, common_options, event_time_option, table_verb
from eventide.table.table_service import events_json
from eventide_core.config import MARKER_EVERY, MARKER_NAME, MARKER_SINCE, MARKER_TO, MARKER_ZONE
from eventide_core.errors import counted, format_timestamp
from eventide_core.ports import MarkerEvent


@table_verb
@click.option("--every", metavar="LENGTH", help="The length of the windows, such as 15m, 1h, or 1d.")
@click.option("--to", metavar="ADDRESS", help="A directory on any storage, or a URL to call.  [default: in the table]")
@click.option("--name", metavar="NAME", help="The name of a file, by its window's begin, as strftime writes it.")
@click.option("--since", metavar="T", help="The first window holds T.  [default: the earliest event time]")
@click.option("--time-zone", metavar="ZONE", help="Where days and hours begin.  [default: UTC]")
@event_time_option
@common_options
def mark_done(
    settings: Settings,
    table: str,
    every: str | None,
    to: str | None,
    name: str | None,
    since: str | None,
    time_zone: str | None,
) -> None:
    """Mark windows as done, for tools that know files and calls.

    Puts a file, or calls a URL, for each window of TABLE that is complete: by its files, and by its sources. Withdraws the
    marker of a window that late data has reopened, and puts it again when the data is in. `serve` does the same in each
    round with the option eventide.done.marker.every.
    """
    for option, value in (
        (MARKER_EVERY, every),
        (MARKER_TO, to),
        (MARKER_NAME, name),
        (MARKER_SINCE, since),
        (MARKER_ZONE, time_zone),
    ):
        settings = settings.having(str(option), value)
    with settings.table(table) as opened:
        marked = opened.mark_done()
    settings.console.result(
        {"marked": events_json(marked)},
        *(f"{one.kind:8} [{format_timestamp(one.begin_ms)}, {format_timestamp(one.end_ms)})" for one in marked),
        *(marks_text(marked) or ["nothing is due"]),
    )


def marks_text(marked: Sequence[MarkerEvent]) -> list[str]:
    """How many windows were done and reopened, for people."""
    reopened = sum(not event.is_done for event in marked)
    done = len(marked) - reopened
    return [
        *([f"marked {counted(done, 'window')} as done"] if done else []),
        *([f"reopened {counted(reopened, 'window')}"] if reopened else []),
    ]
