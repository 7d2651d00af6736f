"""A pipeline's job that keeps a table fresh: its own directories, its own SparkSession, and eventide as a library in it.

    python job.py /lake/trips 2026-11-21T00:30:00+00:00
    python job.py s3://lake/trips 2026-11-21T00:30:00+00:00 settings.toml
    python job.py hdfs://namenode:8020/lake/trips 2026-11-21T00:30:00+00:00 settings.toml

Where the table lies is its URI and what settings.toml says under [storage]; the job is the same.
"""

import json
import sys
import tomllib
from datetime import datetime
from pathlib import Path

from core.freshness_promise import promised_event_time
from pyspark.sql import SparkSession

from eventide import Table


def main(uri: str, run_at: str, settings: str | None = None) -> None:
    options = {} if settings is None else tomllib.loads(Path(settings).read_text())["storage"]
    spark = SparkSession.builder.appName("trips").master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        trips = Table.open(uri, options, engine=spark)
        plan = trips.plan_compaction(before=promised_event_time(datetime.fromisoformat(run_at)).isoformat())
        print(plan.explain(), file=sys.stderr)
        result = trips.compact(plan, engine=spark)
        report = {
            "link_mode": plan.to_json()["link_mode"],
            "watermark_ms": result.freshness.watermark_ms,
            "snapshot_rows": trips.snapshot().to_spark(spark).count(),
            "read_optimized_rows": trips.read_optimized().to_spark(spark).count(),
        }
    finally:
        spark.stop()
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
