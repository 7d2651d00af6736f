"""A table that has Hudi's metadata table: updated, or dropped, or refused, at every step that would make it stale."""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.engine_local import LocalEngine
from eventide.rows.writer import incoming_records
from eventide.testing.histories import NoLock
from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_core.config import BUCKETS, METADATA_COMPACT_AFTER
from eventide_core.errors import ConfigError, RefusedError, UnsupportedTableError, format_timestamp
from eventide_core.ports import AddedFile, FileChanges, Lease, NoProgress, Storage
from eventide_core.service.common.metadata_table.drop import BEING_MADE, drop_metadata_table, withdraw_unfinished
from eventide_core.service.common.metadata_table.upkeep import revert_update
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.instant import next_instant_time
from golden.histories import PLAIN
from support.doubles.dying_storage import DyingStorage
from support.files.metadata_updates import (
    INSTANT,
    TABLES,
    begin,
    crashed_copies,
    listed,
    metadata_files,
    on_disk,
    opened,
    update,
    write,
)
from support.pasts import golden
from support.tables.thresholds import dividing_plan

pytestmark = pytest.mark.slow

DROP = {"eventide.metadata.table": "drop"}
REFUSE = {"eventide.metadata.table": "refuse"}
T = TypeVar("T")
LINK_MODES = [("v6_mdt", "copy"), ("v9_mdt", "copy"), ("v9_mdt", "hardlink")]


def files(path: Path) -> dict[str, bytes]:
    return {str(found.relative_to(path)): found.read_bytes() for found in path.rglob("*") if found.is_file()}


@pytest.mark.parametrize(("name", "mode"), LINK_MODES)
def test_it_is_updated_unless_the_option_disables_it(name: str, mode: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    before = listed(path)
    table = Table.open(str(path))
    plan = dividing_plan(table, "event_ts", mode)
    assert any("will be updated" in note for note in plan.draft.notes)
    scheduled = table.schedule(plan)
    assert any(operation.left_overs for operation in scheduled.operations)
    assert listed(path) == before
    table.execute(scheduled.instant)
    assert listed(path) == on_disk(path) != before


def test_a_limit_that_is_no_number_is_refused_before_anything_commits(tmp_path: Path) -> None:
    path = golden.unpack("v9_mdt", tmp_path)
    table = Table.open(str(path), options={METADATA_COMPACT_AFTER: "ten"})
    instant = table.schedule(dividing_plan(table, "event_ts", "copy")).instant
    with pytest.raises(ConfigError, match=r"max\.delta\.commits='ten' is not a whole number"):
        table.execute(instant)
    assert not list((path / ".hoodie/timeline").glob(f"{instant}_*.commit"))
    Table.open(str(path)).execute(instant)
    assert len(list((path / ".hoodie/timeline").glob(f"{instant}_*.commit"))) == 1


class PassedOver(FaultyStorage):
    """Hudi compacts the metadata table between its update and the table's own commit, and so skips the update."""

    def __init__(self, path: Path, instant: str) -> None:
        super().__init__(LocalStorage(path))
        self._path = path
        self._commit = re.compile(rf"\.hoodie/timeline/{instant}_\d+\.commit")

    def _write(self, kind: str, path: str, write: Callable[[], T]) -> T:
        if self._commit.fullmatch(path):
            later = "29991231000000000"
            metadata = self._path / ".hoodie" / "metadata"
            base = next((metadata / "files").glob("files-*.hfile"))
            shutil.copy(base, metadata / "files" / f"files-0000-0_0-9-9_{later}.hfile")
            (metadata / ".hoodie" / "timeline" / f"{later}_{later}.commit").write_bytes(b"")
        return super()._write(kind, path, write)


def test_an_update_that_was_passed_over_drops_the_metadata_table(tmp_path: Path) -> None:
    """Otherwise, readers who list by it would miss the files of the compaction."""
    path = golden.unpack("v9_mdt", tmp_path)
    table = Table.open(str(path))
    before = Counter(map(repr, table.snapshot().to_arrow(PLAIN.names).to_pylist()))
    plan = table.schedule(dividing_plan(table, "event_ts", "copy"))
    application = assemble(str(path), {}, storage=PassedOver(path, plan.instant), engine=LocalEngine(1))
    application.runner.execute(plan.instant, NoProgress())
    assert opened(path).load().facts.partitions == ()
    assert not (path / ".hoodie" / "metadata").exists()
    assert Counter(map(repr, table.snapshot().to_arrow(PLAIN.names).to_pylist())) == before


def test_a_rollback_withdraws_what_an_engine_that_ran_the_plan_left(tmp_path: Path) -> None:
    """An instant of the metadata table counts as soon as it is no longer pending on the table's timeline."""
    path = golden.unpack("v9_mdt", tmp_path)
    before = listed(path)
    table = Table.open(str(path))
    instant = table.schedule(dividing_plan(table, "event_ts", "copy")).instant
    theirs = AddedFile("part=a", f"theirs_0-1-2_{instant}.parquet", 5)
    update(opened(path), instant, FileChanges(RowChange.NONE, (theirs,)), next_instant_time(instant))
    table.rollback(instant)
    assert listed(path) == before


@pytest.mark.parametrize("name", TABLES)
def test_a_plan_made_with_leave_to_drop_is_not_run_against_a_refusal(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    with pytest.raises(RefusedError, match=r"eventide\.metadata\.table=drop"):
        Table.open(str(path), REFUSE).plan_compaction(format_timestamp(0))
    table = Table.open(str(path), DROP)
    plan = dividing_plan(table, "event_ts", "copy")
    assert any("dropped" in note for note in plan.draft.notes)
    scheduled = table.schedule(plan)
    with pytest.raises(RefusedError, match=r"eventide\.metadata\.table=drop"):
        Table.open(str(path), REFUSE).execute(scheduled.instant)
    assert (path / ".hoodie" / "metadata").is_dir()
    table.execute(scheduled.instant)
    assert not (path / ".hoodie" / "metadata").exists()
    assert "hoodie.table.metadata.partitions" not in (path / ".hoodie" / "hoodie.properties").read_text()


@pytest.mark.parametrize("name", TABLES)
def test_an_index_of_an_unknown_kind_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path))
    plan = dividing_plan(table, "event_ts", "copy")
    scheduled = table.schedule(plan)
    properties = path / ".hoodie" / "hoodie.properties"
    known = properties.read_text()
    unknown = known.replace("metadata.partitions=files", "metadata.partitions=files,unheard_of")
    assert unknown != known
    properties.write_text(unknown)
    before = files(path)
    with pytest.raises(UnsupportedTableError, match=r"unheard_of.*table.rebuild_metadata_table\(indexes=\[\]\)"):
        table.execute(scheduled.instant)
    assert files(path) == before
    properties.write_text(known)
    table.rollback(scheduled.instant)
    properties.write_text(unknown)
    before = files(path)
    with pytest.raises(UnsupportedTableError, match="unheard_of"):
        table.schedule(plan)
    assert files(path) == before


@pytest.mark.parametrize("name", TABLES)
def test_what_was_never_committed_is_removed(name: str, tmp_path: Path) -> None:
    table = golden.unpack(name, tmp_path)
    untouched = metadata_files(table)
    begin(table)
    crashes = 0
    for path, has_crashed in crashed_copies(table, tmp_path, lambda _, storage: write(HudiMetadataTable(storage))):
        revert_update(LocalStorage(path), opened(path), INSTANT)
        assert metadata_files(path) == untouched
        crashes += has_crashed
    assert crashes == 4


@pytest.mark.parametrize("name", TABLES)
def test_a_second_removal_ends_what_a_crash_left(name: str, tmp_path: Path) -> None:
    """Dead before each deletion in turn. Until the removal has ended, no log of the instant counts."""
    table = golden.unpack(name, tmp_path)
    untouched, before = metadata_files(table), listed(table)
    begin(table)
    write(opened(table))
    crashes = 0

    def act(path: Path, storage: Storage) -> None:
        revert_update(storage, opened(path), INSTANT)

    for path, has_crashed in crashed_copies(table, tmp_path, act):
        assert listed(path) == before
        revert_update(LocalStorage(path), opened(path), INSTANT)
        assert metadata_files(path) == untouched
        crashes += has_crashed
    assert crashes == 4  # the delta commit, its one log, inflight, requested


@pytest.mark.parametrize("name", TABLES)
def test_nobody_reads_a_metadata_table_whose_removal_crashed(name: str, tmp_path: Path) -> None:
    table = golden.unpack(name, tmp_path)
    dying = FaultyStorage(LocalStorage(table), FaultPlan(writes={1: Fault.CRASH_BEFORE}))
    with pytest.raises(SimulatedCrash):
        drop_metadata_table(dying, NoLock())
    assert opened(table).load().facts.partitions == ()
    assert (table / ".hoodie" / "metadata").exists()
    drop_metadata_table(LocalStorage(table), NoLock())
    assert not (table / ".hoodie" / "metadata").exists()


def test_a_log_that_holds_others_records_too_is_not_removed(tmp_path: Path) -> None:
    """Version 6, on a filesystem where Hudi appends to logs."""
    path = golden.unpack("v6_mdt", tmp_path)
    begin(path)
    write(opened(path))
    directory = path / ".hoodie" / "metadata" / "files"
    (ours,) = directory.glob(".files-*.log.11_*")
    theirs = next(directory.glob(".files-*.log.10_*"))
    ours.write_bytes(ours.read_bytes() + theirs.read_bytes())
    before = metadata_files(path)
    with pytest.raises(UnsupportedTableError, match=r"log\.11_.* together with records of others"):
        revert_update(LocalStorage(path), opened(path), INSTANT)
    assert metadata_files(path) == before


@pytest.mark.parametrize("remove", [drop_metadata_table, withdraw_unfinished])
def test_a_mark_of_a_later_version_is_refused_before_anything_is_removed(
    remove: Callable[[Storage, Lease], None], tmp_path: Path
) -> None:
    table = golden.unpack("v9_mdt", tmp_path)
    LocalStorage(table).put(BEING_MADE, b'{"version": 2}')
    before = files(table)
    with pytest.raises(
        UnsupportedTableError, match=r"metadata_table\.being_made has version 2, .*use a newer eventide"
    ):
        remove(LocalStorage(table), NoLock().acquire())
    assert files(table) == before


def test_a_mark_that_is_left_is_not_of_the_metadata_table_that_hudi_makes_next(tmp_path: Path) -> None:
    """A rebuild named its metadata table, and its last delete failed. Later, that is dropped, and Hudi makes one."""
    path = golden.unpack("v9_mdt", tmp_path)
    Table.open(str(path)).rebuild_metadata_table()
    LocalStorage(path).put(BEING_MADE, b"")
    row = Table.open(str(path)).snapshot().to_arrow(PLAIN.names).slice(0, 1)
    Table.open(str(path), {**DROP, BUCKETS: "2"}).upsert(row)
    assert not (path / ".hoodie" / "metadata").exists()
    assert not (path / BEING_MADE).exists()
    begun = path / ".hoodie" / "metadata" / ".hoodie" / "hoodie.properties"
    begun.parent.mkdir(parents=True)
    begun.write_bytes(b"hoodie.table.version=9\n")
    Table.open(str(path), {BUCKETS: "2"}).upsert(row)
    assert begun.exists()


@pytest.mark.parametrize("name", TABLES)
def test_it_is_dropped_whole(name: str, tmp_path: Path) -> None:
    table = golden.unpack(name, tmp_path)
    drop_metadata_table(LocalStorage(table), NoLock())
    assert opened(table).load().facts.partitions == ()
    assert not (table / ".hoodie" / "metadata").exists()
    assert "hoodie.table.metadata.partitions" not in (table / ".hoodie" / "hoodie.properties").read_text()


def compactions_of_it(path: Path, state: str) -> int:
    return len(list((path / ".hoodie/metadata/.hoodie").rglob(f"*.{state}")))


def overdue(table: Table) -> list[str]:
    """What `verify` remarks on the compaction of the metadata table."""
    checks = table.verify().checks
    return [remark for check in checks if check.name == "metadata-table" for remark in check.remarks]


@pytest.mark.parametrize(
    "pattern",
    [r"compaction\.requested$", r"compaction\.inflight$", r"\.hfile$", r"metadata/\.hoodie/.*\.commit$"],
)
@pytest.mark.parametrize("name", TABLES)
def test_a_write_that_died_while_it_compacted_it_is_complete(name: str, pattern: str, tmp_path: Path) -> None:
    """The next write ends the compaction of the metadata table before it adds to it."""
    path = golden.unpack(name, tmp_path)
    options = {"hoodie.metadata.compact.max.delta.commits": "11", "hoodie.bucket.index.num.buckets": "2"}
    table = Table.open(str(path), options)
    rows = table.snapshot().to_arrow(PLAIN.names).slice(0, 3)
    later = rows.set_column(rows.column_names.index("event_ts"), "event_ts", pa.array([2 * 10**12] * 3))
    dying = assemble(str(path), options, storage=DyingStorage(path, pattern), lock=NoLock())
    with pytest.raises(SimulatedCrash):
        dying.append.write(WriteOperation.UPSERT, incoming_records(dying, WriteOperation.UPSERT, later), NoProgress())
    assert listed(path) == on_disk(path)
    shown = Counter(map(repr, table.snapshot().to_arrow(PLAIN.names).to_pylist()))
    assert Counter(map(repr, later.to_pylist())) <= shown
    assert compactions_of_it(path, "commit") == 0
    assert table.describe().to_json()["table"]["metadata_delta_commits"] == 11
    assert "never compacted" in str(table.describe().metadata_table)
    assert overdue(table) == [] != overdue(Table.open(str(path)))  # the limit is 11 here, and 10 by default
    table.upsert(later.slice(0, 1))
    assert compactions_of_it(path, "commit") == compactions_of_it(path, "compaction.inflight") == 1
    assert table.describe().to_json()["table"]["metadata_delta_commits"] == ("requested" not in pattern)
    assert table.describe().to_json()["table"]["metadata_last_compaction"] is not None
    assert overdue(Table.open(str(path))) == []
    assert listed(path) == on_disk(path)
    assert Counter(map(repr, table.snapshot().to_arrow(PLAIN.names).to_pylist())) == shown
