"""Clean, savepoint and restore on tables that Hudi wrote: no query notices, and what is gone is said so."""

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide_core.errors import BusyError, CleanedHistoryError, InstantNotFoundError, RefusedError
from eventide_core.table.timeline.instant import Action
from support.files.metadata_updates import check_files
from support.pasts import golden
from support.run.command_line import content_of, run, run_json
from support.tables.thresholds import dividing_plan
from support.values.rows import rows

pytestmark = pytest.mark.slow

TABLES = (
    ("v6_no_deletes", "copy"),
    ("v9_no_deletes", "copy"),
    ("v9_no_deletes", "prefix"),
    ("v6_mdt", "copy"),
    ("v9_mdt", "copy"),
)


def compacted(name: str, mode: str, directory: Path) -> Path:
    """A golden table after two partial compactions, the second of which merges left-overs of the first."""
    path = golden.unpack(name, directory)
    table = Table.open(str(path))
    table.compact(dividing_plan(table, "event_ts", mode))
    table.compact(table.plan_compaction(before="2026-01-01T00:00Z"))
    return path


@pytest.mark.parametrize(("name", "mode"), TABLES)
def test_cleaning_changes_no_query_of_now_and_refuses_those_of_cleaned_times(
    name: str, mode: str, tmp_path: Path
) -> None:
    path = compacted(name, mode, tmp_path)
    table = Table.open(str(path))
    before, files, first = rows(table.snapshot()), data_files(path), table.state().timeline.writes[0].requested_time
    optimized = rows(table.read_optimized())
    untouched = content_of(path)
    dry = run_json("clean", path, "--retain-commits", 1, "--dry-run")
    assert content_of(path) == untouched
    done = run_json("clean", path, "--retain-commits", 1)
    assert done["deleted"] == dry["deleted"] != []
    assert data_files(path) == files - set(done["deleted"])
    assert rows(table.snapshot()) == before
    assert rows(table.read_optimized()) == optimized
    with pytest.raises(CleanedHistoryError):
        table.as_of(first)
    assert run_json("clean", path, "--retain-commits", 1) == {"instant": None, "deleted": [], "kept_targets": []}
    check_metadata_table(path)


def test_a_link_keeps_its_target_through_a_chain(tmp_path: Path) -> None:
    path = compacted("v6_no_deletes", "copy", tmp_path)
    table = Table.open(str(path))
    before = rows(table.snapshot())
    dry = table.clean(1, dry_run=True)
    first, second = [log for log in dry.deleted if ".log." in log][:2]
    middle, end = path / second, path / first
    middle.unlink()
    middle.symlink_to(end.name)
    link = path / "part=a" / ".linked_20261121000000000.log.1_0-1-0"
    link.symlink_to(Path("..") / second)
    done = table.clean(1)
    assert set(done.kept_targets) == {first, second}
    assert middle.is_symlink()
    assert end.exists()
    assert set(done.deleted) == set(dry.deleted) - {first, second}
    link.unlink()
    assert rows(table.snapshot()) == before


@pytest.mark.parametrize(("name", "mode"), TABLES)
def test_a_savepoint_outlives_cleaning_and_is_restored(name: str, mode: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path), {"eventide.metadata.table": "update"})
    saved = table.state().timeline.writes[-2].requested_time
    as_of, cut = rows(table.as_of(saved)), table.freshness().cut_ms
    assert run_json("savepoint", path, saved)["instant"] == saved
    undone = {table.state().timeline.writes[-1].requested_time}
    undone.add(table.compact(dividing_plan(table, "event_ts", mode)).instant)
    undone.add(table.compact(table.plan_compaction(before="2026-01-01T00:00Z")).instant)
    table.clean(1)
    assert rows(table.as_of(saved)) == as_of
    with pytest.raises(RefusedError, match="savepoint"):
        table.rollback(saved)
    assert set(run_json("restore", path, saved)["rolled_back"]) == undone
    assert rows(table.snapshot()) == as_of
    assert table.freshness().cut_ms == cut
    assert table.state().timeline.pending == ()
    check_metadata_table(path)
    run_json("savepoint", path, saved, "--delete")
    assert run("restore", path, saved).exit_code == 2
    assert rows(table.snapshot()) == as_of


@pytest.mark.parametrize("name", ["v6_no_deletes", "v9_no_deletes"])
def test_a_running_action_is_finished_before_anything_else(name: str, tmp_path: Path) -> None:
    """A clean, and a restore, that died: nothing else begins, and the same again ends it."""
    path = compacted(name, "copy", tmp_path)
    table = Table.open(str(path))
    saved = table.state().timeline.writes[-2].requested_time
    with pytest.raises(InstantNotFoundError):
        table.savepoint("20200101000000000")
    table.savepoint(saved)
    died = shutil.copytree(path, tmp_path / "died")
    done = table.restore(saved)
    timeline = path / ".hoodie" if name.startswith("v6") else path / ".hoodie" / "timeline"
    for file in timeline.glob("*.restore.*"):
        shutil.copy(file, died / file.relative_to(path))
    other = Table.open(str(died))
    (begun,) = other.state().timeline.pending
    assert begun.action is Action.RESTORE
    for attempt in (lambda: other.clean(1), lambda: other.rollback(done[0]), lambda: other.delete_savepoint(saved)):
        with pytest.raises(BusyError):
            attempt()
    assert other.restore(saved) == done
    assert rows(other.snapshot()) == rows(table.snapshot())
    assert data_files(died) == data_files(path)


def test_a_clean_takes_the_marks_of_what_has_ended_and_none_of_a_writer_that_lives(tmp_path: Path) -> None:
    """A writer that dies between two steps leaves a heartbeat without an instant, or markers of what is completed."""
    path = golden.unpack("v9_no_deletes", tmp_path)
    completed = Table.open(str(path)).state().timeline.writes[0].requested_time
    ended = ["20260101000000000", completed]
    beating, pending = "20260102000000000", "20260103000000000"
    directory = path / ".hoodie"
    for instant in (*ended, beating, pending):
        marker = directory / ".temp" / instant / "part=a" / "file.parquet.marker.CREATE"
        marker.parent.mkdir(parents=True)
        marker.touch()
        heartbeat = directory / ".heartbeat" / instant
        heartbeat.parent.mkdir(exist_ok=True)
        heartbeat.touch()
        if instant != beating:
            os.utime(heartbeat, (0, 0))
    (directory / "timeline" / f"{pending}.clustering.requested").touch()
    Table.open(str(path)).clean(1)
    assert {mark.name for mark in (directory / ".temp").iterdir()} == {beating, pending}
    assert {mark.name for mark in (directory / ".heartbeat").iterdir()} == {beating, pending}


@pytest.mark.parametrize(("slept", "stays"), [(timedelta(hours=3), True), (timedelta(days=2), False)])
def test_a_clean_keeps_the_heartbeat_of_who_may_still_put_its_request(
    slept: timedelta, stays: bool, tmp_path: Path
) -> None:
    """Without it, a request that comes late looks like another engine's, and stops other writers."""
    path = golden.unpack("v9_no_deletes", tmp_path)
    instant = (datetime.now(UTC) - slept).strftime("%Y%m%d%H%M%S000")
    heartbeat = path / ".hoodie/.heartbeat" / instant
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.touch()
    os.utime(heartbeat, (0, 0))
    Table.open(str(path)).clean(1)
    assert heartbeat.exists() is stays


def data_files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.glob("part=*/*") if not file.name.endswith(".crc")}


def check_metadata_table(path: Path) -> None:
    """It names the files that exist, and no others."""
    application = assemble(str(path), {})
    if not application.files.config().metadata_partitions:
        return
    check_files(path)


ARCHIVED_EARLY = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}


@pytest.mark.parametrize(("name", "mode"), TABLES[:3])
def test_no_query_notices_an_archival(name: str, mode: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path), ARCHIVED_EARLY)
    table.compact(dividing_plan(table, "event_ts", mode))
    writes = [instant.requested_time for instant in table.state().timeline.writes]
    begin = table.state().timeline.writes[1]
    as_of = {time: rows(table.as_of(time)) for time in writes}
    before = (rows(table.snapshot()), rows(table.read_optimized()), table.freshness())
    since = rows(table.incremental(begin.completion_time or begin.requested_time))
    options = [word for key, value in ARCHIVED_EARLY.items() for word in ("--option", f"{key}={value}")]
    document = run_json("archive", path, *options)
    assert document["archived"]
    assert document["instant"] == document["archived"][-1]
    state = table.state()
    assert [i.requested_time for i in state.timeline.writes] == writes[len(document["archived"]) :]
    assert all(state.archive.find(time) is not None for time in document["archived"])
    assert (rows(table.snapshot()), rows(table.read_optimized()), table.freshness()) == before
    assert {time: rows(table.as_of(time)) for time in writes} == as_of
    assert rows(table.incremental(begin.completion_time or begin.requested_time)) == since
    assert run_json("archive", path, *options) == {"instant": None, "archived": []}


def test_options_that_would_archive_everything_are_refused(tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    for least, most in ((0, 3), (3, 3)):
        words = ("--option", f"hoodie.keep.min.commits={least}", "--option", f"hoodie.keep.max.commits={most}")
        assert run("archive", path, *words).exit_code == 2


@pytest.mark.parametrize("name", ["v6_no_deletes", "v9_no_deletes"])
def test_left_overs_that_hudis_own_rollback_leaves_behind_are_cleaned(name: str, tmp_path: Path) -> None:
    """It removes the base files and the commit, and knows nothing of copies: on version 6 they would come back to life once
    the timeline starts after them, so that they hold archival back, too."""
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path), ARCHIVED_EARLY)
    before, files = rows(table.snapshot()), data_files(path)
    instant = table.compact(dividing_plan(table, "event_ts", "copy")).instant
    copies = {file for file in data_files(path) - files if ".log." in file}
    assert copies
    for file in [*path.glob(f"part=*/*_{instant}.parquet"), *path.glob(f".hoodie/**/{instant}*.co*")]:
        file.unlink()
    assert data_files(path) == files | copies
    assert rows(table.snapshot()) == before
    shortened = table.archive()
    assert all(time < instant for time in shortened)
    assert set(table.clean(1).deleted) == copies
    assert data_files(path) == files
    assert rows(table.snapshot()) == before


def test_changes_of_a_cleaned_span_are_reported_only_where_nothing_has_changed_since(tmp_path: Path) -> None:
    path = compacted("v6_no_deletes", "copy", tmp_path)
    table = Table.open(str(path))
    writes = [instant.requested_time for instant in table.state().timeline.writes]
    since = rows(table.incremental(writes[0]))
    table.clean(1)
    assert rows(table.incremental(writes[0])) <= since
    assert table.incremental(writes[0]).to_arrow().num_rows > 0
    with pytest.raises(CleanedHistoryError, match="changed rows since"):
        table.incremental(writes[0], writes[2])
