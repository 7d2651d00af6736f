"""Hudi upgrades a version 6 table to version 8 while a compaction of eventide is pending, interrupted at every write.

The upgrade moves the timeline and gives each completed file a completion time. It renames no log: one of version 6 still
has the instant of its slice, and one that was written on top of the pending plan has the plan's.
"""

import pytest

from eventide.testing.crash_enumeration import OPTIONS, Bench, Moment, crash_states, execute, schedule
from eventide.testing.histories import History, Layout, Story, put
from eventide.testing.inspection.checks import check_single_completion, check_snapshot
from eventide.testing.inspection.observation import Observer, check_verified
from eventide.testing.oracle import Order
from eventide_adapters.storage.memory import MemoryFile, MemoryStorage
from eventide_core.config import LinkChoice
from eventide_core.errors import RefusedError
from eventide_core.ports import NoProgress
from eventide_core.table.settings.properties import PROPERTIES_PATH
from eventide_core.table.timeline.instant import Instant, instant_epoch_ms, instant_time
from support.run.reach import reached

HISTORY = History(
    "a left-over of each partition",
    (
        (put("k0", 1, "base"), put("k1", 2, "base"), put("k2", 3, "base", partition="b")),
        (put("k0", 20, "after T"), put("k1", 5, "before T")),
        (put("k1", 30, "after T"), put("k2", 31, "after T", partition="b")),
    ),
    cut_ms=10,
)
ON_TOP = (put("k0", 40, "on top of the plan"), put("k3", 4, "late"), put("k2", 41, "on top", partition="b"))
SINCE = (put("k1", 50, "since the upgrade"), put("k0", 39, "loses"))
LATER = tuple((put("k2", 60 + number, f"later {number}", partition="b"),) for number in range(6))
ARCHIVED_EARLY = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
}
A_WHILE_MS = 5
"""How long after its request a write's completed file was put: an upgrade takes its completion time from the file."""


def upgraded(files: dict[str, MemoryFile], layout: Layout) -> dict[str, MemoryFile]:
    """The files as Hudi's upgrade leaves them."""
    scratch = MemoryStorage.from_dump("scratch", {}, now_ms=lambda: 0)
    Layout(8, layout.order).create(scratch)
    found: dict[str, MemoryFile] = {}
    for path, file in files.items():
        directory, _, name = path.rpartition("/")
        instant = Instant.parse(name) if directory == ".hoodie" else None
        if instant is not None:
            end_ms = instant_epoch_ms(instant.requested_time) + A_WHILE_MS
            end = instant_time(end_ms) if instant.is_completed else None
            path = f".hoodie/timeline/{Instant(instant.requested_time, instant.action, instant.state, end).file_name}"
        found[path] = file
    return {**found, PROPERTIES_PATH: scratch.dump()[PROPERTIES_PATH]}


class Upgraded:
    """The table with the pending plan, upgraded and written to since."""

    def __init__(self) -> None:
        layout = Layout(6, Order.EVENT_TIME)
        self.bench = Bench("upgraded", {**OPTIONS, **layout.write_options, **ARCHIVED_EARLY})
        story = Story.begin(layout, self.bench.storage, self.bench.clock)
        for commit in HISTORY.commits:
            story.commit(commit)
        self.bench.clock.sleep(10)
        schedule(HISTORY, LinkChoice.COPY)(self.bench.process())
        state = self.bench.process().state()
        (pending,) = state.timeline.pending_plans
        self.instant = pending.requested_time
        story.commit(ON_TOP)
        self.start = self.upgrade()
        self.bench.load(self.start)
        self.story = Story(Layout(8, layout.order), self.bench.storage, self.bench.clock, story.oracle, 7)
        self.story.commit(SINCE)
        self.start = self.bench.moment()

    def upgrade(self) -> Moment:
        moment = self.bench.moment()
        return Moment(upgraded(dict(moment.files), Layout(6, Order.EVENT_TIME)), moment.time_ms + 10)

    def check_whole(self) -> None:
        process = self.bench.process()
        check_snapshot(Observer().look(process, ()), self.story.oracle.snapshot())
        check_verified(process, is_deep=True)


@pytest.fixture(scope="module")
def table() -> Upgraded:
    return Upgraded()


def test_verify_reports_that_records_above_the_plan_are_hidden_and_names_the_cure(
    table: Upgraded,
) -> None:
    table.bench.load(table.start)
    found = table.bench.process().verifier.verify(is_deep=True, progress=NoProgress())
    assert [check.name for check in found.failed] == ["pending-plans"]
    assert {f'table.execute("{table.instant}")' in finding.cure for finding in found.failed[0].findings} == {True}


def test_the_plan_is_not_rolled_back(table: Upgraded) -> None:
    table.bench.load(table.start)
    with pytest.raises(RefusedError, match=rf'table\.execute\("{table.instant}"\)'):
        table.bench.process().rollback.undo(table.instant)


def test_the_plan_is_run_whatever_its_writes_took_and_may_die_at_any_write(table: Upgraded) -> None:
    number = 0
    for _, left in crash_states(table.bench, table.start, execute(table.instant)):
        number += 1
        table.bench.load(left.after_the_lock_expired())
        ended = table.bench.process().pending.end(NoProgress())
        assert ended.rolled_back == ()
        table.check_whole()
        check_single_completion(table.bench.moment().files, table.instant)
    assert number > 10
    reached("upgraded tables: a pending plan broken off at a write", number)


def test_a_clean_takes_nothing_that_the_plan_will_show(table: Upgraded) -> None:
    table.bench.load(table.start)
    for _ in range(2):
        table.bench.process().cleaner.clean(1)
        execute(table.instant)(table.bench.process())
        table.check_whole()


def test_a_restore_after_the_upgrade_takes_the_logs_of_version_6_along() -> None:
    """They don't have the instants of their writes. Left there, they would count again once these instants are archived."""
    layout = Layout(6, Order.EVENT_TIME)
    bench = Bench("restored", {**OPTIONS, **layout.write_options, **ARCHIVED_EARLY})
    story = Story.begin(layout, bench.storage, bench.clock)
    saved = [story.commit(commit) for commit in HISTORY.commits][-1]
    bench.process().savepoints.save(saved)
    kept = story.oracle.copy()
    story.commit(ON_TOP)
    moment = bench.moment()
    bench.load(Moment(upgraded(dict(moment.files), layout), moment.time_ms + 1000))

    assert bench.process().restorer.restore(saved)

    story = Story(Layout(8, layout.order), bench.storage, bench.clock, kept, 7)
    bench.process().savepoints.delete(saved)
    for commit in LATER:
        story.commit(commit)
    process = bench.process()
    assert saved in process.archiver.archive()
    check_snapshot(Observer().look(process, ()), story.oracle.snapshot())
    check_verified(process, is_deep=True)


def test_a_left_over_of_a_compaction_that_the_archive_lost_is_no_orphan() -> None:
    """A downgrade to version 6 leaves the archived timeline behind. A savepoint keeps the write of the left-over."""
    layout = Layout(6, Order.EVENT_TIME)
    bench = Bench(
        "lost", {**OPTIONS, **layout.write_options, **ARCHIVED_EARLY, "hoodie.archive.beyond.savepoint": "true"}
    )
    story = Story.begin(layout, bench.storage, bench.clock)
    saved = [story.commit(commit) for commit in HISTORY.commits][-1]
    bench.process().savepoints.save(saved)
    bench.clock.sleep(10)
    schedule(HISTORY, LinkChoice.COPY)(bench.process())
    (compaction,) = bench.process().pending.end(NoProgress()).resumed
    for commit in LATER:
        story.commit(commit)
    kept = {path: file.data for path, file in bench.storage.dump().items() if path.startswith(f".hoodie/{saved}.")}
    assert compaction in bench.process().archiver.archive()
    for path in bench.storage.dump():
        if path.startswith(".hoodie/archived/"):
            bench.storage.delete(path)
    for path, data in kept.items():  # Hudi archives no write that a savepoint keeps
        bench.storage.put(path, data)
    check_verified(bench.process(), is_deep=True)


def test_no_good_log_is_an_orphan_when_its_write_is_archived(table: Upgraded) -> None:
    table.bench.load(table.start)
    story = Story(table.story.layout, table.bench.storage, table.bench.clock, table.story.oracle.copy(), 20)
    execute(table.instant)(table.bench.process())
    for commit in LATER:
        story.commit(commit)
    process = table.bench.process()
    archived = process.archiver.archive()
    assert table.instant in archived
    state = process.state()
    named = {stat.path for commit in state.commits.values() for stat in commit.stats}
    assert any(log.path not in named for found in state.view.latest_slices() for log in found.log_files)
    check_snapshot(Observer().look(process, ()), story.oracle.snapshot())
    check_verified(process, is_deep=True)
    process.cleaner.clean(1)
    check_verified(process, is_deep=True)
    check_snapshot(Observer().look(process, ()), story.oracle.snapshot())
