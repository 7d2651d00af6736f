"""Which names may reach a storage: the one place where a path that was read from a table is checked.

    path := part ("/" part)*          part := any text but "", "." and "..", without "/", "\\" or NUL

The first part may not look like a scheme (`s3:`); `ts=10:30` does not. Everything else may stand in a part,
as in partition values: `=`, `%`, spaces, any letter.

Not checked: where links lead. That is known only to the storage that follows them.
"""

import re
from functools import lru_cache

from eventide_core.errors import UnsafePathError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

# No file name can hold these. Python gives the rest, U+DC80 to U+DCFF, to bytes of a name that are not UTF-8.
_LONE_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


@lru_cache(maxsize=1 << 14)  # the same few paths are asked for again and again
def checked_path(path: str) -> str:
    """The path itself, when it names something below the table's root. Raises UnsafePathError."""
    if (reason := _why_unsafe(path)) is not None:
        raise UnsafePathError(f"path {path!r} {reason}: a path in a table is relative to its root and stays below it")
    return path


def checked_directory(path: str) -> str:
    """The path itself, when it names the table's root ("") or something below it. Raises UnsafePathError."""
    return path if path == "" else checked_path(path)


def _why_unsafe(path: str) -> str | None:
    if path.startswith("/"):
        return "is absolute"
    if "\0" in path:
        return "holds a NUL character"
    if _LONE_SURROGATE.search(path):
        return "holds half a character"
    if "\\" in path:
        return "holds a back-slash"
    if _SCHEME.match(path):
        return "begins with a scheme"
    parts = path.split("/")
    if "" in parts:
        return "has an empty part"
    if "." in parts or ".." in parts:
        return "has a part that is `.` or `..`"
    return None
