"""Indexes that Hudi creates over values: after eventide compacts and writes, Hudi finds every row by them, and skips files.

Each query is asked by the index and by a full scan of listed files. That files are skipped is seen on a copy of the table
in which the files of the other partition are broken: the query fails if it opens one of them.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_adapters.storage.local import LocalStorage
from golden.histories import PLAIN_COLUMNS
from support.judge import HudiJudge
from support.judge.deeds import Statements
from support.judge.hudi_judge import JudgeError
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    SIMPLE_INDEX,
    table_name,
    table_version,
)
from support.run.reach import reached

SCHEMA = pa.schema([*PLAIN_COLUMNS, pa.field("number", pa.int32())])
HOUR_S, START_S = 3600, 1_700_002_800  # 2023-11-14 23:00
RECORD_INDEX = ("record.index", "global.record.level.index")
FULL = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    **{f"hoodie.metadata.{i}.{end}.filegroup.count": "3" for i in RECORD_INDEX for end in ("min", "max")},
}
BY_INDEX = {**FULL, "hoodie.enable.data.skipping": "true"}
BY_SCAN = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
INDEXES = (
    "create index by_val on {table} (val)",
    "create index by_number on {table} (number)",
    "create index by_hour on {table} using column_stats(event_ts) options(expr='from_unixtime', format='yyyy-MM-dd HH')",
)
BY_HOUR = "from_unixtime(event_ts, 'yyyy-MM-dd HH') = '{hour}'"

Rows = list[tuple[object, ...]]


def row(key: int, hour: float, word: str) -> dict[str, object]:
    """Keys and words of both partitions lie between each other: no range of them distinguishes the partitions."""
    part = "ab"[key % 2]
    seconds = START_S + int(hour * HOUR_S) + key
    return {
        "id": f"k{key:03}",
        "part": part,
        "event_ts": seconds,
        "val": f"{word}-{key}",
        "amount": hour,
        "number": key,
    }


def table_of(rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def found(judge: HudiJudge, path: Path, where: str, options: Mapping[str, str]) -> Rows:
    pairs = ", ".join(f"'{key}' '{value}'" for key, value in {"path": str(path), **options}.items())
    judge.sql(f"create or replace temporary view asked using hudi options ({pairs})")
    rows = judge.sql(f"select {', '.join(SCHEMA.names)} from asked where {where}").to_pylist()
    return sorted(tuple(one.values()) for one in rows)


def check(judge: HudiJudge, path: Path, conditions: Mapping[str, str | None]) -> None:
    """`conditions`, each with the partition whose files it has to skip."""
    for where, skipped in conditions.items():
        expected = found(judge, path, where, BY_SCAN)
        assert found(judge, path, where, BY_INDEX) == expected, where
        if skipped is not None:
            broken = path.with_name(f"{path.name}_broken")
            shutil.copytree(path, broken)
            for file in (broken / f"part={skipped}").glob("*.parquet"):
                file.write_bytes(b"no Parquet")
                file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
            assert found(judge, broken, where, BY_INDEX) == expected, where
            with pytest.raises(JudgeError):
                found(judge, broken, where, BY_SCAN)
            shutil.rmtree(broken)
            reached(f"files that Hudi {judge.version} skipped by an index of values")


def write_with_indexes(judge: HudiJudge, path: Path, name: str, version: int) -> Mapping[str, str]:
    """Writes a table with all kinds of indexes over values. Returns the options of its writes."""
    options = {
        **MERGE_ON_READ,
        **AVRO_LOG_BLOCKS,
        **SIMPLE_INDEX,
        **FULL,
        **table_version(version),
        **EVENT_TIME_ORDERING,
        **table_name(name),
    }
    base = [row(key, 0 if key % 2 else 0.5, "base") for key in range(12)]
    judge.write(path, table_of(base), options=options, operation="bulk_insert", mode="overwrite")
    settings = {**FULL, "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
    created = (f"create table {name} using hudi location '{path}'", *(i.format(table=name) for i in INDEXES))
    assert judge.together([[Statements((*created, f"drop table {name}"), settings)]]) == [None]
    for changes in ([row(0, 2, "first"), row(1, 2.5, "first")], [row(1, -1, "late"), row(3, 3, "moved")]):
        judge.write(path, table_of(changes), options=options)
    judge.write(path, table_of([row(2, 5, "newest"), row(5, 5.5, "newest")]), options=options)
    return options


@pytest.mark.proof
@pytest.mark.parametrize(("fixture", "version"), [("judge_102", 8), ("judge_111", 9)])
def test_hudi_finds_and_skips_by_indexes_of_values(
    fixture: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(fixture)
    name = f"values_{version}_{judge.version.replace('.', '')}"
    path = tmp_path / name
    options = write_with_indexes(judge, path, name, version)
    metadata = HudiMetadataTable(LocalStorage(path))
    partitions = metadata.load().facts.partitions
    indexes = {"secondary_index_by_val", "secondary_index_by_number", "expr_index_by_hour", "partition_stats"}
    assert indexes <= set(partitions)

    every = {"hoodie.metadata.compact.max.delta.commits": "1", "hoodie.payload.event.time.field": "event_ts"}
    table = Table.open(str(path), every)
    plan = table.plan_compaction((START_S + 4 * HOUR_S) * 1000)
    assert any(operation.left_overs for operation in plan.operations)
    result = table.compact(plan)
    assert result.dropped_indexes == ()
    assert metadata.load().facts.partitions == partitions
    conditions: dict[str, str | None] = {
        "val = 'first-0'": "b",
        "val = 'moved-3'": "a",
        "val = 'base-3'": None,
        "val = 'newest-2'": "b",
        "number = 7": "a",
        BY_HOUR.format(hour="2023-11-15 02"): "a",  # of key 3 alone
        BY_HOUR.format(hour="2023-11-15 01"): None,
        "amount = 5.5": "a",
    }
    check(judge, path, conditions)

    written = table.upsert(table_of([row(4, 6, "eventide"), row(7, 6, "eventide"), row(20, 6, "new")]))
    assert written.dropped_indexes == ("expr_index_by_hour",)
    table.delete(table_of([row(9, 7, "gone")]).select(["id", "part", "event_ts"]))
    assert set(metadata.load().facts.partitions) == set(partitions) - {"expr_index_by_hour"}
    again: dict[str, str | None] = {
        "val = 'eventide-4'": "b",
        "val = 'base-4'": None,
        "val = 'new-20'": "b",
        "val = 'base-9'": None,
        "number = 20": "b",
        BY_HOUR.format(hour="2023-11-15 05"): None,
    }
    check(judge, path, {**again, "val = 'first-0'": "b", BY_HOUR.format(hour="2023-11-15 02"): None})

    judge.write(path, table_of([row(4, 8, "Hudi"), row(7, 8, "Hudi")]), options=options)
    judge.schedule_compaction(path, options)
    judge.run_compaction(path, options)
    check(judge, path, {"val = 'Hudi-4'": "b", "val = 'Hudi-7'": "a", "val = 'newest-2'": None, "number = 20": "b"})
    assert len(found(judge, path, "id is not null", BY_SCAN)) == 12
