"""Overwrites of partitions and of whole tables, on the local engine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.writer import incoming_records
from eventide_core.config import PENDING_WRITE_WAIT_MS
from eventide_core.errors import BusyError, EventideError, InvalidRecordError, WriteConflictError
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.instant import Action
from support.tables.append import START_MS, make, rows, seen

pytestmark = pytest.mark.slow

LAYOUTS = [(6, "BUCKET"), (8, "SIMPLE"), (9, "BUCKET"), (9, "SIMPLE")]


def filled(path: Path, version: int = 9, index: str = "BUCKET") -> Table:
    """Partitions `a` and `b` of ten rows each, with log files."""
    table = make(path, version, index)
    table.insert(rows(*((f"k{i}", "ab"[i % 2], i, "base") for i in range(20))))
    table.upsert(rows(("k0", "a", 100, "new"), ("k1", "b", 100, "new")))
    return table


@pytest.mark.parametrize(("version", "index"), LAYOUTS)
def test_the_partitions_of_the_records_are_replaced_and_no_others(version: int, index: str, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", version, index)
    before = seen(table)
    of_b = [row for row in before if row[1] == "b"]

    result = table.insert_overwrite(rows(("k0", "a", 1, "over"), ("z", "a", 2, "over"), ("y", "c", 3, "over")))

    expected = sorted([*of_b, ("k0", "a", 1, "over"), ("z", "a", 2, "over"), ("y", "c", 3, "over")])
    assert seen(table) == expected
    assert result.rows == 3
    last = table.history(1)[0]
    assert (last.instant, last.action) == (result.instant, "replacecommit")
    metadata = table.state().commits[result.instant]
    assert metadata.operation_type == "INSERT_OVERWRITE"
    assert set(metadata.replaced_file_ids) == {"part=a", "part=c"}
    assert metadata.replaced_file_ids["part=a"]
    assert metadata.replaced_file_ids["part=c"] == ()

    table.upsert(rows(("k0", "a", 200, "later"), ("k3", "b", 200, "later")))
    newest = {row[:2]: row for row in expected} | {
        ("k0", "a"): ("k0", "a", 200, "later"),
        ("k3", "b"): ("k3", "b", 200, "later"),
    }
    assert seen(table) == sorted(newest.values())
    compacted = table.compact(before=START_MS + 1000)
    optimized, snapshot = (rows_.to_arrow().to_pylist() for rows_ in (table.read_optimized(), table.snapshot()))
    assert sorted(optimized, key=str) == sorted(snapshot, key=str)
    assert compacted.instant > result.instant
    assert table.verify(deep=True).ok


@pytest.mark.parametrize(("version", "index"), LAYOUTS)
def test_the_whole_table_is_replaced(version: int, index: str, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", version, index)
    table.insert_overwrite_table(rows(("k1", "c", 5, "all")))
    assert seen(table) == [("k1", "c", 5, "all")]
    table.insert_overwrite_table(rows())
    assert seen(table) == []
    table.upsert(rows(("k1", "c", 1, "again")))
    assert seen(table) == [("k1", "c", 1, "again")]


def test_the_old_rows_stay_for_time_travel_until_they_are_cleaned(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    before, last = seen(table), table.history(1)[0].instant
    table.insert_overwrite(rows(("k0", "a", 1, "over")))
    then = table.as_of(last).to_arrow().to_pylist()
    assert sorted((row["id"], row["part"], row["ms"] - START_MS, row["word"]) for row in then) == before


def test_an_overwrite_that_replaces_nothing_is_refused_before_it_is_on_the_timeline(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    files = sorted((tmp_path / "t" / ".hoodie").rglob("*"))
    with pytest.raises(InvalidRecordError, match="replaces no partition"):
        table.insert_overwrite(rows())
    assert sorted((tmp_path / "t" / ".hoodie").rglob("*")) == files


def begun(table: Table, operation: WriteOperation, records: Any) -> Callable[[], Any]:
    """A write that has made its files, as the call that completes it."""
    application = assemble(table.uri, dict(table.options))
    append = application.append
    pending = append.begin(operation, incoming_records(application, operation, records), NoProgress())
    return lambda: append.complete(pending)


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE"])
@pytest.mark.parametrize("partition", ["a", "b"])
def test_of_a_write_and_an_overwrite_of_its_partition_one_completes(index: str, partition: str, tmp_path: Path) -> None:
    record = rows(("k2", partition, 300, "upserted"))
    table = filled(tmp_path / "1", 9, index)
    complete = begun(table, WriteOperation.UPSERT, record)
    table.insert_overwrite(rows(("z", "a", 1, "over")))
    if partition == "a":
        with pytest.raises(WriteConflictError):
            complete()
    else:
        complete()
    assert ("z", "a", 1, "over") in seen(table)
    assert (("k2", partition, 300, "upserted") in seen(table)) is (partition == "b")


def test_nothing_is_planned_while_an_overwrite_is_pending(tmp_path: Path) -> None:
    table = Table.open(filled(tmp_path / "t").uri, {PENDING_WRITE_WAIT_MS: 0})
    complete = begun(table, WriteOperation.INSERT_OVERWRITE, rows(("z", "a", 1, "over")))
    with pytest.raises(BusyError):
        table.compact(before=START_MS + 1000)
    with pytest.raises(BusyError):
        table.insert_overwrite(rows(("z", "b", 2, "second")))
    complete()
    table.compact(before=START_MS + 1000)
    assert ("z", "a", 1, "over") in seen(table)


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE"])
@pytest.mark.parametrize("first", ["upsert", "overwrite"])
@pytest.mark.parametrize("partition", ["a", "b"])
def test_of_two_that_overlap_in_a_partition_the_first_to_complete_stays(
    index: str, first: str, partition: str, tmp_path: Path
) -> None:
    """The upsert begins while the overwrite is pending."""
    table = filled(tmp_path / "t", 9, index)
    overwrite = begun(table, WriteOperation.INSERT_OVERWRITE, rows(("z", "a", 1, "over")))
    upsert = begun(table, WriteOperation.UPSERT, rows(("k2" if partition == "a" else "k3", partition, 300, "upserted")))
    one, other = (upsert, overwrite) if first == "upsert" else (overwrite, upsert)
    one()
    if partition == "a":
        with pytest.raises(WriteConflictError):
            other()
    else:
        other()
    words = {row[3] for row in seen(table)}
    assert ("upserted" in words) is (first == "upsert" or partition == "b")
    assert ("over" in words) is (first == "overwrite" or partition == "b")
    assert not table.state().timeline.pending_plans


def test_an_overwrite_waits_for_plans_and_for_writes_of_other_engines(tmp_path: Path) -> None:
    table = filled(tmp_path / "plan")
    plan = table.schedule(table.plan_compaction(START_MS + 1000))
    with pytest.raises(BusyError, match="compaction is pending"):
        table.insert_overwrite(rows(("z", "b", 1, "over")))
    table.execute(plan.instant)
    table.insert_overwrite(rows(("z", "b", 1, "over")))

    table = filled(tmp_path / "write")
    timeline = tmp_path / "write" / ".hoodie" / "timeline"
    stock = timeline / "20200101000000000.deltacommit.requested"
    stock.touch()
    with pytest.raises(BusyError, match="of another engine is pending at 20200101000000000"):
        table.insert_overwrite(rows(("z", "b", 1, "over")))
    stock.unlink()
    complete = begun(table, WriteOperation.INSERT_OVERWRITE, rows(("z", "b", 1, "over")))
    stock.touch()  # it begins while the overwrite writes its files
    with pytest.raises(BusyError, match="of another engine is pending"):
        complete()
    stock.unlink()
    assert not [i for i in table.state().timeline.pending if i.action is Action.REPLACE_COMMIT]
    assert len(seen(table)) == 20


def test_what_a_dead_overwrite_left_is_rolled_back_by_the_next_write(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    before = seen(table)
    begun(table, WriteOperation.INSERT_OVERWRITE, rows(("z", "a", 1, "over")))
    (heartbeat,) = (tmp_path / "t" / ".hoodie" / ".heartbeat").iterdir()
    heartbeat.write_bytes(heartbeat.read_bytes().replace(b'"pid": ', b'"pid": 9999'))
    table.upsert(rows(("n", "b", 1, "next")))
    assert seen(table) == sorted([*before, ("n", "b", 1, "next")])
    assert not table.state().timeline.pending


def test_a_completed_overwrite_is_not_rolled_back(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    result = table.insert_overwrite(rows(("z", "a", 1, "over")))
    with pytest.raises(EventideError, match="restore the table to a savepoint"):
        table.rollback(result.instant)


@pytest.mark.parametrize("operation", [WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE])
def test_rows_that_another_write_adds_to_a_partition_are_not_kept_by_chance(
    operation: WriteOperation, tmp_path: Path
) -> None:
    """The other write began before the overwrite, makes a file group of its own, and completes first."""
    table = filled(tmp_path / "t", 9, "SIMPLE")
    partition = "a" if operation is WriteOperation.INSERT_OVERWRITE else "c"
    other = begun(table, WriteOperation.BULK_INSERT, rows(("n", partition, 1, "added")))
    complete = begun(table, operation, rows(("z", "a", 1, "over")))
    other()
    with pytest.raises(WriteConflictError):
        complete()
    assert ("n", partition, 1, "added") in seen(table)
    assert not table.state().timeline.pending_plans


@pytest.mark.parametrize("version", [6, 9])
def test_a_savepoint_from_before_it_brings_the_old_rows_back(version: int, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", version)
    before = seen(table)
    last = table.history(1)[0].instant
    table.savepoint(last)
    table.insert_overwrite(rows(("z", "a", 1, "over")))
    table.clean(1)
    table.restore(last)
    assert seen(table) == before
    assert table.verify(deep=True).ok


def test_an_incremental_query_shows_the_new_rows(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    last = table.state().timeline.completion_time(table.history(1)[0].instant)
    assert last is not None
    result = table.insert_overwrite(rows(("k0", "a", 1, "over"), ("z", "a", 1, "over")))
    shown = table.incremental(last).to_arrow().to_pylist()
    assert {(row["id"], row["_hoodie_commit_time"]) for row in shown} == {("k0", result.instant), ("z", result.instant)}
