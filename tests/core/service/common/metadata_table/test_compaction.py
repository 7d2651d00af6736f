"""The metadata table of a small real table, compacted: it says what it said, dead or alive, beside whoever writes."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from eventide.testing.histories import NoLock
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import MetadataTableBusyError
from eventide_core.ports import AddedFile, FileChanges, Storage
from eventide_core.service.common.metadata_table import compaction
from eventide_core.service.common.metadata_table.compaction import MetadataCompaction
from eventide_core.service.common.metadata_table.upkeep import revert_update
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.timeline.contents.plans import PlannedOperation
from eventide_core.table.timeline.instant import State, instant_epoch_ms, instant_time
from support.doubles.pickled_tasks import PickledTasks
from support.files import metadata_updates
from support.files.metadata_updates import (
    TABLES,
    check,
    compactor,
    crashed_copies,
    listed,
    metadata_files,
    opened,
    timeline_of,
)
from support.pasts import golden

pytestmark = pytest.mark.slow

FIRST_MS = instant_epoch_ms("20261122000000000")
UPDATES = 4
T = TypeVar("T")


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return golden.unpack(str(request.param), tmp_path)


def times(number: int) -> tuple[str, str]:
    """The instant of an update, and the completion time of the table's commit."""
    return instant_time(FIRST_MS + 10 * number), instant_time(FIRST_MS + 10 * number + 5)


def begin(path: Path, number: int) -> None:
    timeline_of(path).joinpath(f"{times(number)[0]}.deltacommit.requested").write_bytes(b"")


def beat(path: Path, number: int) -> None:
    heartbeat = path / ".hoodie" / ".heartbeat" / times(number)[0]
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.write_bytes(b"")


def update(path: Path, number: int) -> None:
    """Adds a file, and takes away the one that was added two updates ago."""
    instant, completed = times(number)
    removed = {"part=a": (f"f{number - 2}_0-7-7_{times(number - 2)[0]}.parquet",)} if number > 1 else {}
    added = AddedFile("part=a", f"f{number}_0-7-7_{instant}.parquet", 100 + number)
    metadata_updates.update(opened(path), instant, FileChanges(RowChange.NONE, (added,), removed), completed)


def commit(path: Path, number: int) -> None:
    instant, completed = times(number)
    timeline = timeline_of(path)
    name = f"{instant}_{completed}" if timeline.name == "timeline" else instant
    timeline.joinpath(f"{name}.deltacommit").write_bytes(b"")


def write(path: Path, *numbers: int) -> None:
    for number in numbers:
        begin(path, number)
        update(path, number)
        commit(path, number)


def due(path: Path, number: int = UPDATES - 1, storage: Storage | None = None) -> MetadataCompaction | None:
    return compactor(storage or LocalStorage(path)).due(UPDATES, times(number)[1])


def compact(path: Path, number: int = UPDATES - 1, storage: Storage | None = None) -> None:
    compaction = due(path, number, storage)
    assert compaction is not None
    assert compaction.run(NoLock())


def log_counts(path: Path) -> list[int]:
    return [len(found.log_files) for found in MetadataTableReader.load(LocalStorage(path)).slices("files")]


def completed_compactions(path: Path) -> list[str]:
    directory = path / ".hoodie" / "metadata"
    return sorted(found.name for found in directory.rglob("*.commit"))


@pytest.mark.parametrize("here_bytes", [0, compaction.COMPACTED_HERE_BYTES])
def test_tasks_of_the_engine_make_the_base_files_of_a_large_compaction(
    table: Path, here_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "COMPACTED_HERE_BYTES", here_bytes)
    write(table, *range(UPDATES))
    before, tasks = listed(table), PickledTasks()
    found = compactor(LocalStorage(table), tasks).due(UPDATES, times(UPDATES - 1)[1])
    assert found is not None
    assert found.run(NoLock())
    assert {*map(type, tasks.asked)} == (set() if here_bytes else {PlannedOperation})
    assert listed(table) == before
    assert log_counts(table) == [0]


def test_a_compaction_keeps_the_content_of_the_metadata_table(table: Path) -> None:
    write(table, *range(UPDATES))
    before = listed(table)
    assert before["part=a"].items() >= {f"f{n}_0-7-7_{times(n)[0]}.parquet": 100 + n for n in (2, 3)}.items()
    compact(table)
    assert listed(table) == before
    assert log_counts(table) == [0]
    reader = MetadataTableReader.load(LocalStorage(table))
    assert reader.facts.status.delta_commits == 0
    assert not reader.facts.timeline.pending
    write(table, *range(UPDATES, UPDATES + 3))
    assert log_counts(table) == [3]
    assert due(table, UPDATES + 2) is None
    write(table, UPDATES + 3)
    before = listed(table)
    compact(table, UPDATES + 3)
    assert listed(table) == before
    assert log_counts(table) == [0]
    assert len(completed_compactions(table)) == 2


def test_of_many_compactions_two_slices_stay(table: Path) -> None:
    """A removal that dies in the midst is ended by the next one."""
    directory = table / ".hoodie" / "metadata" / "files"
    for round_number in range(5):
        numbers = range(round_number * UPDATES, (round_number + 1) * UPDATES)
        write(table, *numbers)
        compact(table, numbers[-1])
        said = listed(table)
        if round_number == 2:
            dying = FaultyStorage(LocalStorage(table), FaultPlan(writes={2: Fault.CRASH_BEFORE}))
            with pytest.raises(SimulatedCrash):
                compactor(dying).remove_old_slices(NoLock())
        else:
            compactor(LocalStorage(table)).remove_old_slices(NoLock())
        assert listed(table) == said
        (slices,) = MetadataTableReader.load(LocalStorage(table)).view("files").slices.values()
        if round_number != 2:
            assert len(slices) == 2
            assert len([file for file in directory.iterdir() if file.suffix == ".hfile"]) == 2
            logs = [file for file in directory.iterdir() if ".log." in file.name and file.suffix != ".crc"]
            assert len(logs) == UPDATES if round_number else len(logs) == 10 + UPDATES


def test_after_many_updates_few_files_are_left(table: Path) -> None:
    """At most ten logs to read, and the files of two slices."""
    metadata = compactor(LocalStorage(table))
    directory = table / ".hoodie" / "metadata" / "files"
    for number in range(45):
        write(table, number)
        found = metadata.due(10, times(number)[1])
        if found is not None:
            assert found.run(NoLock())
            metadata.remove_old_slices(NoLock())
        assert sum(log_counts(table)) <= 10
    files = [file for file in directory.iterdir() if not file.name.endswith(".crc")]
    assert len(files) <= 2 + 10 + 10 + 1
    assert len(listed(table)["part=a"]) <= 2 + 20


def test_its_instants_are_those_of_hudi(table: Path) -> None:
    """Version 6: the last delta commit's with a suffix. Later: one after which every later delta commit completes."""
    write(table, *range(UPDATES))
    compact(table)
    instant, completed = times(UPDATES - 1)
    if table.name == "v6_mdt":
        assert completed_compactions(table) == [f"{instant}001.commit"]
    else:
        after = instant_time(instant_epoch_ms(completed) + 1)
        assert completed_compactions(table) == [f"{completed}_{after}.commit"]


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_the_state_after_a_crash_has_the_same_content_and_is_completed(
    table: Path, fault: Fault, tmp_path: Path
) -> None:
    write(table, *range(UPDATES))
    said = listed(table)
    whole = tmp_path / "whole"
    shutil.copytree(table, whole)
    compact(whole)
    crashes = 0

    def act(path: Path, storage: Storage) -> None:
        compact(path, storage=storage)

    for path, has_crashed in crashed_copies(table, tmp_path, act, fault=fault):
        assert listed(path) == said
        check(path, RowChange.NONE)  # what eventide left is in no one's way
        begun = compactor(LocalStorage(path)).begun() or due(path)
        assert begun is None or begun.run(NoLock())
        assert metadata_files(path) == metadata_files(whole)
        crashes += has_crashed
    assert crashes == 4


def test_an_undone_action_is_not_merged(table: Path) -> None:
    """The table's commit of an update that exists already may still fail: then its delta commit is rolled back."""
    write(table, *range(UPDATES))
    begin(table, UPDATES)
    beat(table, UPDATES)
    update(table, UPDATES)
    before = listed(table)
    found = due(table, UPDATES + 1)
    if table.name == "v6_mdt":
        assert found is None
    else:
        assert found is not None
        assert found.run(NoLock())
        assert completed_compactions(table)[0] < times(UPDATES)[0]
        assert listed(table) == before
        assert log_counts(table) == [1]
    revert_update(LocalStorage(table), opened(table), times(UPDATES)[0])
    assert listed(table) == before


def test_beside_a_writer_without_a_heartbeat_it_waits(table: Path) -> None:
    """It shares no lock: it may have chosen the old slice for its log, and rolls back what it finds begun."""
    write(table, *range(UPDATES))
    begin(table, UPDATES)
    assert due(table) is None
    beat(table, UPDATES)
    compact(table)


def test_a_plan_of_another_engine_is_left_alone(table: Path) -> None:
    write(table, *range(UPDATES))
    timeline = table / ".hoodie" / "metadata" / timeline_of(table).relative_to(table)
    foreign = golden.unpack("v9_compacted" if table.name == "v9_mdt" else "v6_compacted", table.parent / "other")
    (plan, *_) = sorted(timeline_of(foreign).glob("*.compaction.requested"))
    theirs = f"{times(UPDATES)[1]}.compaction.requested"
    shutil.copy(plan, timeline / theirs)
    assert compactor(LocalStorage(table)).begun() is None
    assert due(table) is None
    if table.name == "v6_mdt":
        with pytest.raises(MetadataTableBusyError):
            check(table, RowChange.NONE)


class Overtaken(FaultyStorage):
    """Another writer, who shares no lock, acts just after a file whose path has that pattern is made."""

    def __init__(self, path: Path, pattern: str, act: Callable[[], object]) -> None:
        super().__init__(LocalStorage(path))
        self._pattern = re.compile(pattern)
        self._act: list[Callable[[], object]] = [act]

    def _write(self, kind: str, path: str, write: Callable[[], T]) -> T:
        answer = super()._write(kind, path, write)
        if self._act and self._pattern.search(path):
            self._act.pop()()
        return answer


def late_log(path: Path, instant: str) -> None:
    """The log of a delta commit that completes below the compaction's instant, and the delta commit."""
    directory = path / ".hoodie" / "metadata"
    timeline = directory / timeline_of(path).relative_to(path)
    log = next((directory / "files").glob(f".*{times(1)[0]}.log.1_*"), None) or max(
        (directory / "files").glob(".*log.9*")
    )
    if timeline.name == "timeline":
        shutil.copy(log, log.with_name(log.name.replace(times(1)[0], instant)))
        timeline.joinpath(f"{instant}_{times(1)[1]}.deltacommit").write_bytes(b"")
    else:
        shutil.copy(log, log.with_name(".files-0000-0_00000000000000010.log.99_0-1-1"))


@pytest.mark.parametrize("step", [r"compaction\.requested", r"compaction\.inflight", r"\.hfile"])
def test_a_log_that_comes_late_into_an_old_slice_ends_the_compaction(table: Path, step: str) -> None:
    write(table, *range(UPDATES))
    before = metadata_files(table)
    late = instant_time(FIRST_MS + 12)
    storage = Overtaken(table, step, lambda: late_log(table, late))
    compact(table, storage=storage)
    after = metadata_files(table)
    assert before.items() <= after.items()
    assert not [name for name in after.keys() - before.keys() if "compaction" in name or ".commit" in name]
    assert sum(log_counts(table)) == 10 + UPDATES + 1
    assert not [name for name in after.keys() - before.keys() if name.endswith(".hfile")]


def test_version_6_drops_what_cannot_be_withdrawn(tmp_path: Path) -> None:
    """One log has come into the old slice, and another has been put above the base that is to be."""
    path = golden.unpack("v6_mdt", tmp_path)
    write(path, *range(UPDATES))

    def act() -> None:
        late_log(path, "")
        directory = path / ".hoodie" / "metadata" / "files"
        (log,) = directory.glob(".files*log.10_*")
        shutil.copy(log, directory / f".files-0000-0_{times(UPDATES - 1)[0]}001.log.1_0-1-1")

    storage = Overtaken(path, r"compaction\.inflight", act)
    found = due(path, storage=storage)
    assert found is not None
    assert not found.run(NoLock())


def test_of_two_that_compact_at_once_one_wins(table: Path) -> None:
    write(table, *range(UPDATES))
    said = listed(table)
    one, other = due(table), due(table)
    assert one is not None
    assert other is not None
    assert one.run(NoLock())
    assert other.run(NoLock())
    assert len(completed_compactions(table)) == 1
    assert listed(table) == said
    assert log_counts(table) == [0]


def test_a_plan_that_arrives_after_a_rebuild_is_withdrawn(table: Path) -> None:
    """Its process died, and the request to put it was slow."""
    write(table, *range(UPDATES))
    late = due(table)
    assert late is not None
    data = late.compactor.codec.encode_plan(late.plan)
    for log in (table / ".hoodie" / "metadata" / "files").glob(".*.log.*"):
        log.rename(log.with_name(log.name.replace(".log.", ".log.1")))  # as a new one names them
    said = listed(table)
    late.transaction.put(NoLock(), State.REQUESTED, data)
    begun = compactor(LocalStorage(table)).begun()
    assert begun is not None
    assert begun.run(NoLock())
    assert compactor(LocalStorage(table)).begun() is None
    assert completed_compactions(table) == []
    assert listed(table) == said
