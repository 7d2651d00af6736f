"""A table of version 6 whose metadata table a procedure of Hudi 1.1 has raised to version 9."""

from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import UnsupportedTableError
from support.judge import HudiJudge
from support.judge.options import DEFAULT_PAYLOAD, MERGE_ON_READ, table_name, table_version
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64(), word=pa.string())
OPTIONS = {
    "hoodie.payload.event.time.field": "event_ts",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.index.type": "SIMPLE",
}
CALLS = {
    "clustering": "call run_clustering(table => 'raised', op => 'scheduleAndExecute')",
    "compaction": "call run_compaction(op => 'scheduleandexecute', table => 'raised', "
    "options => 'hoodie.compact.inline.max.delta.commits=1')",
}


def rows(word: str, hour: int) -> pa.Table:
    event_ts = 1_772_409_600_000 + hour * 3_600_000
    found = [{"id": f"k{n}", "part": "ab"[n % 2], "event_ts": event_ts, "word": word} for n in range(12)]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def files_of(path: Path) -> dict[str, bytes]:
    found = (file for file in path.rglob("*") if file.is_file() and "lock" not in file.name)
    return {str(file.relative_to(path)): file.read_bytes() for file in found}


@pytest.mark.parametrize("service", sorted(CALLS))
def test_a_metadata_table_of_another_layout_is_read_and_not_written(
    judge_111: HudiJudge, tmp_path: Path, service: str
) -> None:
    options = (
        MERGE_ON_READ | DEFAULT_PAYLOAD | table_version(6) | table_name("raised") | {"hoodie.index.type": "SIMPLE"}
    )
    for number in range(3):
        judge_111.write(tmp_path, rows(f"word {number}", number), options=options)
    judge_111.sql(f"create table raised using hudi location '{tmp_path}'")
    judge_111.sql(CALLS[service])
    judge_111.sql("drop table raised")
    raised = (tmp_path / ".hoodie" / "metadata" / ".hoodie" / "hoodie.properties").read_text()
    assert "hoodie.table.version=9" in raised
    table = Table.open(str(tmp_path), OPTIONS)
    assert table.version == 6
    assert table.verify().ok
    assert judge_111.count(tmp_path) == table.snapshot().to_arrow().num_rows == 12
    before = files_of(tmp_path)
    with pytest.raises(UnsupportedTableError, match=r"version 9.*rebuild"):
        table.upsert(rows("word 3", 3))
    with pytest.raises(UnsupportedTableError, match=r"version 9.*rebuild"):
        table.compact(before="2026-03-02T05:00Z")
    assert files_of(tmp_path) == before
    table.rebuild_metadata_table()
    table.upsert(rows("word 4", 4))
    table.compact(before="2026-03-02T05:00Z")
    assert table.verify(deep=True).ok
    shown = judge_111.read(tmp_path, "read_optimized").column("word").to_pylist()
    assert shown == ["word 4"] * 12
