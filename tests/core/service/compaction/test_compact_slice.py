"""One slice's compaction: what it writes, in which order, and what a second attempt does."""

import pickle

import pytest

from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import MissingFileError, PlanMismatchError
from eventide_core.ports import FileInfo, OutputFile
from eventide_core.table.timeline.contents.plans import LeftOver, LinkMode
from support.files.one_slice import (
    CARRIED,
    COPIES,
    D3,
    FILES,
    LOGS,
    MARKER,
    NEW_BASE,
    OPERATION,
    compactor,
    logged,
    task,
)
from support.files.slices import base_file, data_block


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> MemoryStorage:
    storage = MemoryStorage.from_dump(request.node.name, {})
    for path, data in FILES.items():
        storage.put(path, data)
    return storage


def files(storage: MemoryStorage) -> dict[str, bytes]:
    return {path: storage.read(path) for path in storage.dump()}


def test_left_overs_are_copied_whole_and_the_marker_is_empty(storage: MemoryStorage) -> None:
    compactor(storage)(task())
    for log, copy in zip(LOGS[1:], COPIES, strict=True):
        assert storage.read(copy) == FILES[log]
    assert storage.read(MARKER) == b""


def test_without_a_carried_log_in_the_plan_none_is_written(storage: MemoryStorage) -> None:
    result = compactor(storage)(task(carried_name=None))
    assert (result.carried_tombstones, result.carried_size) == (0, None)
    assert set(storage.dump()) == {*FILES, *COPIES, MARKER, NEW_BASE}


@pytest.mark.parametrize(("mode", "is_link"), [("symlink", True), ("hardlink", False)])
def test_left_overs_are_linked_as_planned(storage: MemoryStorage, mode: str, is_link: bool) -> None:
    compactor(storage)(task(link_mode=mode))
    for log, copy in zip(LOGS[1:], COPIES, strict=True):
        info = storage.stat(copy)
        assert info is not None
        assert (info.link_target is not None) is is_link
        assert storage.read(copy) == FILES[log]


def test_in_mode_prefix_no_left_over_gets_a_file(storage: MemoryStorage) -> None:
    left_overs = tuple(LeftOver(logged(log), None) for log in LOGS[1:])
    compactor(storage)(task(left_overs=left_overs, link_mode=LinkMode.PREFIX, carried_name=None))
    assert set(storage.dump()) == {*FILES, MARKER, NEW_BASE}


def test_a_second_run_changes_nothing_and_returns_the_same(storage: MemoryStorage) -> None:
    merger = pickle.loads(pickle.dumps(compactor(storage)))
    first = merger(task())
    before = storage.dump()
    assert merger(task()) == first
    assert storage.dump() == before


def test_a_task_that_may_not_write_leaves_nothing(storage: MemoryStorage) -> None:
    before = storage.dump()

    def refuse() -> None:
        assert storage.dump() == before
        raise PlanMismatchError("the plan was rolled back")

    with pytest.raises(PlanMismatchError, match="rolled back"):
        compactor(storage)(task(), may_write=refuse)
    assert storage.dump() == before


def test_a_second_run_that_may_not_write_links_nothing(storage: MemoryStorage) -> None:
    compactor(storage)(task())
    storage.delete(COPIES[0])
    before = storage.dump()

    def refuse() -> None:
        raise PlanMismatchError("the plan was rolled back")

    with pytest.raises(PlanMismatchError, match="rolled back"):
        compactor(storage)(task(), may_write=refuse)
    assert storage.dump() == before


def test_a_base_file_of_another_process_that_is_removed_at_once_is_no_result(storage: MemoryStorage) -> None:
    class Beaten(FaultyStorage):
        """Another process is faster, and another one rolls the plan back."""

        def open_output(self, path: str) -> OutputFile:
            output = super().open_output(path)
            storage.put(path, b"")
            return output

        def stat(self, path: str) -> FileInfo | None:
            return None if path == NEW_BASE else super().stat(path)

    with pytest.raises(MissingFileError, match="rolled back"):
        compactor(Beaten(storage))(task())


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_after_a_crash_anywhere_a_second_run_ends_as_if_there_had_been_none(
    storage: MemoryStorage, fault: Fault
) -> None:
    start = storage.dump()
    expected = compactor(storage)(task())
    ended = files(storage)
    # Names appear in this order, so that a crash leaves the first few of them.
    appearing = [*reversed(COPIES), CARRIED, MARKER, NEW_BASE]
    for number in range(len(appearing)):
        again = MemoryStorage.from_dump(f"crashed at {number}", start)
        with pytest.raises(SimulatedCrash):
            compactor(FaultyStorage(again, FaultPlan({number: fault})))(task())
        written = number + (fault is Fault.CRASH_AFTER)
        assert set(again.dump()) == {*start, *appearing[:written]}
        assert compactor(again)(task()) == expected
        assert files(again) == ended


def test_every_write_of_a_merge_gives_one_name(storage: MemoryStorage) -> None:
    faulty = FaultyStorage(storage)
    compactor(faulty)(task())
    assert [write.path for write in faulty.writes] == [*reversed(COPIES), CARRIED, MARKER, NEW_BASE]


@pytest.mark.parametrize("number", range(5))
def test_a_write_that_is_sent_twice_counts_once(storage: MemoryStorage, number: int) -> None:
    start = storage.dump()
    expected = compactor(storage)(task())
    again = MemoryStorage.from_dump(f"sent twice at {number}", start)
    faulty = FaultyStorage(again, FaultPlan({number: Fault.DUPLICATED}))
    assert compactor(faulty)(task()) == expected
    assert files(again) == files(storage)


@pytest.mark.parametrize("log", LOGS)
def test_a_log_that_changed_since_the_plan_stops_the_merge(storage: MemoryStorage, log: str) -> None:
    storage.put(log, FILES[log] + data_block(D3, []))
    with pytest.raises(PlanMismatchError, match=r"log\.\d_0-1-0 has"):
        compactor(storage)(task())
    assert storage.stat(NEW_BASE) is None
    assert storage.stat(COPIES[1]) is None


@pytest.mark.parametrize("path", FILES)
def test_a_file_of_the_plan_that_is_gone_stops_the_merge(storage: MemoryStorage, path: str) -> None:
    storage.delete(path)
    with pytest.raises(MissingFileError):
        compactor(storage)(task())
    assert storage.stat(NEW_BASE) is None


@pytest.mark.parametrize("path", [COPIES[0], CARRIED, NEW_BASE])
def test_a_foreign_file_under_a_name_of_the_plan_stops_the_merge(storage: MemoryStorage, path: str) -> None:
    storage.put(path, base_file([]))
    with pytest.raises(PlanMismatchError, match="roll the plan back"):
        compactor(storage)(task())
    assert storage.read(path) == base_file([])


def test_a_base_file_of_another_plan_is_distinguished_by_its_footer(storage: MemoryStorage) -> None:
    compactor(storage)(task())
    other = tuple(map(logged, LOGS[:2]))
    with pytest.raises(PlanMismatchError, match="didn't write it"):
        compactor(storage)(task(compacted=other, left_overs=OPERATION.left_overs[1:]))
