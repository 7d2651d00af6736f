"""A delete without an ordering value, then a row of the same key: Hudi 1.0 fails to merge the two, by itself, too.

Hudi writes the int 0 as such a delete's ordering value, whatever the type of the ordering field, and Hudi 1.0 then compares
an Integer with a Long: `ClassCastException`, in queries and compactions. Once eventide has compacted them, Hudi 1.0 reads
the table.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from golden.histories import EPOCH_MS, PLAIN
from support.judge import HudiJudge
from support.judge.hudi_judge import JudgeError
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    SIMPLE_INDEX,
    table_name,
    table_version,
)

OPTIONS = {
    **MERGE_ON_READ,
    **AVRO_LOG_BLOCKS,
    **SIMPLE_INDEX,
    **NO_METADATA_TABLE,
    **table_version(8),
    **EVENT_TIME_ORDERING,
    **table_name("unordered_deletes"),
}
MISMATCH = r"ClassCastException: class java\.lang\.(Integer|Long) cannot be cast to class java\.lang\.(Integer|Long)"


def rows(keys: list[int], word: str, ms: int) -> pa.Table:
    found = [
        {"id": f"k{key}", "part": "ab"[key % 2], "event_ts": EPOCH_MS + ms, "val": f"{word}-{key}", "amount": 1.0}
        for key in keys
    ]
    return pa.Table.from_pylist(found, schema=PLAIN)


def words(found: pa.Table) -> list[str]:
    return sorted(str(value) for value in found.column("val").to_pylist())


@pytest.mark.broad
def test_hudi_1_0_reads_a_row_after_an_unordered_delete_once_eventide_compacts(
    tmp_path: Path, judge_102: HudiJudge
) -> None:
    path = tmp_path / "unordered_deletes"
    judge_102.write(path, rows([0, 1, 2, 3], "base", 0), options=OPTIONS, operation="bulk_insert", mode="overwrite")
    unordered = {key: value for key, value in OPTIONS.items() if key != "hoodie.datasource.write.precombine.field"}
    judge_102.write(path, rows([0, 1], "gone", 50).select(["id", "part"]), options=unordered, operation="delete")
    judge_102.write(path, rows([0], "again", 100), options=OPTIONS)
    with pytest.raises(JudgeError, match=MISMATCH):
        judge_102.read(path)
    judge_102.schedule_compaction(path, OPTIONS)
    with pytest.raises(JudgeError, match=MISMATCH):
        judge_102.run_compaction(path, OPTIONS)

    table = Table.open(str(path), {"hoodie.payload.event.time.field": "event_ts"})
    expected = ["again-0", "base-2", "base-3"]
    assert words(table.snapshot().to_arrow()) == expected
    plans = [i.requested_time for i in judge_102.timeline(path) if i.action == "compaction"]
    table.execute(plans[0], force=True)
    assert words(judge_102.read(path)) == expected
    assert words(judge_102.read(path, "read_optimized")) == expected
