"""Whether a write's partitions have the form of the table's.

Hudi can store the day `2026-01-05` in the directories `2026/01/05`. The settings decide (`KeyFormat.slashes`), unless a
version of Hudi wrote them that does not. Then nothing does but the directories, and a key written to both would be there
twice.
"""

import re
from collections.abc import Collection, Iterable
from typing import Final

from eventide_core.errors import UnsupportedTableError
from eventide_core.table.files.file_name import path_in
from eventide_core.table.files.table_path import PARTITION_MARK

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SLASHED_DAY: Final = re.compile(r"\d{4}/\d{2}/\d{2}", re.ASCII)


def partition_mark(partition: str, instant: str) -> tuple[str, bytes]:
    """The path and the content of the file by which Hudi knows a partition, made by the write at that instant."""
    depth = len(partition.split("/")) if partition else 0
    text = f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n"
    return path_in(partition, PARTITION_MARK), text.encode()


def check_partition_forms(written: Iterable[str], known: Collection[str]) -> None:
    """Raises UnsupportedTableError for a new partition that is a day, in a table with days in directories of slashes."""
    new = next((path for path in sorted(set(written).difference(known)) if _DAY.fullmatch(path)), None)
    slashed = None if new is None else next((path for path in sorted(known) if _SLASHED_DAY.fullmatch(path)), None)
    if slashed is not None:
        raise UnsupportedTableError(
            f"the write would make the partition {new!r} in a table with partitions such as {slashed!r}: Hudi writes days "
            "so by hoodie.datasource.write.slash.separated.date.partitioning, which the settings of this table don't "
            "record; write to the table with Hudi"
        )
