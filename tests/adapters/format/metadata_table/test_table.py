"""The metadata table of small real tables: what it lists, what an update writes, and what a crash leaves."""

import json
import shutil
from pathlib import Path

import fastavro
import pytest

from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import BusyError, UnsupportedTableError
from eventide_core.ports import FileChanges
from eventide_core.table.settings.metadata_table import RowChange
from support.files.metadata_updates import (
    ADDED,
    COMPLETED,
    COMPLETED_BEFORE,
    INSTANT,
    TABLES,
    begin,
    check,
    crashed_copies,
    listed,
    metadata_files,
    on_disk,
    opened,
    set_property,
    timeline_of,
    write,
)
from support.pasts import golden


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return golden.unpack(str(request.param), tmp_path)


def commit(path: Path) -> None:
    """Completes the instant on the timeline of the table itself."""
    timeline = timeline_of(path)
    completed = f"{INSTANT}_{COMPLETED}" if timeline.name == "timeline" else INSTANT
    timeline.joinpath(f"{completed}.commit").write_bytes(b"")


def test_it_lists_the_files_that_are_there(table: Path) -> None:
    assert opened(table).load().facts.partitions == ("files",)
    assert listed(table) == on_disk(table)


def test_an_update_is_seen_from_the_tables_commit_on(table: Path) -> None:
    metadata = opened(table)
    before = listed(table)
    removed = {"part=c": tuple(before["part=c"])}
    begin(table)
    write(metadata, removed)
    assert listed(table) == before
    assert not metadata.reflects(FileChanges(RowChange.NONE, ADDED))
    assert not metadata.reflects(FileChanges(RowChange.NONE, removed=removed))
    commit(table)
    after = listed(table)
    assert metadata.reflects(FileChanges(RowChange.NONE, ADDED, removed))
    assert after["part=a"] == {**before["part=a"], ADDED[0].name: 1234}
    assert after["part=b"] == {**before["part=b"], ADDED[1].name: 77}
    assert after["part=c"] == {}
    assert after["part=d"] == {ADDED[2].name: 5}


def test_an_update_adds_files_and_changes_none(table: Path) -> None:
    before = metadata_files(table)
    write(opened(table))
    after = metadata_files(table)
    new = after.keys() - before.keys()
    assert before.items() <= after.items()
    if table.name == "v6_mdt":
        base = "00000000000000010"
        assert new == {
            f"files/.files-0000-0_{base}.log.11_0-7-0",
            f".hoodie/{INSTANT}.deltacommit.requested",
            f".hoodie/{INSTANT}.deltacommit.inflight",
            f".hoodie/{INSTANT}.deltacommit",
        }
        (stat,) = json.loads(after[f".hoodie/{INSTANT}.deltacommit"])["partitionToWriteStats"]["files"]
        assert stat["baseFile"] == f"files-0000-0_0-1168-1955_{base}.hfile"
        assert len(stat["logFiles"]) == stat["logVersion"] == 11
        assert stat["prevCommit"] == base
    else:
        assert new == {
            f"files/.files-0000-0_{INSTANT}.log.1_0-7-0",
            f".hoodie/timeline/{INSTANT}.deltacommit.requested",
            f".hoodie/timeline/{INSTANT}.deltacommit.inflight",
            f".hoodie/timeline/{INSTANT}_{COMPLETED_BEFORE}.deltacommit",
        }
        written = table / ".hoodie" / "metadata" / ".hoodie" / "timeline" / f"{INSTANT}_{COMPLETED_BEFORE}.deltacommit"
        with written.open("rb") as stream:
            (record,) = fastavro.reader(stream)
        assert isinstance(record, dict)
        (stat,) = record["partitionToWriteStats"]["files"]
        assert stat["logFiles"] == [f".files-0000-0_{INSTANT}.log.1_0-7-0"]
        assert stat["prevCommit"] == INSTANT
    assert stat["numWrites"] == 4


def test_a_second_run_ends_what_a_crash_left(table: Path, tmp_path: Path) -> None:
    """Dead before each write in turn: the second run leaves what an undisturbed one leaves."""
    whole = tmp_path / "whole"
    shutil.copytree(table, whole)
    begin(whole)
    write(opened(whole))
    expected = metadata_files(whole)
    begin(table)
    before = listed(table)
    crashes = 0
    for path, has_crashed in crashed_copies(table, tmp_path, lambda _, storage: write(HudiMetadataTable(storage))):
        assert listed(path) == before
        write(opened(path))
        assert metadata_files(path) == expected
        crashes += has_crashed
    assert crashes == 4


def test_a_log_file_that_hudi_wrote_in_the_meantime_keeps_its_number(tmp_path: Path) -> None:
    """Version 6: an update that died before its commit, then a write of Hudi; the second run takes the next number."""
    path = golden.unpack("v6_mdt", tmp_path)
    begin(path)
    dying = FaultyStorage(LocalStorage(path), FaultPlan(writes={3: Fault.CRASH_BEFORE}))
    with pytest.raises(SimulatedCrash):
        write(HudiMetadataTable(dying))
    directory = path / ".hoodie" / "metadata" / "files"
    name = ".files-0000-0_00000000000000010.log"
    theirs = directory / f"{name}.12_0-1400-2300"
    shutil.copy(directory / f"{name}.10_0-1358-2236", theirs)
    data = theirs.read_bytes()
    write(opened(path))
    assert theirs.read_bytes() == data
    assert (directory / f"{name}.13_0-7-0").exists()
    commit(path)
    assert opened(path).reflects(FileChanges(RowChange.NONE, ADDED))


def test_an_update_that_a_compaction_of_it_passed_over_is_noticed(tmp_path: Path) -> None:
    """Version 9: a base of the metadata table that is later than the update's completion hides its log."""
    path = golden.unpack("v9_mdt", tmp_path)
    write(opened(path))
    directory = path / ".hoodie" / "metadata"
    base = next((directory / "files").glob("files-*.hfile"))
    shutil.copy(base, directory / "files" / "files-0000-0_0-9-9_20261122000000200.hfile")
    (directory / ".hoodie" / "timeline" / "20261122000000200_20261122000000300.commit").write_bytes(b"")
    commit(path)
    assert not opened(path).reflects(FileChanges(RowChange.NONE, ADDED))


@pytest.mark.parametrize("partitions", ["files,vector_index_embedding", "files,text_index_note", "column_stats"])
def test_a_partition_of_an_unknown_kind_is_refused(table: Path, partitions: str) -> None:
    set_property(table, "hoodie.table.metadata.partitions", partitions)
    before = metadata_files(table)
    with pytest.raises(UnsupportedTableError, match=r"`table.rebuild_metadata_table\("):
        check(table, RowChange.NONE)
    assert metadata_files(table) == before


def test_indexes_by_key_need_nothing_while_all_rows_stay(table: Path) -> None:
    set_property(table, "hoodie.table.metadata.partitions", "files,record_index,secondary_index_by_val")
    check(table, RowChange.NONE)
    with pytest.raises(UnsupportedTableError, match=r"has record_index, .* when rows are rolled back"):
        check(table, RowChange.ROLLED_BACK)


def test_ranges_need_a_known_form_when_columns_are_new(table: Path) -> None:
    set_property(table, "hoodie.table.metadata.partitions", "bloom_filters,column_stats,files,partition_stats")
    check(table, RowChange.NONE)
    check(table, RowChange.ROLLED_BACK)
    check(table, RowChange.WRITTEN)
    with pytest.raises(UnsupportedTableError, match=r"column_stats, partition_stats, .* when rows with new columns"):
        check(table, RowChange.WIDENED)


def test_a_partition_that_hudi_is_building_is_waited_for(table: Path) -> None:
    set_property(table, "hoodie.table.metadata.partitions.inflight", "column_stats")
    with pytest.raises(BusyError, match="column_stats"):
        check(table, RowChange.NONE)


def test_a_pending_compaction_of_it_stands_in_the_way_on_version_6_alone(table: Path) -> None:
    timeline = table / ".hoodie" / "metadata" / ".hoodie"
    if table.name == "v6_mdt":
        (timeline / "20261121091044787001.compaction.requested").write_bytes(b"")
        with pytest.raises(BusyError, match="20261121091044787001"):
            check(table, RowChange.NONE)
    else:
        (timeline / "timeline" / "20261121100000000.compaction.requested").write_bytes(b"")
        check(table, RowChange.NONE)
