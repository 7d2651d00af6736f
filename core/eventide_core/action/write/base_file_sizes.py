"""Assigns the new keys of a partition to file groups if an index finds keys only in base files: Hudi's rule.

1. The smallest base files below a size, a few of them, are filled up: the group gets a new base file, the old rows and the
   new ones. Only slices that have no log files, as theirs would have to be merged with the base, and that no plan has
   taken.
2. What doesn't fit there goes to new file groups, each as large as a base file may be, or with the number of records that
   the user sets (`hoodie.copyonwrite.insert.split.size`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eventide_core.table.files.file_slice import FileSlice


@dataclass(frozen=True, slots=True)
class BaseFileSizes:
    """How large base files are to be. Sizes in bytes.

    `bytes_max` is what a new base file is planned for, `small_bytes` the size below which one is small. `small_files_max` is
    the number of small files of a partition that one write fills up; 0 for none. `record_bytes` is what a record is taken to
    need, by earlier commits. `new_group_rows` is the number of records in a new file group; None for as many as fit.
    """

    bytes_max: int
    small_bytes: int
    small_files_max: int
    record_bytes: float
    new_group_rows: int | None = None

    def rows_in(self, size_bytes: int) -> int:
        """The number of records in that many bytes."""
        return int(size_bytes / self.record_bytes)


@dataclass(frozen=True, slots=True)
class Filling:
    """The number of new records (`rows`) that go to a file group: an existing slice, or (None) a new one."""

    file_slice: FileSlice | None
    rows: int


def fill(rows: int, slices: Iterable[FileSlice], sizes: BaseFileSizes) -> Sequence[Filling]:
    """Distributes new records over `slices`, which may all be filled up, and over new file groups."""
    fillings: list[Filling] = []
    for file_slice, size in _small_files(slices, sizes)[: sizes.small_files_max]:
        taken = min(rows, sizes.rows_in(sizes.bytes_max - size))
        if taken > 0:
            fillings.append(Filling(file_slice, taken))
            rows -= taken
    if rows > 0:
        rows_max = sizes.rows_in(sizes.bytes_max) if sizes.new_group_rows is None else sizes.new_group_rows
        groups = -(-rows // max(1, rows_max))
        fillings += [Filling(None, -(-rows // groups))] * groups
    return fillings


def _small_files(slices: Iterable[FileSlice], sizes: BaseFileSizes) -> list[tuple[FileSlice, int]]:
    """The smallest first."""
    small = [
        (file_slice, file_slice.base_file.size)
        for file_slice in slices
        if file_slice.base_file is not None
        and not file_slice.log_files
        and file_slice.base_file.size < sizes.small_bytes
    ]
    return sorted(small, key=lambda pair: (pair[1], pair[0].file_id))
