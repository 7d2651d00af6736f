"""Tables of real Hudi with a metadata table, compacted in part by eventide: every reader and writer continues as before.

A twin goes through the same later writes and services of Hudi without eventide. Every read is made with and without the
metadata table, which must agree; filtered reads are pruned by it where it has column statistics.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.engine_local import LocalEngine
from eventide_adapters.storage.faulty import SimulatedCrash
from eventide_core.ports import NoProgress
from golden.histories import PLAIN, RICH, Step, changes_and_natural_deletes, changes_in_event_time_order
from golden.readings import as_json
from support.cases.pruned_reads import BY_LISTING, check_pruned_reads
from support.doubles.dying_storage import DyingStorage
from support.files.metadata_updates import listed, on_disk, opened
from support.judge import HudiJudge, hudi_rs
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    BLOOM_INDEX,
    BUCKET_INDEX,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    table_name,
    table_version,
)
from support.pasts import golden
from support.run.reach import reached
from support.tables.thresholds import dividing_plan

JUDGES = {"0.15.0": "judge_015", "1.1.1": "judge_111", "1.2.0": "judge_120"}
BY_METADATA = {"hoodie.metadata.enable": "true"}
BY_FILE = {
    **BY_METADATA,
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
# Not with a bucket index, under which Hudi leaves new keys of logs out of it, and then finds no such key.
BY_KEY = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    # Ten unless told: each write of Hudi goes through all of them.
    "hoodie.metadata.record.index.min.filegroup.count": "2",
}
# Hudi 0.15's own compaction turns 17.00 in a base of a bulk insert into 1700.00.
RICH_WITHOUT_DECIMAL = pa.schema([column for column in RICH if column.name != "fare"])
RECORD_INDEX = {"hoodie.index.type": "RECORD_INDEX"}
BROAD = pytest.mark.broad
PROOF = pytest.mark.proof
STEPS_MADE = 5  # of a history: what is needed for logs to merge and to leave over

Rows = Counter[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Case:
    """A table with a metadata table, golden or made here, and the Hudi that continues it."""

    name: str
    bundle: str
    options: Mapping[str, str]
    schema: pa.Schema
    mode: str = "copy"

    def history(self) -> Iterator[Step]:
        steps = changes_in_event_time_order() if self.schema is PLAIN else changes_and_natural_deletes(rich=True)
        return islice(steps, STEPS_MADE)

    @property
    def opening_options(self) -> dict[str, str]:
        return {"hoodie.index.type": self.options["hoodie.index.type"]}


def made(bundle: str, index: Mapping[str, str], schema: pa.Schema, name: str, mode: str = "copy") -> Case:
    merged = DEFAULT_PAYLOAD if bundle == "0.15.0" else {**table_version(9), **EVENT_TIME_ORDERING}
    options = {**MERGE_ON_READ, **AVRO_LOG_BLOCKS, **BY_FILE, **index, **merged, **table_name(name)}
    return Case(name, bundle, options, schema, mode)


def from_golden(name: str, bundle: str) -> Case:
    return Case(name, bundle, golden.expected(name).options, PLAIN)


CASES = [
    from_golden("v6_mdt", "0.15.0"),
    from_golden("v9_mdt", "1.1.1"),
    made("0.15.0", BLOOM_INDEX | BY_KEY, RICH_WITHOUT_DECIMAL, "v6_bloom"),
    made("1.1.1", BUCKET_INDEX, PLAIN, "v9_back_dated", "prefix"),
    made("1.1.1", RECORD_INDEX | BY_KEY, RICH, "v9_record_index"),
]


@pytest.fixture
def judge(request: pytest.FixtureRequest, case: Case) -> HudiJudge:
    found: HudiJudge = request.getfixturevalue(JUDGES[case.bundle])
    return found


def lay(case: Case, judge: HudiJudge, directory: Path) -> tuple[Path, Path]:
    """The table, and its twin."""
    if case.name in golden.names():
        path = golden.unpack(case.name, directory)
    else:
        path = directory / case.name
        for number, step in enumerate(case.history()):
            judge.write(
                path,
                pa.Table.from_pylist(list(step.rows), schema=case.schema),
                options=case.options,
                operation=step.operation,
                mode="append" if number else "overwrite",
            )
    twin = directory / "twin" / case.name
    shutil.copytree(path, twin)
    return path, twin


def die(case: Case, path: Path, pattern: str) -> str:
    """Compacts in part, and dies before a file; the instant. The lock is free, as it is once it has expired."""
    table = Table.open(str(path), case.opening_options)
    plan = table.schedule(dividing_plan(table, "event_ts", case.mode))
    assert any(operation.left_overs for operation in plan.operations)
    storage = DyingStorage(path, pattern.format(instant=plan.instant))
    application = assemble(str(path), case.opening_options, storage=storage, engine=LocalEngine(1))
    with pytest.raises(SimulatedCrash):
        application.runner.execute(plan.instant, NoProgress())
    return plan.instant


def rows(found: pa.Table, schema: pa.Schema) -> Rows:
    return Counter(tuple(repr(as_json(row[name])) for name in schema.names) for row in found.to_pylist())


def snapshot(judge: HudiJudge, path: Path, schema: pa.Schema) -> Rows:
    """What Hudi reads, after it has been seen to read the same with and without the metadata table."""
    seen = rows(judge.read(path, options=BY_METADATA), schema)
    assert rows(judge.read(path, options=BY_LISTING), schema) == seen
    return seen


def of_twin(judge: HudiJudge, twin: Path, schema: pa.Schema) -> Rows:
    return rows(judge.read(twin, options=BY_LISTING), schema)


def read_optimized(judge: HudiJudge, path: Path, schema: pa.Schema) -> Rows:
    seen = rows(judge.read(path, "read_optimized", options=BY_METADATA), schema)
    assert rows(judge.read(path, "read_optimized", options=BY_LISTING), schema) == seen
    assert rows(hudi_rs.read(path, "read_optimized"), schema) == seen
    return seen


def check_filters(judge: HudiJudge, path: Path, case: Case, schema: pa.Schema) -> None:
    """Filters by the columns of the schema, where the metadata table has statistics to prune by."""
    partitions = opened(path).load().facts.partitions
    if "column_stats" in partitions:
        # With a bucket index Hudi prunes by a key itself, and skips one that exists.
        by_hash = ["id"] if case.options["hoodie.index.type"] == "BUCKET" else []
        filters = check_pruned_reads(judge, path, schema, {**BY_FILE, **BY_KEY}, not_by_point=by_hash)
        reached(f"filters that Hudi {case.bundle} pruned by", filters)


def changed(everything: pa.Table, schema: pa.Schema, every: int, shift_ms: int, val: str, start: int = 0) -> pa.Table:
    found = sorted(everything.to_pylist(), key=lambda row: str(row["id"]))[start::every]
    changes = [
        {**row, "event_ts": row["event_ts"] + shift_ms, "val": f"{val}-{row['id']}", "amount": row["amount"] + shift_ms}
        for row in found
    ]
    if "day" in schema.names:
        changes = [{**row, "day": row["day"] + timedelta(days=shift_ms // 1000)} for row in changes]
    return pa.Table.from_pylist(changes, schema=schema)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(CASES[0], marks=BROAD),
        pytest.param(CASES[1], marks=PROOF),
        pytest.param(CASES[2], marks=PROOF),
        pytest.param(CASES[3], marks=PROOF),
        pytest.param(CASES[4], marks=PROOF),
    ],
    ids=lambda case: f"{case.name}-{case.bundle}",
)
def test_hudi_continues_with_an_updated_metadata_table(case: Case, tmp_path: Path, judge: HudiJudge) -> None:
    schema = case.schema
    path, twin = lay(case, judge, tmp_path)
    everything = judge.read(twin, options=BY_LISTING)
    before = rows(everything, schema)
    metadata = opened(path)
    partitions, files = metadata.load().facts.partitions, listed(path)
    assert files == on_disk(path)

    directory = ".hoodie/timeline" if (path / ".hoodie/timeline").exists() else ".hoodie"
    instant = die(case, path, r"\.commit$")
    assert list((path / ".hoodie/metadata" / directory).glob(f"{instant}*.deltacommit"))
    assert listed(path) == files  # nobody sees it before the table's own commit
    assert snapshot(judge, path, schema) == before
    table = Table.open(str(path), case.opening_options)
    table.execute(instant)
    assert metadata.load().facts.partitions == partitions
    assert listed(path) == on_disk(path) != files
    assert snapshot(judge, path, schema) == before
    assert rows(hudi_rs.read(path), schema) == before
    compacted = rows(table.read_optimized().to_arrow(), schema)
    assert read_optimized(judge, path, schema) == compacted
    assert compacted != rows(judge.read(twin, "read_optimized", options=BY_LISTING), schema)
    check_filters(judge, path, case, schema)

    often = {**case.options, "hoodie.metadata.compact.max.delta.commits": "1"}
    late = changed(everything, schema, 6, -50_000, "late")
    changes = pa.concat_tables([late, changed(everything, schema, 6, 20_000_000, "new", start=1)])
    for found in (path, twin):
        judge.write(found, changes, options=often)
        judge.write(found, changed(everything, schema, 11, 30_000_000, "gone"), options=often, operation="delete")
    bases = {p.name.rpartition("_")[2] for p in (path / ".hoodie" / "metadata" / "files").glob("files-*.hfile")}
    assert max(bases) > f"{instant}.hfile"  # a compaction of the metadata table took in what eventide wrote
    assert snapshot(judge, path, schema) == of_twin(judge, twin, schema)
    # Hudi has merged what eventide wrote with its own; each type of column was asked above.
    check_filters(judge, path, case, PLAIN)

    for found in (path, twin):
        judge.schedule_compaction(found, case.options)
        judge.run_compaction(found, case.options)
    last = snapshot(judge, path, schema)
    assert last == of_twin(judge, twin, schema)
    files = on_disk(path)
    judge.sql(f"create table {case.name} using hudi location '{path}'")
    kept = {"clean_policy": "KEEP_LATEST_FILE_VERSIONS", "file_versions_retained": 1}
    judge.call("run_clean", table=case.name, options="hoodie.metadata.enable=true", **kept)
    judge.sql(f"drop table {case.name}")
    assert on_disk(path).items() != files.items()
    assert snapshot(judge, path, schema) == read_optimized(judge, path, schema) == last
    assert listed(path) == on_disk(path)


@pytest.mark.parametrize(
    ("case", "pattern"),
    [
        pytest.param(CASES[0], r"metadata/files/.*\.log\.11_", id="version 6, before its log", marks=PROOF),
        pytest.param(
            CASES[0], "metadata/.*{instant}.deltacommit$", id="version 6, before its delta commit", marks=PROOF
        ),
        pytest.param(
            CASES[1],
            r"metadata/.*{instant}_[0-9]+\.deltacommit$",
            id="version 9, before its delta commit",
            marks=BROAD,
        ),
    ],
)
def test_hudi_continues_after_an_update_that_died(case: Case, pattern: str, tmp_path: Path, judge: HudiJudge) -> None:
    """Hudi writes before eventide continues, and after it.

    On version 9 Hudi rolls the dead update back, which eventide then cannot write again: it drops the metadata table, and
    Hudi's next write builds it again.
    """
    path, twin = lay(case, judge, tmp_path)
    everything = judge.read(twin, options=BY_LISTING)
    instant = die(case, path, pattern)
    for found in (path, twin):
        judge.write(found, changed(everything, case.schema, 5, -50_000, "late"), options=case.options)
    expected = of_twin(judge, twin, case.schema)
    assert snapshot(judge, path, case.schema) == expected

    Table.open(str(path), case.opening_options).execute(instant)
    metadata = opened(path)
    if metadata.load().facts.partitions:
        assert listed(path) == on_disk(path)
    assert snapshot(judge, path, case.schema) == expected
    read_optimized(judge, path, case.schema)
    for found in (path, twin):
        judge.write(found, changed(everything, case.schema, 9, 50_000_000, "newer"), options=case.options)
    assert metadata.load().facts.partitions
    assert listed(path) == on_disk(path)
    assert snapshot(judge, path, case.schema) == of_twin(judge, twin, case.schema)


@pytest.mark.parametrize(
    "case", [pytest.param(CASES[0], marks=BROAD), pytest.param(CASES[1], marks=PROOF)], ids=["version 6", "version 9"]
)
def test_hudi_runs_a_plan_of_which_nothing_but_the_commit_is_missing(
    case: Case, tmp_path: Path, judge: HudiJudge
) -> None:
    """It compacts in full, and makes a commit of its own at that instant of the metadata table."""
    path, twin = lay(case, judge, tmp_path)
    everything = judge.read(twin, options=BY_LISTING)
    before = rows(everything, case.schema)
    instant = die(case, path, r"\.commit$")
    judge.run_compaction(path, case.options)
    assert [(i.action, i.state) for i in judge.timeline(path) if i.requested_time == instant] == [
        ("commit", "COMPLETED")
    ]
    assert snapshot(judge, path, case.schema) == read_optimized(judge, path, case.schema) == before
    assert opened(path).load().facts.partitions
    table = Table.open(str(path), case.opening_options)
    assert (
        rows(table.snapshot().to_arrow(), case.schema) == rows(table.read_optimized().to_arrow(), case.schema) == before
    )
    for found in (path, twin):
        judge.write(found, changed(everything, case.schema, 9, 50_000_000, "newer"), options=case.options)
    assert snapshot(judge, path, case.schema) == of_twin(judge, twin, case.schema)
