"""The trace of a compaction whose slices Spark's executors merge."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide import Table
from support.tables.traced import BEFORE, paths, recorded_spans, slices, table_of_two_slices

pytestmark = pytest.mark.slow


def test_slices_that_executors_merge_are_in_the_trace(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = table_of_two_slices(tmp_path / "trips")
    spans = recorded_spans(monkeypatch)
    result = Table.open(str(place)).compact(before=BEFORE, engine=spark)
    merge = paths(spans)["compact / execute / merge"]
    found: list[Mapping[str, Any]] = [span.attributes or {} for span in slices(spans)]
    assert sorted((one["partition"], one["rows"]) for one in found) == [("day=1", 1), ("day=2", 2)]
    for one in found:
        (base,) = (place / one["partition"]).glob(f"{one['file_group']}*_{result.instant}.parquet")
        assert base.stat().st_size == one["bytes_written"]
    for span in slices(spans):
        # Spark merges nothing before the step begins, and a result is there before it ends.
        assert (merge.start_time or 0) < (span.start_time or 0) < (span.end_time or 0) < (merge.end_time or 0)
