"""Tables on a POSIX file system.

A new file, whole or not at all, and for one writer only:
1. it is written below TEMPORARY, a folder of the same file system that stock readers and cleaners never look
   into (beside the data its name could be taken for a log's), and synced;
2. a side file `.NAME.crc` that an earlier file of its name left is removed: Hadoop's local file system keeps
   a checksum there, and would refuse the new content by the old sum. A file without one is read unchecked;
3. os.link gives it its name, which fails where the name is taken: that is the race, lost or won;
4. its first name is removed and its folder synced.
`put` renames in place of 3. A crash leaves at most a file below TEMPORARY, which a later writer removes after
a day.

Links are followed by us, never by the opening call, and only to targets below the root.
Not checked: a folder on the way to a file that is replaced by a link between the check and the use.
"""

import io
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from eventide_adapters.storage import local_names
from eventide_adapters.storage.local_streams import LocalInput, LocalOutput, answering
from eventide_adapters.storage.paths import checked_directory, checked_path
from eventide_adapters.storage.whole_file import check_whole
from eventide_core.errors import MissingFileError, StorageError, UnsafePathError
from eventide_core.ports import Capability, FileInfo, OutputFile

TEMPORARY = ".hoodie/.eventide_temp"

# Large enough that a copy spends its time in the disk, small enough to have one a thread.
_COPY_BYTES = 1 << 20


class LocalStorage:
    """ports.Storage over the folder `root`, which is made with the first file."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = os.path.abspath(root)
        self._capabilities: Capability | None = None

    def __reduce__(self) -> tuple[type["LocalStorage"], tuple[str]]:
        return LocalStorage, (self._root,)

    @property
    def root(self) -> str:
        """As Hadoop writes such URIs: nothing in it is escaped."""
        return f"file://{self._root}"

    @property
    def capabilities(self) -> Capability:
        """Tried out at first use, in a folder that is gone again afterwards. NONE on a read-only table."""
        if self._capabilities is None:
            self._capabilities = self._try_out()
        return self._capabilities

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        """Without Hadoop's side files and what is being written: those are the file system's own."""
        checked_directory(directory)
        with self._answering("list", directory):
            try:
                with os.scandir(self._content(directory)) as entries:
                    names = sorted(entry.name for entry in entries if not _is_hidden(entry))
            except (FileNotFoundError, NotADirectoryError):
                return ()
            infos = (self._info(f"{directory}/{name}" if directory else name) for name in names)
            return tuple(info for info in infos if info is not None)

    def stat(self, path: str) -> FileInfo | None:
        checked_directory(path)
        with self._answering("look at", path):
            info = self._info(path)
            if info is None or (info.link_target is not None and not os.path.exists(self._content(path))):
                return None
            return info

    def read(self, path: str) -> bytes:
        with self.open_input(path) as stream:
            check_whole(stream.seek(0, io.SEEK_END), path, self.root)
            stream.seek(0)
            return stream.read()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with self.open_input(path) as stream:
            stream.seek(offset)
            return stream.read(length)

    def open_input(self, path: str) -> BinaryIO:
        checked_path(path)
        with self._answering("read", path):
            return io.BufferedReader(LocalInput(self._open_content(path), f"cannot read {path!r} in {self.root}"))

    def open_output(self, path: str) -> OutputFile:
        return self._begin(path)

    def put(self, path: str, data: bytes) -> None:
        with self._whole(path) as output:
            output.write(data)
            output.replace()

    def put_if_absent(self, path: str, data: bytes) -> bool:
        with self._whole(path) as output:
            output.write(data)
            return output.commit()

    def copy_if_absent(self, source: str, target: str) -> bool:
        with self.open_input(source) as stream, self._whole(target) as output:
            shutil.copyfileobj(stream, output, _COPY_BYTES)
            copied, expected = stream.tell(), os.fstat(stream.fileno()).st_size
            if copied != expected:
                raise StorageError(
                    f"{source!r} in {self.root} changed while it was copied: {copied} bytes were read "
                    f"and it has {expected} now; {target!r} was not written"
                )
            return output.commit()

    def link_if_absent(self, source: str, target: str, *, is_symbolic: bool) -> bool:
        checked_path(source)
        with self._answering("link to", source):
            content = self._content(source)
            if not os.path.isfile(content):
                raise MissingFileError(f"there is no file {source!r} in {self.root}")
        with self._answering("write", target):
            entry = self._entry(target)
            if not local_names.prepare_new(entry):
                return False
            try:
                if is_symbolic:
                    os.symlink(os.path.relpath(content, os.path.dirname(entry)), entry)
                else:
                    os.link(content, entry)
            except FileExistsError:
                return False
            local_names.sync_directory(os.path.dirname(entry))
            return True

    def delete(self, path: str) -> bool:
        checked_path(path)
        with self._answering("delete", path):
            entry = self._entry(path)
            try:
                if stat.S_ISDIR(os.lstat(entry).st_mode):
                    local_names.remove_directory(entry)
                else:
                    local_names.remove_side_file(entry)
                    os.unlink(entry)
            except (FileNotFoundError, NotADirectoryError):
                return False
            local_names.sync_directory(os.path.dirname(entry))
            return True

    def _try_out(self) -> Capability:
        found = Capability.NONE
        with suppress(OSError):
            parent = os.path.dirname(self._entry(TEMPORARY))
            os.makedirs(parent, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=parent, prefix=os.path.basename(TEMPORARY)) as folder:
                file = os.path.join(folder, "file")
                with open(file, "xb"):
                    pass
                with suppress(OSError):
                    os.link(file, os.path.join(folder, "hard"))
                    found |= Capability.HARDLINK | Capability.PUT_IF_ABSENT | Capability.SERVER_COPY
                with suppress(OSError):
                    os.symlink("file", os.path.join(folder, "symbolic"))
                    found |= Capability.SYMLINK
        return found

    def _begin(self, path: str) -> LocalOutput:
        entry = self._entry(path)
        written = self._entry(f"{TEMPORARY}/{uuid.uuid4().hex}")
        return LocalOutput(written, entry, f"cannot write {path!r} in {self.root}")

    @contextmanager
    def _whole(self, path: str) -> Iterator[LocalOutput]:
        """An output that is gone at the end, unless it was published."""
        output = self._begin(path)
        try:
            yield output
        finally:
            output.abort()

    def _entry(self, path: str) -> str:
        """Where the name itself lies, in a folder that was seen to lie below the root."""
        folder, name = os.path.split(os.path.join(self._root, checked_path(path)))
        return os.path.join(self._inside(os.path.realpath(folder), path), name)

    def _content(self, path: str) -> str:
        """Where all links from that name lead. Raises UnsafePathError when that is not below the root."""
        return self._inside(os.path.realpath(os.path.join(self._root, path)), path)

    def _inside(self, real: str, path: str) -> str:
        if not self._is_inside(real):
            raise UnsafePathError(
                f"{path!r} leads to {real!r}, which is outside {self.root}: remove the link, or open the table there"
            )
        return real

    def _is_inside(self, real: str) -> bool:
        root = os.path.realpath(self._root)
        return os.path.commonpath((root, real)) == root

    def _open_content(self, path: str) -> int:
        # O_NONBLOCK, lest a pipe that somebody put there would hold us for ever.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            handle = os.open(self._content(path), flags)
        except (FileNotFoundError, NotADirectoryError) as absent:
            raise MissingFileError(f"there is no file {path!r} in {self.root}") from absent
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise MissingFileError(f"{path!r} in {self.root} is not a file")
        return handle

    def _info(self, path: str) -> FileInfo | None:
        """The entry of that name; a link that dangles or leads outside is an empty file. None: absent."""
        entry = self._entry(path) if path else os.path.realpath(self._root)
        try:
            status = os.lstat(entry)
            link = os.readlink(entry) if stat.S_ISLNK(status.st_mode) else None
        except (FileNotFoundError, NotADirectoryError):
            return None
        modified_ms = status.st_mtime_ns // 1_000_000
        target_of_link = None
        if link is not None:
            content = os.path.realpath(entry)
            named = os.path.normpath(os.path.join(os.path.dirname(entry), link))
            root = os.path.realpath(self._root)
            target_of_link = os.path.relpath(named, root) if self._is_inside(named) else link
            if not self._is_inside(content) or not os.path.exists(content):
                return FileInfo(path, 0, False, modified_ms, target_of_link)
            status = os.stat(content)
        is_directory = stat.S_ISDIR(status.st_mode)
        return FileInfo(path, 0 if is_directory else status.st_size, is_directory, modified_ms, target_of_link)

    @contextmanager
    def _answering(self, verb: str, path: str) -> Iterator[None]:
        with answering(f"cannot {verb} {path!r} in {self.root}"):
            yield


def _is_hidden(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(os.path.basename(TEMPORARY)):
        return True
    return local_names.is_side_file(entry.name) and not entry.is_dir(follow_symlinks=False)
