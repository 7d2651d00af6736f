"""`eventide windows`: the closed windows of event time that a consumer has not had yet."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click

from eventide.cli.argument_types import FilePath
from eventide.cli.console import table_of
from eventide.cli.row_files import check_target, write_rows
from eventide.cli.settings import Settings, common_options, table_verb
from eventide.table.table import Table
from eventide.table.window import Window, Windows
from eventide_core.action.windows.progress import ConsumerProgress, LatePolicy
from eventide_core.errors import WindowTakenError, counted, format_timestamp

_LISTED = 100  # of the windows that are due; a consumer that begins may have years of hours before it


@table_verb
@click.option("--every", required=True, metavar="LENGTH", help="The length of the windows, such as 15m, 1h, or 1d.")
@click.option("--consumer", required=True, metavar="NAME", help="Who gets the windows, each of them once.")
@click.option("--time-zone", default="UTC", show_default=True, metavar="ZONE", help="Where days and hours begin.")
@click.option("--since", metavar="T", help="The first window holds T.  [default: the earliest event time]")
@click.option("--next", "is_next", is_flag=True, help="Takes the next window, and writes its rows with --to.")
@click.option(
    "--to", type=FilePath(), metavar="FILE", help="Writes to FILE.parquet, .csv, .tsv, .json, .jsonl, or .ndjson."
)
@click.option("--done", is_flag=True, help="Marks the window as done: with --next the new one, else the open one.")
@click.option("--token", type=int, metavar="N", help="With --done: only if the open window has this token.")
@click.option(
    "--late",
    type=click.Choice([str(policy) for policy in LatePolicy]),
    default="redeliver",
    show_default=True,
    help="What happens to a done window that late data changes.",
)
@click.option(
    "--corrections-for", metavar="LENGTH", help="How long before the next window one is corrected.  [default: ever]"
)
@click.option("--lease", default="15m", show_default=True, metavar="LENGTH", help="How long a runner holds a window.")
@click.option(
    "--keep", default="7d", show_default=True, metavar="LENGTH", help="How long a clean keeps what is not read."
)
@click.option("--take-over", is_flag=True, help="Takes the window from another runner, which is dead.")
@click.option("--renew", is_flag=True, help="Goes on with the latest view where files that are needed were cleaned.")
@common_options
def windows(
    settings: Settings,
    table: str,
    every: str,
    consumer: str,
    is_next: bool,
    to: Path | None,
    done: bool,
    token: int | None,
    **terms: Any,
) -> None:
    """Deliver closed windows of event time.

    Lists the windows of TABLE that the consumer has not had yet, and writes nothing. With --next, takes the next one: its
    rows stay the same until it is marked as done. A window is closed when the watermark has passed its end. A window that
    late data changed after it was done comes again as a correction: --next looks for those.
    """
    if to is not None:
        if not is_next:
            raise click.UsageError("--to goes with --next")
        check_target(to)
    if token is not None and (is_next or not done):
        raise click.UsageError("--token goes with --done, without --next")
    windows = Table.open(table, settings.options).windows(every, consumer, **terms)
    if is_next:
        _take(settings, windows, to, is_done=done)
    elif done:
        _end(settings, windows, token)
    else:
        _list(settings, windows)


def _take(settings: Settings, windows: Windows, to: Path | None, *, is_done: bool) -> None:
    window = next(iter(windows), None)
    if window is None:
        settings.console.result({"windows": []}, f"no window of the consumer {windows.consumer} is due")
        return
    rows = window.rows()
    count = len(rows) if to is None else write_rows(to, rows.schema, rows.to_batches())
    if is_done:
        window.done()
    document = {**_json(window), "rows": count, "file": None if to is None else str(to)}
    where = "" if to is None else f" written to {to}"
    text = f"{window}: {counted(count, 'row')}{where}; {'done' if is_done else f'token {window.token}'}"
    settings.console.result({"windows": [document]}, text)


def _end(settings: Settings, windows: Windows, token: int | None) -> None:
    window = windows.open_window(token)
    if window is None:
        if token is None:
            raise click.UsageError(f"no window of the consumer {windows.consumer} is open; take one with --next")
        raise WindowTakenError(
            f"no window with the token {token} of the consumer {windows.consumer} is open; take one with --next"
        )
    window.done()
    settings.console.result({"windows": [_json(window)]}, f"{window}: done")


def _list(settings: Settings, windows: Windows) -> None:
    progress = windows.progress()
    listed = list(_listed(windows, progress))
    document = {"windows": listed, "next_ms": progress.next_ms, "closed_ms": progress.closed_ms}
    if not listed:
        closed = format_timestamp(progress.closed_ms)
        settings.console.result(
            document, f"no window of the consumer {windows.consumer} is due; windows are closed up to: {closed}"
        )
        return
    rows = ((one["begin"], one["end"], one["state"], one["token"]) for one in listed)
    settings.console.result(document, table_of("", ("begin", "end", "state", "token"), rows))


def _listed(windows: Windows, progress: ConsumerProgress) -> Iterator[dict[str, Any]]:
    """The open window, the corrections that are known to be due, the closed windows, and the ledger."""
    calendar, held = windows.terms.calendar, progress.open
    if held is not None:
        yield _of(held.begin_ms, held.end_ms, "open", held.is_correction, held.token)
    for begin_ms in progress.due[1 if held is not None and held.is_correction else 0 :]:
        yield _of(begin_ms, calendar.end_of(begin_ms), "due", True)
    yield from islice(_closed(windows, progress), _LISTED)
    for entry in progress.ledger:
        yield {**_of(entry.begin_ms, entry.end_ms, "ledger", True), "instant": entry.instant}


def _closed(windows: Windows, progress: ConsumerProgress) -> Iterator[dict[str, Any]]:
    held, at = progress.open, progress.next_ms
    if held is not None and not held.is_correction:
        at = held.end_ms
    while at is not None and progress.closed_ms is not None:
        end_ms = windows.terms.calendar.end_of(at)
        if end_ms > progress.closed_ms:
            return
        yield _of(at, end_ms, "due", False)
        at = end_ms


def _of(begin_ms: int, end_ms: int, state: str, is_correction: bool, token: int | None = None) -> dict[str, Any]:
    return {
        "begin": format_timestamp(begin_ms),
        "end": format_timestamp(end_ms),
        "begin_ms": begin_ms,
        "end_ms": end_ms,
        "state": state,
        "is_correction": is_correction,
        "token": token,
    }


def _json(window: Window) -> dict[str, Any]:
    state = "done" if window.is_done else "open"
    document = _of(window.begin_ms, window.end_ms, state, window.is_correction, window.token)
    return {**document, "instant": window.instant}
