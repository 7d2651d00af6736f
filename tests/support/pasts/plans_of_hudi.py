"""Tables with a compaction that stock Hudi planned, twice over, and what the judges say of them."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.testing.inspection.checks import avro_records
from eventide_core.table.timeline.contents.checksums import CHECKSUMS_KEY
from eventide_core.table.timeline.instant import Instant
from support.judge import HudiJudge, hudi_rs
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    BUCKET_INDEX,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    METADATA_TABLE,
    NO_METADATA_TABLE,
    table_name,
    table_version,
)
from support.run.reach import reached
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64(), word=pa.string())
LOCK = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.client.num_retries": "100",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
}
OF_THE_ATTEMPT = {
    *("path", "totalWriteBytes", "fileSizeInBytes", "runtimeStats", "totalLogReadTimeMs"),
    *("prevBaseFile", "numUpdates", "totalLogSizeCompacted"),
}
COUNTED_OTHERWISE = {"judge_015": {"totalLogRecords"}, "judge_102": {"numInserts", "numUpdateWrites"}}
Rows = Counter[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Case:
    judge: str
    version: int
    has_metadata_table: bool = False

    def __str__(self) -> str:
        return (
            f"{self.judge.removeprefix('judge_')}-v{self.version}{'-metadata table' if self.has_metadata_table else ''}"
        )

    @property
    def options(self) -> dict[str, str]:
        merging = DEFAULT_PAYLOAD if self.version == 6 else EVENT_TIME_ORDERING
        metadata = METADATA_TABLE if self.has_metadata_table else NO_METADATA_TABLE
        version = {} if self.judge == "judge_015" else table_version(self.version)
        return MERGE_ON_READ | BUCKET_INDEX | AVRO_LOG_BLOCKS | merging | metadata | version | table_name("planned")

    @property
    def service_options(self) -> dict[str, str]:
        """The options that Hudi's procedures have to be told, too."""
        told = ("hoodie.metadata.", "hoodie.write.", "hoodie.payload.")
        return {key: value for key, value in self.options.items() if key.startswith(told)}


def rows_of(*values: tuple[str, int, str]) -> pa.Table:
    rows = [(key, "ab"[int(key[1:]) % 2], ms, word) for key, ms, word in values]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


INLINE = {"hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
"""A write schedules a compaction when it has committed, and leaves it to another process."""


def write_history(judge: HudiJudge, path: Path, case: Case, *, inline: bool = False) -> str:
    """A table with a published cut that Hudi then writes to, plans to compact, and writes to again; the plan's instant.

    `inline`: the write schedules the plan, instead of a procedure.
    """
    first = rows_of(*((f"k{i}", 100 + i, "first") for i in range(20)))
    judge.write(path, first, options=case.options, operation="insert", mode="overwrite")
    judge.write(path, rows_of(*((f"k{i}", 130 - i, "second") for i in range(5, 25))), options=case.options)
    Table.open(str(path)).compact(before="1970-01-01T00:00:00.120Z")
    judge.write(path, rows_of(*((f"k{i}", 90 + 3 * i, "third") for i in range(0, 30, 3))), options=case.options)
    options = case.options | (INLINE if inline else {})
    judge.write(path, rows_of(("k1", 0, "gone"), ("k2", 0, "gone")), options=options, operation="delete")
    if not inline:
        judge.schedule_compaction(path, case.service_options)
    judge.write(path, rows_of(("k3", 900, "since"), ("k77", 1, "since")), options=case.options)
    (pending,) = Table.open(str(path)).state().timeline.pending_plans
    return pending.requested_time


@dataclass(frozen=True, slots=True)
class Planned:
    """A table with a plan of Hudi that nobody has begun, its twin on which Hudi has run it, and the rows of both."""

    case: Case
    judge: HudiJudge
    path: Path
    twin: Path
    instant: str
    directory: Path

    def copy(self, name: str) -> Path:
        return Path(shutil.copytree(self.path, self.directory / name, copy_function=shutil.copy2))


def plan(request: pytest.FixtureRequest, case: Case, directory: Path, *, inline: bool = False) -> Planned:
    judge: HudiJudge = request.getfixturevalue(case.judge)
    path, twin = directory / "table", directory / "twin"
    instant = write_history(judge, path, case, inline=inline)
    shutil.copytree(path, twin, copy_function=shutil.copy2)
    judge.run_compaction(twin, case.service_options)
    return Planned(case, judge, path, twin, instant, directory)


def shown(found: pa.Table) -> Rows:
    names = ("_hoodie_commit_time", *SCHEMA.names)
    return Counter(tuple(row[name] for name in names) for row in found.to_pylist())


def answers(judge: HudiJudge, path: Path) -> Iterator[tuple[str, Rows]]:
    """What Hudi, hudi-rs and eventide answer to each query."""
    table = Table.open(str(path))
    writes = [i for i in table.state().timeline.writes if not table.state().commit(i).is_compacted]
    for query in ("snapshot", "read_optimized"):
        yield f"Hudi {query}", shown(judge.read(path, query))
        yield f"hudi-rs {query}", shown(hudi_rs.read(path, query))
    yield "eventide snapshot", shown(table.snapshot().to_arrow())
    yield "eventide read_optimized", shown(table.read_optimized().to_arrow())
    for write in writes[1:]:
        yield f"Hudi as of {write.requested_time}", shown(judge.read(path, as_of=write.requested_time))
    for write in writes[:-1]:
        begin = write.completion_time or write.requested_time
        yield f"Hudi since {begin}", shown(judge.read(path, "incremental", begin=begin))


def check_alike(planned: Planned, path: Path) -> None:
    for (query, found), (_, expected) in zip(
        answers(planned.judge, path), answers(planned.judge, planned.twin), strict=True
    ):
        assert found == expected, f"{query}: {found - expected} instead of {expected - found}"
        reached("plans of Hudi: queries alike")


def commit_of(path: Path, instant: str) -> dict[str, Any]:
    """The commit of the compaction, as it stands on the timeline; there is one."""
    state = Table.open(str(path)).state()
    directory = path / state.config.timeline_path
    (completed,) = [
        found
        for file in directory.iterdir()
        if (found := Instant.parse(file.name)) is not None
        and (found.requested_time, str(found.action)) == (instant, "commit")
        and found.is_completed
    ]
    data = (directory / completed.file_name).read_bytes()
    document: dict[str, Any] = json.loads(data) if state.config.version == 6 else avro_records(data)[0]
    return document


def without_attempt(commit: Mapping[str, Any], judge: str) -> dict[str, Any]:
    left_out = OF_THE_ATTEMPT | COUNTED_OTHERWISE.get(judge, set())
    stats = {
        partition: sorted(
            (
                {key: value for key, value in stat.items() if key not in left_out and value is not None}
                for stat in found
            ),
            key=lambda stat: stat["fileId"],
        )
        for partition, found in commit["partitionToWriteStats"].items()
    }
    extra = {key: text for key, text in commit["extraMetadata"].items() if key != CHECKSUMS_KEY}
    return {**commit, "partitionToWriteStats": stats, "extraMetadata": extra, "version": None}


def bases_of(path: Path, instant: str) -> list[str]:
    return [file.name for file in path.glob(f"part=*/*_{instant}.parquet")]


def shown_words(judge: HudiJudge, path: Path) -> Rows:
    """Without the commit times, which the later writes of two tables do not share."""
    found = judge.read(path, "read_optimized").to_pylist()
    assert judge.count(path) == len(found)
    return Counter(tuple(row[name] for name in SCHEMA.names) for row in found)
