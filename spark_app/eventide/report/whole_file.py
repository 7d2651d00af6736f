"""Files that appear complete or not at all: each is written under a temporary name in its directory, and then renamed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from eventide_core.errors import ConfigError
from eventide_core.table.files.table_path import HOODIE_DIRECTORY


@contextmanager
def appearing_whole(path: Path) -> Iterator[BinaryIO]:
    """The file to write. A link stays, and leads to the new file.

    Raises ConfigError for a directory, for what a rename would take away, such as a device, for a place inside a Hudi table,
    whose readers would take the file for one of the table's, and if no file can be made.
    """
    place = Path(os.path.realpath(path))
    if not path.name or place.is_dir():
        raise ConfigError(f"{str(path)!r} is a directory: name a file in it, such as {str(path / 'report.html')!r}")
    is_taken = place.exists() and not place.is_file()
    if is_taken or any(path.absolute().is_relative_to(kind) for kind in ("/dev", "/proc")):  # /dev/stdout may be a file
        raise ConfigError(f"{str(path)!r} is a device or a pipe: name a file")
    table = next((parent for parent in place.parents if (parent / HOODIE_DIRECTORY).is_dir()), None)
    if table is not None:
        raise ConfigError(f"file {str(path)!r} would be in the Hudi table {str(table)!r}: name one outside of it")
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        part.unlink(missing_ok=True)  # of a killed process with this number, which a container gives again
        file = part.open("xb")
    except OSError as error:
        raise ConfigError(f"file {str(path)!r} cannot be written: {error.strerror}") from None
    try:
        with file:
            yield file
        part.replace(place)
    except BaseException:
        with suppress(FileNotFoundError):
            part.unlink()
        raise
