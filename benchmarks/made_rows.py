"""The rows of every commit of a workload, drawn from their keys: the same ones whoever writes them, and whenever."""

from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f


def first_rows(spark: SparkSession, workload: dict[str, Any]) -> DataFrame:
    """What the first commit holds: every key, in as many tasks as there are slices."""
    numbers = spark.range(0, workload["records"], 1, workload["slices"]).withColumnRenamed("id", "n")
    return _rows_of(numbers, workload, 0).sortWithinPartitions("id")


def changes(spark: SparkSession, workload: dict[str, Any]) -> list[tuple[int, str, DataFrame]]:
    """The later commits: their number, `upsert` or `delete`, and their rows."""
    found: list[tuple[int, str, DataFrame]] = []
    shares = [*[(workload["share"], "upsert")] * workload["upserts"], (workload["deleted"], "delete")]
    for commit, (share, operation) in enumerate(shares, start=1):
        # A number of its own for each key and commit, uniform below a million.
        drawn = f.pmod(f.xxhash64("n", f.lit(7000 + commit)), f.lit(1_000_000))
        numbers = spark.range(0, workload["records"], 1, 2).withColumnRenamed("id", "n")
        if share:
            rows = _rows_of(numbers.where(drawn < share * 1_000_000), workload, commit)
            found.append((commit, operation, rows))
    return found


def _rows_of(numbers: DataFrame, workload: dict[str, Any], commit: int) -> DataFrame:
    def drawn(stream: int) -> Column:
        return f.xxhash64(f.col("n"), f.lit(commit * 1000 + stream))

    def uniform(stream: int) -> Column:
        return f.pmod(drawn(stream), f.lit(1_000_000)) / 1_000_000.0

    first_ms, commit_ms = workload["first_event_ms"], workload["commit_ms"]
    lateness = f.when(uniform(2) < 0.05, f.pmod(drawn(3), f.lit(workload["late_commits"] * commit_ms))).otherwise(
        f.lit(0)
    )
    event = f.lit(first_ms + commit * commit_ms) + f.pmod(drawn(1), f.lit(commit_ms)) - lateness
    statuses = f.array(*(f.lit(status) for status in ("new", "open", "done", "void")))
    columns = [
        f.md5(f.col("n").cast("string")).alias("id"),
        f.when(f.col("n") < workload["records"] // 2, "a").otherwise("b").alias("part"),
        event.cast("long").alias("event_ts"),
        f.timestamp_millis(event).alias("ts"),
        f.concat(f.lit("city-"), f.pmod(drawn(4), f.lit(500)).cast("string")).alias("city"),
        f.concat(f.lit("note "), f.hex(drawn(5)), f.lit(" "), f.hex(drawn(6))).alias("note"),
        f.element_at(statuses, (f.pmod(drawn(7), f.lit(4)) + 1).cast("int")).alias("status"),
        (uniform(8) * 1000).alias("x"),
        (uniform(9) * 90).alias("y"),
        f.when(uniform(10) < 0.1, None).otherwise(uniform(11)).alias("z"),
        f.pmod(drawn(12), f.lit(10_000)).cast("int").alias("qty"),
    ]
    if workload["columns"] == "wide":
        kinds = (
            lambda s: f.pmod(drawn(s), f.lit(100_000)),
            uniform,
            lambda s: f.concat(f.lit("v"), f.pmod(drawn(s), f.lit(5000)).cast("string")),
        )
        columns += [kinds[place % 3](100 + place).alias(f"c{place:02}") for place in range(89)]
    if workload["columns"] == "nested":
        item = f.struct(f.pmod(drawn(20), f.lit(900)).alias("sku"), uniform(21).alias("price"))
        other = f.struct(f.pmod(drawn(22), f.lit(900)).alias("sku"), uniform(23).alias("price"))
        columns += [
            f.struct(uniform(24).alias("lat"), uniform(25).alias("lon"), f.hex(drawn(26)).alias("code")).alias("place"),
            f.when(uniform(27) < 0.5, f.array(item)).otherwise(f.array(item, other)).alias("items"),
            f.create_map(f.lit("a"), f.hex(drawn(28)), f.lit("b"), f.hex(drawn(29))).alias("tags"),
        ]
    if workload["columns"] == "decimals":
        columns += [
            (uniform(30) * 100_000).cast("decimal(18,4)").alias("price"),
            (uniform(31) * 1_000_000_000).cast("decimal(38,10)").alias("total"),
            f.date_add(f.lit("2026-01-01").cast("date"), f.pmod(drawn(32), f.lit(300)).cast("int")).alias("day"),
        ]
    return numbers.select(*columns)
