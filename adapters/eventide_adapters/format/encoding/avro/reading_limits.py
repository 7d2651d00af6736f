"""Limits of the memory that a small file can make a reader allocate.

    inflated    16 MiB, or 100 times the compressed size. Hudi's own gzip reaches 20 times on file names, and
                1,000 times on bloom filters that are nearly empty, which are smaller than 16 MiB.
    rows        100 per byte of a Parquet file: the record keys alone, which are distinct, take more than a hundredth of
                a byte each. 1 per byte of an archived timeline, whose rows are instants with all their metadata.
    Parquet     no column of a row group may inflate to more than 1 GiB and by more than 100 times.

Lengths are checked before memory is allocated for them.

Not checked: the sizes in the header of a Parquet page, up to 2 GiB, for which Arrow allocates memory that it does not
touch; and a dictionary string that many rows refer to. In these cases the limit of the process applies (`ulimit -v`, or
`spark.executor.pyspark.memory`). If the process exceeds it, the same error is raised.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from eventide_core.errors import EventideError, MachineResourcesError, ResourceLimitError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_LACKS: Final = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_LACK_OF_THREADS: Final = ("can't start new thread", os.strerror(errno.EAGAIN))
"""As Python says it, and as the C++ library does, whose text Arrow passes on without a number."""
_RATIO_MAX: Final = 100
_INFLATED_ALWAYS_BYTES: Final = 16 * 1024 * 1024
_COLUMN_ALWAYS_BYTES: Final = 1024**3
RECORDS_A_BYTE_MAX: Final = 100
INSTANTS_A_BYTE_MAX: Final = 1


def inflated_bytes_max(size: int) -> int:
    """The maximum size to which this many compressed bytes may inflate."""
    return max(_INFLATED_ALWAYS_BYTES, _RATIO_MAX * size)


def check_parquet(
    metadata: "pq.FileMetaData", size: int, place: str, *, rows_a_byte_max: int = RECORDS_A_BYTE_MAX
) -> None:
    """Raises ResourceLimitError if a Parquet file of `size` bytes claims to contain more than Hudi's files can."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows = max(metadata.num_rows, sum(group.num_rows for group in groups))
    if rows > rows_a_byte_max * size:
        raise ResourceLimitError(
            f"{place} states that its {size} bytes hold {rows} rows, which is impossible: restore it from a "
            "copy, or roll back its write"
        )
    for group in groups:
        if group.total_byte_size <= _COLUMN_ALWAYS_BYTES:
            continue  # all of its columns together
        for column in (group.column(number) for number in range(group.num_columns)):
            inflated, stored = column.total_uncompressed_size, column.total_compressed_size
            if inflated > max(_COLUMN_ALWAYS_BYTES, _RATIO_MAX * stored):
                raise ResourceLimitError(
                    f"{place} states that column {column.path_in_schema} inflates from {stored} bytes to {inflated}: "
                    "restore it from a copy, or roll back its write"
                )


def is_lack_of_resources(error: BaseException) -> bool:
    """Whether the machine has no memory, threads or open files left: no fault of the file that was being read."""
    if isinstance(error, MemoryError):
        return not isinstance(error, EventideError)
    if isinstance(error, OSError) and error.errno in _LACKS:
        return True
    return any(text in str(error) for text in _LACK_OF_THREADS)


@contextmanager
def within_memory(place: str) -> Iterator[None]:
    """Converts a lack of memory, threads or open files to MachineResourcesError."""
    try:
        yield
    except EventideError:
        raise
    except Exception as error:
        if not is_lack_of_resources(error):
            raise
        raise MachineResourcesError(
            f"{place} takes more memory, threads or open files to read than this process has ({error}): run the same "
            "command again with more of them"
        ) from error
