"""NaN, which is the greatest float in Spark: the footer of a new base file lets no reader skip a row that has it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa

from eventide import Table
from support.judge import HudiJudge
from support.judge.hudi_judge import Question
from support.judge.options import MERGE_ON_READ, NO_METADATA_TABLE, SIMPLE_INDEX, table_name, table_version

FIELDS: list[pa.Field[Any]] = [
    pa.field("id", pa.string()),
    pa.field("part", pa.string()),
    pa.field("event_ts", pa.int64()),
    pa.field("d", pa.float64()),
    pa.field("f", pa.float32()),
]
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


def test_no_row_is_skipped_by_the_footer_of_a_new_base_file(judge_111: HudiJudge, tmp_path: Path) -> None:
    path = tmp_path / "floats"
    options = MERGE_ON_READ | SIMPLE_INDEX | NO_METADATA_TABLE | table_version(9) | table_name("floats")
    rows = [{"id": key, "part": "a", "event_ts": 1000, "d": value, "f": value} for key, value in VALUES.items()]
    later: list[dict[str, Any]] = [{**row, "event_ts": 2000} for row in rows]
    judge_111.write(path, rows, pa.schema(FIELDS), options=options)
    judge_111.write(path, later, pa.schema(FIELDS), options=options)
    Table.open(str(path)).compact(before="2026-01-01T00:00Z")
    answers = judge_111.ask([Question(path, where=where) for where in WHERES], ["id"])
    found = [sorted(map(str, answer.column("id").to_pylist())) for answer in answers]
    assert dict(zip(WHERES, found, strict=True)) == WHERES
