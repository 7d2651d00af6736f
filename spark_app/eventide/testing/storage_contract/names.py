"""The contract of names: how they are listed and deleted, and which are refused."""

from collections.abc import Callable

import pytest

from eventide.testing.storage_contract.case import ContractPart
from eventide_core.errors import StorageError, UnsafePathError
from eventide_core.ports import Storage

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


class NameContract(ContractPart):
    """Listings, `stat`, deletes, partitions of any value, and paths that would leave the table."""

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

    def test_stat_returns_the_kind_of_a_name(self, storage: Storage) -> None:
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

    def test_a_delete_returns_whether_the_file_existed(self, storage: Storage) -> None:
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
