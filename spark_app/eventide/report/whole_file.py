"""Files that appear complete or not at all: each is written under a temporary name in its directory, and then renamed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from eventide_core.errors import ConfigError
from eventide_core.table.files.table_path import HOODIE_DIRECTORY

_OPEN_FILES = ("/proc", "/dev/fd")  # what others have opened, such as /dev/stdout: a rename would take it away
_LINKS_MAX = 40  # as in the kernel


def check_file(path: Path) -> None:
    """Raises ConfigError if `appearing_whole` would. Leaves nothing."""
    _, part, file = _begun(path)
    file.close()
    part.unlink(missing_ok=True)


@contextmanager
def appearing_whole(path: Path) -> Iterator[BinaryIO]:
    """The file to write. A link stays, and leads to the new file.

    Raises ConfigError for a directory, for what a rename would take away, such as a device, for a place inside a Hudi table,
    whose readers would take the file for one of the table's, and if no file can be made.
    """
    place, part, file = _begun(path)
    try:
        with file:
            yield file
        part.replace(place)
    except BaseException:
        with suppress(FileNotFoundError):
            part.unlink()
        raise


def _begun(path: Path) -> tuple[Path, Path, BinaryIO]:
    """The place of the file, and its part, which is open."""
    place = Path(os.path.realpath(path))
    if not path.name or place.is_dir():
        raise ConfigError(f"{str(path)!r} is a directory: name a file in it, such as {str(path / 'report.html')!r}")
    if (place.exists() and not place.is_file()) or _is_open_file(path):
        raise ConfigError(f"{str(path)!r} is a device or a pipe: name a file")
    table = next((parent for parent in place.parents if (parent / HOODIE_DIRECTORY).is_dir()), None)
    if table is not None:
        raise ConfigError(f"file {str(path)!r} would be in the Hudi table {str(table)!r}: name one outside of it")
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        part.unlink(missing_ok=True)  # of a killed process with this number, which a container gives again
        return place, part, part.open("xb")
    except OSError as error:
        raise ConfigError(f"file {str(path)!r} cannot be written: {error.strerror}") from None


def _is_open_file(path: Path) -> bool:
    """Whether the path leads through the open files of a process, which may be ordinary ones."""
    at = path.absolute()
    for _ in range(_LINKS_MAX):
        parents = (at.parent, Path(os.path.realpath(at.parent)))
        if any(parent.is_relative_to(directory) for parent in parents for directory in _OPEN_FILES):
            return True
        if not at.is_symlink():
            return False
        at = at.parent / at.readlink()
    return False
