"""Tables with archived writes: queries, the cut, and Hudi's further work.

The recorded readings of the golden tables hold snapshots, time travel and spans of the active timeline to every judge
(test_golden_reads, test_compaction); here are the spans that begin before it, and what eventide finds again by itself.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.reader import Rows
from eventide_core.errors import CorruptTimelineError
from eventide_core.table.timeline.instant import instant_epoch_ms
from golden.histories import EPOCH_MS, PLAIN
from golden.readings import as_json
from support.doubles.counting_storage import CountingStorage
from support.judge import HudiJudge, hudi_rs
from support.judge.options import ARCHIVED_EARLY
from support.pasts import archived as history
from support.pasts import golden
from support.tables.thresholds import dividing_plan

Row = tuple[str, ...]
HISTORY = ".hoodie/timeline/history"


def rows(found: pa.Table) -> Counter[Row]:
    return Counter(tuple(repr(as_json(row[name])) for name in PLAIN.names) for row in found.to_pylist())


def told(steps: Iterable[golden.GoldenStep]) -> Counter[Row]:
    """What some upserts make of the keys they write: of each the version with the greatest event time, the later of two."""
    versions: dict[str, golden.Values] = {}
    for step in steps:
        assert step.operation == "upsert"
        for row in step.rows:
            known = versions.get(row[0])
            if known is None or row[2] >= known[2]:
                versions[row[0]] = row
    return Counter(tuple(map(repr, row)) for row in versions.values())


def instants_of_steps(name: str, table: Table) -> list[str]:
    """When each step of the table's history was committed, as an incremental query measures it."""
    state = table.state()
    writes = sorted((*state.archived_writes(), *state.timeline.writes), key=lambda i: i.requested_time)
    assert len(writes) == len(golden.expected(name).steps)
    return [write.completion_time or write.requested_time for write in writes]


@pytest.mark.parametrize("name", ["v6_archived", "v9_archived"])
@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 2), (4, 4), (4, 5)])
def test_a_span_of_archived_commits_holds_what_they_wrote(name: str, first: int, last: int, tmp_path: Path) -> None:
    table = Table.open(str(golden.unpack(name, tmp_path)))
    instants = instants_of_steps(name, table)
    steps = golden.expected(name).steps
    assert len(table.state().timeline.writes) == 3  # all the others are archived
    assert last <= len(steps) - 1 - 3
    found = table.incremental(instants[first - 1], instants[last])
    assert rows(found.to_arrow()) == told(steps[first : last + 1])


@pytest.mark.parametrize("name", ["v6_archived", "v9_archived"])
def test_a_span_from_the_archive_into_the_active_timeline_holds_both(name: str, tmp_path: Path) -> None:
    table = Table.open(str(golden.unpack(name, tmp_path)))
    steps = golden.expected(name).steps
    assert [step.operation for step in steps[-4:]] == ["upsert", "delete", "upsert", "upsert"]
    everything = table.incremental("earliest").to_arrow()
    assert rows(everything) == rows(table.snapshot().to_arrow())
    since = table.incremental(instants_of_steps(name, table)[-5]).to_arrow()
    deleted = {repr(row[0]) for row in steps[-3].rows}
    later = {repr(row[0]) for step in steps[-2:] for row in step.rows}
    kept = {row[0] for row in told(s for s in steps[-4:] if s.operation == "upsert")} - (deleted - later)
    assert {row[0] for row in rows(since)} == kept


@pytest.mark.broad
def test_version_9_shows_what_hudi_does_in_a_span_that_begins_in_the_archive(
    tmp_path: Path, judge_111: HudiJudge
) -> None:
    """And late losers: Hudi lets archived logs before the span hide them, but not active ones (test_golden_reads)."""
    path = golden.unpack("v9_archived", tmp_path)
    table = Table.open(str(path))
    now = rows(table.snapshot().to_arrow())
    for instant in ["000", *instants_of_steps("v9_archived", table)[:-1]]:
        ours = rows(table.incremental(instant).to_arrow())
        theirs = rows(judge_111.read(path, "incremental", begin=instant))
        assert theirs
        assert theirs <= ours
        assert not (ours - theirs) & now


@pytest.mark.proof
def test_the_rows_of_a_span_whose_files_were_cleaned_come_from_the_current_slices(
    tmp_path: Path, judge_111: HudiJudge
) -> None:
    path = golden.unpack("v9_archived", tmp_path)
    judge_111.schedule_compaction(path)
    judge_111.run_compaction(path)
    table = Table.open(str(path))
    begin = instants_of_steps("v9_archived", Table.open(str(golden.unpack("v9_archived", tmp_path / "before"))))[2]
    everything = table.snapshot().to_arrow().to_pylist()
    judge_111.sql(f"create table cleaned using hudi location '{path}'")
    judge_111.call("run_clean", table="cleaned", clean_policy="KEEP_LATEST_FILE_VERSIONS", file_versions_retained=1)
    judge_111.sql("drop table cleaned")
    writers = {
        i.requested_time: i.completion_time for i in (*table.state().archived_writes(), *table.state().timeline.writes)
    }
    wanted = [row for row in everything if (writers[row["_hoodie_commit_time"]] or "") > begin]
    assert 0 < len(wanted) < len(everything)
    assert rows(table.incremental(begin).to_arrow()) == rows(pa.Table.from_pylist(wanted))


@pytest.mark.broad
@pytest.mark.parametrize(
    ("name", "bundle"),
    [
        ("v6_archived", "judge_015"),
        pytest.param("v9_archived", "judge_111", marks=pytest.mark.proof),
        pytest.param("v8_event_bucket", "judge_111", marks=pytest.mark.proof),
    ],
)
def test_the_cut_outlives_the_commit_that_published_it(
    name: str, bundle: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(bundle)
    path = golden.unpack(name, tmp_path)
    options = {**golden.expected(name).options, **ARCHIVED_EARLY}
    table = Table.open(str(path), {"hoodie.index.type": "BUCKET"})
    plan = dividing_plan(table, "event_ts", "copy")
    assert any(operation.left_overs for operation in plan.operations)
    instant = table.compact(plan).instant
    for nth in range(5):
        row = {"id": f"k{nth:05d}", "part": "ab"[nth % 2], "event_ts": EPOCH_MS * 2 + nth, "val": "on", "amount": 1.0}
        judge.write(path, [row], PLAIN, options=options)
    state = table.state()
    assert state.timeline.is_archived(instant)
    assert instant in {i.requested_time for i in state.archived_writes()}
    assert plan.cut_ms is not None
    assert (state.cut_ms, state.published_cut.event_time_field) == (plan.cut_ms, "event_ts")
    earlier = table.plan_compaction(table.freshness().watermark_ms)
    assert earlier.is_reached

    seen = rows(judge.read(path))
    assert rows(table.snapshot().to_arrow()) == rows(hudi_rs.read(path)) == seen
    table.compact(table.plan_compaction(EPOCH_MS * 2))
    assert rows(table.snapshot().to_arrow()) == rows(hudi_rs.read(path)) == rows(judge.read(path)) == seen
    check_hudi_goes_on_with_a_merged_archive(path, options, judge)


def check_hudi_goes_on_with_a_merged_archive(path: Path, options: dict[str, str], judge: HudiJudge) -> None:
    """It lists what eventide archived and merged, and archives and merges on."""
    batches = {
        "hoodie.timeline.compaction.batch.size": "2",
        "hoodie.archive.merge.enable": "true",
        "hoodie.archive.merge.files.batch.size": "2",
    }
    directory = path / Table.open(str(path)).state().config.archive_path
    hudis = {file.name for file in directory.iterdir()}
    row = {"id": "k00000", "part": "a", "event_ts": EPOCH_MS * 2 + 9, "val": "merged", "amount": 1.0}
    table = Table.open(str(path), options | batches)
    for _ in range(3):
        table.upsert(pa.Table.from_pylist([row], schema=PLAIN))
        table.compact(before=EPOCH_MS * 2 + 10)
        table.archive()
    assert hudis - {file.name for file in directory.iterdir()}, "nothing of Hudi's was merged"
    archived = {i.requested_time for i in table.state().archived_writes()}
    judge.sql(f"create table merged using hudi location '{path}'")
    listed = judge.call("show_archived_commits", table="merged", limit=1000, start_ts="2020", end_ts="2099")
    judge.sql("drop table merged")
    assert archived <= set(listed.column("commit_time").to_pylist())
    judge.write(path, [row | {"val": "on"}], PLAIN, options=options | batches)
    found = Table.open(str(path))
    assert archived <= {i.requested_time for i in found.state().archived_writes()}
    assert rows(found.snapshot().to_arrow()) == rows(judge.read(path))


def with_long_history(path: Path) -> list[str]:
    """Puts ten thousand older instants in front of the table's archived ones; the names of their files."""
    directory = path / HISTORY
    own = sorted(file.name for file in directory.glob("*.parquet"))
    earliest = instant_epoch_ms(own[0].split("_")[0])
    names = history.write_tree(directory, history.instants(10_000, earliest - 10_001 * 60_000))
    history.publish(directory, [*names, *own], version=2000)
    return names


def test_a_table_with_ten_thousand_archived_instants_opens_without_reading_them(tmp_path: Path) -> None:
    path = golden.unpack("v9_archived", tmp_path)
    before = rows(Table.open(str(path)).snapshot().to_arrow())
    old = {f"{HISTORY}/{name}" for name in with_long_history(path)}
    storage = CountingStorage(str(path))
    application = assemble(str(path), {}, storage=storage)
    found = Rows(application.queries.snapshot(), application.reader, application.engine)
    assert rows(found.to_arrow()) == before
    assert len([name for name in storage.opened if name.startswith(HISTORY) and name not in old]) == 2 + 3
    assert not old & storage.opened.keys()


def test_a_log_whose_delta_commit_the_archive_lost_is_not_guessed_at(tmp_path: Path) -> None:
    path = golden.unpack("v9_archived", tmp_path)
    directory = path / HISTORY
    history.publish(directory, sorted(file.name for file in directory.glob("*.parquet"))[1:], version=3)
    with pytest.raises(CorruptTimelineError, match="restore the archived timeline"):
        Table.open(str(path)).snapshot()
