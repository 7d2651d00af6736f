"""Real Hudi takes a metadata table that eventide made from nothing for one of its own, and continues it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_adapters.format.metadata_table.reader import MetadataTableReader
from eventide_adapters.storage.local import LocalStorage
from eventide_core.table.instant import Action
from support.command_line import run_json
from support.judge import HudiJudge, hudi_rs
from support.judge.options import table_name, table_version
from support.reach import reached

pytestmark = pytest.mark.broad

PLAIN = {
    **table_name("rebuilt"),
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "event_ts",
}
WITHOUT = {"hoodie.metadata.enable": "false"}
WITH = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
Rows = Counter[tuple[object, ...]]


def batch(*numbers: int, ms: int) -> pa.Table:
    made: list[dict[str, Any]] = [
        {"id": f"k{n}", "part": f"p{n % 3}", "event_ts": ms + n, "val": f"{ms}"} for n in numbers
    ]
    return pa.Table.from_pylist(made)


def rows(found: pa.Table) -> Rows:
    return Counter(tuple(row.values()) for row in found.select(["id", "part", "event_ts", "val"]).to_pylist())


@pytest.mark.parametrize(
    ("fixture", "version"), [("judge_015", 6), ("judge_102", 8), ("judge_111", 9), ("judge_120", 9)]
)
def test_hudi_continues_a_metadata_table_that_eventide_made(
    fixture: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(fixture)
    path, options = tmp_path / "table", {**PLAIN, **(table_version(version) if version > 6 else {})}
    judge.write(path, batch(*range(9), ms=100), options=options | WITHOUT, operation="insert", mode="overwrite")
    judge.write(path, batch(0, 1, 2, ms=200), options=options | WITHOUT)
    truth = {row["id"]: row for row in [*batch(*range(9), ms=100).to_pylist(), *batch(0, 1, 2, ms=200).to_pylist()]}

    def check() -> None:
        expected = rows(pa.Table.from_pylist(list(truth.values())))
        for metadata in ("true", "false"):
            assert rows(judge.read(path, options={"hoodie.metadata.enable": metadata})) == expected
        assert rows(hudi_rs.read(path)) == rows(Table.open(str(path)).snapshot().to_arrow()) == expected
        judge.sql(f"create table rebuilt_{version} using hudi location '{path}'")
        files = judge.call("validate_metadata_table_files", table=f"rebuilt_{version}", verbose=True).to_pylist()
        judge.sql(f"drop table rebuilt_{version}")
        assert files
        assert all(f["is_present_in_fs"] and f["is_present_in_metadata"] for f in files), files
        assert all(f["fs_size"] == f["metadata_size"] for f in files), files

    run_json("metadata", path, "--rebuild", "--index", "record_index", "--index", "bloom_filters")
    check()
    made = MetadataTableReader.load(LocalStorage(path)).timeline.instants

    # By the record index: a key that it did not find would be written a second time.
    index = {"hoodie.index.type": "RECORD_INDEX" if version < 9 else "GLOBAL_RECORD_LEVEL_INDEX"}
    for number in range(3):
        changed = batch(number, number + 3, 9 + number, ms=300 + 10 * number)
        judge.write(path, changed, options=options | WITH | index | {"hoodie.metadata.compact.max.delta.commits": "2"})
        truth |= {row["id"]: row for row in changed.to_pylist()}
        check()
    reader = MetadataTableReader.load(LocalStorage(path))
    assert set(reader.timeline.instants) >= set(made), "Hudi made the metadata table anew"
    assert {"files", "record_index", "bloom_filters"} <= set(reader.partitions)
    assert any(i.action is Action.COMMIT for i in reader.timeline.completed), "Hudi has not compacted it"
    reached(f"rebuilt metadata tables that Hudi {judge.version} continued")
