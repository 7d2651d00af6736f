"""A query that looks at every value of a table's plain columns, the same for every way to read it in Spark."""

from typing import Any

TEXTS = ("id", "city", "note", "status")
NUMBERS = ("event_ts", "x", "y", "z", "qty")
COLUMNS = (*TEXTS, *NUMBERS, "ts", "_hoodie_commit_time")


def sums_of(rows: Any) -> list[str]:
    """Counts and sums over a DataFrame."""
    from pyspark.sql import functions as f

    texts = [f.sum(f.length(name)) for name in TEXTS]
    sums = [f.sum(name) for name in NUMBERS]
    found = rows.agg(f.count("*"), *texts, *sums, f.max("ts"), f.max("_hoodie_commit_time")).collect()[0]
    return [str(value) for value in found]
