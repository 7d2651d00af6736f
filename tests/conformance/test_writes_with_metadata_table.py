"""Tables of real Hudi with a full metadata table, into which eventide writes: Hudi finds every row and key by it.

Every read is made with and without the metadata table, which must agree; filtered reads are pruned by its statistics, and
the next writes of Hudi find their keys in its record index.
"""

import shutil
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.writer import incoming_records
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_adapters.storage.local import LocalStorage
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from golden.histories import PLAIN_COLUMNS
from golden.readings import as_json
from support.cases.pruned_reads import BY_LISTING, check_pruned_reads
from support.judge import HudiJudge
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    table_name,
    table_version,
)

BY_METADATA = {"hoodie.metadata.enable": "true"}
# Small ones: each file group of an index costs Hudi a task.
STATISTICS = ("index.column.stats", "index.partition.stats", "index.bloom.filter")
RECORD_INDEX = ("record.index", "global.record.level.index")
FILE_GROUPS = {f"hoodie.metadata.{index}.file.group.count": "1" for index in STATISTICS}
FILE_GROUPS |= {
    f"hoodie.metadata.{index}.{end}.filegroup.count": "2" for index in RECORD_INDEX for end in ("min", "max")
}
FULL = {
    **BY_METADATA,
    **FILE_GROUPS,
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}
START_MS = 1_700_000_000_000
SCHEMA = pa.schema([*PLAIN_COLUMNS, pa.field("paid", pa.bool_()), pa.field("day", pa.date32())])
Rows = list[tuple[str, ...]]


def row(number: int, ms: int, word: str, **more: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "id": f"k{number:03}",
        "part": "abc"[number % 3],
        "event_ts": START_MS + ms,
        "val": f"{word}-{number}",
        "amount": ms / 7,
        "paid": bool(number % 2),
        "day": date(2026, 11, 1) + timedelta(days=number),
    }
    return {**plain, **more}


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def shown(found: pa.Table) -> Rows:
    return sorted(tuple(repr(as_json(one[name])) for name in SCHEMA.names) for one in found.to_pylist())


def snapshot(judge: HudiJudge, path: Path) -> Rows:
    seen = shown(judge.read(path, options=BY_METADATA))
    assert shown(judge.read(path, options=BY_LISTING)) == seen
    return seen


@pytest.mark.parametrize(
    ("fixture", "version"),
    [
        pytest.param("judge_015", 6, marks=pytest.mark.proof),
        pytest.param("judge_102", 8, marks=pytest.mark.proof),
        pytest.param("judge_111", 9, marks=pytest.mark.broad),
    ],
)
def test_hudi_finds_what_eventide_wrote_by_every_index(
    fixture: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(fixture)
    merged: Mapping[str, str] = DEFAULT_PAYLOAD if version == 6 else {**table_version(version), **EVENT_TIME_ORDERING}
    options = {**MERGE_ON_READ, **AVRO_LOG_BLOCKS, **FULL, **merged, **table_name("full")}
    path = tmp_path / "full"
    known = {n: row(n, n, "base") for n in range(12)} | {n: row(n, 100 + n, "first") for n in (0, 1, 12)}
    base = table_of([row(n, n, "base") for n in range(12)])
    judge.write(path, base, options=options, operation="bulk_insert", mode="overwrite")
    judge.write(path, table_of([known[n] for n in (0, 1, 12)]), options=options)
    metadata = HudiMetadataTable(LocalStorage(path))
    partitions = metadata.load().facts.partitions
    assert {"files", "column_stats", "bloom_filters", "record_index"} <= set(partitions)

    written = {
        2: row(2, 900_000, "far ahead", amount=1e9, day=date(2030, 1, 1)),
        13: row(13, 50, "new", paid=None),
        14: row(14, 10_000_000, "new and alone", part="d"),
    }
    late = row(3, -900_000, "late", amount=-1e9)
    gone = [row(5, 400, "gone"), row(12, 500, "gone, too")]
    if version == 9:  # Hudi 0.15 deletes a row of a base file whatever its event time
        gone.append(row(6, -400, "too late to go"))
    # Each write compacts the metadata table, so that Hudi reads nothing of them but bases.
    table = Table.open(str(path), {"hoodie.metadata.compact.max.delta.commits": "1"})
    state = table.state()
    index = assemble(str(path), {}).metadata.record_index(state.config, state.timeline)
    assert index is not None, "the writes find keys by Hudi's index"
    table.upsert(table_of([*written.values(), late]))
    table.delete(table_of(gone).select(["id", "part", "event_ts"]))
    known = {n: found for n, found in (known | written).items() if n not in (5, 12)}
    assert metadata.load().facts.partitions == partitions
    reader = MetadataTableReader.load(LocalStorage(path))
    based = [found for name in partitions for found in reader.slices(name) if found.base_file is not None]
    assert not any(found.log_files for found in based)
    expected = shown(table_of([*known.values()]))
    assert shown(table.snapshot().to_arrow()) == expected
    assert snapshot(judge, path) == expected
    filters = check_pruned_reads(judge, path, SCHEMA, FULL)

    again = {n: row(n, 1_000_000, "Hudi again") for n in (2, 5, 6, 13)}
    again[14] = row(14, 20_000_000, "Hudi again", part="d")
    judge.write(path, table_of([*again.values()]), options=options)
    judge.write(path, table_of([again[13]]), options=options, operation="delete")
    known = {n: found for n, found in (known | again).items() if n != 13}
    expected = shown(table_of([*known.values()]))
    assert snapshot(judge, path) == expected
    assert shown(table.snapshot().to_arrow()) == expected
    assert check_pruned_reads(judge, path, SCHEMA, FULL) == filters


INDEXES = {"column_stats": "ColumnStatsMetadata", "bloom_filters": "BloomFilterMetadata"}
WITHOUT_RECORDS = {name: value for name, value in FULL.items() if "record" not in name and name != "hoodie.index.type"}


def removals(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """The last removal of each key, without the instant of its clean: by column and file name, or by the key."""
    reader = MetadataTableReader.load(LocalStorage(path))
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for partition, field in INDEXES.items():
        for part in reader.slices(partition):
            for key, versions in reader.records(part).items():
                value = dict(versions[-1][field])
                if value["isDeleted"]:
                    value.pop("timestamp", None)
                    name = value.pop("fileName", None)
                    found[(partition, key) if name is None else (partition, value["columnName"], name)] = value
    return found


def living(path: Path) -> dict[str, set[str]]:
    """The keys of each index that no removal has taken."""
    reader = MetadataTableReader.load(LocalStorage(path))
    return {
        partition: {
            key
            for part in reader.slices(partition)
            for key, versions in reader.records(part).items()
            if not versions[-1][field]["isDeleted"]
        }
        for partition, field in INDEXES.items()
    }


def of_hudi_015(removed: Mapping[tuple[str, ...], dict[str, Any]]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Hudi 0.15 names no log files, and cuts the length of the partition off the names of base files."""
    cut = len("part=a/")
    return {
        (*key[:-1], key[-1][cut:]) if key[0] == "column_stats" else key: value
        for key, value in removed.items()
        if ".log." not in key[-1]
    }


@pytest.mark.parametrize(
    ("fixture", "version"),
    [
        pytest.param("judge_015", 6, marks=pytest.mark.proof),
        pytest.param("judge_102", 8, marks=pytest.mark.proof),
        pytest.param("judge_111", 9, marks=pytest.mark.broad),
    ],
)
def test_a_clean_removes_the_records_of_removed_files_as_hudi_does(
    fixture: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(fixture)
    merged: Mapping[str, str] = DEFAULT_PAYLOAD if version == 6 else {**table_version(version), **EVENT_TIME_ORDERING}
    options = {**MERGE_ON_READ, **AVRO_LOG_BLOCKS, **WITHOUT_RECORDS, **merged, **table_name("cleaned")}
    path, twin = tmp_path / "ours", tmp_path / "twin"
    judge.write(path, table_of([row(n, n, "base") for n in range(6)]), options=options, mode="overwrite")
    for ms in (100, 200):
        judge.write(path, table_of([row(n, ms + n, "changed") for n in range(4)]), options=options)
        judge.schedule_compaction(path, options)
        judge.run_compaction(path, options)
    before = snapshot(judge, path)
    known = living(path)
    assert not removals(path)
    shutil.copytree(path, twin)

    assert Table.open(str(path)).clean(1).deleted
    judge.sql(f"create table cleaned using hudi location '{twin}'")
    settings = ",".join(f"{name}={value}" for name, value in WITHOUT_RECORDS.items())
    judge.call("run_clean", table="cleaned", retain_commits=1, options=settings)
    judge.sql("drop table cleaned")
    if version > 6:  # Hudi removes by DELETE blocks
        assert living(path) == living(twin) != known
    else:
        ours, theirs = removals(path), removals(twin)
        assert {key[0] for key in theirs} == set(INDEXES)
        assert any(".log." in key[-1] for key in ours)
        assert of_hudi_015(ours) == theirs
    judge.write(path, table_of([row(0, 900, "Hudi again")]), options=options)
    assert snapshot(judge, path) == shown(Table.open(str(path)).snapshot().to_arrow()) != before


@pytest.mark.proof
@pytest.mark.parametrize(("fixture", "version"), [("judge_015", 6), ("judge_102", 8), ("judge_111", 9)])
def test_hudi_goes_on_after_overwrites_of_eventide(
    fixture: str, version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Hudi finds keys by the record index: if one named a replaced file group, what Hudi writes there would be lost."""
    judge: HudiJudge = request.getfixturevalue(fixture)
    merged: Mapping[str, str] = DEFAULT_PAYLOAD if version == 6 else {**table_version(version), **EVENT_TIME_ORDERING}
    options = {**MERGE_ON_READ, **AVRO_LOG_BLOCKS, **FULL, **merged, **table_name("over")}
    path = tmp_path / "over"
    base = {n: row(n, n, "base") for n in range(12)}
    judge.write(path, table_of([*base.values()]), options=options, operation="bulk_insert", mode="overwrite")
    judge.write(path, table_of([row(n, 100 + n, "first") for n in (0, 1)]), options=options)
    table = Table.open(str(path), {"hoodie.metadata.compact.max.delta.commits": "1"})
    partitions = HudiMetadataTable(LocalStorage(path)).load().facts.partitions

    over = {3: row(3, 50, "over"), 30: row(30, 60, "over")}  # all of partition `a`, in place of 0, 3, 6, 9
    table.insert_overwrite(table_of([*over.values()]))
    known = {n: found for n, found in base.items() if n % 3} | {1: row(1, 101, "first")} | over
    assert HudiMetadataTable(LocalStorage(path)).load().facts.partitions == partitions
    expected = shown(table_of([*known.values()]))
    assert shown(table.snapshot().to_arrow()) == expected
    assert snapshot(judge, path) == expected
    check_pruned_reads(judge, path, SCHEMA, FULL)

    again = {n: row(n, 1_000_000, "Hudi again") for n in (0, 3, 6, 7)}  # 0 and 6 are new to the table
    judge.write(path, table_of([*again.values()]), options=options)
    judge.schedule_compaction(path, options)
    judge.run_compaction(path, options)
    judge.write(path, table_of([row(30, 2_000_000, "gone")]), options=options, operation="delete")
    known = {n: found for n, found in (known | again).items() if n != 30}
    expected = shown(table_of([*known.values()]))
    assert snapshot(judge, path) == expected
    assert shown(table.snapshot().to_arrow()) == expected
    assert table.clean(1).deleted
    assert snapshot(judge, path) == expected

    table.insert_overwrite_table(table_of([row(40, 1, "alone", part="d")]))
    judge.write(path, table_of([row(0, 5, "after all")]), options=options)
    expected = shown(table_of([row(40, 1, "alone", part="d"), row(0, 5, "after all")]))
    assert snapshot(judge, path) == expected
    assert shown(table.snapshot().to_arrow()) == expected
    assert table.verify(deep=True).ok


@pytest.mark.broad
def test_hudi_rolls_back_an_overwrite_that_died(judge_015: HudiJudge, tmp_path: Path) -> None:
    options = {**MERGE_ON_READ, **AVRO_LOG_BLOCKS, **FULL, **DEFAULT_PAYLOAD, **table_name("died")}
    path = tmp_path / "died"
    judge_015.write(path, table_of([row(n, n, "base") for n in range(6)]), options=options, mode="overwrite")
    before = snapshot(judge_015, path)
    application = assemble(str(path), {})
    incoming = incoming_records(application, WriteOperation.INSERT_OVERWRITE, table_of([row(0, 9, "over")]))
    pending = application.append.begin(WriteOperation.INSERT_OVERWRITE, incoming, NoProgress())
    assert snapshot(judge_015, path) == before
    application.heartbeats.stop(pending.instant)

    judge_015.write(path, table_of([row(1, 50, "Hudi again")]), options=options)
    timeline = {i.requested_time: i for i in judge_015.timeline(path)}
    assert pending.instant not in timeline
    assert any(i.action == "rollback" and i.state == "COMPLETED" for i in timeline.values())
    expected = shown(table_of([row(n, n, "base") for n in (0, 2, 3, 4, 5)] + [row(1, 50, "Hudi again")]))
    assert snapshot(judge_015, path) == expected
    assert shown(Table.open(str(path)).snapshot().to_arrow()) == expected
