"""Sequences of steps that once broke a promise, as the state machine found them; each is inspected after every step."""

import pytest

from eventide.rows.writer import arrow_records
from eventide.testing.histories import Commit, Layout, delete, put, records
from eventide.testing.inspection.observation import check_verified
from eventide.testing.living_table.account import completed_instants
from eventide.testing.living_table.table import LivingTable
from eventide.testing.oracle import Change, Order
from eventide_core.config import LinkChoice
from eventide_core.errors import BusyError, CleanedHistoryError, RefusedError
from eventide_core.ports import NoProgress
from eventide_core.service.write.batch import BatchWriter
from eventide_core.table.settings.stream_batch import StreamBatch
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.plans import CutMode
from eventide_core.table.timeline.instant import Action, Instant, State

pytestmark = pytest.mark.slow

BASE = (put("k0", 1, "base"), put("k1", 1, "base"))


def living(version: int, link: LinkChoice = LinkChoice.COPY, order: Order = Order.EVENT_TIME) -> LivingTable:
    table = LivingTable(Layout(version, order), link, "living")
    table.write(BASE)
    return table


@pytest.mark.parametrize("version", [6, 9])
def test_a_restore_keeps_a_compaction_whose_base_the_savepoint_keeps(version: int) -> None:
    """It was requested before the savepoint's commit and completed after it, and the slice below it may be gone."""
    table = living(version)
    table.write((put("k0", 5, "merged"),))
    table.schedule(7)
    table.write((put("k1", 6, "saved"),))
    table.execute()
    table.save()
    table.clean(1)
    table.write((put("k0", 9, "undone"),))
    table.restore()
    table.inspect(whole=True)
    assert {row[3] for row in table.account.oracle.snapshot()} == {"merged", "saved"}


def test_an_increment_need_not_show_what_only_a_later_delete_brings_back() -> None:
    """By event time a delete without one beats all rows below it; a late one above it takes its place, and loses to them."""
    table = living(8)
    table.write((delete("k0"),))
    table.write((delete("k0", -5),))
    table.inspect(whole=True)
    assert {row[1] for row in table.account.oracle.snapshot()} == {"k0", "k1"}


@pytest.mark.parametrize("death", range(3, 10))
@pytest.mark.parametrize("link", [LinkChoice.COPY, LinkChoice.SYMLINK])
def test_a_savepoint_does_not_keep_what_a_pending_compaction_has_made(death: int, link: LinkChoice) -> None:
    """In version 6 its left-overs are in the slice already; a restore takes them away."""
    table = living(6, link)
    table.write((put("k0", 5, "merged"),))
    table.write((put("k1", 9, "left over"),))
    table.schedule(7)
    table.execute(death)
    table.save()
    table.execute_as_stock()
    table.restore()
    table.inspect(whole=True)


@pytest.mark.parametrize("death", range(5, 10))
def test_a_savepoint_does_not_keep_files_of_a_dead_write_beside_a_pending_compaction(death: int) -> None:
    """In version 6 its log is in the slice that the compaction begins, and goes with that when a restore undoes it."""
    table = living(6)
    table.write((put("k0", 5, "merged"),))
    table.schedule(7)
    table.write((put("k0", 9, "never written"),), death)
    table.save()
    table.restore()
    table.inspect(whole=True)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("death", [17, 18, 19])
def test_a_clean_that_dies_leaves_no_link_whose_target_it_has_removed(version: int, death: int) -> None:
    """Both go with it, where their slices have been followed by another one."""
    table = living(version, LinkChoice.SYMLINK)
    for cut_ms in (7, 17, 27):
        table.write((put("k0", cut_ms - 2, "merged"),))
        table.write((put("k1", cut_ms + 2, "left over"),))
        table.schedule(cut_ms)
        table.execute()
    table.clean(1, death)
    table.inspect(whole=True)


@pytest.mark.parametrize("is_restored", [False, True])
def test_the_instant_of_a_compaction_that_was_undone_is_never_taken_again(is_restored: bool) -> None:
    """Back-dated, it follows from the logs, so it would be the same; an engine that completes a plan claims no outcome."""
    table = living(9, LinkChoice.PREFIX)
    table.write((put("k0", 5, "merged"),))
    table.write((put("k1", 9, "left over"),))
    table.save()
    table.schedule(7)
    table.execute_as_stock()
    if is_restored:
        table.restore()
    else:
        table.delete_savepoint()
        table.undo_last()
    table.schedule(7)
    table.execute()
    assert len(table.account.rolled_back) == 1
    assert len({event.instant for event in table.account.completed} - table.account.rolled_back) == 4
    table.inspect(whole=True)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("death", range(1, 6))
def test_what_an_archival_that_died_has_archived_is_not_undone(version: int, death: int) -> None:
    """It would stay in the archive, and count there once the timeline has continued."""
    table = living(version)
    for ms in (5, 6, 7):
        table.write((put("k0", ms, f"at {ms}"),))
    table.archive(death)
    table.clean(3)
    for _ in range(3):
        table.undo_last()
    table.inspect(whole=True)
    for ms in (8, 9, 10, 11):
        table.write((put("k1", ms, f"at {ms}"),))
    table.archive()
    table.inspect(whole=True)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("death", range(1, 6))
def test_a_batch_that_is_undone_after_an_archival_died_is_written_again(version: int, death: int) -> None:
    """Taken for written, it would be lost."""
    table = living(version)
    for number in (5, 6, 7):
        change, application = put("k0", number, f"batch {number}"), table.bench.process()
        batch, incoming = StreamBatch("a stream", number), arrow_records(application, *records((change,)))
        assert (
            BatchWriter(application.files, application.append).write(
                batch, WriteOperation.UPSERT, incoming, NoProgress()
            )
            is not None
        )
        table.record_others((change,))
    table.archive(death)
    table.clean(3)
    for _ in range(3):
        table.undo_last()
    left = [number for number, _ in zip((5, 6, 7), table.account.completed[1:], strict=False)]
    process = table.bench.process()
    assert BatchWriter(process.files, process.append).last_written("a stream") == max(left, default=None)


@pytest.mark.parametrize("version", [6, 9])
def test_what_an_exact_cut_has_merged_is_not_late(version: int) -> None:
    """A plan for one file group outlives the compaction of another, which is undone, and publishes a later cut."""
    table = LivingTable(Layout(version, Order.EVENT_TIME), LinkChoice.COPY, "living", CutMode.EXACT)
    table.write((*BASE, put("k0", 1, "base", partition="b")))
    table.write((put("k0", 3, "merged early"), put("k1", 6, "waits"), put("k0", 9, "later", partition="b")))
    for cut_ms in (4, 8):
        table.schedule(cut_ms)
        table.execute()
    table.schedule(10)
    table.undo_last()
    table.execute()
    assert table.account.oracle.freshness().late_records == 1
    table.inspect(whole=True)


@pytest.mark.parametrize("version", [6, 9])
def test_freshness_does_not_count_records_that_were_rolled_back(version: int) -> None:
    """In version 6 their log stays."""
    table = living(version)
    table.write((put("k0", 6, "merged"),))
    table.schedule(7)
    table.execute()
    table.write((put("k1", 2, "late"), delete("k0")))
    table.undo_last()
    assert table.account.oracle.freshness().late_records == 0
    table.inspect(whole=True)


@pytest.mark.parametrize("version", [6, 9])
def test_freshness_does_not_count_rolled_back_records_once_the_rollback_is_archived(version: int) -> None:
    """Archived, neither the write nor its rollback is on the timeline of version 6, whose readers take it for committed."""
    table = living(version)
    table.write((put("k0", 6, "merged"),))
    table.schedule(7)
    table.execute()
    table.write((put("k1", 2, "rolled back"),))
    table.undo_last()
    for number in range(8):
        table.write((put("k1", 8 + number, "later"),))
    table.clean(1)
    table.archive()
    assert table.account.oracle.freshness().late_records == 0
    table.inspect(whole=True)


def test_verify_knows_rolled_back_blocks_once_the_rollback_is_archived() -> None:
    """In version 6 the log stays, and an archived rollback leaves nothing else that shows it was never committed."""
    table = living(6)
    table.write((put("k0", 5, "rolled back"),))
    table.undo_last()
    for number in range(8):
        table.write((put("k1", 6 + number, "later"),))
    table.archive()
    process = table.bench.process()
    assert process.state().timeline.is_archived(table.account.oracle.instants[1])
    check_verified(process)
    table.inspect(whole=True)


def test_time_travel_to_a_cleaned_slice_is_refused_though_a_link_keeps_a_log_file() -> None:
    """Without its base file, what is left of the old slice looks like the beginning of its file group."""
    table = living(9, LinkChoice.SYMLINK)
    table.write((put("k1", 2, "merged"),))
    table.write((put("k0", 8, "left over"),))
    table.schedule(3)
    table.execute()
    table.write((put("k0", 9, "later"),))
    table.clean(1)
    with pytest.raises(CleanedHistoryError):
        table.bench.process().queries.as_of(table.account.oracle.instants[0])
    table.inspect(whole=True)


@pytest.mark.parametrize("version", [6, 9])
def test_time_travel_to_a_slice_that_a_dead_clean_removed_in_part_is_refused(version: int) -> None:
    table = living(version)
    table.write((put("k1", 2, "merged"),))
    table.write((put("k0", 2, "merged, too"),))
    table.schedule(3)
    table.execute()
    table.write((put("k0", 9, "later"),))
    start, account = table.bench.moment(), table.account
    for number in range(40):
        table.bench.load(start)
        table.account = account.copy()
        table.record_others(())
        table.clean(1, number)
        table.inspect(whole=True)
        if table.reach["crashes"] <= number:
            break
    assert 8 <= table.reach["crashes"] < 40


def test_no_rollback_writes_into_a_slice_that_another_one_has_removed() -> None:
    """One that was interrupted is ended before the next one begins: on version 6 it still has a command block to write."""
    table = living(6)
    table.write((put("k0", 5, "undone halfway"),))
    table.undo_last(6)
    table.undo_last()
    table.clean(1)
    table.inspect(whole=True)
    assert not [path for path in table.files if path.endswith((".parquet", "1-0-1"))]


def test_freshness_counts_no_left_over_twice_while_its_compaction_is_under_way() -> None:
    """Version 6 shows the copy beside the log that it stands for; with an exact cut it may hold what is late."""
    table = LivingTable(Layout(6, Order.EVENT_TIME), LinkChoice.COPY, "living", CutMode.EXACT)
    table.write(BASE)
    table.write((put("k0", 2, "merged"),))
    table.write((put("k0", 9, "left over"), put("k1", 3, "merged early"), delete("k2")))
    table.schedule(5)
    assert table.account.plan is not None
    left_overs = [left.new_name for op in table.account.plan.operations for left in op.left_overs]
    for death in range(20):
        table.execute(death)
        table.bench.process().rollback.undo_failed_writes()  # takes the lock from the dead
    assert left_overs
    assert table.account.plan is None


@pytest.mark.parametrize("version", [6, 9])
def test_the_last_write_before_the_archived_ones_is_not_undone(version: int) -> None:
    """Archived writes count because they lie before the timeline's start, and an empty timeline has none."""
    table = living(version)
    for number in range(4):
        table.write((put("k1", 6 + number, f"word {number}"),))
    table.archive()
    while (last := table.account.completed[-1].instant) and len(completed_instants(table.files)) > 1:
        table.undo_last()
        assert table.account.completed[-1].instant != last
    with pytest.raises(RefusedError, match="last write on the active timeline"):
        table.bench.process().rollback.undo(last)
    table.inspect(whole=True)


@pytest.mark.parametrize("version", [6, 9])
def test_a_late_record_beside_a_plan_is_missing_while_its_compaction_is_undone(version: int) -> None:
    """The plan is pending again until then, and was right when it was made."""
    for death in range(12):
        table = living(version)
        table.write((put("k1", 2, "merged"),))
        table.schedule(5)
        table.write((put("k0", 3, "late"),))
        table.execute()
        table.undo_last(death)
        table.undo_last()
        table.inspect(whole=True)


@pytest.mark.parametrize(
    ("first", "second", "third"),
    [
        pytest.param((delete("k0", 9),), put("k0", 5, "beaten"), delete("k0", 3), id="in full"),
        pytest.param(
            (put("k0", 9, "merged"), put("k1", 5, "early")), put("k0", 8, "left over"), delete("k0", 8), id="in part"
        ),
    ],
)
def test_what_is_written_after_a_plan_meets_its_base_as_it_meets_that_of_hudi(
    first: Commit, second: Change, third: Change
) -> None:
    """To Hudi 0.x: the insert outlives the delete below it, unless merged by the table's order; no later one beats a base.

    So after either compaction, as after Hudi 1.x's own, it would see the last delete where it did not see it before.
    """
    table = living(6)
    table.write(first)
    table.write((second,))
    table.schedule(7)
    table.write((third,))
    assert table.reach["write, done"] == 4
    table.execute()
    table.inspect(whole=True)


@pytest.mark.parametrize("link", [LinkChoice.COPY, LinkChoice.PREFIX])
def test_the_instant_of_a_write_that_was_rolled_back_is_never_taken_by_a_compaction(link: LinkChoice) -> None:
    """Its writer slept, and was considered dead; it wakes up, and would complete the compaction's instant as its own."""
    table = living(9, link)
    table.write((put("k1", 5, "merged"),))
    table.bench.clock.sleep(-9)  # the instant right after the last completion
    table.begin_write((put("k0", 6, "asleep"),))
    ((asleep, _),) = table.open_writes
    table.expire_heartbeats()
    table.begin_write((put("k1", 9, "open", partition="b"),))
    table.schedule(7)
    assert table.account.plan is not None
    assert table.account.plan.instant != asleep.instant
    table.end_write()
    table.execute()
    table.end_write()
    assert {row[3] for row in table.account.oracle.snapshot()} == {"base", "merged", "open"}
    table.inspect(whole=True)


@pytest.mark.parametrize("action", [Action.LOG_COMPACTION, Action.CLUSTERING])
def test_a_run_names_the_instant_of_a_foreign_action_and_never_suggests_to_run_it(
    action: Action,
) -> None:
    table = living(9)
    table.write((put("k0", 5, "merged"),))
    table.schedule(7)
    assert table.account.plan is not None
    process = table.bench.process()
    other = Instant("20270101000000000", action, State.REQUESTED)
    table.bench.storage.put(f"{process.state().config.timeline_path}/{other.file_name}", b"")
    for instant in (table.account.plan.instant, other.requested_time):
        with pytest.raises(
            BusyError, match=rf"{action} is pending at {other.requested_time}.*the engine that planned it"
        ):
            process.runner.execute(instant, NoProgress())


def test_a_compaction_soon_after_one_that_ran_late_moves_no_log_file_for_hudi_1() -> None:
    """Of version 6 Hudi 1.x goes by the times of files: the late one's slice has left-overs, and a write beside its plan."""
    table = living(6)
    table.write((put("k0", 5, "merged"), put("k1", 5, "merged")))
    table.write((put("k1", 9, "left over"),))
    table.schedule(7)
    table.write((put("k0", 9, "beside"),))
    table.execute()
    table.schedule(10)
    table.execute()
    assert [event.merged is not None for event in table.account.completed].count(True) == 2
    table.inspect(whole=True)
