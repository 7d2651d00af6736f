"""A query that looks at every value of a table's plain columns, the same for every way to read it in Spark."""

from __future__ import annotations

from typing import Any


def sums_of(rows: Any) -> list[str]:
    """Counts and sums over a DataFrame."""
    from pyspark.sql import functions as f

    texts = [f.sum(f.length(name)) for name in ("id", "city", "note", "status")]
    sums = [f.sum(name) for name in ("event_ts", "x", "y", "z", "qty")]
    found = rows.agg(f.count("*"), *texts, *sums, f.max("ts"), f.max("_hoodie_commit_time")).collect()[0]
    return [str(value) for value in found]
