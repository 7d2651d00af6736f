"""What a local file system does with names: sync folders, name files, keep Hadoop's side files right.

Every path here is absolute and already known to lie in the table; failures are the operating system's own.
"""

import errno
import os
import re
import time
from contextlib import suppress

# A writer that has not touched its file for so long is dead.
ABANDONED_AFTER_SECONDS = 24 * 60 * 60

_SIDE_FILE = re.compile(r"\..+\.crc", re.DOTALL)


def publish(written: str, entry: str) -> bool:
    """Gives a written file its second name; False where that is taken."""
    if not prepare_new(entry):
        return False
    try:
        os.link(written, entry)
    except FileExistsError:
        return False
    sync_directory(os.path.dirname(entry))
    return True


def replace(written: str, entry: str) -> None:
    """Moves a written file over whatever file has the name."""
    make_directories(os.path.dirname(entry))
    remove_side_file(entry)
    os.replace(written, entry)
    sync_directory(os.path.dirname(entry))


def prepare_new(entry: str) -> bool:
    """Makes the folder, and removes what Hadoop remembers of an earlier file. False: the name is taken."""
    make_directories(os.path.dirname(entry))
    if os.path.lexists(entry):
        return False
    remove_side_file(entry)
    return True


def make_directories(directory: str) -> None:
    """Makes a folder and those above it, each one synced into its parent."""
    if os.path.isdir(directory):
        return
    parent = os.path.dirname(directory)
    make_directories(parent)
    with suppress(FileExistsError):
        os.mkdir(directory)
        sync_directory(parent)


def remove_directory(directory: str) -> None:
    """Removes a folder with no more than side files of files that are gone."""
    names = os.listdir(directory)
    if not all(is_side_file(name) for name in names):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
    for name in names:
        os.unlink(os.path.join(directory, name))
    os.rmdir(directory)


def remove_side_file(entry: str) -> None:
    folder, name = os.path.split(entry)
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(os.path.join(folder, f".{name}.crc"))


def is_side_file(name: str) -> bool:
    """Whether Hadoop keeps the checksum of another file under this name."""
    return _SIDE_FILE.fullmatch(name) is not None


def remove_abandoned(directory: str) -> None:
    """Removes what writers that died had begun there."""
    oldest = time.time() - ABANDONED_AFTER_SECONDS
    with os.scandir(directory) as entries:
        for entry in entries:
            # Another writer may be clearing the same folder, or finishing its file.
            with suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)


def sync_directory(directory: str) -> None:
    """Makes the names in a folder outlive a loss of power."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
