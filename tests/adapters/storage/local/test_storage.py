"""What only a local file system has: Hadoop's side files, links that lead outside, loss of power."""

import os
import shutil
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.local.names import ABANDONED_AFTER_SECONDS
from eventide_adapters.storage.paths import TEMPORARY
from eventide_core.errors import MissingFileError, StorageError, UnsafePathError
from eventide_core.ports import Capability


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def storage(root: Path) -> LocalStorage:
    root.mkdir()
    return LocalStorage(root)


class TestHadoopsSideFiles:
    @pytest.mark.parametrize(
        "write",
        [
            lambda storage: storage.put("part=a/.f.log.1", b"new"),
            lambda storage: storage.put_if_absent("part=a/.f.log.1", b"new"),
            lambda storage: storage.copy_if_absent("source", "part=a/.f.log.1"),
            lambda storage: storage.link_if_absent("source", "part=a/.f.log.1", is_symbolic=True),
            lambda storage: storage.link_if_absent("source", "part=a/.f.log.1", is_symbolic=False),
        ],
    )
    def test_a_new_file_has_no_checksum_of_an_earlier_one(
        self, storage: LocalStorage, root: Path, write: Callable[[LocalStorage], object]
    ) -> None:
        storage.put("source", b"new")
        side_file = root / "part=a" / "..f.log.1.crc"
        side_file.parent.mkdir()
        side_file.write_bytes(b"crc of the old")
        write(storage)
        assert storage.read("part=a/.f.log.1") == b"new"
        assert not side_file.exists()

    def test_nor_has_a_new_empty_one(self, storage: LocalStorage, root: Path) -> None:
        (root / ".file.crc").write_bytes(b"crc of the old")
        assert storage.put_if_absent("file", b"")
        assert os.listdir(root) == ["file"]

    def test_a_checksum_goes_before_the_content_it_would_contradict(
        self, storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (root / "file").write_bytes(b"old")
        (root / ".file.crc").write_bytes(b"crc of the old")

        def crash(source: str, target: str, **_: int) -> None:
            raise KeyboardInterrupt(f"before {source} becomes {target}")

        monkeypatch.setattr(os, "replace", crash)
        with pytest.raises(KeyboardInterrupt):
            storage.put("file", b"new")
        assert not (root / ".file.crc").exists()
        assert storage.read("file") == b"old"

    def test_a_lost_race_leaves_the_winners_checksum(self, storage: LocalStorage, root: Path) -> None:
        (root / "file").write_bytes(b"theirs")
        (root / ".file.crc").write_bytes(b"crc of theirs")
        assert not storage.put_if_absent("file", b"ours")
        assert (root / ".file.crc").read_bytes() == b"crc of theirs"

    def test_a_deleted_file_takes_its_checksum_along(self, storage: LocalStorage, root: Path) -> None:
        (root / "file").write_bytes(b"data")
        (root / ".file.crc").write_bytes(b"crc")
        assert storage.delete("file")
        assert os.listdir(root) == []

    def test_checksums_are_not_listed_but_directories_of_such_names_are(
        self, storage: LocalStorage, root: Path
    ) -> None:
        (root / "file").write_bytes(b"data")
        (root / ".file.crc").write_bytes(b"crc")
        (root / ".region.crc").mkdir()
        (root / "file.crc").write_bytes(b"not hidden, so not Hadoop's")
        assert [info.path for info in storage.list("")] == [".region.crc", "file", "file.crc"]

    def test_a_directory_with_checksums_alone_is_empty(self, storage: LocalStorage, root: Path) -> None:
        (root / "part=a").mkdir()
        (root / "part=a" / ".gone.crc").write_bytes(b"crc")
        assert storage.delete("part=a")
        assert not (root / "part=a").exists()


class TestLinksThatLeadOutside:
    @pytest.fixture
    def secret(self, tmp_path: Path) -> Path:
        secret = tmp_path / "secret"
        secret.mkdir()
        (secret / "file").write_bytes(b"secret")
        return secret

    @pytest.mark.parametrize("is_relative", [True, False])
    def test_a_file_behind_one_is_not_read(
        self, storage: LocalStorage, root: Path, secret: Path, is_relative: bool
    ) -> None:
        text = "../secret/file" if is_relative else str(secret / "file")
        (root / "link").symlink_to(text)
        for read in (
            lambda: storage.read("link"),
            lambda: storage.read_range("link", 0, 1),
            lambda: storage.open_input("link"),
            lambda: storage.stat("link"),
            lambda: storage.copy_if_absent("link", "copy"),
            lambda: storage.link_if_absent("link", "second", is_symbolic=True),
            lambda: storage.link_if_absent("link", "second", is_symbolic=False),
        ):
            with pytest.raises(UnsafePathError, match="outside"):
                read()
        (info,) = (info for info in storage.list("") if info.path == "link")
        assert (info.size, info.link_target) == (0, text)

    def test_a_directory_behind_one_is_neither_read_nor_written(
        self, storage: LocalStorage, root: Path, secret: Path
    ) -> None:
        (root / "part=a").symlink_to(secret)
        storage.put("file", b"data")
        for operation in (
            lambda: storage.read("part=a/file"),
            lambda: storage.list("part=a"),
            lambda: storage.stat("part=a/file"),
            lambda: storage.put("part=a/file", b"ours"),
            lambda: storage.put_if_absent("part=a/new", b"ours"),
            lambda: storage.open_output("part=a/new"),
            lambda: storage.copy_if_absent("file", "part=a/new"),
            lambda: storage.link_if_absent("file", "part=a/new", is_symbolic=True),
            lambda: storage.delete("part=a/file"),
        ):
            with pytest.raises(UnsafePathError, match="outside"):
                operation()
        assert {path.name: path.read_bytes() for path in secret.iterdir()} == {"file": b"secret"}

    def test_temporary_files_are_not_written_through_one(self, storage: LocalStorage, root: Path, secret: Path) -> None:
        (root / TEMPORARY).parent.mkdir()
        (root / TEMPORARY).symlink_to(secret)
        with pytest.raises(UnsafePathError, match="outside"):
            storage.put("file", b"data")

    def test_a_chain_that_ends_outside_is_not_followed(self, storage: LocalStorage, root: Path, secret: Path) -> None:
        (root / "second").symlink_to(secret / "file")
        (root / "first").symlink_to("second")
        with pytest.raises(UnsafePathError, match="outside"):
            storage.read("first")

    def test_one_can_be_deleted(self, storage: LocalStorage, root: Path, secret: Path) -> None:
        (root / "link").symlink_to(secret)
        assert storage.delete("link")
        assert (secret / "file").exists()

    def test_a_sibling_whose_name_begins_alike_is_outside(self, storage: LocalStorage, root: Path) -> None:
        sibling = root.with_name("table2")
        sibling.mkdir()
        (sibling / "file").write_bytes(b"another table's")
        (root / "link").symlink_to(sibling / "file")
        with pytest.raises(UnsafePathError, match="outside"):
            storage.read("link")

    def test_a_loop_of_links_holds_nothing(self, storage: LocalStorage, root: Path) -> None:
        (root / "a").symlink_to("b")
        (root / "b").symlink_to("a")
        assert [(info.path, info.size) for info in storage.list("")] == [("a", 0), ("b", 0)]
        assert storage.stat("a") is None

    def test_a_table_behind_a_link_is_read_and_written(self, storage: LocalStorage, root: Path) -> None:
        storage.put("source", b"data")
        alias = root.with_name("alias")
        alias.symlink_to(root)
        behind = LocalStorage(alias)
        assert behind.root == f"file://{alias}"
        assert behind.link_if_absent("source", "part=a/link", is_symbolic=True)
        assert behind.read("part=a/link") == b"data"

    def test_symbolic_links_are_relative_so_that_a_moved_table_keeps_them(
        self, storage: LocalStorage, root: Path
    ) -> None:
        storage.put("part=a/source", b"data")
        storage.link_if_absent("part=a/source", "part=b/link", is_symbolic=True)
        moved = root.with_name("moved")
        root.rename(moved)
        assert LocalStorage(moved).read("part=b/link") == b"data"


class TestWritingWhole:
    def test_content_and_name_are_synced_in_order(self, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
        storage.put("part=a/first", b"")
        steps: list[str] = []
        fsync, link, replace = os.fsync, os.link, os.replace

        def recording_fsync(handle: int) -> None:
            steps.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "content")
            fsync(handle)

        def recording_link(source: str, target: str, **directories: Any) -> None:
            steps.append("name")
            link(source, target, **directories)

        def recording_replace(source: str, target: str, **directories: Any) -> None:
            steps.append("name")
            replace(source, target, **directories)

        monkeypatch.setattr(os, "fsync", recording_fsync)
        monkeypatch.setattr(os, "link", recording_link)
        monkeypatch.setattr(os, "replace", recording_replace)
        assert storage.put_if_absent("part=a/file", b"data")
        assert steps == ["content", "name", "directory"]
        steps.clear()
        storage.put("part=a/file", b"data")
        assert steps == ["content", "name", "directory"]
        steps.clear()
        assert storage.put_if_absent("part=a/empty", b"")
        assert steps == ["content", "directory"]

    def test_nothing_is_left_beside_what_was_written(self, storage: LocalStorage, root: Path) -> None:
        storage.put("put", b"data")
        storage.put_if_absent("put", b"lost")
        storage.copy_if_absent("put", "copy")
        with pytest.raises(MissingFileError):
            storage.copy_if_absent("none", "copy")
        storage.open_output("aborted").abort()
        assert os.listdir(root / TEMPORARY) == []

    def test_a_file_being_written_is_not_listed_anywhere(self, storage: LocalStorage, root: Path) -> None:
        output = storage.open_output("file")
        output.write(b"half")
        assert len(os.listdir(root / TEMPORARY)) == 1
        assert storage.list(os.path.dirname(TEMPORARY)) == ()
        output.abort()

    def test_what_a_dead_writer_began_is_removed_after_a_day(self, storage: LocalStorage, root: Path) -> None:
        storage.put("file", b"data")
        dead, alive = root / TEMPORARY / "dead", root / TEMPORARY / "alive"
        dead.write_bytes(b"half")
        alive.write_bytes(b"half")
        a_day_ago = time.time() - ABANDONED_AFTER_SECONDS - 60
        os.utime(dead, (a_day_ago, a_day_ago))
        storage.put("file", b"data")
        assert os.listdir(root / TEMPORARY) == ["alive"]

    def test_a_source_that_grows_while_it_is_copied_is_no_copy(
        self, storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        storage.put("source", b"data")
        copy = shutil.copyfileobj

        def copy_and_grow(source: BinaryIO, target: BinaryIO, size: int) -> None:
            copy(source, target, size)
            with (root / "source").open("ab") as file:
                file.write(b"more")

        monkeypatch.setattr(shutil, "copyfileobj", copy_and_grow)
        with pytest.raises(StorageError, match="changed while it was copied"):
            storage.copy_if_absent("source", "copy")
        assert storage.stat("copy") is None
        assert os.listdir(root / TEMPORARY) == []

    def test_files_are_as_readable_as_the_users_other_files(self, storage: LocalStorage, root: Path) -> None:
        (root / "other").write_bytes(b"")
        storage.put("put", b"")
        storage.put_if_absent("new", b"")
        storage.copy_if_absent("put", "copy")
        modes = {name: stat.S_IMODE((root / name).stat().st_mode) for name in ("put", "new", "copy")}
        assert set(modes.values()) == {stat.S_IMODE((root / "other").stat().st_mode)}

    def test_writers_of_one_new_directory_do_not_disturb_each_other(self, storage: LocalStorage) -> None:
        with ThreadPoolExecutor(8) as pool:
            for number in range(20):
                paths = [f"year={number}/day={number}/{writer}" for writer in range(8)]
                assert all(pool.map(lambda path: storage.put_if_absent(path, b"data"), paths))


class TestFailures:
    def test_a_file_below_a_file_is_a_storage_error(self, storage: LocalStorage) -> None:
        storage.put("file", b"data")
        with pytest.raises(StorageError, match=r"cannot write 'file/below' in file://.*table"):
            storage.put("file/below", b"data")
        with pytest.raises(StorageError, match="file/below"):
            storage.put_if_absent("file/below", b"data")

    def test_a_name_that_is_too_long_is_a_storage_error(self, storage: LocalStorage) -> None:
        for operation in (storage.read, storage.stat, storage.delete):
            with pytest.raises(StorageError, match="too long"):
                operation("x" * 300)
        with pytest.raises(StorageError, match="too long"):
            storage.put("x" * 300, b"")

    def test_a_path_that_nobody_else_could_open_is_not_made(self, storage: LocalStorage, root: Path) -> None:
        with pytest.raises(StorageError, match="too long"):
            storage.put("/".join("a" * 3000), b"too deep")
        assert not (root / "a").exists()

    def test_a_directory_in_the_way_is_taken(self, storage: LocalStorage) -> None:
        storage.put("part=a/file", b"data")
        assert not storage.put_if_absent("part=a", b"data")
        with pytest.raises(StorageError, match="part=a"):
            storage.put("part=a", b"data")

    def test_a_read_that_fails_midway_is_a_storage_error(self, storage: LocalStorage, root: Path) -> None:
        storage.put("file", b"data")
        for size in (-1, 1):
            with storage.open_input("file") as stream:
                directory = os.open(root, os.O_RDONLY)
                os.dup2(directory, stream.fileno())
                os.close(directory)
                with pytest.raises(StorageError, match="cannot read 'file'"):
                    stream.read(size)

    def test_a_pipe_is_no_file_and_holds_nobody_up(self, storage: LocalStorage, root: Path) -> None:
        os.mkfifo(root / "pipe")
        with pytest.raises(MissingFileError, match="pipe"):
            storage.read("pipe")

    def test_a_full_disk_leaves_no_file(
        self, storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(handle: int) -> None:
            raise OSError(28, f"No space left on device ({handle})")

        storage.put("before", b"")
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="No space left"):
            storage.put_if_absent("file", b"data")
        monkeypatch.undo()
        assert storage.stat("file") is None
        assert os.listdir(root / TEMPORARY) == []

    def test_a_file_system_without_links_reports_it(
        self, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_link(source: str, target: str, **_: object) -> None:
            raise PermissionError(1, "Operation not permitted", source, None, target)

        monkeypatch.setattr(os, "link", no_link)
        assert storage.capabilities == Capability.SYMLINK
        with pytest.raises(StorageError, match="Operation not permitted"):
            storage.put_if_absent("file", b"data")


def test_trying_out_what_it_can_leaves_no_trace(storage: LocalStorage, root: Path) -> None:
    every = Capability.PUT_IF_ABSENT | Capability.HARDLINK | Capability.SYMLINK | Capability.SERVER_COPY
    assert storage.capabilities == every
    assert os.listdir(root / ".hoodie") == []


def test_a_storage_touches_nothing_until_it_is_used(root: Path) -> None:
    storage = LocalStorage(root)
    assert storage.list("") == ()
    assert storage.stat("") is None
    assert storage.stat("file") is None
    assert not storage.delete("file")
    assert not root.exists()
