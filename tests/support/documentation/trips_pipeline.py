"""The pipeline of `examples/trips_pipeline`, as a function that a process can run and be killed in, and its oracle."""

import runpy
import traceback
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from eventide import Table
from eventide_core.config import BUCKETS, CLOCK_SKEW_MS, HEARTBEAT_INTERVAL_MS

PIPELINE = Path(__file__).parents[3] / "examples" / "trips_pipeline" / "pipeline.py"
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
OPTIONS: dict[str, str] = {BUCKETS: "1", CLOCK_SKEW_MS: "1", HEARTBEAT_INTERVAL_MS: "1"}
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

Trip = tuple[str, datetime, int]
Sums = dict[str, tuple[int, int]]


def code() -> dict[str, Any]:
    return runpy.run_path(str(PIPELINE))


def run_pipeline(lake: str, until: str) -> tuple[int, str]:
    """Picklable: runs it once. Returns an exit code and what it says of a failure."""
    try:
        code()["run"](lake, until, OPTIONS)
    except Exception:
        return 1, traceback.format_exc()
    return 0, ""


def write(lake: str, trips: Iterable[Trip]) -> None:
    """Upserts trips into the raw table."""
    pipeline, rows = code(), list(trips)
    table = pipeline["table"](lake, "trips", pipeline["TRIPS"], "trip", "ended_at", OPTIONS)
    ids, times, cents = zip(*rows, strict=True)
    columns: list[Any] = [ids, ["lima"] * len(rows), times, cents]
    table.upsert(pa.table(columns, schema=pipeline["TRIPS"]))


def oracle(trips: Iterable[Trip], until: datetime, span: timedelta) -> Sums:
    """The sums of each span that has ended, of the last version of each trip."""
    found: dict[datetime, tuple[int, int]] = {}
    begin = BEGIN
    while begin + span <= until:
        found[begin] = (0, 0)
        begin += span
    last: dict[str, tuple[datetime, int]] = {}
    for trip, ended_at, cents in trips:
        if trip not in last or ended_at >= last[trip][0]:
            last[trip] = (ended_at, cents)
    for ended_at, cents in last.values():
        begin = BEGIN + (ended_at - BEGIN) // span * span
        if begin in found:
            count, total = found[begin]
            found[begin] = (count + 1, total + cents)
    return {f"{begin:%Y-%m-%dT%H}": sums for begin, sums in found.items()}


def sums_of(lake: str, name: str) -> Sums:
    """The rows of a derived table's read-optimized view."""
    rows = Table.open(f"{lake}/{name}", OPTIONS).read_optimized().to_arrow().to_pylist()
    found: Sums = {row["name"]: (row["trips"], row["cents"]) for row in rows}
    assert len(found) == len(rows), "a row is there twice"
    return found
