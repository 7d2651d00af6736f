"""Small tables whose rows have a key and an event time, which a test gives in hours."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from eventide import Table
from eventide_core.config import BUCKETS, CLOCK_SKEW_MS
from support.values.columns import schema_of

HOUR_MS = 3_600_000
EPOCH_MS = 1_700_000_400_000 - 1_700_000_400_000 % HOUR_MS
SCHEMA = schema_of(id=pa.string(), ms=pa.int64())
SOON: dict[str, str] = {
    BUCKETS: "1",
    CLOCK_SKEW_MS: "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
}
"""What is old is archived and cleaned soon."""


def at(hour: float) -> int:
    """The event time of an hour, in epoch milliseconds."""
    return EPOCH_MS + round(hour * HOUR_MS)


def rows(*hours: float) -> pa.Table:
    times = [at(hour) for hour in hours]
    columns: list[Any] = [[f"k{time}" for time in times], times]
    return pa.table(columns, schema=SCHEMA)


def made(path: Path, name: str = "t", version: int = 9) -> Table:
    return Table.create(
        str(path / name), schema=SCHEMA, record_key="id", event_time="ms", version=version, options=SOON
    )
