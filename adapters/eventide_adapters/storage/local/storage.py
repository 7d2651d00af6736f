"""Tables on a POSIX file system.

A new file appears whole or not at all, and for only one writer:

1. It is written below TEMPORARY, a directory of the same file system that stock readers and cleaners never read, and
   synced. Beside the data, its name could be mistaken for a log file's name.
2. A side file `.NAME.crc` that an earlier file of the same name left is removed. Hadoop's local file system stores a
   checksum there, and would refuse the new content. It reads a file without a side file unchecked.
3. os.link gives it its name, and fails if the name is taken. This decides a race.
4. The first name is removed and its directory synced.

`put` renames instead of step 3. An empty file is created directly under its name. A crash leaves at most a file below
TEMPORARY, which a later writer removes after a day.

eventide follows links to files itself, only to targets below the root; the operating system never follows one. Links to
directories are never followed. directories.py describes how this holds while someone replaces names with links.
"""

import errno
import io
import os
import posixpath
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import BinaryIO, TypeVar

from eventide_adapters.storage.local.directories import LocalDirectories, link_text
from eventide_adapters.storage.local.names import create, is_side_file, prepare_new, remove_content, remove_side_file
from eventide_adapters.storage.local.streams import LocalInput, LocalOutput, answering
from eventide_adapters.storage.paths import TEMPORARY, check_whole, checked_directory, checked_path
from eventide_core.errors import MissingFileError, StorageError, UnsafePathError
from eventide_core.ports import Capability, FileInfo, OutputFile


def try_out(directories: LocalDirectories) -> Capability:
    """The capabilities found in a directory beside TEMPORARY, which is then removed. NONE on a read-only table."""
    capabilities = Capability.NONE
    probe = f"{TEMPORARY}{uuid.uuid4().hex}"
    with suppress(OSError), directories.opened(posixpath.dirname(TEMPORARY), creates=True) as above:
        with directories.opened(probe, creates=True) as handle:
            try:
                os.close(os.open("file", os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=handle))
                with suppress(OSError):
                    os.link("file", "hard", src_dir_fd=handle, dst_dir_fd=handle)
                    capabilities |= Capability.HARDLINK | Capability.PUT_IF_ABSENT | Capability.SERVER_COPY
                with suppress(OSError):
                    os.symlink("file", "symbolic", dir_fd=handle)
                    capabilities |= Capability.SYMLINK
            finally:
                for name in os.listdir(handle):
                    os.unlink(name, dir_fd=handle)
        os.rmdir(posixpath.basename(probe), dir_fd=above)
    return capabilities


_TEMPORARY_NAME = posixpath.basename(TEMPORARY)

# Large enough to keep the disk busy, small enough to have one per thread.
_COPY_BYTES = 1 << 20

# The operating system itself uses the same limit.
_LINKS_MAX = 40

T = TypeVar("T")


class LocalStorage:
    """ports.Storage over the directory `root`, which the first file creates."""

    is_remote = False

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = os.path.abspath(root)
        self._directories = LocalDirectories(self._root)
        self._capabilities: Capability | None = None

    def __reduce__(self) -> tuple[type["LocalStorage"], tuple[str]]:
        return LocalStorage, (self._root,)

    @property
    def root(self) -> str:
        """The URI in Hadoop's form, without escapes."""
        return f"file://{self._root}"

    @property
    def capabilities(self) -> Capability:
        """Tested on first use, in a directory that is then removed. NONE on a read-only table."""
        if self._capabilities is None:
            self._capabilities = try_out(self._directories)
        return self._capabilities

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        """Omits Hadoop's side files and files that are being written, which belong to the file system."""
        checked_directory(directory)
        with self._answering("list", directory):
            try:
                with self._directories.opened(directory) as directory_fd, os.scandir(directory_fd) as entries:
                    names = sorted(entry.name for entry in entries if not _is_hidden(entry))
                    start = f"{directory}/" if directory else ""
                    infos = [self._info(directory_fd, name, start + name) for name in names]
            except (FileNotFoundError, NotADirectoryError):
                return ()
            return tuple(info for info in infos if info is not None)

    def stat(self, path: str) -> FileInfo | None:
        checked_directory(path)
        with self._answering("look at", path):
            try:
                if not path:
                    with self._directories.opened("") as directory_fd:
                        return FileInfo("", 0, True, os.fstat(directory_fd).st_mtime_ns // 1_000_000)
                with self._directories.parent(path) as (directory_fd, name):
                    info = self._info(directory_fd, name, path)
                if info is not None and info.link_target is not None:
                    self._followed(path, _status)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as failure:
                if failure.errno == errno.ELOOP:
                    return None
                raise
            return info

    def read(self, path: str) -> bytes:
        with self.open_input(path) as stream:
            check_whole(stream.seek(0, io.SEEK_END), path, self.root)
            stream.seek(0)
            return stream.read()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        checked_path(path)
        with self._answering("read", path):
            handle = self._open_content(path)
            try:
                return _range(handle, offset, length)
            finally:
                os.close(handle)

    def open_input(self, path: str) -> BinaryIO:
        checked_path(path)
        with self._answering("read", path):
            return io.BufferedReader(LocalInput(self._open_content(path), f"cannot read {path!r} in {self.root}"))

    def open_output(self, path: str) -> OutputFile:
        self._check_way(path)
        return self._begin(path)

    def put(self, path: str, data: bytes) -> None:
        with self._whole(path) as output:
            output.write(data)
            output.replace()

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if not data:
            return self._put_empty(path)
        with self._whole(path) as output:
            output.write(data)
            return output.commit()

    def copy_if_absent(self, source: str, target: str) -> bool:
        """Does not start a copy that does not fit, because other writers would fail while it fills the disk."""
        with self.open_input(source) as stream:
            self._check_room(os.fstat(stream.fileno()).st_size, target)
            return self._copy(stream, source, target)

    def _copy(self, stream: BinaryIO, source: str, target: str) -> bool:
        self._check_way(target)
        with self._whole(target) as output:
            shutil.copyfileobj(stream, output, _COPY_BYTES)
            copied, expected = stream.tell(), os.fstat(stream.fileno()).st_size
            if copied != expected:
                raise StorageError(
                    f"{source!r} in {self.root} changed while it was copied: {copied} bytes were read, and it now "
                    f"has {expected}; {target!r} was not written"
                )
            return output.commit()

    def link_if_absent(self, source: str, target: str, *, is_symbolic: bool) -> bool:
        checked_path(source)
        with self._answering("link to", source):
            content = self._regular_file(source)
        checked_path(target)
        with self._answering("write", target), self._directories.parent(target, creates=True) as (directory_fd, name):
            if not prepare_new(directory_fd, name):
                return False
            try:
                if is_symbolic:
                    text = posixpath.relpath(f"/{content}", f"/{posixpath.dirname(target)}")
                    os.symlink(text, name, dir_fd=directory_fd)
                else:
                    with self._directories.parent(content) as (source_directory_fd, source_name):
                        os.link(
                            source_name,
                            name,
                            src_dir_fd=source_directory_fd,
                            dst_dir_fd=directory_fd,
                            follow_symlinks=False,
                        )
            except FileExistsError:
                return False
            os.fsync(directory_fd)
            return True

    def delete(self, path: str) -> bool:
        checked_path(path)
        with self._answering("delete", path):
            try:
                with self._directories.parent(path) as (directory_fd, name):
                    if stat.S_ISDIR(os.stat(name, dir_fd=directory_fd, follow_symlinks=False).st_mode):
                        with self._directories.opened(path) as content:
                            remove_content(content)
                        os.rmdir(name, dir_fd=directory_fd)
                    else:
                        remove_side_file(directory_fd, name)
                        os.unlink(name, dir_fd=directory_fd)
                    os.fsync(directory_fd)
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def _check_room(self, size: int, target: str) -> None:
        """Raises StorageError if the disk reports too little space for a copy of this size."""
        with self._answering("write", target):
            disk = os.statvfs(self._root)
            free = disk.f_bavail * disk.f_frsize
            if disk.f_blocks and size > free:  # some file systems don't report their size
                raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {size} bytes to copy, {free} are free")

    def _check_way(self, path: str) -> None:
        """Reports links on the path before much is written. A missing directory is created at the end."""
        checked_path(path)
        with (
            self._answering("write", path),
            suppress(FileNotFoundError, NotADirectoryError),
            self._directories.parent(path),
        ):
            pass

    def _put_empty(self, path: str) -> bool:
        """An empty file is complete as soon as it has its name, so it needs no temporary name."""
        checked_path(path)
        with self._answering("write", path), self._directories.parent(path, creates=True) as (directory_fd, name):
            return create(directory_fd, name)

    def _begin(self, path: str) -> LocalOutput:
        what = f"cannot write {checked_path(path)!r} in {self.root}"
        return LocalOutput(self._directories, f"{TEMPORARY}/{uuid.uuid4().hex}", path, what)

    @contextmanager
    def _whole(self, path: str) -> Iterator[LocalOutput]:
        """An output that is removed at the end, unless it was published."""
        output = self._begin(path)
        try:
            yield output
        finally:
            output.abort()

    def _followed(self, path: str, use: Callable[[int, str, str], T]) -> T:
        """The result of `use` at the end of all links from a name.

        `use` gets the directory's handle, the name in it, and the path.

        `use` raises OSError(ELOOP) if it finds a link. Raises UnsafePathError if a link leads out of the table.
        """
        at = path
        for _ in range(_LINKS_MAX):
            directory, _, name = at.rpartition("/")  # what `parent` does, without two generators for each read
            directory_fd = self._directories.open(directory)
            try:
                return use(directory_fd, name, at)
            except OSError as failure:
                link = link_text(directory_fd, name)
                if failure.errno != errno.ELOOP or link is None:
                    raise
            finally:
                os.close(directory_fd)
            at = self._directories.target(at, link)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _regular_file(self, path: str) -> str:
        """The path at the end of all links from a name. Raises MissingFileError."""
        try:
            content, status = self._followed(path, lambda directory_fd, name, at: (at, _status(directory_fd, name, at)))
        except (FileNotFoundError, NotADirectoryError) as absent:
            raise MissingFileError(f"there is no file {path!r} in {self.root}") from absent
        if not stat.S_ISREG(status.st_mode):
            raise MissingFileError(f"{path!r} in {self.root} is not a file")
        return content

    def _open_content(self, path: str) -> int:
        try:
            handle = self._followed(path, _open)
        except (FileNotFoundError, NotADirectoryError) as absent:
            raise MissingFileError(f"there is no file {path!r} in {self.root}") from absent
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise MissingFileError(f"{path!r} in {self.root} is not a file")
        return handle

    def _info(self, directory_fd: int, name: str, path: str) -> FileInfo | None:
        """The entry of that name; None if it is absent. A link that dangles or leads outside is an empty file."""
        try:
            status = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        modified_ms, target = status.st_mtime_ns // 1_000_000, None
        if stat.S_ISREG(status.st_mode):
            return FileInfo(path, status.st_size, False, modified_ms)
        if stat.S_ISLNK(status.st_mode):
            link = link_text(directory_fd, name)
            if link is None:
                return None
            target = self._directories.named(path, link) or link
            try:
                status = self._followed(path, _status)
            except (OSError, UnsafePathError):
                return FileInfo(path, 0, False, modified_ms, target)
        is_directory = stat.S_ISDIR(status.st_mode)
        return FileInfo(path, 0 if is_directory else status.st_size, is_directory, modified_ms, target)

    def _answering(self, verb: str, path: str) -> AbstractContextManager[None]:
        return answering(f"cannot {verb} {path!r} in {self.root}")


def _is_hidden(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(_TEMPORARY_NAME):
        return True
    return is_side_file(entry.name) and not entry.is_dir(follow_symlinks=False)


def _range(handle: int, offset: int, length: int) -> bytes:
    """The bytes of the range; fewer if the file ends before."""
    parts = [os.pread(handle, length, offset)]
    while parts[-1] and (missing := length - sum(map(len, parts))):  # the system reads at most 2 GiB at once
        parts.append(os.pread(handle, missing, offset + length - missing))
    return b"".join(parts)


def _open(directory_fd: int, name: str, _: str) -> int:
    # O_NONBLOCK, so that a pipe in place of the file cannot block forever.
    return os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory_fd)


def _status(directory_fd: int, name: str, _: str) -> os.stat_result:
    status = os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return status
