"""The directories of a listing in which a table may have partitions."""

from collections.abc import Iterable, Iterator

from eventide_core.access.files import info_of_file
from eventide_core.errors import UnsafePathError
from eventide_core.ports import FileInfo, Storage
from eventide_core.table.files.file_name import path_in
from eventide_core.table.files.table_path import HOODIE_DIRECTORY, why_unsafe
from eventide_core.table.settings.properties import PROPERTIES_PATH


def is_another_table(storage: Storage, directory: str, entries: Iterable[FileInfo]) -> bool:
    """Whether a directory below the table's root is the root of another one, of which nothing belongs to this table."""
    if directory == "" or path_in(directory, HOODIE_DIRECTORY) not in {e.path for e in entries if e.is_directory}:
        return False
    return info_of_file(storage, path_in(directory, PROPERTIES_PATH)) is not None


def directories_of_data(root: str, entries: Iterable[FileInfo]) -> Iterator[str]:
    """The paths of these entries that may hold partitions: directories, but no links, nor `.hoodie`.

    Raises UnsafePathError for one that no path of a table can name: its rows, if it has any, must not be left out.
    """
    for entry in entries:
        if not entry.is_directory or entry.link_target is not None:
            continue
        if entry.path.rpartition("/")[2] == HOODIE_DIRECTORY:
            continue
        if (reason := why_unsafe(entry.path)) is not None:
            raise UnsafePathError(
                f"{root} has a directory {entry.path!r}, and that path {reason}, so eventide reads no partition there: "
                "move it out of the table, unless a writer of the table has made it"
            )
        yield entry.path
