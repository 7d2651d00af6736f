import itertools
import pickle
import subprocess
import sys
from multiprocessing.pool import ThreadPool

import pytest

from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import StorageError


def test_storages_of_one_name_share_their_files() -> None:
    MemoryStorage("shared").put("file", b"data")
    assert MemoryStorage("shared").read("file") == b"data"
    assert MemoryStorage("another").stat("file") is None


def test_a_copy_in_a_thread_meets_the_same_files() -> None:
    storage = MemoryStorage("threads")
    with ThreadPool(2) as pool:
        pool.map(lambda number: pickle.loads(pickle.dumps(storage)).put(f"{number}", b""), range(4))
    assert [info.path for info in storage.list("")] == ["0", "1", "2", "3"]


def test_a_copy_in_another_process_reports_that_it_is_empty_there() -> None:
    """In a process of its own, without a pool: a pool whose worker cannot begin starts another one forever."""
    code = "import pickle, sys; pickle.load(sys.stdin.buffer).read('file')"
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(MemoryStorage("here")), capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"StorageError" in done.stderr
    assert b"memory://here exists only in the process" in done.stderr


def test_a_dump_is_a_moment_that_can_be_gone_back_to() -> None:
    storage = MemoryStorage("dumped")
    storage.put("part=a/file", b"then")
    storage.link_if_absent("part=a/file", "link", is_symbolic=True)
    dump = storage.dump()
    storage.put("part=a/file", b"now")
    storage.put("later", b"now")
    assert dump["part=a/file"].data == b"then"
    again = MemoryStorage.from_dump("dumped", dump)
    assert again.dump() == dump
    assert storage.read("link") == b"then"
    assert storage.stat("later") is None


def test_storages_from_one_dump_go_their_own_ways() -> None:
    storage = MemoryStorage("origin")
    storage.put("file", b"data")
    one, other = (MemoryStorage.from_dump(name, storage.dump()) for name in ("one", "other"))
    one.put("file", b"one")
    assert other.read("file") == b"data"
    assert storage.read("file") == b"data"


def test_files_are_stamped_by_the_given_clock() -> None:
    now = itertools.count(1_000, 60_000)
    storage = MemoryStorage("stamped", now_ms=now.__next__)
    for name in ("a", "b"):
        storage.put(name, b"")
    assert [info.modified_ms for info in storage.list("")] == [1_000, 61_000]


def test_without_a_clock_each_write_is_later_than_the_one_before_also_after_a_dump() -> None:
    storage = MemoryStorage.from_dump("later", {})
    storage.put("a", b"")
    storage.put("b", b"")
    again = MemoryStorage.from_dump("later", storage.dump())
    again.put("c", b"")
    stamps = [info.modified_ms for info in again.list("")]
    assert stamps == sorted(set(stamps))


def test_a_file_below_a_file_is_a_storage_error() -> None:
    storage = MemoryStorage.from_dump("below", {})
    storage.put("file", b"data")
    with pytest.raises(StorageError, match="file/below"):
        storage.put("file/below", b"")
    assert not storage.delete("file/below")
