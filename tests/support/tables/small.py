"""A table of two partitions whose event times are hours from now, and options with which everything is due soon."""

import time
from pathlib import Path

import pyarrow as pa

from eventide import Table
from eventide_core.config import BLOOM_ENTRIES, BUCKETS, CLOCK_SKEW_MS, HEARTBEAT_INTERVAL_MS
from support.values.columns import schema_of

HOUR_MS = 3_600_000
LATER_MS = int(time.time() * 1000) + 12 * HOUR_MS
"""After all records."""
SCHEMA = schema_of(id=pa.string(), part=pa.string(), ms=pa.int64(), word=pa.string())
# Two commits on the timeline, one retained. A writer without a heartbeat is dead after some milliseconds.
SOON = {
    BLOOM_ENTRIES: "100",
    CLOCK_SKEW_MS: "1",
    HEARTBEAT_INTERVAL_MS: "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}
OPTIONS = tuple(word for key, value in SOON.items() for word in ("--option", f"{key}={value}"))
SERVE = ("--engine", "local", "--every", "1h", "--data-latency", "30m", "--output", "json")


def make(path: Path, version: int, *, buckets: int = 1) -> Table:
    return Table.create(
        str(path),
        schema=SCHEMA,
        record_key="id",
        partition="part",
        event_time="ms",
        version=version,
        options={BUCKETS: buckets, **SOON},
    )


def rows(*values: tuple[str, int, str]) -> pa.Table:
    now = time.time_ns() // 1_000_000
    found = [(key, "ab"[int(key[1:]) % 2], now + hours * HOUR_MS, word) for key, hours, word in values]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found], schema=SCHEMA)


def seen(rows: pa.Table) -> dict[str, tuple[int, str]]:
    """Each key's row. Raises an error if a key exists twice."""
    found = {row["id"]: (row["ms"], row["word"]) for row in rows.to_pylist()}
    assert len(found) == rows.num_rows, f"a key is there twice: {rows.to_pylist()}"
    return found
