"""Limits what reaches a storage: checks every path that was read from a table, and how much is read at once.

`table_path` defines valid paths. Only a storage that follows links knows their targets.
"""

from functools import lru_cache
from typing import Final

from eventide_core.errors import ResourceLimitError, UnsafePathError
from eventide_core.ports import WHOLE_FILE_BYTES_MAX
from eventide_core.table.files.table_path import why_unsafe

TEMPORARY: Final = ".hoodie/.eventide_temp"
"""The directory of files that are being written and of trials. Stock readers and cleaners never read it."""


@lru_cache(maxsize=1 << 14)  # the same few paths are requested again and again
def checked_path(path: str) -> str:
    """The path, if it names something below the table's root. Raises UnsafePathError otherwise."""
    if (reason := why_unsafe(path)) is not None:
        raise UnsafePathError(f"path {path!r} {reason}: a path in a table is relative to its root and stays below it")
    return path


def checked_directory(path: str) -> str:
    """The path, if it names the table's root ("") or something below it. Raises UnsafePathError otherwise."""
    return path if path == "" else checked_path(path)


def check_whole(size: int, path: str, root: str) -> None:
    """Raises ResourceLimitError if the file is too large to be read as a whole."""
    if size > WHOLE_FILE_BYTES_MAX:
        raise ResourceLimitError(
            f"{path!r} in {root} has more than {WHOLE_FILE_BYTES_MAX} bytes, the most that eventide reads of "
            "a file as a whole: restore it from a copy, or remove it if it is not a file of the table"
        )
