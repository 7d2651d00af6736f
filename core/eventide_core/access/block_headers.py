"""The headers of a log file's blocks, for those who ask which write it is of, and not for its records."""

from collections.abc import Iterator
from functools import partial

from eventide_core.ports import Storage
from eventide_core.table.files.log_block import BlockType, HeaderKey, LogBlock, read_blocks
from eventide_core.table.files.read_ahead import ReadAhead
from eventide_core.table.timeline.file_system_view import DataFile


def block_headers(storage: Storage, path: str, size: int) -> Iterator[LogBlock]:
    """The blocks of a log file up to `size`, with all contents unread. Raises MissingFileError, CorruptLogBlockError."""
    return read_blocks(ReadAhead(partial(storage.read_range, path), size), size, path, is_strict=False)


def is_of_one_write(storage: Storage, file: DataFile, instant: str) -> bool:
    """Whether all blocks of the log file that name a write name this one."""
    return all(block.instant_time in (None, instant) for block in block_headers(storage, file.path, file.size))


def rolls_back(storage: Storage, file: DataFile, instant: str) -> bool:
    """Whether the log file holds a command block that rolls back the instant's blocks."""
    return any(
        block.block_type is BlockType.COMMAND and block.header.get(HeaderKey.TARGET_INSTANT_TIME) == instant
        for block in block_headers(storage, file.path, file.size)
    )
