"""What may reach a storage: the one place where a path that was read from a table is checked, and how much is read at once.

What a path is, `table_path` says. Where links lead is known only to the storage that follows them.
"""

from functools import lru_cache

from eventide_core.errors import ResourceLimitError, UnsafePathError
from eventide_core.ports import WHOLE_FILE_BYTES_MAX
from eventide_core.table.table_path import why_unsafe


@lru_cache(maxsize=1 << 14)  # the same few paths are requested again and again
def checked_path(path: str) -> str:
    """The path itself, when it names something below the table's root. Raises UnsafePathError."""
    if (reason := why_unsafe(path)) is not None:
        raise UnsafePathError(f"path {path!r} {reason}: a path in a table is relative to its root and stays below it")
    return path


def checked_directory(path: str) -> str:
    """The path itself, when it names the table's root ("") or something below it. Raises UnsafePathError."""
    return path if path == "" else checked_path(path)


def check_whole(size: int, path: str, root: str) -> None:
    """Raises ResourceLimitError if so many bytes are more than a file has that is read whole."""
    if size > WHOLE_FILE_BYTES_MAX:
        raise ResourceLimitError(
            f"{path!r} in {root} has more than {WHOLE_FILE_BYTES_MAX} bytes, the most that eventide reads of "
            "a file as a whole: restore it from a copy, or remove it if it is not a file of the table"
        )
