"""A process that stands still before any of its writes, and wakes up after others have gone on, harms nobody.

Its lock and its heartbeat have expired; the others have undone what it left, written, compacted, cleaned and archived
beyond it. Whatever the process then still does, every acknowledged row is there, no other is, `verify` finds nothing, and
the others can go on. A process that dies as it wakes up leaves at most the one file that it put, which a step that is known
takes away. Not checked here: a process that is paused twice.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import Bench, Moment, Protocol, crash_states, writes_of
from eventide.testing.histories import EPOCH_MS, Commit, Layout, Story
from eventide.testing.inspection.metadata_listing import METADATA_PREFIX
from eventide.testing.inspection.observation import LOCK_PREFIX
from eventide.testing.oracle import Oracle
from eventide_adapters.storage.faulty import Operation
from eventide_core.config import HEARTBEAT_INTERVAL_MS
from eventide_core.errors import BusyError, WriteConflictError
from eventide_core.service.common.metadata_table.drop import BEING_MADE
from eventide_core.table.files.file_name import is_data_file
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.plans import CutMode
from support.pasts.served import EARLY, LAYOUTS, Service, begin_past, clean, undo_completed, undo_failed
from support.pauses.services import Shown, shown
from support.pauses.standstill import (
    ASLEEP_MS,
    OWN,
    Others,
    archive,
    by_key,
    compact,
    ingest,
    merged,
    serve,
    verified,
    wakings,
    wrong,
)
from support.pauses.standstill import clean as clean_up

pytestmark = pytest.mark.slow

VERBS = {"compact": compact(16, CutMode.FILE), "compact exactly": compact(16, CutMode.EXACT)}
SIMPLE = tuple(replace(layout, index="SIMPLE") for layout in LAYOUTS)
VERSIONS = (pytest.param(LAYOUTS[0], marks=pytest.mark.proof), LAYOUTS[1])
TABLES = (*VERSIONS, *(pytest.param(layout, marks=pytest.mark.proof) for layout in SIMPLE))
WITH_METADATA_TABLE = tuple(replace(layout, has_metadata_table=True) for layout in LAYOUTS)
_COMPACTED_SOON = {"hoodie.metadata.compact.max.delta.commits": "2"}


@pytest.mark.parametrize("layout", TABLES)
def test_a_write_that_wakes_up_is_there_or_not_at_all(layout: Layout) -> None:
    past = begin_past(clean, layout)
    succeeded = _check_wakings(past.bench, past.start, ingest(OWN), _rows(past.story.oracle), OWN)
    assert len(succeeded) > 10
    assert set(succeeded) == {True, False}


@pytest.mark.parametrize("tick_ms", [1, 1_000], ids=["milliseconds", "seconds"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_commit_that_comes_after_a_rivals_gives_way_and_one_that_came_before_stays(
    layout: Layout, tick_ms: int
) -> None:
    """On a storage whose files have times in whole seconds, too, in the second in which both complete."""
    past = begin_past(clean, layout)
    bench = Bench("ticks", EARLY | {HEARTBEAT_INTERVAL_MS: "3600000"}, tick_ms)
    _, late, early = wakings(bench, past.start, ingest(OWN), at=_is_of_commit, meanwhile=Others.write_after_the_lock)
    assert isinstance(late.failure, WriteConflictError), late
    assert early.failure is None
    assert [wrong(bench, woken, _rows(past.story.oracle), OWN) for woken in (late, early)] == [None, None]


def _is_of_commit(operation: Operation) -> bool:
    """The completed file, and marks of the lock that is released: after the request and after the completed file."""
    return operation.path.endswith(".deltacommit") or (
        operation.kind == "put_if_absent" and operation.path.startswith(f"{LOCK_PREFIX}.")
    )


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        (LAYOUTS[1], "ingest"),
        pytest.param(LAYOUTS[0], "compact", marks=pytest.mark.proof),
        pytest.param(LAYOUTS[0], "ingest", marks=pytest.mark.proof),
        pytest.param(LAYOUTS[1], "compact", marks=pytest.mark.proof),
    ],
)
def test_a_process_that_dies_as_it_wakes_up_leaves_one_file_that_goes(layout: Layout, name: str) -> None:
    """Its put is the last thing that it does. A late file of the timeline hides archived rows until it is gone."""
    past = begin_past(clean, layout)
    before, harmful = _rows(past.story.oracle), list[str]()
    for woken in wakings(past.bench, past.start, ingest(OWN) if name == "ingest" else VERBS[name], dies=True):
        died = replace(woken, failure=woken.failure or BusyError("it died"))
        if None in (wrong(past.bench, died, before), name == "ingest" and wrong(past.bench, woken, before, OWN)):
            continue  # the latter if it had completed before it was paused
        path = woken.operation.path
        harmful.append(path.rpartition(".")[2] if "/." not in path.removeprefix(".") else "log")
        past.bench.load(woken.moment)
        past.bench.clock.sleep(ASLEEP_MS)
        _take_away(past.bench, path)
        problem = wrong(past.bench, replace(died, moment=past.bench.moment()), before)
        assert problem is None, f"{woken.operation}: {problem}"
    assert sorted(harmful) == sorted(LATE_FILES[name]), "these places are known"


LATE_FILES = {
    "ingest": ["requested", "inflight", "log", "deltacommit"],
    "compact": ["requested", "inflight", "commit"],
}


def _take_away(bench: Bench, path: str) -> None:
    """What docs/architecture.md names: a rollback of what is late and pending, else the file's removal."""
    name = path.rpartition("/")[2]
    if name.endswith((".requested", ".inflight")):
        bench.process().rollback.undo(name.partition(".")[0], force=True)
    else:
        bench.storage.delete(path)


@pytest.mark.parametrize("layout", TABLES)
@pytest.mark.parametrize(
    "protocol",
    [pytest.param(run, id=name, marks=() if name == "compact" else pytest.mark.broad) for name, run in VERBS.items()],
)
def test_a_compaction_that_wakes_up_changes_no_row(protocol: Protocol, layout: Layout) -> None:
    past = begin_past(clean, layout)
    _check_wakings(past.bench, past.start, protocol, _rows(past.story.oracle))


@pytest.mark.broad
@pytest.mark.parametrize("layout", [pytest.param(LAYOUTS[0], marks=pytest.mark.proof), LAYOUTS[1]])
def test_a_table_service_that_wakes_up_changes_no_row(layout: Layout) -> None:
    past = begin_past(undo_failed, layout)
    _check_wakings(past.bench, past.start, serve, _rows(past.story.oracle))


@pytest.mark.parametrize(
    ("layout", "protocol"),
    [
        pytest.param(layout, protocol, id=f"{layout.version}-{name}", marks=marks)
        for layout in WITH_METADATA_TABLE
        for name, protocol in ({"ingest": ingest(OWN), "clean": clean_up} | VERBS).items()
        for rarely in (pytest.mark.broad if layout.version == 9 else pytest.mark.proof,)
        for marks in (() if (layout.version, name) == (9, "ingest") else rarely,)
    ],
)
def test_what_wakes_up_as_it_updates_the_metadata_table_harms_nobody(layout: Layout, protocol: Protocol) -> None:
    """Nor does it fail if its own commit is there, and only the compaction of the metadata table is late."""
    past = begin_past(clean, layout)
    bench, own = (
        Bench("metadata table", EARLY | _COMPACTED_SOON),
        OWN if protocol not in (*VERBS.values(), clean_up) else (),
    )
    succeeded = _check_wakings(
        bench, past.start, protocol, _rows(past.story.oracle), own, lambda operation: METADATA_PREFIX in operation.path
    )
    assert len(succeeded) > 3


def rebuild(application: Application) -> None:
    application.metadata_rebuilder.rebuild()


def _write_and_rebuild(others: Others) -> None:
    _write(others)
    rebuild(others.bench.process())
    others.write()


def _write(others: Others) -> None:
    others.bench.clock.sleep(ASLEEP_MS)
    others.write()


@pytest.mark.parametrize("meanwhile", [_write, _write_and_rebuild])
@pytest.mark.parametrize(
    "layout", [pytest.param(WITH_METADATA_TABLE[0], marks=pytest.mark.broad), WITH_METADATA_TABLE[1]]
)
def test_a_rebuild_that_wakes_up_leaves_a_metadata_table_that_is_unread_or_whole(
    layout: Layout, meanwhile: Callable[[Others], None]
) -> None:
    """Others wrote without a metadata table, and made another one, whose files have the names of the sleeper's."""
    past = begin_past(clean, layout)
    bench = Bench("rebuilt", EARLY)
    start = bench.run(past.start, rebuild)
    paused: list[str] = []
    for woken in wakings(bench, start, rebuild, at=_is_of_settings_or_hfiles, meanwhile=meanwhile):
        paused.append(woken.operation.kind)
        bench.load(woken.moment)
        application = bench.process()
        if application.files.config().metadata_partitions:
            there = {file.path for file in application.state().listing if is_data_file(file.name)}
            listed = application.files.metadata_table.listing(()) or {}
            assert {f"{partition}/{name}" for partition, names in listed.items() for name in names} == there, woken
            completed = [path for path in woken.moment.files if _COMPLETED.search(path)]
            assert len(completed) == len({path.rpartition("/")[2][:17] for path in completed}), completed
        assert verified(application) == ""
    assert {"put", "delete", "open_output"} <= set(paused)


@pytest.mark.parametrize("layout", WITH_METADATA_TABLE)
def test_a_rebuild_that_dies_as_it_wakes_up_names_no_metadata_table_that_lacks_files(layout: Layout) -> None:
    """Others wrote without a metadata table, and removed what the rebuild had made. The next write names it no more."""
    past = begin_past(clean, layout)
    bench = Bench("rebuilt", EARLY)
    start = bench.run(past.start, rebuild)
    *earlier, last = wakings(bench, start, rebuild, dies=True, at=_is_of_settings_or_hfiles, meanwhile=_write)
    assert len(earlier) > 5
    for woken in (*earlier, last):
        bench.load(woken.moment)
        application = bench.process()
        is_named = bool(application.files.config().metadata_partitions)
        assert is_named == (woken is last), woken
        assert not (is_named and _metadata_files(bench)), woken
        assert by_key(shown(application)) == merged(_rows(past.story.oracle), woken.written)
        Others(bench, 1_000).write_after_the_lock()
        application = bench.process()
        assert application.files.config().metadata_partitions == ()
        assert verified(application) == "", woken
        rebuild(application)
        assert verified(bench.process()) == "", woken
        assert BEING_MADE not in bench.storage.dump()


def test_a_rebuild_that_was_killed_is_withdrawn_by_the_next_rollback() -> None:
    """A rollback deletes files, too, which a metadata table that is named later would list."""
    past = begin_past(undo_completed, WITH_METADATA_TABLE[1])
    bench = Bench("rebuilt", EARLY)
    start = bench.run(past.start, rebuild)
    operations = writes_of(bench, start, rebuild)
    names = max(number for number, operation in enumerate(operations) if operation.path.endswith("hoodie.properties"))
    killed = dict(crash_states(bench, start, rebuild))[names]
    bench.load(killed.after_the_lock_expired())
    assert BEING_MADE in bench.storage.dump()
    assert _metadata_files(bench)
    past.service.run(bench.process())
    assert BEING_MADE not in bench.storage.dump()
    assert not _metadata_files(bench)
    assert verified(bench.process()) == ""


def _metadata_files(bench: Bench) -> list[str]:
    return [path for path in bench.storage.dump() if path.startswith(METADATA_PREFIX)]


def _is_of_settings_or_hfiles(operation: Operation) -> bool:
    """The settings of both tables, the base files of the metadata table, and its delta commit."""
    return operation.path.endswith(("hoodie.properties", ".hfile")) or (
        operation.kind == "put_if_absent" and _COMPLETED.search(operation.path) is not None
    )


_COMPLETED = re.compile(r"^\.hoodie/metadata/\.hoodie/.*\.deltacommit$")


@pytest.mark.parametrize(
    ("layout", "operation"),
    [
        pytest.param(layout, operation, marks=pytest.mark.broad if is_broad else pytest.mark.proof)
        for layout in LAYOUTS
        for operation in (WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE)
        for is_broad in (layout.version == 9 and operation is WriteOperation.INSERT_OVERWRITE,)
    ],
)
def test_an_overwrite_that_wakes_up_is_whole_or_not_there(operation: WriteOperation, layout: Layout) -> None:
    """If it only begins when it wakes up, it replaces what others wrote meanwhile."""
    past = begin_past(clean, layout)
    old = _rows(past.story.oracle)
    kept = {row for row in old if row[0] != "part=a" and operation is WriteOperation.INSERT_OVERWRITE}
    new = frozenset({("part=a", "k0", EPOCH_MS + 70, "own"), ("part=a", "k9", EPOCH_MS + 71, "own"), *kept})
    ends = Counter[bool]()
    for woken in wakings(past.bench, past.start, ingest(OWN[:2], operation)):
        succeeded = woken.failure is None
        possible = [wrong(past.bench, woken, new if succeeded else old)]
        if succeeded:
            possible.append(wrong(past.bench, replace(woken, written=()), new))
        assert None in possible, f"{woken.number}: {woken.operation} ended in {woken.failure!r}: {possible}"
        ends[succeeded] += 1
    assert ends[True] > 1
    assert ends[False] > 5


@pytest.mark.parametrize("layout", [pytest.param(LAYOUTS[0], marks=pytest.mark.proof), LAYOUTS[1]])
@pytest.mark.parametrize("begin", [clean, pytest.param(undo_failed, marks=pytest.mark.broad), undo_completed])
def test_a_service_that_wakes_up_has_done_all_of_its_work_or_none(
    begin: Callable[[Story, Bench], Service], layout: Layout
) -> None:
    past = begin_past(begin, layout)
    possible = [_rows(oracle) for oracle in (past.service.after, past.story.oracle)]
    for woken in wakings(past.bench, past.start, past.service.run):
        problems = [wrong(past.bench, woken, rows) for rows in possible]
        assert None in problems, f"{woken.number}: {woken.operation} ended in {woken.failure!r}: {problems[0]}"


def _check_wakings(
    bench: Bench,
    start: Moment,
    protocol: Protocol,
    before: Shown,
    own: Commit = (),
    at: Callable[[Operation], bool] = lambda _: True,
) -> list[bool]:
    """Checks the table after each waking, and returns which of them succeeded."""
    succeeded: list[bool] = []
    for woken in wakings(bench, start, protocol, at=at):
        problem = wrong(bench, woken, before, own)
        assert problem is None, f"{woken.number}: {woken.operation} ended in {woken.failure!r}: {problem}"
        succeeded.append(woken.failure is None)
    return succeeded


def _rows(oracle: Oracle) -> Shown:
    return frozenset(row[:-1] for row in oracle.snapshot())


_MERGES = {"hoodie.timeline.compaction.batch.size": "2", "hoodie.archive.merge.files.batch.size": "2"}


@cache
def _before_archival(layout: Layout) -> tuple[Bench, Moment, Shown]:
    """A table of which much was archived, so that the next archival merges what was, and removes old manifests."""
    bench = Bench("archived", EARLY | _MERGES)
    bench.load(begin_past(clean, layout).start)
    others = Others(bench, 100)
    others.go_on(3)
    for _ in range(3):
        bench.clock.sleep(1_000)
        others.write()
        others.compact()
    bench.process().cleaner.clean(1)
    return bench, bench.moment(), shown(bench.process())


@pytest.mark.parametrize("dies", [False, True], ids=["goes on", "dies"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_archival_that_wakes_up_takes_nothing_from_those_of_others(layout: Layout, dies: bool) -> None:
    bench, start, before = _before_archival(layout)
    changed: list[str] = []
    for woken in wakings(bench, start, archive, dies=dies, at=_is_of_archive):
        changed.append(woken.operation.path.rpartition("/")[2])
        problem = wrong(bench, woken, before)
        assert problem is None, f"{woken.number}: {woken.operation} ended in {woken.failure!r}: {problem}"
    assert len(changed) > 5
    assert "mergeArchivePlan" in changed or {"_version_", "manifest_2", "manifest_7"} <= set(changed)


@pytest.mark.broad
@pytest.mark.parametrize("layout", [pytest.param(LAYOUTS[0], marks=pytest.mark.proof), LAYOUTS[1]])
def test_an_archival_that_wakes_up_removes_from_the_timeline_what_is_archived(layout: Layout) -> None:
    bench, start, before = _before_archival(layout)
    _check_wakings(bench, start, archive, before, at=lambda operation: not _is_of_archive(operation))


def _is_of_archive(operation: Operation) -> bool:
    return any(directory in operation.path for directory in ("/history/", "/archived/"))
