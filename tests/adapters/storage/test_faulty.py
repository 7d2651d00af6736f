import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, Operation, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import StorageError
from eventide_core.ports import Storage


@pytest.fixture
def inner() -> MemoryStorage:
    storage = MemoryStorage.from_dump("inner", {})
    storage.put("source", b"data")
    return storage


def _write_output(storage: Storage) -> bool:
    output = storage.open_output("new")
    output.write(b"data")
    return output.commit()


WRITES: tuple[tuple[str, Callable[[Storage], object]], ...] = (
    ("put", lambda storage: storage.put("new", b"data")),
    ("put_if_absent", lambda storage: storage.put_if_absent("new", b"data")),
    ("copy_if_absent", lambda storage: storage.copy_if_absent("source", "new")),
    ("link_if_absent", lambda storage: storage.link_if_absent("source", "new", is_symbolic=False)),
    ("open_output", _write_output),
)


@pytest.mark.parametrize(("kind", "write"), WRITES)
@pytest.mark.parametrize(
    ("fault", "error", "has_happened"),
    [
        (Fault.CRASH_BEFORE, SimulatedCrash, False),
        (Fault.CRASH_AFTER, SimulatedCrash, True),
        (Fault.ERROR, StorageError, False),
        (Fault.REPLY_LOST, StorageError, True),
    ],
)
def test_an_interrupted_write_has_happened_or_not_depending_on_its_fault(
    inner: MemoryStorage,
    kind: str,
    write: Callable[[Storage], object],
    fault: Fault,
    error: type[BaseException],
    has_happened: bool,
) -> None:
    storage = FaultyStorage(inner, FaultPlan(writes={0: fault}))
    with pytest.raises(error):
        write(storage)
    assert storage.writes == (Operation(kind, "new"),)
    assert (inner.stat("new") is not None) == has_happened
    if has_happened:
        assert inner.read("new") == b"data"


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.ERROR, Fault.REPLY_LOST])
def test_an_interrupted_delete_has_happened_or_not_depending_on_its_fault(inner: MemoryStorage, fault: Fault) -> None:
    storage = FaultyStorage(inner, FaultPlan(writes={0: fault}))
    with pytest.raises((SimulatedCrash, StorageError)):
        storage.delete("source")
    assert (inner.stat("source") is None) == (fault in (Fault.CRASH_AFTER, Fault.REPLY_LOST))


@pytest.mark.parametrize(("kind", "write"), WRITES[1:])
def test_a_request_sent_twice_meets_its_own_file(
    inner: MemoryStorage, kind: str, write: Callable[[Storage], object]
) -> None:
    storage = FaultyStorage(inner, FaultPlan(writes={0: Fault.DUPLICATED}))
    assert write(storage) is False
    assert inner.read("new") == b"data"
    assert storage.writes == (Operation(kind, "new"),)


def test_a_crashed_process_does_nothing_any_more_and_its_copies_neither(inner: MemoryStorage) -> None:
    storage = FaultyStorage(inner, FaultPlan(writes={1: Fault.CRASH_BEFORE}))
    copy = pickle.loads(pickle.dumps(storage))
    begun = storage.open_output("begun")
    storage.put("first", b"")
    with pytest.raises(SimulatedCrash):
        copy.put("second", b"")
    for operation in (
        lambda: storage.put("third", b""),
        lambda: storage.read("source"),
        lambda: copy.list(""),
        lambda: storage.open_output("third"),
        lambda: begun.write(b"data"),
        begun.commit,
    ):
        with pytest.raises(SimulatedCrash):
            operation()
    assert [info.path for info in inner.list("")] == ["first", "source"]
    assert FaultyStorage(inner).read("source") == b"data"


def test_reads_and_writes_are_numbered_apart(inner: MemoryStorage) -> None:
    storage = FaultyStorage(inner, FaultPlan(writes={1: Fault.ERROR}, reads={1: Fault.ERROR}))
    storage.put("a", b"")
    storage.stat("a")
    with pytest.raises(StorageError):
        storage.read("a")
    storage.read("a")
    with pytest.raises(StorageError):
        storage.delete("a")
    assert storage.delete("a")
    assert storage.operations == (
        Operation("put", "a"),
        Operation("stat", "a"),
        Operation("read", "a"),
        Operation("read", "a"),
        Operation("delete", "a"),
        Operation("delete", "a"),
    )
    assert (len(storage.reads), len(storage.writes)) == (3, 3)


def test_a_stale_listing_lacks_the_newest_and_shows_the_deleted(inner: MemoryStorage) -> None:
    storage = FaultyStorage(inner, FaultPlan(reads={0: Fault.STALE, 2: Fault.STALE}))
    storage.put("part=a/old", b"")
    storage.put("part=a/new", b"")
    assert [info.path for info in storage.list("part=a")] == ["part=a/old"]
    assert [info.path for info in storage.list("part=a")] == ["part=a/new", "part=a/old"]
    storage.delete("part=a/old")
    assert [info.path for info in storage.list("part=a")] == ["part=a/new", "part=a/old"]


def test_a_flipped_bit_is_one_wrong_bit_that_is_right_the_next_time(inner: MemoryStorage) -> None:
    storage = FaultyStorage(inner, FaultPlan(reads=dict.fromkeys((0, 1, 2), Fault.BIT_FLIPPED)))
    for data in (
        storage.read("source"),
        storage.read_range("source", 0, 4),
        storage.open_input("source").read(),
    ):
        wrong = [(got ^ right).bit_count() for got, right in zip(data, b"data", strict=True)]
        assert sum(wrong) == 1
    assert storage.read("source") == b"data"


def test_a_fault_that_cannot_strike_is_no_plan() -> None:
    with pytest.raises(AssertionError):
        FaultPlan(writes={0: Fault.STALE})
    with pytest.raises(AssertionError):
        FaultPlan(reads={0: Fault.REPLY_LOST})


def test_a_crash_while_a_local_file_is_written_leaves_no_name(tmp_path: Path) -> None:
    inner = LocalStorage(tmp_path)
    storage = FaultyStorage(inner, FaultPlan(writes={0: Fault.CRASH_BEFORE}))
    with pytest.raises(SimulatedCrash):
        _write_output(storage)
    assert inner.stat("new") is None
