"""The valid paths, partitions, and instants of a table: the only rule for untrusted strings.

    path := part ("/" part)*          part := any string but "", "." and "..", without "/" or NUL

The first part must not look like a scheme (`s3:`); `ts=10:30` does not. A part may contain everything else, as in
partition values: `=`, `%`, spaces, any letter. A backslash is a character like any other, as in Hudi, but a path must
also be valid if a storage took it for a slash. A partition is the root, "", or a path with no part `.hoodie`: no
listing of data reads below that, neither eventide's nor Hudi's.

This rule does not check where links lead. Only the storage that follows them knows.
"""

import re

HOODIE_DIRECTORY = ".hoodie"
PARTITION_MARK = ".hoodie_partition_metadata"
"""The file by which Hudi knows a directory as a partition."""
METADATA_DIRECTORY = f"{HOODIE_DIRECTORY}/metadata"  # the metadata table, itself a table
INDEX_DEFINITIONS = f"{HOODIE_DIRECTORY}/.index_defs/index.json"

_SEPARATOR = re.compile(r"[/\\]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

# No file name can contain these. Python uses the others, U+DC80 to U+DCFF, for bytes of a name that are not UTF-8.
_LONE_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def why_unsafe(path: str) -> str | None:
    """Why a string is not a path below the table's root, in words that follow "the path"; None if it is valid."""
    if path.startswith(("/", "\\")):
        return "is absolute"
    if "\0" in path:
        return "contains a NUL character"
    if _LONE_SURROGATE.search(path):
        return "contains half a character"
    if _SCHEME.match(path):
        return "begins with a scheme"
    parts = _SEPARATOR.split(path)
    if "" in parts:
        return "has an empty part"
    if "." in parts or ".." in parts:
        return "has a part that is `.` or `..`"
    return None


def why_no_partition(path: str) -> str | None:
    """Why a string is not the path of a partition, in the form of `why_unsafe`."""
    if path == "":
        return None
    return why_unsafe(path) or (
        f"has a part {HOODIE_DIRECTORY}" if HOODIE_DIRECTORY in _SEPARATOR.split(path) else None
    )
