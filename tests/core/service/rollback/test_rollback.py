"""Undoing writes: what failed leaves nothing, what was completed goes only where nothing is lost with it."""

import os
import shutil
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_adapters.storage.open import open_storage
from eventide_core.config import BUCKETS, Options
from eventide_core.errors import BusyError, RefusedError
from eventide_core.table.timeline.instant import Action
from golden.histories import EPOCH_MS
from golden.readings import as_json
from support.files.metadata_updates import check_files
from support.pasts import golden
from support.run.command_line import content_of, run, run_json
from support.tables.thresholds import dividing_plan
from support.values.columns import schema_of

pytestmark = pytest.mark.slow

INFLIGHT = ("v6_inflight", "v9_inflight")
AFTER_ALL_MS = EPOCH_MS + 100_000_000


def rows(table: Table, columns: tuple[str, ...]) -> Counter[tuple[str, ...]]:
    records = table.snapshot().to_arrow().to_pylist()
    return Counter(tuple(repr(as_json(row[name])) for name in columns) for row in records)


def after_step(name: str, number: int) -> Counter[tuple[str, ...]]:
    """What Hudi read as of the nth commit."""
    expected = golden.expected(name)
    as_of = expected.instants[number]["requested_time"]
    return Counter(tuple(repr(value) for value in row[1:]) for row in expected.read(as_of=as_of))


def timeline_directory(path: Path) -> Path:
    directory = path / ".hoodie" / "timeline"
    return directory if directory.exists() else directory.parent


@pytest.mark.parametrize("name", INFLIGHT)
def test_a_write_that_failed_leaves_no_file_and_no_row(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path))
    columns = golden.expected(name).row_columns
    (failed,) = table.state().timeline.pending
    before = rows(table, columns)
    content = content_of(path)
    refused = run("rollback", path, failed.requested_time)
    assert (refused.exit_code, "no heartbeat" in refused.stderr, "--force" in refused.stderr) == (3, True, True)
    assert content_of(path) == content
    deleted = run_json("rollback", path, failed.requested_time, "--force")["deleted"]
    assert rows(table, columns) == before
    timeline = table.state().timeline
    assert (timeline.pending, timeline.find(failed.requested_time)) == ((), None)
    assert timeline.instants[-1].action is Action.ROLLBACK
    assert not any((path / ".hoodie" / ".temp").glob("*"))
    if name.startswith("v9"):
        assert len([log_name for log_name in deleted if ".log." in log_name]) == 4
        assert not list(path.glob(f"part=*/*_{failed.requested_time}*"))


@pytest.mark.parametrize("name", INFLIGHT)
def test_what_has_been_rolled_back_is_rolled_back_again_without_an_effect(name: str, tmp_path: Path) -> None:
    """As one whose process was paused finds it, and one that is run again because its answer was lost."""
    path = golden.unpack(name, tmp_path)
    (failed,) = Table.open(str(path)).state().timeline.pending
    run_json("rollback", path, failed.requested_time, "--force")
    content = content_of(path)
    again = run("rollback", path, failed.requested_time)
    assert (again.exit_code, "has been rolled back" in again.stdout) == (0, True)
    unknown = run("rollback", path, "20200101000000000")
    assert (unknown.exit_code, "there is no instant 20200101000000000" in unknown.stderr) == (2, True)
    assert content_of(path) == content


@pytest.mark.parametrize("name", ["v6_clustering_planned", "v9_clustering_planned"])
def test_a_planned_clustering_makes_way_for_a_compaction(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path))
    columns = golden.expected(name).columns
    before = rows(table, columns)
    (planned,) = table.state().timeline.pending
    run_json("rollback", path, planned.requested_time)
    timeline = table.state().timeline
    assert (timeline.pending, timeline.find(planned.requested_time)) == ((), None)
    assert timeline.instants[-1].action is Action.ROLLBACK
    table.compact(table.plan_compaction(AFTER_ALL_MS))
    assert rows(table, columns) == before


@pytest.mark.parametrize("name", ["v6_log_compacted", "v9_log_compacted"])
def test_a_log_compaction_that_died_leaves_the_blocks_that_it_merged(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path))
    columns = golden.expected(name).row_columns
    before = rows(table, columns)
    instant = max(file.name.partition(".")[0] for file in timeline_directory(path).glob("*.logcompaction.inflight"))
    (completed,) = (f for f in timeline_directory(path).glob(f"{instant}*.deltacommit") if f.suffix != ".crc")
    completed.unlink()
    (pending,) = table.state().timeline.pending
    assert (pending.requested_time, pending.action) == (instant, Action.LOG_COMPACTION)
    assert rows(table, columns) == before
    run_json("rollback", path, instant, "--force")
    timeline = table.state().timeline
    assert (timeline.pending, timeline.find(instant)) == ((), None)
    assert rows(table, columns) == before
    if name.startswith("v9"):
        assert not list(path.glob(f"part=*/*_{instant}*"))
    table.compact(table.plan_compaction(AFTER_ALL_MS))
    assert rows(table, columns) == before


@pytest.mark.parametrize("name", INFLIGHT)
def test_the_last_writes_are_undone_one_after_the_other(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path))
    columns = golden.expected(name).row_columns
    table.rollback(table.state().timeline.pending[0].requested_time, force=True)
    for last in (5, 4, 3):
        assert rows(table, columns) == after_step(name, last)
        table.rollback(table.state().timeline.writes[-1].requested_time)
    assert rows(table, columns) == after_step(name, 2)


@pytest.mark.parametrize("name", INFLIGHT)
def test_a_write_that_others_have_built_on_is_not_undone(name: str, tmp_path: Path) -> None:
    table = Table.open(str(golden.unpack(name, tmp_path)))
    earlier = table.state().timeline.writes[-2].requested_time
    with pytest.raises(RefusedError, match="wrote into"):
        table.rollback(earlier)


@pytest.mark.parametrize("name", ["v6_no_deletes", "v9_no_deletes"])
@pytest.mark.parametrize("mode", ["copy", "prefix"])
def test_a_completed_compaction_is_undone_while_its_old_slices_are_there(name: str, mode: str, tmp_path: Path) -> None:
    if (name, mode) == ("v6_no_deletes", "prefix"):
        pytest.skip("version 6 has no back-dated compaction")
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path))
    columns = golden.expected(name).row_columns
    files, before = sorted(path.glob("part=*/*")), rows(table, columns)
    result = table.compact(dividing_plan(table, "event_ts", mode))
    assert table.freshness().cut_ms is not None
    lost = shutil.copytree(path, tmp_path / "lost")
    table.rollback(result.instant)
    assert rows(table, columns) == before
    assert sorted(path.glob("part=*/*")) == files
    assert table.freshness().cut_ms is None

    min(lost.glob("part=a/.*.log.*[0-9]")).unlink()
    with pytest.raises(RefusedError, match="no longer exists"):
        Table.open(str(lost)).rollback(result.instant)


@pytest.mark.parametrize("name", INFLIGHT)
def test_a_write_is_dead_when_its_heartbeat_has_expired(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    application = assemble(str(path), {})
    (failed,) = application.state().timeline.pending
    assert application.rollback.undo_failed_writes() == ()  # without a heartbeat nobody can tell
    heartbeat = path / ".hoodie" / ".heartbeat" / failed.requested_time
    heartbeat.parent.mkdir()
    heartbeat.write_bytes(b"")
    assert application.rollback.undo_failed_writes() == ()
    with pytest.raises(BusyError, match="is alive"):
        application.rollback.undo(failed.requested_time)
    long_ago = time.time() - 121  # twice Hudi's interval of a minute, and one second
    os.utime(heartbeat, (long_ago, long_ago))
    assert application.rollback.undo_failed_writes() == (failed.requested_time,)
    assert not heartbeat.exists()
    assert application.state().timeline.pending == ()


def test_a_log_of_version_6_that_holds_no_whole_block_goes_with_its_write(tmp_path: Path) -> None:
    path = golden.unpack("v6_inflight", tmp_path)
    table = Table.open(str(path))
    (failed,) = table.state().timeline.pending
    torn = next(path.glob("part=a/.*.log.6_[0-9]*[0-9]"))
    torn.write_bytes(torn.read_bytes()[:-30])
    (torn.parent / f".{torn.name}.crc").unlink(missing_ok=True)
    assert f"part=a/{torn.name}" in table.rollback(failed.requested_time, force=True)
    assert table.snapshot().to_arrow().num_rows == 160


@pytest.mark.parametrize("name", INFLIGHT)
def test_rollbacks_of_another_hand_that_died_are_ended(name: str, tmp_path: Path) -> None:
    """As after a crash of Hudi between its plan and its end."""
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path))
    (failed,) = table.state().timeline.pending
    kept = {file: file.read_bytes() for file in timeline_directory(path).glob(f"{failed.requested_time}*")}
    table.rollback(failed.requested_time, force=True)
    begun = next(timeline_directory(path).glob("*.rollback.requested"))
    for file in timeline_directory(path).glob("*.rollback"):
        file.unlink()
    for file, data in kept.items():
        file.write_bytes(data)
    files = sorted(path.glob("part=*/*"))
    # Whether that engine is at work nobody can tell: not before it has stood for long.
    assert assemble(str(path), {}).rollback.undo_failed_writes() == ()
    with pytest.raises(BusyError, match="of another engine has been pending"):
        table.rollback(failed.requested_time)
    assert run("clean", path).exit_code == 4
    for file in timeline_directory(path).glob("*.rollback.*"):
        os.utime(file, (0, 0))
    assert assemble(str(path), {}).rollback.undo_failed_writes() == (failed.requested_time,)
    assert sorted(path.glob("part=*/*")) == files
    state = table.state()
    assert (state.timeline.pending, state.timeline.instants[-1].requested_time) == ((), begun.name[:17])


@pytest.mark.parametrize("name", ["v6_mdt", "v9_mdt"])
def test_the_metadata_table_names_what_a_rollback_leaves(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    application = assemble(str(path), {})
    last = application.state().timeline.writes[-1]
    application.rollback.undo(last.requested_time)
    check_files(path)


def test_a_log_file_later_than_the_archived_rollback_of_its_write_is_a_stray(tmp_path: Path) -> None:
    """As of a process that died, whose write Hudi rolled back: Hudi leaves no record of that beside its rollback."""
    path = golden.unpack("v9_inflight", tmp_path)
    early: dict[str, str] = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", BUCKETS: "2"}
    early["hoodie.cleaner.commits.retained"] = "1"
    table = Table.open(str(path), early)
    (failed,) = table.state().timeline.pending
    late = {
        file: file.read_bytes() for file in path.rglob(f"*_{failed.requested_time}.log*") if ".hoodie" not in file.parts
    }
    assert late
    table.rollback(failed.requested_time, force=True)
    for record in (path / ".hoodie/.aux/eventide").glob(f"{failed.requested_time}*"):
        record.unlink()
    for number in range(6):
        table.upsert(table.snapshot().to_arrow().slice(number, 1))
        table.archive()
    assert table.state().timeline.is_archived(failed.requested_time)
    before = rows(table, golden.expected("v9_inflight").row_columns)
    for file, content in late.items():
        file.write_bytes(content)
    table = Table.open(str(path), early)
    assert rows(table, golden.expected("v9_inflight").row_columns) == before
    table.compact(before=AFTER_ALL_MS)
    table.clean()
    assert not any(file.exists() for file in late)
    assert table.verify(deep=True).ok
    assert rows(table, golden.expected("v9_inflight").row_columns) == before


def test_a_rollback_on_version_6_lists_a_partition_once_for_all_its_file_groups() -> None:
    options: dict[str, str] = {BUCKETS: "4"}
    uri = "memory://rolled back"
    schema = schema_of(id=pa.string(), part=pa.string(), ms=pa.int64())
    table = Table.create(
        uri, schema=schema, record_key="id", partition="part", ordering="ms", version=6, options=options
    )
    keys = [f"k{number}" for number in range(20)]
    for ms in (1, 2):
        result = table.upsert(pa.table({"id": keys, "part": ["a"] * 20, "ms": [ms] * 20}, schema=schema))
    storage = FaultyStorage(open_storage(uri, Options(options)))
    assemble(uri, options, storage=storage).rollback.undo(result.instant)
    (instant,) = table.state().timeline.writes
    written = [log for file_slice in table.state().view.latest_slices() for log in file_slice.log_files]
    assert len(written) == 8, "a log that was rolled back, and what rolls it back, in each file group"
    assert set(table.snapshot().to_arrow()["ms"].to_pylist()) == {1}, instant
    assert sum(read.kind == "list" and read.path == "part=a" for read in storage.reads) == 2
    assert not any(read.kind == "stat" and ".log." in read.path for read in storage.reads)
