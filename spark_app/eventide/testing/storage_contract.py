"""What every storage must keep: the promises of `ports.Storage` as tests.

For a storage of one's own:

    class TestMyStorage(StorageContract):
        @pytest.fixture
        def case(self) -> StorageCase:
            return StorageCase(MyStorage(...))

Not checked: what a loss of power leaves, and what two machines see of each other's writes.
"""

import pickle
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from eventide_core.errors import MissingFileError, StorageError, UnsafePathError
from eventide_core.ports import Capability, FileInfo, Storage

UNSAFE_PATHS = (
    "/etc/passwd",
    "//host/share",
    "..",
    "../other/file",
    "part=a/../../other",
    "part=a/..",
    "part=a/./file",
    ".",
    "part=a//file",
    "part=a/",
    "part=a\\..\\file",
    "..\\file",
    "part=a/fi\0le",
    "s3://bucket/file",
    "file:/etc/passwd",
    "C:/file",
    "part=a/\ud800",
)

PARTITIONS = (
    "day=2026-11-21",
    "a/b/c",
    "name=100%",
    "name=a%2Fb",
    "name=with space",
    "name=Zürich",
    "name=東京",
    "name=..dots..",
    "name=#?&+*'\"",
)

WRITERS = 8

# More than any buffer on the way.
LARGE_BYTES = 3 * 1024 * 1024 + 1


@dataclass(frozen=True, slots=True)
class StorageCase:
    """An empty storage, and where there is one the way to its files behind its back."""

    storage: Storage
    read_behind: Callable[[str], bytes] | None = None
    write_behind: Callable[[str, bytes], None] | None = None


class StorageContract:
    """Inherit it, and override the fixture `case`; `rounds` is how many names each race is about."""

    rounds = 10

    @pytest.fixture
    def case(self) -> StorageCase:
        raise NotImplementedError("override the fixture `case` with an empty storage")

    @pytest.fixture
    def storage(self, case: StorageCase) -> Storage:
        return case.storage

    # Reading and replacing

    @pytest.mark.parametrize("size", [0, 1, LARGE_BYTES])
    def test_a_file_is_read_back_whole(self, storage: Storage, size: int) -> None:
        data = random.Random(size).randbytes(size)
        storage.put("part=a/file", data)
        assert storage.read("part=a/file") == data
        assert _entry(storage, "part=a/file").size == size

    def test_what_is_written_lies_there_behind_the_adapters_back(self, case: StorageCase) -> None:
        if case.read_behind is None:
            pytest.skip("there is no way behind this storage")
        case.storage.put("part=a/file", b"one")
        assert case.read_behind("part=a/file") == b"one"

    def test_what_another_program_wrote_is_read(self, case: StorageCase) -> None:
        if case.write_behind is None:
            pytest.skip("there is no way behind this storage")
        case.write_behind("part=a/file", b"theirs")
        assert case.storage.read("part=a/file") == b"theirs"
        assert [info.path for info in case.storage.list("part=a")] == ["part=a/file"]
        assert not case.storage.put_if_absent("part=a/file", b"ours")

    def test_put_replaces_the_whole_file(self, storage: Storage) -> None:
        storage.put("file", b"a longer first content")
        storage.put("file", b"second")
        assert storage.read("file") == b"second"

    def test_a_range_ends_where_the_file_ends(self, storage: Storage) -> None:
        storage.put("file", b"0123456789")
        assert storage.read_range("file", 2, 3) == b"234"
        assert storage.read_range("file", 8, 5) == b"89"
        assert storage.read_range("file", 10, 5) == b""
        assert storage.read_range("file", 3, 0) == b""

    def test_an_input_stream_is_seekable(self, storage: Storage) -> None:
        storage.put("file", b"0123456789")
        with storage.open_input("file") as stream:
            assert stream.seek(-2, 2) == 8
            assert stream.read() == b"89"
            assert stream.seek(1) == 1
            assert stream.read(3) == b"123"

    def test_a_missing_file_is_missing_however_it_is_read(self, storage: Storage) -> None:
        storage.put("part=a/file", b"data")
        for path in ("none", "part=a/none", "none/none", "part=a"):
            with pytest.raises(MissingFileError, match=path):
                storage.read(path)
            with pytest.raises(MissingFileError, match=path):
                storage.read_range(path, 0, 1)
            with pytest.raises(MissingFileError, match=path), storage.open_input(path) as stream:
                stream.read()

    # One writer only

    def test_put_if_absent_leaves_a_taken_name_as_it_was(self, storage: Storage) -> None:
        assert storage.put_if_absent("part=a/file", b"first")
        before = storage.stat("part=a/file")
        assert not storage.put_if_absent("part=a/file", b"second")
        assert storage.read("part=a/file") == b"first"
        assert storage.stat("part=a/file") == before

    def test_of_many_who_put_exactly_one_wins(self, storage: Storage) -> None:
        def put(copy: Storage, number: int, name: str) -> bool:
            return copy.put_if_absent(name, _content_of(number))

        _race(storage, put, self.rounds)

    def test_of_many_who_write_a_file_exactly_one_wins(self, storage: Storage) -> None:
        def write(copy: Storage, number: int, name: str) -> bool:
            output = copy.open_output(name)
            output.write(_content_of(number))
            return output.commit()

        _race(storage, write, self.rounds)

    def test_of_many_who_copy_exactly_one_wins(self, storage: Storage) -> None:
        for number in range(WRITERS):
            storage.put(f"source/{number}", _content_of(number))

        def copy_file(copy: Storage, number: int, name: str) -> bool:
            return copy.copy_if_absent(f"source/{number}", name)

        _race(storage, copy_file, self.rounds)

    @pytest.mark.parametrize("is_symbolic", [True, False])
    def test_of_many_who_link_exactly_one_wins(self, storage: Storage, is_symbolic: bool) -> None:
        _require_links(storage, is_symbolic)
        for number in range(WRITERS):
            storage.put(f"source/{number}", _content_of(number))

        def link(copy: Storage, number: int, name: str) -> bool:
            return copy.link_if_absent(f"source/{number}", name, is_symbolic=is_symbolic)

        _race(storage, link, self.rounds)

    # A file being written

    def test_a_file_being_written_is_seen_by_nobody(self, storage: Storage) -> None:
        storage.put("part=a/other", b"")
        output = storage.open_output("part=a/file")
        output.write(b"half")
        assert [info.path for info in storage.list("part=a")] == ["part=a/other"]
        assert storage.stat("part=a/file") is None
        assert output.commit()
        assert storage.read("part=a/file") == b"half"

    def test_a_file_is_written_in_pieces(self, storage: Storage) -> None:
        data = random.Random(7).randbytes(LARGE_BYTES)
        output = storage.open_output("part=a/file")
        for start in range(0, LARGE_BYTES, 100_000):
            piece = data[start : start + 100_000]
            assert output.write(memoryview(piece)) == len(piece)
        assert output.commit()
        assert storage.read("part=a/file") == data

    def test_an_aborted_file_was_never_there(self, storage: Storage) -> None:
        output = storage.open_output("part=a/file")
        output.write(b"half")
        output.abort()
        assert storage.stat("part=a/file") is None
        assert storage.list("part=a") == ()

    def test_abort_after_commit_is_harmless(self, storage: Storage) -> None:
        output = storage.open_output("file")
        output.write(b"whole")
        assert output.commit()
        output.abort()
        assert storage.read("file") == b"whole"

    def test_a_name_taken_while_writing_stays_the_others(self, storage: Storage) -> None:
        output = storage.open_output("file")
        output.write(b"ours")
        storage.put("file", b"theirs")
        assert not output.commit()
        assert storage.read("file") == b"theirs"

    # Copies

    def test_a_copy_outlives_its_source(self, storage: Storage) -> None:
        data = random.Random(3).randbytes(LARGE_BYTES)
        storage.put("part=a/source", data)
        assert storage.copy_if_absent("part=a/source", "part=b/copy")
        assert storage.delete("part=a/source")
        assert storage.read("part=b/copy") == data

    def test_a_copy_onto_a_taken_name_changes_nothing(self, storage: Storage) -> None:
        storage.put("source", b"source")
        storage.put("taken", b"taken")
        assert not storage.copy_if_absent("source", "taken")
        assert storage.read("taken") == b"taken"

    def test_a_copy_of_a_missing_file_leaves_nothing(self, storage: Storage) -> None:
        with pytest.raises(MissingFileError, match="none"):
            storage.copy_if_absent("none", "copy")
        assert storage.stat("copy") is None

    # Links

    def test_a_hard_link_outlives_its_source(self, storage: Storage) -> None:
        _require_links(storage, False)
        storage.put("part=a/source", b"data")
        assert storage.link_if_absent("part=a/source", "part=b/link", is_symbolic=False)
        assert storage.delete("part=a/source")
        assert storage.read("part=b/link") == b"data"
        assert _entry(storage, "part=b/link").link_target is None

    def test_a_symbolic_link_shows_its_target_and_the_targets_size(self, storage: Storage) -> None:
        _require_links(storage, True)
        storage.put("part=a/source", b"data")
        assert storage.link_if_absent("part=a/source", "part=b/link", is_symbolic=True)
        info = _entry(storage, "part=b/link")
        assert (info.size, info.link_target, info.is_directory) == (4, "part=a/source", False)
        assert storage.stat("part=b/link") == info
        assert storage.read("part=b/link") == b"data"
        assert storage.read_range("part=b/link", 1, 2) == b"at"

    def test_a_dangling_link_is_listed_but_holds_nothing(self, storage: Storage) -> None:
        _require_links(storage, True)
        storage.put("part=a/source", b"data")
        storage.link_if_absent("part=a/source", "part=b/link", is_symbolic=True)
        storage.delete("part=a/source")
        info = _entry(storage, "part=b/link")
        assert (info.size, info.link_target) == (0, "part=a/source")
        assert storage.stat("part=b/link") is None
        with pytest.raises(MissingFileError, match="part=b/link"):
            storage.read("part=b/link")
        assert not storage.put_if_absent("part=b/link", b"ours")

    def test_a_deleted_link_leaves_its_target(self, storage: Storage) -> None:
        _require_links(storage, True)
        storage.put("part=a/source", b"data")
        storage.link_if_absent("part=a/source", "part=b/link", is_symbolic=True)
        assert storage.delete("part=b/link")
        assert storage.read("part=a/source") == b"data"
        assert storage.stat("part=b/link") is None

    def test_a_replaced_link_leaves_its_target(self, storage: Storage) -> None:
        _require_links(storage, True)
        storage.put("source", b"data")
        storage.link_if_absent("source", "link", is_symbolic=True)
        storage.put("link", b"own")
        assert storage.read("source") == b"data"
        assert storage.read("link") == b"own"
        assert _entry(storage, "link").link_target is None

    @pytest.mark.parametrize("is_symbolic", [True, False])
    def test_a_link_to_a_link_leads_to_the_file(self, storage: Storage, is_symbolic: bool) -> None:
        _require_links(storage, is_symbolic)
        _require_links(storage, True)
        storage.put("source", b"data")
        storage.link_if_absent("source", "part=a/first", is_symbolic=True)
        assert storage.link_if_absent("part=a/first", "part=b/second", is_symbolic=is_symbolic)
        storage.delete("part=a/first")
        assert storage.read("part=b/second") == b"data"

    def test_a_copy_of_a_link_is_a_file(self, storage: Storage) -> None:
        _require_links(storage, True)
        storage.put("source", b"data")
        storage.link_if_absent("source", "link", is_symbolic=True)
        assert storage.copy_if_absent("link", "copy")
        storage.delete("source")
        assert storage.read("copy") == b"data"

    @pytest.mark.parametrize("is_symbolic", [True, False])
    def test_a_link_onto_a_taken_name_changes_nothing(self, storage: Storage, is_symbolic: bool) -> None:
        _require_links(storage, is_symbolic)
        storage.put("source", b"source")
        storage.put("taken", b"taken")
        assert not storage.link_if_absent("source", "taken", is_symbolic=is_symbolic)
        assert storage.read("taken") == b"taken"

    @pytest.mark.parametrize("is_symbolic", [True, False])
    def test_a_link_to_a_missing_file_is_not_made(self, storage: Storage, is_symbolic: bool) -> None:
        _require_links(storage, is_symbolic)
        with pytest.raises(MissingFileError, match="none"):
            storage.link_if_absent("none", "link", is_symbolic=is_symbolic)
        assert "link" not in [info.path for info in storage.list("")]

    # Names

    def test_a_directory_is_listed_by_name_with_its_hidden_files_and_no_deeper(self, storage: Storage) -> None:
        for path in ("p=1/b", "p=1/.hidden.log.1_0-1-0", "p=1/a/deep/file", "p=10/other", "p", "p=1/a.x"):
            storage.put(path, b"12")
        listed = [(info.path, info.size, info.is_directory) for info in storage.list("p=1")]
        assert listed == [
            ("p=1/.hidden.log.1_0-1-0", 2, False),
            ("p=1/a", 0, True),
            ("p=1/a.x", 2, False),
            ("p=1/b", 2, False),
        ]

    def test_the_root_is_listed(self, storage: Storage) -> None:
        storage.put("part=a/file", b"")
        storage.put("file", b"")
        names = [info.path for info in storage.list("")]
        assert names == sorted(names)
        assert {"file", "part=a"} <= set(names)

    def test_where_no_directory_is_nothing_is_listed(self, storage: Storage) -> None:
        storage.put("file", b"data")
        assert storage.list("none") == ()
        assert storage.list("none/none") == ()
        assert storage.list("file") == ()

    def test_stat_says_what_a_name_is(self, storage: Storage) -> None:
        storage.put("part=a/file", b"data")
        file, directory = storage.stat("part=a/file"), storage.stat("part=a")
        assert file is not None
        assert (file.path, file.size, file.is_directory, file.link_target) == ("part=a/file", 4, False, None)
        assert file.modified_ms > 0
        assert directory is not None
        assert directory.is_directory
        for path in ("none", "part=a/none", "part=a/file/none", "part="):
            assert storage.stat(path) is None

    @pytest.mark.parametrize("partition", PARTITIONS)
    def test_a_partition_may_have_any_value(self, storage: Storage, partition: str) -> None:
        path = f"{partition}/.f_1.log.1_0-1-0"
        assert storage.put_if_absent(path, b"data")
        assert [info.path for info in storage.list(partition)] == [path]
        assert storage.read(path) == b"data"
        assert storage.delete(path)
        assert storage.stat(path) is None

    @pytest.mark.parametrize("path", UNSAFE_PATHS)
    def test_a_path_that_would_leave_the_table_is_refused_by_every_operation(self, storage: Storage, path: str) -> None:
        storage.put("file", b"data")
        operations: tuple[Callable[[], object], ...] = (
            lambda: storage.list(path),
            lambda: storage.stat(path),
            lambda: storage.read(path),
            lambda: storage.read_range(path, 0, 1),
            lambda: storage.open_input(path),
            lambda: storage.open_output(path),
            lambda: storage.put(path, b""),
            lambda: storage.put_if_absent(path, b""),
            lambda: storage.copy_if_absent(path, "target"),
            lambda: storage.copy_if_absent("file", path),
            lambda: storage.link_if_absent(path, "target", is_symbolic=True),
            lambda: storage.link_if_absent("file", path, is_symbolic=True),
            lambda: storage.link_if_absent("file", path, is_symbolic=False),
            lambda: storage.delete(path),
        )
        for operation in operations:
            with pytest.raises(UnsafePathError):
                operation()
        assert [info.path for info in storage.list("") if not info.path.startswith(".hoodie")] == ["file"]

    def test_only_a_directory_has_an_empty_path(self, storage: Storage) -> None:
        for operation in (storage.read, storage.delete, storage.open_output):
            with pytest.raises(UnsafePathError):
                operation("")

    # Deleting

    def test_what_is_deleted_is_gone_and_was_there_once(self, storage: Storage) -> None:
        storage.put("part=a/file", b"data")
        assert storage.delete("part=a/file")
        assert not storage.delete("part=a/file")
        assert not storage.delete("none/none")
        assert storage.stat("part=a/file") is None
        assert storage.list("part=a") == ()
        assert storage.put_if_absent("part=a/file", b"again")

    def test_an_emptied_directory_can_be_deleted(self, storage: Storage) -> None:
        storage.put("part=a/file", b"data")
        storage.delete("part=a/file")
        storage.delete("part=a")
        assert storage.stat("part=a") is None
        assert not storage.delete("part=a")

    def test_a_directory_that_holds_a_file_is_not_deleted(self, storage: Storage) -> None:
        storage.put("part=a/file", b"data")
        with pytest.raises(StorageError, match="part=a"):
            storage.delete("part=a")
        assert storage.read("part=a/file") == b"data"

    # Sent to an executor

    def test_a_pickled_copy_meets_the_same_files(self, storage: Storage) -> None:
        storage.put("part=a/file", b"data")
        copy = pickle.loads(pickle.dumps(storage))
        assert copy.root == storage.root
        assert copy.read("part=a/file") == b"data"
        copy.put("part=a/other", b"from afar")
        assert storage.read("part=a/other") == b"from afar"


def _entry(storage: Storage, path: str) -> FileInfo:
    directory, _, _ = path.rpartition("/")
    (entry,) = (info for info in storage.list(directory) if info.path == path)
    return entry


def _require_links(storage: Storage, is_symbolic: bool) -> None:
    needed = Capability.SYMLINK if is_symbolic else Capability.HARDLINK
    if needed not in storage.capabilities:
        pytest.skip("this storage has no such links")


def _content_of(number: int) -> bytes:
    return bytes([number]) * 100_000


def _race(storage: Storage, write: Callable[[Storage, int, str], bool], rounds: int) -> None:
    """Lets all writers write each name at once; one of them wins, and its content is there whole."""
    copies = [pickle.loads(pickle.dumps(storage)) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        for round_number in range(rounds):
            name = f"race/{round_number}"
            writing = [pool.submit(write, copy, number, name) for number, copy in enumerate(copies)]
            winners = [number for number, done in enumerate(writing) if done.result()]
            assert len(winners) == 1
            assert storage.read(name) == _content_of(winners[0])
