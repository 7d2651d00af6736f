"""Names in one local directory: publishes and removes them, and keeps Hadoop's side files correct.

A directory is a handle from directories.py. Failures are the operating system's.
"""

import errno
import os
import re
import time
from contextlib import suppress

# A writer that has not written to its file for this time is dead.
ABANDONED_AFTER_SECONDS = 24 * 60 * 60

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_SIDE_FILE = re.compile(r"\..+\.crc", re.DOTALL)


def publish(written_in: int, written: str, directory_fd: int, name: str) -> bool:
    """Gives a written file its second name. Returns False if the name is taken."""
    if not prepare_new(directory_fd, name):
        return False
    try:
        os.link(written, name, src_dir_fd=written_in, dst_dir_fd=directory_fd, follow_symlinks=False)
    except FileExistsError:
        return False
    os.fsync(directory_fd)
    return True


def create(directory_fd: int, name: str) -> bool:
    """Creates an empty file. Returns False if the name is taken."""
    if not prepare_new(directory_fd, name):
        return False
    try:
        handle = os.open(name, NEW_FILE, 0o666, dir_fd=directory_fd)
    except FileExistsError:
        return False
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    os.fsync(directory_fd)
    return True


def replace(written_in: int, written: str, directory_fd: int, name: str) -> None:
    """Moves a written file over any file of that name."""
    remove_side_file(directory_fd, name)
    os.replace(written, name, src_dir_fd=written_in, dst_dir_fd=directory_fd)
    os.fsync(directory_fd)


def prepare_new(directory_fd: int, name: str) -> bool:
    """Removes Hadoop's checksum of an earlier file. Returns False if the name is taken."""
    try:
        os.stat(name, dir_fd=directory_fd, follow_symlinks=False)
    except FileNotFoundError:
        remove_side_file(directory_fd, name)
        return True
    return False


def remove_content(directory_fd: int) -> None:
    """Removes side files without a file from a directory. Raises OSError if the directory contains anything else."""
    names = os.listdir(directory_fd)
    if not all(is_side_file(name) for name in names):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
    for name in names:
        os.unlink(name, dir_fd=directory_fd)


def remove_side_file(directory_fd: int, name: str) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(f".{name}.crc", dir_fd=directory_fd)


def is_side_file(name: str) -> bool:
    """Whether Hadoop keeps the checksum of another file under this name."""
    return _SIDE_FILE.fullmatch(name) is not None


def remove_abandoned(directory_fd: int) -> None:
    """Removes unfinished files of dead writers from a directory."""
    oldest = time.time() - ABANDONED_AFTER_SECONDS
    with os.scandir(directory_fd) as entries:
        for entry in entries:
            # Another writer may be cleaning the same directory, or finishing its file.
            with suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.name, dir_fd=directory_fd)
