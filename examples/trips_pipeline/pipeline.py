"""From raw trips to revenue by the hour to a report by the day, with late trips, each step as often as you like.

    python pipeline.py /lake 2026-03-03T00:00Z [settings.toml]

    trips            raw: written by anybody; event time: when a trip ended
    hourly_revenue   a row for each hour that has ended; event time: the hour's begin
    daily_report     a row for each day that has ended

Each step takes the closed windows of the table before it, and writes their rows with what they were made of. A window comes
again if late data changed it. Then its rows are computed again, and replace the old ones. So it does no harm to kill this
program at any point, and to run it again. Prints what was done as JSON, with the freshness of the end of the chain.
"""

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide import NothingToDoError, Table
from eventide.table.window import Window

SINCE = "2026-03-01T00:00Z"
TRIPS = pa.schema(
    [
        pa.field("trip", pa.string()),
        pa.field("city", pa.string()),
        pa.field("ended_at", pa.timestamp("us", "UTC")),
        pa.field("cents", pa.int64()),
    ]
)
SUMS = pa.schema(
    [
        pa.field("begin", pa.timestamp("us", "UTC")),
        pa.field("name", pa.string()),
        pa.field("trips", pa.int64()),
        pa.field("cents", pa.int64()),
    ]
)


def table(lake: str, name: str, schema: pa.Schema, key: str, event_time: str, options: Mapping[str, str]) -> Table:
    """The table, which is created if it isn't there."""
    path = f"{lake}/{name}"
    try:
        return Table.open(path, options)
    except FileNotFoundError:
        return Table.create(path, schema=schema, record_key=key, event_time=event_time, options=options)


def compacted(of: Table, until: str | int | None) -> None:
    """Brings everything before a time into the read-optimized view, with an exact cut, if that is not done yet."""
    if until is None:
        return
    try:
        of.compact(before=until, cut="exact")
    except NothingToDoError:
        return  # the table is empty


def windows(of: Table, every: str, consumer: str) -> Iterator[Window]:
    # This job runs once at a time, so a window that a run before holds is of one that died.
    yield from of.windows(every, consumer, since=SINCE, take_over=True)


def summed(window: Window, trips: Any, cents: Any) -> pa.Table:
    """The row of a window. It has one even without trips, so that the derived table is as fresh as its source."""
    name = window.begin.strftime("%Y-%m-%dT%H")
    return pa.table([[window.begin], [name], [trips or 0], [cents or 0]], schema=SUMS)


def run(lake: str, until: str, options: Mapping[str, str]) -> dict[str, Any]:
    trips = table(lake, "trips", TRIPS, "trip", "ended_at", options)
    hourly = table(lake, "hourly_revenue", SUMS, "name", "begin", options)
    daily = table(lake, "daily_report", SUMS, "name", "begin", options)
    done = {"hours": 0, "days": 0, "corrections": 0}

    compacted(trips, until)
    for window in windows(trips, "1h", "hourly_revenue"):
        rows = window.rows().to_arrow(["cents"])
        hourly.upsert(summed(window, rows.num_rows, pc.sum(rows.column("cents")).as_py()), sources={trips: window})
        window.done()
        done["corrections" if window.is_correction else "hours"] += 1

    compacted(hourly, complete_until(hourly))
    for window in windows(hourly, "1d", "daily_report"):
        rows = window.rows().to_arrow(["trips", "cents"])
        sums = (pc.sum(rows.column(name)).as_py() for name in ("trips", "cents"))
        daily.upsert(summed(window, *sums), sources={hourly: window})
        window.done()
        done["corrections" if window.is_correction else "days"] += 1

    compacted(daily, complete_until(daily))
    return {**done, "fresh_until_ms": daily.freshness().watermark_ms if complete_until(daily) else None}


def complete_until(derived: Table) -> int | None:
    """The time up to which the table was made of its source."""
    return min((source.progress_ms or 0 for source in derived.freshness().sources), default=None)


def main() -> None:
    lake, until, *settings = sys.argv[1:]
    options = tomllib.loads(Path(settings[0]).read_text())["storage"] if settings else {}
    print(json.dumps(run(lake, until, options)))


if __name__ == "__main__":
    main()
