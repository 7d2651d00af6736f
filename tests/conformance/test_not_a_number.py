"""NaN, which is the greatest float in Spark: neither the footer of a new base file nor its statistics in the metadata table
let a reader skip a row that has it, nor any other. Hudi leaves NaN out of its own ranges: a compaction heals those."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from support.judge import HudiJudge
from support.judge.hudi_judge import Question
from support.judge.options import MERGE_ON_READ, NO_METADATA_TABLE, SIMPLE_INDEX, table_name, table_version
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64(), d=pa.float64(), f=pa.float32())
VALUES = {"one": 1.0, "nan": math.nan, "zero": 0.0, "minus": -0.0, "none": None}
WHERES = {
    "d > 5": ["nan"],
    "f > 5": ["nan"],
    "d = double('NaN')": ["nan"],
    "d <> 1": ["minus", "nan", "zero"],
    "d = 0": ["minus", "zero"],
    "d = -0.0": ["minus", "zero"],
    "d is null": ["none"],
}
STATISTICS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
WITH_STATISTICS = {
    "d > 5": ["nan", "seven"],
    "d > 5 and event_ts > 0": ["nan", "seven"],
    "d >= 0.0": ["minus", "nan", "one", "seven", "zero"],
    "d in (0.0, double('NaN'))": ["minus", "nan", "zero"],
    "d = -0.0": ["minus", "zero"],
    "f >= float('5')": ["nan", "seven"],
    "d is null": ["none"],
}


@pytest.mark.broad
def test_no_row_is_skipped_by_the_footer_of_a_new_base_file(judge_111: HudiJudge, tmp_path: Path) -> None:
    path = tmp_path / "floats"
    options = MERGE_ON_READ | SIMPLE_INDEX | NO_METADATA_TABLE | table_version(9) | table_name("floats")
    rows = [{"id": key, "part": "a", "event_ts": 1000, "d": value, "f": value} for key, value in VALUES.items()]
    later: list[dict[str, Any]] = [{**row, "event_ts": 2000} for row in rows]
    judge_111.write(path, rows, SCHEMA, options=options)
    judge_111.write(path, later, SCHEMA, options=options)
    Table.open(str(path)).compact(before="2026-01-01T00:00Z")
    answers = judge_111.ask([Question(path, where=where) for where in WHERES], ["id"])
    found = [sorted(map(str, answer.column("id").to_pylist())) for answer in answers]
    assert dict(zip(WHERES, found, strict=True)) == WHERES


@pytest.mark.broad
def test_no_row_is_skipped_by_the_statistics_of_a_compaction_a_write_or_a_rebuild(
    judge_111: HudiJudge, tmp_path: Path
) -> None:
    """No range lets Spark find `d = NaN`: it keeps the ranges in memory, and their bounds leave out NaN."""
    path = tmp_path / "floats"
    options = MERGE_ON_READ | SIMPLE_INDEX | STATISTICS | table_version(9) | table_name("floats")
    schema = SCHEMA
    judge_111.write(path, rows_of(1000), schema, options=options)
    judge_111.write(path, rows_of(2000), schema, options=options)
    table = Table.open(str(path))
    table.compact(before="2026-01-01T00:00Z")
    assert found_with_statistics(judge_111, path) == WITH_STATISTICS
    table.upsert(pa.Table.from_pylist(rows_of(3000), schema=schema))
    assert found_with_statistics(judge_111, path) == WITH_STATISTICS
    table.rebuild_metadata_table()
    assert found_with_statistics(judge_111, path) == WITH_STATISTICS


def rows_of(event_ts: int) -> list[dict[str, Any]]:
    """NaN is in a partition of its own kind: the other one has only a number."""
    named = [("a", *item) for item in VALUES.items()] + [("b", "seven", 7.0)]
    return [{"id": key, "part": part, "event_ts": event_ts, "d": value, "f": value} for part, key, value in named]


def found_with_statistics(judge: HudiJudge, path: Path) -> dict[str, list[str]]:
    answers = judge.ask([Question(path, options=SKIPPING, where=where) for where in WITH_STATISTICS], ["id"])
    found = [sorted(map(str, answer.column("id").to_pylist())) for answer in answers]
    return dict(zip(WITH_STATISTICS, found, strict=True))
