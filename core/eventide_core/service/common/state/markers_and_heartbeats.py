"""What a write keeps beside its data files: a heartbeat while it runs, and the markers of its files.

.hoodie/.heartbeat/<instant>                                  renewed by its modification time; lazy writers alone
.hoodie/.temp/<instant>/<partition>/<file>.marker.<kind>      a marker a file
.hoodie/.temp/<instant>/MARKERS<n>                            many in one file, `<partition>/<file>.marker.<kind>` a line
.hoodie/.temp/<instant>.staging/<file>                        what tasks of eventide leave for later tasks of a large write
"""

from collections.abc import Iterator

from eventide_core.access.files import discard, remove_tree
from eventide_core.ports import Storage
from eventide_core.table.files.file_group_write import (
    HEARTBEATS,
    MARKERS,
    STAGING,
    heartbeat_path,
    marker_directory,
    staging_directory,
)

_MARKER = ".marker."
_MARKERS_FILE = "MARKERS"


def marked_paths(storage: Storage, instant: str) -> frozenset[str]:
    """The files that the write's markers name, relative to the table's root; some may never have been made."""
    directory = marker_directory(instant)
    paths: set[str] = set()
    for path in _files_below(storage, directory):
        name = path.rpartition("/")[2]
        if name.startswith(_MARKERS_FILE):
            lines = storage.read(path).decode(errors="replace").splitlines()
            paths.update(line.strip().rpartition(_MARKER)[0] for line in lines if _MARKER in line)
        elif _MARKER in name:
            paths.add(path.removeprefix(f"{directory}/").rpartition(_MARKER)[0])
    return frozenset(paths)


def instants_with_markers_or_heartbeat(storage: Storage) -> frozenset[str]:
    """The instants that have a marker, a staged file, or a heartbeat."""
    names = {entry.path.rpartition("/")[2] for directory in (MARKERS, HEARTBEATS) for entry in storage.list(directory)}
    return frozenset(name for name in (name.removesuffix(STAGING) for name in names) if name.isdigit())


def remove_markers_and_heartbeat(storage: Storage, instant: str) -> None:
    """Removes the markers and the staged files, then the heartbeat."""
    remove_tree(storage, marker_directory(instant))
    remove_tree(storage, staging_directory(instant))
    discard(storage, heartbeat_path(instant))


def _files_below(storage: Storage, directory: str) -> Iterator[str]:
    for entry in storage.list(directory):
        if entry.is_directory and entry.link_target is None:
            yield from _files_below(storage, entry.path)
        else:
            yield entry.path
