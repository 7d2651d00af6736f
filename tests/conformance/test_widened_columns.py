"""A column that Hudi widened, on a table with column statistics: eventide writes and compacts, and Hudi skips nothing."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import format_timestamp
from support.judge import HudiJudge
from support.judge.hudi_judge import Question

OPTIONS = {
    "hoodie.table.name": "widened",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ms",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
SKIPPING = {"hoodie.enable.data.skipping": "true", "hoodie.metadata.enable": "true"}
KINDS = [
    pytest.param(before, after, marks=marks, id=f"{before} to {after}")
    for before, after, marks in (
        (pa.int32(), pa.float64(), pytest.mark.broad),
        (pa.int32(), pa.string(), pytest.mark.proof),
        (pa.int32(), pa.int64(), pytest.mark.proof),
        (pa.int32(), pa.float32(), pytest.mark.proof),
        (pa.int64(), pa.float64(), pytest.mark.proof),
        (pa.float32(), pa.float64(), pytest.mark.proof),
    )
]


def schema(kind: pa.DataType) -> pa.Schema:
    named: list[pa.Field[Any]] = [
        pa.field("id", pa.string()),
        pa.field("part", pa.string()),
        pa.field("ms", pa.int64()),
    ]
    return pa.schema([*named, pa.field("n", kind)])


def rows(kind: pa.DataType, ms: int, **values: int) -> list[dict[str, Any]]:
    cast: Any = {pa.string(): str, pa.float64(): float, pa.float32(): float}.get(kind, int)
    return [{"id": key, "part": "a", "ms": ms, "n": cast(value)} for key, value in values.items()]


@pytest.mark.parametrize(("before", "after"), KINDS)
def test_a_widened_column_is_compacted_and_written_and_no_row_is_skipped(
    judge_111: HudiJudge, tmp_path: Path, before: pa.DataType, after: pa.DataType
) -> None:
    path, one, ten = tmp_path / "widened", 9, 10  # as texts, ten comes before nine
    judge_111.write(path, rows(before, 1000, k1=one, k2=ten), schema(before), options=OPTIONS)
    judge_111.write(path, rows(before, 2000, k1=one), schema(before), options=OPTIONS)
    judge_111.write(path, rows(after, 3000, k3=30), schema(after), options=OPTIONS)
    judge_111.write(path, rows(after, 9000, k2=ten), schema(after), options=OPTIONS)
    table = Table.open(str(path), OPTIONS)
    table.compact(before=format_timestamp(5000))
    assert table.verify(deep=True).ok
    seen_by_all(judge_111, path, after, {"k1": one, "k2": ten, "k3": 30})

    table.upsert(pa.Table.from_pylist(rows(after, 10_000, k4=70), schema=schema(after)))
    seen_by_all(judge_111, path, after, {"k1": one, "k2": ten, "k3": 30, "k4": 70})

    judge_111.write(path, rows(after, 11_000, k5=5), schema(after), options=OPTIONS)
    table.compact(before=format_timestamp(20_000))
    assert table.verify(deep=True).ok
    seen_by_all(judge_111, path, after, {"k1": one, "k2": ten, "k3": 30, "k4": 70, "k5": 5})


def seen_by_all(judge: HudiJudge, path: Path, kind: pa.DataType, expected: dict[str, int]) -> None:
    """Every row is found by a filter on its value, which prunes by the statistics of files and partitions."""
    questions = [
        Question(path, options=SKIPPING, where=f"n = '{value}'" if kind == pa.string() else f"n = {value}")
        for value in expected.values()
    ]
    found = [answer.column("id").to_pylist() for answer in judge.ask(questions, ["id"])]
    assert found == [[key] for key in expected]
