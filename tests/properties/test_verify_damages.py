"""Each damage of support.faults.damages is found by just the checks that should, on tables of both layouts; and none where
there is none.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from eventide.bootstrap import Application
from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import OPTIONS, Bench, Moment, crash_states, pending_plan
from eventide.testing.histories import EPOCH_MS, Story, put, records
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.verification.result import Verification
from eventide_core.config import EVENT_TIME_FIELD, LinkChoice
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from support.faults import damages
from support.faults.damages import CELLS, CODEC, DAMAGES, LAYOUTS, Damaged, doubled_log, table_to_damage
from support.faults.lost_completions import check_no_lost_completion


@pytest.fixture(scope="module", params=CELLS, ids=[f"v{version}-{link}" for version, link in CELLS])
def written(request: pytest.FixtureRequest) -> tuple[Bench, Moment, Damaged]:
    """A table with left-overs in each of two link modes."""
    return table_to_damage(*request.param)


def test_a_sound_table_passes_every_check(written: tuple[Bench, Moment, Damaged]) -> None:
    found = verified(*written[:2])
    assert found.ok, told(found)
    assert [check.name for check in found.not_checked] == ["metadata-table"]


@pytest.mark.parametrize("damage", DAMAGES, ids=[damage.__name__ for damage in DAMAGES])
def test_each_damage_is_found_by_just_the_checks_that_should(
    damage: Callable[[Damaged], None], written: tuple[Bench, Moment, Damaged]
) -> None:
    bench, moment, table = written
    table = replace(table, files=dict(moment.files))
    damage(table)
    found = verified(bench, Moment(table.files, moment.time_ms))
    assert {check.name for check in found.failed} == DAMAGES[damage], told(found)
    assert all(finding.cure and finding.problem for check in found.failed for finding in check.findings)


LOST: list[tuple[Callable[[Damaged], None], set[str], set[str]]] = [
    (damages.lost_completed_file_of_logs, {"timeline"}, {"timeline"}),
    (damages.lost_completed_file_of_the_last_write, set(), {"timeline"}),
    (damages.lost_timeline_files_of_a_write, {"timeline"}, {"timeline"}),
]


@pytest.mark.parametrize(("damage", "on_6", "on_9"), LOST, ids=[damage.__name__ for damage, _, _ in LOST])
def test_a_lost_completed_file_is_found_where_other_files_show_it(
    damage: Callable[[Damaged], None], on_6: set[str], on_9: set[str], written: tuple[Bench, Moment, Damaged]
) -> None:
    """A log file of version 6 doesn't show whether its write has completed: a plan names log files of dead writers, too."""
    bench, moment, table = written
    table = replace(table, files=dict(moment.files))
    damage(table)
    found = verified(bench, Moment(table.files, moment.time_ms))
    assert {check.name for check in found.failed} == (on_6 if table.version < 8 else on_9), told(found)


@pytest.mark.parametrize("version", LAYOUTS)
def test_the_metadata_table_shows_a_lost_completed_file(version: int) -> None:
    bench, moment, table = table_to_damage(version, LinkChoice.COPY, has_metadata_table=True)
    assert verified(bench, moment).ok
    for damage in (damages.lost_completed_file_of_the_last_write, damages.lost_timeline_files_of_a_write):
        damaged = replace(table, files=dict(moment.files))
        damage(damaged)
        found = verified(bench, Moment(damaged.files, moment.time_ms))
        timeline = next(check for check in found.checks if check.name == "timeline")
        assert any("completed" in finding.problem for finding in timeline.findings), told(found)


@pytest.mark.parametrize("version", LAYOUTS)
def test_a_dead_writer_is_not_taken_for_one_that_completed(version: int) -> None:
    """The metadata table has its commit before the table has it."""
    bench, moment, _ = table_to_damage(version, LinkChoice.COPY, has_metadata_table=True)

    def ingest(application: Application) -> None:
        incoming = arrow_records(application, *records((put("k0", 30, "dead"), put("k9", 30, "new", partition="c"))))
        application.append.write(WriteOperation.UPSERT, incoming, NoProgress())

    states = [left for _, left in crash_states(bench, moment, ingest)]
    assert len(states) > 10
    for left in states:
        check_no_lost_completion(bench, left)


def test_a_log_file_whose_content_is_there_twice_is_found(written: tuple[Bench, Moment, Damaged]) -> None:
    """A shared log file of version 6 may grow, so only its blocks tell."""
    bench, moment, table = written
    table = replace(table, files=dict(moment.files))
    doubled_log(table)
    found = verified(bench, Moment(table.files, moment.time_ms))
    by_size = {"committed-files"} if table.version >= 8 else set[str]()
    assert {check.name for check in found.failed} == {"log-blocks"} | by_size, told(found)


@pytest.mark.parametrize("version", LAYOUTS)
def test_a_missing_file_is_found_by_the_savepoint_and_the_plan_that_need_it(version: int) -> None:
    bench = Bench("verify-damages", OPTIONS)
    story = Story.begin(LAYOUTS[version], bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"),))
    saved = story.commit((put("k0", 5, "early"),))
    bench.process().savepoints.save(saved)
    bench.process().scheduler.schedule(CompactionRequest(EPOCH_MS + 10, None, LinkChoice.COPY))
    assert verified(bench, bench.moment()).ok
    moment = bench.moment()
    log = pending_plan(bench.process()).operations[0].compacted[0].path
    files = {path: file for path, file in moment.files.items() if path != log}
    found = verified(bench, Moment(files, moment.time_ms))
    assert {check.name for check in found.failed} == {"committed-files", "savepoints", "pending-plans"}, told(found)
    assert {finding.path for check in found.failed for finding in check.findings} == {log}


def test_a_late_record_that_its_write_stat_hides_is_found_by_reading_records() -> None:
    """The commit says that its stats are of this field; the planner and the watermark then believe them."""
    bench = Bench("verify-damages", {**OPTIONS, EVENT_TIME_FIELD: "ms"})
    story = Story.begin(replace(LAYOUTS[9], has_block_event_times=True), bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"),))
    story.commit((put("k0", 5, "early"),))
    application = bench.process()
    application.scheduler.schedule(CompactionRequest(EPOCH_MS + 10, None, LinkChoice.COPY))
    application.runner.execute(pending_plan(application).instant, NoProgress())
    late = story.commit((put("k7", 7, "late"),))
    moment = bench.moment()
    assert verified(bench, moment).ok
    files = dict(moment.files)
    path = next(p for p in files if f"/{late}_" in p)
    commit = CODEC.decode_commit(files[path].data, path)
    assert {stat.min_event_time_ms for stat in commit.stats} == {EPOCH_MS + 7}
    stats = {
        partition: tuple(
            stat._replace(min_event_time_ms=EPOCH_MS + 77, max_event_time_ms=EPOCH_MS + 77) for stat in told
        )
        for partition, told in commit.write_stats.items()
    }
    files[path] = MemoryFile(CODEC.encode_commit(replace(commit, write_stats=stats), 9), 1)
    found = verified(bench, Moment(files, moment.time_ms))
    assert {check.name for check in found.failed} == {"event-times", "read-optimized"}, told(found)


@pytest.mark.parametrize("version", LAYOUTS)
def test_a_file_that_the_metadata_table_does_not_list_is_found(version: int) -> None:
    bench = Bench("verify-damages", OPTIONS)
    story = Story.begin(replace(LAYOUTS[version], has_metadata_table=True), bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"),))
    story.commit((put("k0", 5, "early"),))
    moment = bench.moment()
    sound = verified(bench, moment)
    assert sound.ok, told(sound)
    assert not sound.not_checked or "metadata-table" not in {check.name for check in sound.not_checked}
    logs = [path for path in moment.files if path.startswith(".hoodie/metadata/files/") and ".log." in path]
    files = {path: file for path, file in moment.files.items() if path != max(logs)}
    found = verified(bench, Moment(files, moment.time_ms))
    assert {check.name for check in found.failed} == {"metadata-table"}, told(found)


@pytest.mark.parametrize("version", LAYOUTS)
def test_files_of_a_write_that_the_metadata_table_has_not_followed_are_found(version: int) -> None:
    bench = Bench("verify-damages", OPTIONS)
    story = Story.begin(replace(LAYOUTS[version], has_metadata_table=True), bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"),))
    before = bench.moment().files
    story.commit((put("k0", 5, "early"),))
    after = bench.moment()
    in_index = ".hoodie/metadata/"
    files = {path: file for path, file in after.files.items() if not path.startswith(in_index)}
    files |= {path: file for path, file in before.items() if path.startswith(in_index)}
    found = verified(bench, Moment(files, after.time_ms), is_deep=False)
    (check,) = found.failed
    assert check.name == "metadata-table", told(found)
    (finding,) = check.findings
    assert finding.path in after.files
    assert finding.path not in before
    assert "readers that use it don't see the file" in finding.problem


@pytest.mark.parametrize("version", LAYOUTS)
def test_a_listing_of_the_metadata_table_that_differs_from_the_directories_is_found(version: int) -> None:
    bench, moment, table = table_to_damage(version, LinkChoice.COPY, has_metadata_table=True)
    assert verified(bench, moment).ok
    for change, problem in ((None, "but not in its directory"), (b"another size", "bytes, but")):
        files = dict(moment.files)
        del files[table.late_log]
        if change is not None:
            files[table.late_log] = MemoryFile(table.data(table.late_log) + change, 1)
        found = verified(bench, Moment(files, moment.time_ms), is_deep=False)
        (check,) = (check for check in found.failed if check.name == "metadata-table")
        assert [f.path for f in check.findings] == [table.late_log]
        assert problem in check.findings[0].problem


def test_what_dead_writers_left_is_reported_and_is_no_damage() -> None:
    bench = Bench("verify-damages", OPTIONS)
    story = Story.begin(LAYOUTS[9], bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"),))
    pending = story.begin_commit((put("k0", 5, "never"),))
    bench.clock.sleep(3_600_000)
    bench.storage.put(".hoodie/.temp/20200101000000000/part=a/x.marker.CREATE", b"")
    bench.storage.put(".hoodie/.heartbeat/20200101000000000", b"")
    bench.clock.sleep(3_600_000)
    found = verified(bench, bench.moment())
    assert found.ok, told(found)
    remarks = " ".join(next(check.remarks for check in found.checks if check.name == "abandoned-files"))
    assert pending.instant in remarks
    assert "20200101000000000: markers or a heartbeat" in remarks


def test_without_deep_checks_that_read_records_are_reported_as_unchecked(
    written: tuple[Bench, Moment, Damaged],
) -> None:
    bench, moment, table = written
    files = dict(moment.files)
    files[table.left_over] = MemoryFile(table.data(table.left_over).replace(b"left over", b"left 0ver"), 1)
    found = verified(bench, Moment(files, moment.time_ms), is_deep=False)
    assert found.ok
    assert {"left-over-bytes", "records-readable", "read-optimized"} < {check.name for check in found.not_checked}


def verified(bench: Bench, moment: Moment, *, is_deep: bool = True) -> Verification:
    bench.load(moment)
    found = bench.process().verifier.verify(is_deep=is_deep, progress=NoProgress())
    assert bench.moment().files == moment.files, "a verification has written something"
    return found


def told(found: Verification) -> Any:
    return {check.name: check.findings for check in found.failed}
