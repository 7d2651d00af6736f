"""The names in a compaction plan, which nobody trusts: each must be a base or log file of its operation's own file group, in
a partition below the table's root."""

import re
from collections.abc import Callable

from eventide_adapters.format.document import Document
from eventide_core.errors import UnsafePathError
from eventide_core.table.file_name import BaseFileName, LogFileName, path_in

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def file_group(operation: Document) -> tuple[str, str]:
    """The partition and file id of an operation. Raises UnsafePathError for a partition outside the table."""
    partition = operation.text("partitionPath") or ""
    parts = partition.split("/") if partition else []
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts) or _SCHEME.match(partition):
        raise UnsafePathError(
            f"timeline file {operation.path}: partition {partition[:200]!r} would lead outside the table; "
            "do not run this plan, roll it back"
        )
    return partition, operation.required_text("fileId")


def merged_paths(operation: Document) -> tuple[str, ...]:
    partition, file_id = file_group(operation)
    base = operation.text("dataFilePath")
    # Earlier versions of Hudi's plans hold paths; of these the name is what counts.
    names = [path.rpartition("/")[2] for path in (*operation.texts("deltaFilePaths"), *((base,) if base else ()))]
    for name in names:
        parse = LogFileName.parse if name.startswith(".") else BaseFileName.parse
        own_name(name, parse, file_id, operation.path)
    return tuple(path_in(partition, name) for name in names)


def own_name(
    name: str,
    parse: Callable[[str], BaseFileName | LogFileName | None],
    file_id: str,
    path: str,
    instant: str | None = None,
) -> str:
    """The name, if it is a file of this file group, and of this instant where one is given."""
    parsed = parse(name)
    if parsed is None or parsed.file_id != file_id or instant not in (None, parsed.instant):
        of_instant = "" if instant is None else f" and instant {instant}"
        raise UnsafePathError(
            f"timeline file {path}: {name[:200]!r} is no file of file id {file_id[:80]!r}{of_instant}; "
            "do not run this plan, roll it back"
        )
    return name
