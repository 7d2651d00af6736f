"""Limits of what a few bytes may make a reader load into memory.

    inflated    16 MiB, or 100 times what exists: Hudi's own gzip reaches 20 on names of files, and 1,000 on bloom
                filters that are nearly empty, which are smaller
    rows        100 a byte of a Parquet file: the record keys alone, no two alike, take more than a hundredth of a byte each;
                1 a byte of an archived timeline, whose rows are instants with all that is known of them
    Parquet     a column of a row group that is inflated to more than 1 GiB, and by more than 100 times

Lengths are checked before memory is allocated for them.

Not checked: the sizes that the header of a Parquet page says, up to 2 GiB, for which Arrow takes memory that it does not
touch; and a text of a dictionary that many rows point to. There the process' own limit counts (`ulimit -v`, or
`spark.executor.pyspark.memory`): what goes beyond it is answered with the same error.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow.parquet as pq

from eventide_core.errors import ResourceLimitError

_RATIO_MAX: Final = 100
_INFLATED_ALWAYS_BYTES: Final = 16 * 1024 * 1024
_COLUMN_ALWAYS_BYTES: Final = 1024**3
RECORDS_A_BYTE_MAX: Final = 100
INSTANTS_A_BYTE_MAX: Final = 1


def inflated_bytes_max(size: int) -> int:
    """The greatest size to which compressed bytes may inflate."""
    return max(_INFLATED_ALWAYS_BYTES, _RATIO_MAX * size)


def check_parquet(
    metadata: pq.FileMetaData, size: int, place: str, *, rows_a_byte_max: int = RECORDS_A_BYTE_MAX
) -> None:
    """Raises ResourceLimitError for a Parquet file of `size` bytes that states more than Hudi's files can hold."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows = max(metadata.num_rows, sum(group.num_rows for group in groups))
    if rows > rows_a_byte_max * size:
        raise ResourceLimitError(
            f"{place} states that its {size} bytes hold {rows} rows, which is impossible: restore it from a "
            "copy, or roll back its write"
        )
    for group in groups:
        for column in (group.column(number) for number in range(group.num_columns)):
            inflated, stored = column.total_uncompressed_size, column.total_compressed_size
            if inflated > max(_COLUMN_ALWAYS_BYTES, _RATIO_MAX * stored):
                raise ResourceLimitError(
                    f"{place} states that column {column.path_in_schema} inflates from {stored} bytes to {inflated}: "
                    "restore it from a copy, or roll back its write"
                )


@contextmanager
def within_memory(place: str) -> Iterator[None]:
    """Turns a lack of memory into ResourceLimitError."""
    try:
        yield
    except ResourceLimitError:
        raise
    except MemoryError as error:
        raise ResourceLimitError(
            f"{place} takes more memory to read than the process has ({error}): find out what wrote it, or "
            "provide more memory"
        ) from error
