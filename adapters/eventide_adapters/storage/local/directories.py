"""The directories of a table on a local disk, reached from its root one after another, and never through a link.

Each directory is opened relative to the handle of its parent, and refused if it is a link. Operations on a name in it
use its handle, so nobody can put a link on the path between a check and its use.

The root is the user's choice: links that lead to it are followed.
"""

import errno
import os
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from eventide_core.errors import UnsafePathError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# Linux' PATH_MAX without its NUL. Software that uses whole paths, such as every other reader, cannot open deeper files.
_PATH_BYTES_MAX = 4095


@dataclass(frozen=True, slots=True)
class LocalDirectories:
    """The directories below `root`, an absolute path.

    Failures except UnsafePathError are the operating system's.
    """

    root: str

    def open(self, path: str, *, creates: bool = False) -> int:
        """A handle of the directory, "" for the root, which the caller closes.

        `creates`: creates it and its parents, each synced into its parent.
        """
        handle = self._open_root(creates=creates)
        passed = ""
        for name in path.split("/") if path else ():
            passed = f"{passed}/{name}" if passed else name
            try:
                below = self._open_below(handle, name, passed, creates=creates)
            finally:
                os.close(handle)
            handle = below
        return handle

    @contextmanager
    def opened(self, path: str, *, creates: bool = False) -> Iterator[int]:
        """A handle of the directory, closed at the end of the block."""
        handle = self.open(path, creates=creates)
        try:
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def parent(self, path: str, *, creates: bool = False) -> Iterator[tuple[int, str]]:
        """A handle of the directory that contains a name, and the name in it."""
        if creates and len(os.fsencode(f"{self.root}/{path}")) > _PATH_BYTES_MAX:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        directory, name = posixpath.split(path)
        with self.opened(directory, creates=creates) as handle:
            yield handle, name

    def target(self, path: str, link: str) -> str:
        """The target of the link of that name, judged by its text. Raises UnsafePathError if it is not in the table."""
        inside = self.named(path, link)
        if inside is None:
            raise UnsafePathError(
                f"{path!r} points to {link!r}, which is outside {self.root!r}: remove the link, or open the table there"
            )
        return inside

    def named(self, path: str, link: str) -> str | None:
        """The path that the text of a link names; None if it is not below the root."""
        real = os.path.realpath(self.root)
        named = os.path.normpath(os.path.join(real, posixpath.dirname(path), link))
        for root in (real, self.root):
            if named != root and os.path.commonpath((root, named)) == root:
                return os.path.relpath(named, root)
        return None

    def _open_root(self, *, creates: bool) -> int:
        try:
            return os.open(self.root, _DIRECTORY)
        except FileNotFoundError:
            if not creates:
                raise
        _make_root(self.root)
        return os.open(self.root, _DIRECTORY)

    def _open_below(self, handle: int, name: str, path: str, *, creates: bool) -> int:
        try:
            return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
        except FileNotFoundError:
            if not creates:
                raise
            _make(name, handle)
            return self._open_below(handle, name, path, creates=False)
        except OSError as failure:
            link = link_text(handle, name)
            if link is None:
                raise
            inside = self.named(path, link)
            where = f"outside {self.root!r}" if inside is None else "another place of the table"
            raise UnsafePathError(
                f"the directory {path!r} is a link to {link!r}, {where}: remove the link, or open the table there"
            ) from failure


def link_text(handle: int, name: str) -> str | None:
    """The target of a symbolic link; None for anything else, and for a missing name."""
    with suppress(OSError):
        return os.readlink(name, dir_fd=handle)
    return None


def _make_root(root: str) -> None:
    """Creates the table's directory and its parents, each synced into its parent."""
    if os.path.isdir(root):
        return
    parent = os.path.dirname(root)
    _make_root(parent)
    handle = os.open(parent, _DIRECTORY)
    try:
        _make(os.path.basename(root), handle)
    finally:
        os.close(handle)


def _make(name: str, handle: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=handle)
        os.fsync(handle)
