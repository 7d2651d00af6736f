"""Hudi 0.14, whose bundles end at Spark 3.4, beside eventide on one table: what `./run compat hudi014` runs.

Hudi writes a table of version 6, eventide compacts a part of it, and Hudi reads it as before, writes on, compacts and
cleans. A twin that eventide never touches goes through the same; both must show the same rows.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eventide import Table
from golden.histories import EPOCH_MS, PLAIN
from support.judge import HudiJudge, hudi_judge
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    BLOOM_INDEX,
    BUCKET_INDEX,
    DEFAULT_PAYLOAD,
    MERGE_ON_READ,
    METADATA_TABLE,
    NO_METADATA_TABLE,
    OVERWRITE_WITH_LATEST,
    PARQUET_LOG_BLOCKS,
    SIMPLE_INDEX,
    table_name,
)

FIRST_MS, T_MS, NEWEST_MS = (EPOCH_MS + seconds * 1000 for seconds in (1_000, 5_000, 9_000))
LATE_MS = EPOCH_MS - 50_000
KEYS = range(16)
CLEANED = {"clean_policy": "KEEP_LATEST_FILE_VERSIONS", "file_versions_retained": 1}

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def judge() -> Iterator[HudiJudge]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("EVENTIDE_JUDGE_PYTHON", sys.executable)
        with hudi_judge("0.14.0") as found:
            yield found


def versions(keys: range | tuple[int, ...], batch: int, at_ms: int) -> pa.Table:
    """A version of some keys. Key n has the event time `at_ms` + n seconds."""
    found = [
        {
            "id": f"k{key:05d}",
            "part": "ab"[key % 2],
            "event_ts": at_ms + 1000 * key,
            "val": f"b{batch}",
            "amount": key / 4,
        }
        for key in keys
    ]
    return pa.Table.from_pylist(found, schema=PLAIN)


def rows(found: pa.Table) -> Rows:
    return sorted(tuple(row[name] for name in PLAIN.names) for row in found.to_pylist())


def lay(judge: HudiJudge, path: Path, options: dict[str, str]) -> None:
    """A base, changes with late ones among them, deletes, and changes from T on."""
    judge.write(path, versions(KEYS, 0, EPOCH_MS), options=options, operation="insert", mode="overwrite")
    changes = [versions((0, 1, 2, 3, 8, 9, 16, 17), 1, FIRST_MS), versions((4, 5, 6, 7), 2, LATE_MS)]
    judge.write(path, pa.concat_tables(changes), options=options)
    judge.write(path, versions((12, 13), 3, FIRST_MS), options=options, operation="delete")
    judge.write(path, versions((0, 1, 4, 5, 10, 11, 18), 4, T_MS), options=options)


def write_on(judge: HudiJudge, path: Path, options: dict[str, str], late_ms: int) -> None:
    changes = [versions((0, 3, 12, 19), 5, NEWEST_MS), versions((6, 7, 9), 6, late_ms)]
    judge.write(path, pa.concat_tables(changes), options=options)
    judge.write(path, versions((1, 2, 4, 17), 7, NEWEST_MS), options=options, operation="delete")


@pytest.mark.parametrize(
    ("payload", "blocks", "index", "metadata", "cut"),
    [
        pytest.param(DEFAULT_PAYLOAD, AVRO_LOG_BLOCKS, BUCKET_INDEX, NO_METADATA_TABLE, "file", id="default-bucket"),
        pytest.param(DEFAULT_PAYLOAD, PARQUET_LOG_BLOCKS, SIMPLE_INDEX, METADATA_TABLE, "exact", id="default-simple"),
        pytest.param(OVERWRITE_WITH_LATEST, AVRO_LOG_BLOCKS, BLOOM_INDEX, METADATA_TABLE, "file", id="overwrite-bloom"),
        pytest.param(
            OVERWRITE_WITH_LATEST, PARQUET_LOG_BLOCKS, BUCKET_INDEX, NO_METADATA_TABLE, "exact", id="overwrite-bucket"
        ),
    ],
)
def test_hudi_goes_on_after_a_compaction_as_without_it(
    payload: dict[str, str],
    blocks: dict[str, str],
    index: dict[str, str],
    metadata: dict[str, str],
    cut: Literal["file", "exact"],
    tmp_path: Path,
    judge: HudiJudge,
) -> None:
    options = MERGE_ON_READ | payload | blocks | index | metadata | table_name("shared")
    path, twin = tmp_path / "ours", tmp_path / "twin"
    lay(judge, path, options)
    shutil.copytree(path, twin)
    written = judge.read(path)
    before, first = rows(written), min(map(str, written["_hoodie_commit_time"].to_pylist()))
    changes = rows(judge.read(path, "incremental", begin=first))
    words = {"hoodie.index.type": index["hoodie.index.type"], "hoodie.payload.event.time.field": "event_ts"}
    table = Table.open(str(path), words)
    assert rows(table.snapshot().to_arrow()) == before

    plan = table.plan_compaction(T_MS, cut=cut)
    assert sum(len(operation.left_overs) for operation in plan.operations) > 0
    table.compact(plan)
    assert rows(judge.read(path)) == rows(table.snapshot().to_arrow()) == before
    optimized = rows(judge.read(path, "read_optimized"))
    assert rows(table.read_optimized().to_arrow()) == optimized != before
    assert [row for row in before if row[2] < T_MS] == [row for row in optimized if row[2] < T_MS and row in before]
    # A late row that has lost is no longer a change, as after Hudi's own compaction.
    current = set(rows(written.filter(pc.field("_hoodie_commit_time") > first)))
    assert current <= set(rows(judge.read(path, "incremental", begin=first))) <= set(changes)
    assert table.verify(deep=True).ok

    # A late row of this payload wins over what any compaction has merged, Hudi's own, too.
    late_ms = NEWEST_MS if payload is OVERWRITE_WITH_LATEST else LATE_MS
    for found in (path, twin):
        write_on(judge, found, options, late_ms)
    after = rows(judge.read(twin))
    assert rows(judge.read(path)) == rows(table.snapshot().to_arrow()) == after != before
    files = set(path.rglob("part=*/*.parquet"))
    for found in (path, twin):
        judge.schedule_compaction(found, options)
        judge.run_compaction(found, options)
        assert rows(judge.read(found, "read_optimized")) == rows(judge.read(found)) == after
    judge.sql(f"create table shared using hudi location '{path}'")
    judge.call("run_clean", table="shared", **CLEANED)
    judge.sql("drop table shared")
    assert files - set(path.rglob("part=*/*.parquet"))
    assert rows(judge.read(path)) == rows(table.snapshot().to_arrow()) == after
    assert table.verify(deep=True).ok
