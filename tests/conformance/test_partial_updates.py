"""Updates of some columns: all read them alike, before and after a compaction.

MERGE INTO of Hudi 1.x writes blocks of them. Payloads declare on version 9 which values of a record stand for none.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from eventide import Table
from eventide.rows.given import CutName
from eventide_core.errors import format_timestamp
from eventide_core.table.timeline.contents.plans import FallbackReason
from support.judge import HudiJudge
from support.judge.deeds import Statements
from support.judge.hudi_judge import JudgeError
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    BUCKET_INDEX,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    PAYLOADS,
    table_name,
    table_version,
)

TYPES = {"id": "string", "name": "string", "price": "double", "qty": "int", "event_ts": "bigint", "part": "string"}
T = 250
OPTIONS = {"hoodie.payload.event.time.field": "event_ts"}
QUIET = {
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.parquet.small.file.limit": "0",
}


def told(judge: HudiJudge, statements: Sequence[str], settings: dict[str, str]) -> None:
    (failure,) = judge.together([[Statements(tuple(statements), settings)]])
    assert failure is None, failure


def merge_into(name: str, rows: Sequence[dict[str, object]]) -> str:
    """Updates the columns of the rows, which are the same ones in each."""
    one = "select " + ", ".join(f"cast({{{column}!r}} as {TYPES[column]}) as {column}" for column in rows[0])
    source = " union all ".join(one.format(**row) for row in rows)
    sets = ", ".join(f"t.{column} = s.{column}" for column in rows[0] if column not in ("id", "part"))
    return (
        f"merge into {name} t using ({source}) s on t.id = s.id and t.part = s.part when matched then update set {sets}"
    )


def created(name: str, path: Path, mode: str) -> list[str]:
    columns = ", ".join(f"{column} {kind}" for column, kind in TYPES.items())
    values = ", ".join(
        f"('{key}', '{key.upper()}', {n}.5D, {n}, 100, '{part}')" for part in "xy" for n, key in enumerate("abcd")
    )
    return [
        (
            f"create table {name} ({columns}) using hudi tblproperties (type = 'mor', primaryKey = 'id', "
            f"preCombineField = 'event_ts', 'hoodie.record.merge.mode' = '{mode}') partitioned by (part) location '{path}'"
        ),
        f"insert into {name} values {values}",
    ]


def changed(name: str) -> list[str]:
    """In partition x each key's versions come in rising order; in y a late one fills what is in a left-over."""
    return [
        merge_into(name, [{"id": key, "part": part, "qty": 11, "event_ts": 200} for part in "xy" for key in "abc"]),
        merge_into(
            name,
            [
                {"id": "a", "part": "x", "name": "later", "event_ts": 300},
                {"id": "b", "part": "x", "name": "not before T", "event_ts": 310},
                {"id": "a", "part": "y", "name": "later", "event_ts": 300},
            ],
        ),
        merge_into(
            name,
            [
                {"id": "a", "part": "x", "price": 7.5, "event_ts": 320},
                {"id": "a", "part": "y", "price": 7.5, "event_ts": 290},
            ],
        ),
        f"delete from {name} where id = 'c' and part = 'x'",
    ]


def seen(found: pa.Table, *, with_commits: bool = True) -> list[tuple[Any, ...]]:
    names = ["_hoodie_commit_time", *TYPES] if with_commits else list(TYPES)
    return sorted(tuple(row[name] for name in names) for row in found.to_pylist())


def all_see(path: Path, judges: Sequence[HudiJudge]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The rows of a snapshot and of the base files, in which eventide and the judges agree."""
    table = Table.open(str(path), OPTIONS)
    snapshot, read_optimized = seen(table.snapshot().to_arrow()), seen(table.read_optimized().to_arrow())
    for judge in judges:
        assert seen(judge.read(path)) == snapshot, judge.version
        assert seen(judge.read(path, "read_optimized")) == read_optimized, judge.version
    return snapshot, read_optimized


def hold_alike(
    tmp_path: Path,
    writer: HudiJudge,
    judges: Sequence[HudiJudge],
    version: int,
    mode: str,
    cut: CutName,
    *,
    compacts: bool,
    **more: str,
) -> dict[str, FallbackReason | None]:
    """Compacts at T, and lets Hudi continue the table and a twin: why slices were compacted in full, by partition."""
    path, twin, name = tmp_path / "updated", tmp_path / "twin", f"updated_{uuid4().hex}"
    settings = (
        QUIET | {"hoodie.write.table.version": str(version), "hoodie.spark.sql.insert.into.operation": "insert"} | more
    )
    told(writer, [*created(name, path, mode), *changed(name)], settings)
    shutil.copytree(path, twin)
    before, _ = all_see(path, judges)

    table = Table.open(str(path), OPTIONS)
    plan = table.plan_compaction(format_timestamp(T), cut=cut)
    table.compact(plan)
    snapshot, _ = all_see(path, judges)
    assert snapshot == before
    assert table.freshness().watermark_ms == T
    assert table.verify(deep=True).ok

    last = [{"id": "a", "part": part, "qty": 99, "event_ts": 400} for part in "xy"]
    on_twin = [f"create table twin_{name} using hudi location '{twin}'", merge_into(f"twin_{name}", last)]
    told(writer, [merge_into(name, last), *on_twin], settings)
    gone_on, _ = all_see(path, judges)
    assert sorted(row[1:] for row in gone_on) == seen(writer.read(twin), with_commits=False)
    if compacts:
        writer.schedule_compaction(path, settings)
        writer.run_compaction(path, settings)
        assert all_see(path, judges) == (gone_on, gone_on)
    return {operation.partition: operation.fallback for operation in plan.operations}


@pytest.mark.broad
def test_partial_updates_of_merge_into(tmp_path: Path, judge_111: HudiJudge) -> None:
    fallbacks = hold_alike(tmp_path, judge_111, [judge_111], 9, "EVENT_TIME_ORDERING", "file", compacts=False)
    assert fallbacks == {"part=x": None, "part=y": FallbackReason.PARTIAL_UPDATE_REORDERED}


PARQUET = {"hoodie.logfile.data.block.format": "parquet"}


@pytest.mark.parametrize(
    ("writer", "version", "mode", "cut", "more"),
    [
        pytest.param("1.0.2", 8, "EVENT_TIME_ORDERING", "file", {}, marks=pytest.mark.proof),
        pytest.param("1.1.1", 9, "EVENT_TIME_ORDERING", "exact", {}, marks=pytest.mark.broad),
        pytest.param("1.2.0", 9, "EVENT_TIME_ORDERING", "file", PARQUET, marks=pytest.mark.proof),
        pytest.param("1.1.1", 9, "COMMIT_TIME_ORDERING", "file", {}, marks=pytest.mark.proof),
    ],
)
def test_partial_updates_of_every_version(
    writer: str,
    version: int,
    mode: str,
    cut: CutName,
    more: dict[str, str],
    tmp_path: Path,
    judge_102: HudiJudge,
    judge_111: HudiJudge,
    judge_120: HudiJudge,
) -> None:
    """Hudi 1.0 reads no partial update under COMMIT_TIME_ORDERING, nor a table of version 9."""
    judges = [judge_111, judge_120] if version == 9 else [judge_102, judge_111, judge_120]
    chosen = next(judge for judge in (judge_102, judge_111, judge_120) if judge.version == writer)
    hold_alike(tmp_path, chosen, judges, version, mode, cut, compacts=True, **more)


TOUCHED = [
    {(key, part) for part in "xy" for key in "abc"},
    {("a", "x"), ("b", "x"), ("a", "y")},
    {("a", "x"), ("a", "y")},
    {("c", "x")},
]
"""The keys of each commit of `changed`."""


@pytest.mark.broad
def test_increments_of_merge_into_are_whole_rows(tmp_path: Path, judge_111: HudiJudge) -> None:
    """Each increment has the rows of the snapshot as of its end, also one whose end a compaction has passed.

    Hudi 1.1.1 takes the columns of such a block for others, and fails.
    """
    path, name = tmp_path / "updated", f"updated_{uuid4().hex}"
    settings = QUIET | {"hoodie.write.table.version": "9", "hoodie.spark.sql.insert.into.operation": "insert"}
    told(judge_111, [*created(name, path, "EVENT_TIME_ORDERING"), *changed(name)], settings)
    table = Table.open(str(path), OPTIONS)
    pattern = re.compile(r"(\d+)_(\d+)\.deltacommit")
    files = sorted(file.name for file in (path / ".hoodie" / "timeline").iterdir())
    (_, first), *commits = [found.groups() for file in files if (found := pattern.fullmatch(file))]
    until = commits[1][1]
    with pytest.raises(JudgeError, match="cannot be cast"):
        judge_111.read(path, "incremental", begin=first, end=until)

    def check() -> None:
        for begin in range(len(commits)):
            for end in range(begin + 1, len(commits) + 1):
                after = first if begin == 0 else commits[begin - 1][1]
                instant, until = commits[end - 1]
                touched = set().union(*TOUCHED[begin:end])
                whole = [row for row in seen(table.as_of(instant).to_arrow()) if (row[1], row[-1]) in touched]
                assert seen(table.incremental(after, until).to_arrow()) == whole, (begin, end)
                if end == len(commits):
                    # A late update that only fills columns is no longer there once it is merged: its row keeps the commit
                    # time of the version that won.
                    won = {row for row in whole if row[0] > after}
                    assert won <= set(seen(table.incremental(after).to_arrow())) <= set(whole), (begin, end)

    check()
    table.compact(before=format_timestamp(T))
    check()
    table.compact(before=format_timestamp(1000))
    check()


UNAVAILABLE = "__debezium_unavailable_value"
DEBEZIUM_TYPES: dict[str, pa.DataType] = {
    "id": pa.string(),
    "part": pa.string(),
    "event_ts": pa.int64(),
    "text": pa.string(),
    "number": pa.int32(),
    "data": pa.binary(),
    "_event_lsn": pa.int64(),
    "_change_operation_type": pa.string(),
}
DEBEZIUM = pa.schema(DEBEZIUM_TYPES)


def record(
    key: str, ts: int, text: str | None, number: int | None = None, data: bytes | None = None, op: str = "u"
) -> dict[str, Any]:
    part = "z" if key.isupper() else "y"
    return {
        "id": key,
        "part": part,
        "event_ts": ts,
        "text": text,
        "number": number,
        "data": data,
        "_event_lsn": ts,
        "_change_operation_type": op,
    }


def commits(none: str | None) -> list[list[dict[str, Any]]]:
    """`none` is the text that stands for none. Keys in capitals have their versions in rising order, in partition z."""
    data = None if none is None else none.encode()
    first = [record(key, 100, f"{key} 0", 1, b"base", "c") for key in "abcdefghijkABCDE"]
    return [
        first,
        [
            *(record("a", 200, none, 2, b"1"), record("b", 300, "b 1", None, data), record("c", 50, none)),
            *(record("d", 200, "d 1", 2, op="d"), record("e", 200, none, 2), record("f", 300, None, 2)),
            *(record("g", 200, "g 1"), record("j", 100, "tie"), record("A", 200, none, 2), record("B", 210, "B 1")),
            *(record("C", 220, none), record("D", 230, "D 1", op="d")),
        ],
        [
            *(record("a", 300, "a 2"), record("b", 200, none, 2, b"2"), record("c", 60, "c 2", 3)),
            *(record("d", 300, none, 3), record("e", 100, "e 2", 3, op="d"), record("f", 200, "f 2", 3)),
            *(record("h", 90, "h 2"), record("i", 100, none, 5), record("g", 50, "g 2", 9, b"late")),
            *(record("A", 300, "A 2"), record("C", 310, none, 7), record("E", 320, none, 8)),
        ],
        [
            *(record("e", 260, "e 3"), record("g", 400, none), record("k", 300, none, 1), record("h", 295, none, 7)),
            *(record("A", 400, none, 4), record("B", 410, none, 5), record("F", 420, none, 6)),
        ],
    ]


def seen_of(found: pa.Table) -> list[str]:
    names = ["_hoodie_commit_time", *DEBEZIUM.names]
    return sorted(repr([row[name] for name in names]) for row in found.to_pylist())


@pytest.mark.broad
@pytest.mark.parametrize(
    "payload",
    [
        "debezium.PostgresDebeziumAvroPayload",
        pytest.param("PartialUpdateAvroPayload", marks=pytest.mark.proof),
        pytest.param("OverwriteNonDefaultsWithLatestAvroPayload", marks=pytest.mark.proof),
    ],
)
def test_payloads_that_fill_columns(payload: str, tmp_path: Path, judge_111: HudiJudge, judge_120: HudiJudge) -> None:
    path, name = tmp_path / "filled", payload.rpartition(".")[2]
    ordering = "_event_lsn" if "Debezium" in payload else "event_ts"
    options = MERGE_ON_READ | BUCKET_INDEX | NO_METADATA_TABLE | AVRO_LOG_BLOCKS | table_version(9) | table_name(name)
    options |= {
        "hoodie.datasource.write.payload.class": f"{PAYLOADS}.{payload}",
        "hoodie.datasource.write.precombine.field": ordering,
        "hoodie.payload.ordering.field": ordering,
        "hoodie.bucket.index.num.buckets": "1",
    }
    none = UNAVAILABLE if "Debezium" in payload else None
    first, *others = commits(none)
    judge_111.write(path, first, DEBEZIUM, options=options, operation="bulk_insert", mode="overwrite")
    for rows in others:
        judge_111.write(path, rows, DEBEZIUM, options=options)
    table = Table.open(str(path), OPTIONS)
    before = seen_of(table.snapshot().to_arrow())
    assert seen_of(judge_111.read(path)) == before
    assert seen_of(judge_120.read(path)) == before

    plan = table.plan_compaction(format_timestamp(T))
    fallbacks = {operation.partition: operation.fallback for operation in plan.operations}
    is_by_commit = payload.startswith("Overwrite")
    late = None if is_by_commit else FallbackReason.PARTIAL_UPDATE_REORDERED
    assert fallbacks == {"part=y": late, "part=z": None}
    table.compact(plan)
    assert seen_of(table.snapshot().to_arrow()) == before
    assert seen_of(judge_111.read(path)) == before
    assert seen_of(judge_120.read(path)) == before
    base = seen_of(table.read_optimized().to_arrow())
    assert seen_of(judge_111.read(path, "read_optimized")) == base
    assert table.verify(deep=True).ok

    judge_111.write(path, [record("k", 500, none, 9), record("E", 510, none, 9)], DEBEZIUM, options=options)
    gone_on = seen_of(judge_111.read(path))
    assert seen_of(table.snapshot().to_arrow()) == gone_on
    judge_111.schedule_compaction(path, options)
    judge_111.run_compaction(path, options)
    assert seen_of(judge_111.read(path, "read_optimized")) == gone_on
    assert seen_of(table.read_optimized().to_arrow()) == gone_on
