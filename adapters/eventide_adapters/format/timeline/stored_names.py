"""Checks the untrusted names in plans and metadata on the timeline before anything uses them.

Only the last part of a path, the name, is used; the partition is in a separate field. A name must name a base or log
file, and in a compaction plan of its operation's own file group. A partition must be below the table's root and not in
`.hoodie`. An action to undo must have the time of an instant.
"""

from collections.abc import Callable, Iterable

from eventide_adapters.format.timeline.document import Document
from eventide_core.errors import UnsafePathError
from eventide_core.table.files.file_name import BaseFileName, LogFileName, is_data_file, path_in
from eventide_core.table.files.table_path import why_no_partition, why_unsafe

_NAME_BYTES_MAX = 255  # the limit of HDFS and of disks; Hudi's names have about a hundred


def checked_partition(partition: str, place: str) -> str:
    """Returns the partition unchanged if it is below the table's root. Raises UnsafePathError."""
    reason = why_no_partition(partition)
    if reason is not None:
        raise UnsafePathError(
            f"timeline file {place}: partition {partition[:200]!r} {reason}: it leads outside the table, or "
            "to none of its data; don't use this file, and find out what wrote it"
        )
    return partition


def name_in(path: str) -> str:
    return path.rpartition("/")[2]


def data_file_names(paths: Iterable[str], place: str) -> tuple[str, ...]:
    """The names in these paths. Raises UnsafePathError for one that is not of a base or log file."""
    names = tuple(map(name_in, paths))
    for name in names:
        if not is_data_file(name) or not _can_be(name):
            raise UnsafePathError(
                f"timeline file {place} names {name[:80]!r}, which is neither a base file nor a log file"
            )
    return names


def file_group(operation: Document) -> tuple[str, str]:
    """The partition and file id of an operation. Raises UnsafePathError for a partition outside the table."""
    partition = checked_partition(operation.text("partitionPath") or "", operation.path)
    return partition, operation.required_text("fileId")


def merged_paths(operation: Document) -> tuple[str | None, tuple[str, ...]]:
    """The paths of the base, if there is one, and of the log files that an operation merges. Raises UnsafePathError."""
    partition, file_id = file_group(operation)

    def path(text: str, parse: Callable[[str], BaseFileName | LogFileName | None]) -> str:
        # Earlier versions of Hudi's plans contain paths, of which only the name counts.
        return path_in(partition, own_name(name_in(text), parse, file_id, operation.path))

    base = operation.text("dataFilePath")
    logs = tuple(path(text, LogFileName.parse) for text in operation.texts("deltaFilePaths"))
    return path(base, BaseFileName.parse) if base else None, logs


def own_name(
    name: str,
    parse: Callable[[str], BaseFileName | LogFileName | None],
    file_id: str,
    path: str,
    instant: str | None = None,
) -> str:
    """The name, if it is a file of this file group and, if an instant is given, of this instant."""
    parsed = parse(name)
    if parsed is None or parsed.file_id != file_id or instant not in (None, parsed.instant) or not _can_be(name):
        of_instant = "" if instant is None else f" and instant {instant}"
        raise UnsafePathError(
            f"timeline file {path}: {name[:200]!r} is not a file of file id {file_id[:80]!r}{of_instant}; do "
            "not run this plan, roll it back"
        )
    return name


def _can_be(name: str) -> bool:
    """Whether a storage can have a file of that name."""
    return why_unsafe(name) is None and len(name.encode(errors="replace")) <= _NAME_BYTES_MAX
