"""Finds the blocks of a slice's log files that count, by their headers alone.

1. The headers of all log files are read in reader order.
2. A data or delete block counts if its instant is accepted.
3. A rollback block rolls back the blocks of its target instant that come before it, in this log file and in earlier
   ones; a later write of the same instant stays.
4. If a log compaction merged blocks, its block replaces them (table/timeline/log_compaction.py).
5. A block that would count but that eventide does not support raises an error: HFile and change data blocks, records with
   operations (table/schema/operation_column.py).
6. Every block names the write that it is of. If the caller reads a whole slice and knows the timeline, a block that
   contradicts the timeline raises an error: its header is damaged, and skipping it would lose records.
7. A torn block is left by an interrupted write, and readers skip it. A strict caller skips it only if it would not count
   even if it were whole, by the instant in its header. Otherwise, committed records would be lost.
"""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from itertools import chain
from typing import Any, BinaryIO

from eventide_adapters.format.encoding.avro.event_time_properties import without_event_times
from eventide_core.access.requests import responses
from eventide_core.bulk_dataclass import bulk_dataclass
from eventide_core.errors import CorruptLogBlockError, ResourceLimitError, UnsupportedTableError
from eventide_core.ports import WHOLE_FILE_BYTES_MAX, Storage
from eventide_core.table.files.log_block import (
    ROLLBACK_COMMAND,
    BlockType,
    HeaderKey,
    LogBlock,
    read_blocks,
    torn_without_name,
    without_blocks,
)
from eventide_core.table.files.read_ahead import (
    REMOTE_WHOLE_FILE_BYTES,
    WHOLE_FILE_BYTES,
    RangeStream,
    ReadAhead,
    ReadRange,
)
from eventide_core.table.files.slice_read import BlockFilter, LogWriters
from eventide_core.table.schema.operation_column import refuse_operations
from eventide_core.table.timeline.instant import is_instant_time
from eventide_core.table.timeline.log_compaction import counting_instants

_READ_TYPES = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.DELETE)


@bulk_dataclass(frozen=True, slots=True)
class PlacedBlock:
    """A block and its log file.

    `path` is the log file's, relative to the table's root, and `log_number` its place among the log files of the call, from
    0. `block` has the header and where the content lies; `content` is set if it was read with the header, otherwise
    `read_content` reads it.
    """

    path: str
    log_number: int
    block: LogBlock
    content: bytes | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        return f"log file {self.path}, block at byte {self.block.offset}"

    @property
    def instant(self) -> str:
        """The instant that wrote the block; every block that counts has one."""
        instant = self.block.instant_time
        if instant is None or not is_instant_time(instant):
            raise CorruptLogBlockError(
                f"{self.place}: its header has the instant {instant!r}, which is not one; restore the file from a copy"
            )
        return instant

    @property
    def is_partial(self) -> bool:
        """Whether its records have only some columns: the ones in its header's schema."""
        return self.block.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true"

    @property
    def merged_instants(self) -> tuple[str, ...]:
        """The instants whose blocks a log compaction merged into this one; none for any other block."""
        times = self.block.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "")
        return tuple(time.strip() for time in times.split(",") if time.strip())

    def read_content(self, storage: Storage) -> bytes:
        """The whole content. Raises ResourceLimitError if it exceeds the limit of one read."""
        if self.block.content_length > WHOLE_FILE_BYTES_MAX:
            raise ResourceLimitError(
                f"{self.place}: its content of {self.block.content_length} bytes is more than "
                f"{WHOLE_FILE_BYTES_MAX}, the most that eventide reads at once; compact it in full with Hudi, or "
                "roll back its write"
            )
        return self.read_range(storage, 0, self.block.content_length)

    def read_range(self, storage: Storage, offset: int, length: int) -> bytes:
        """A range of the content. Raises CorruptLogBlockError if the file ends before."""
        if self.content is not None:
            return self.content[offset : offset + length]
        content = storage.read_range(self.path, self.block.content_offset + offset, length)
        if len(content) != length:
            raise CorruptLogBlockError(f"{self.place}: the file ends within its content")
        return content

    @contextmanager
    def open_content(self, storage: Storage) -> Iterator[BinaryIO]:
        """The content as a separate stream."""
        if self.content is not None:
            yield io.BytesIO(self.content)
            return
        with storage.open_input(self.path) as stream:

            def read(offset: int, length: int) -> bytes:
                stream.seek(self.block.content_offset + offset)
                return stream.read(length)

            content: Any = RangeStream(self.block.content_length, read)
            yield content


def read_headers(storage: Storage, path: str, size: int, log_number: int = 0) -> Iterator[PlacedBlock]:
    """The blocks of one log file up to `size`, without large contents. A torn block is CORRUPT.

    Bytes after `size` were appended after the listing and are not read. Raises MissingFileError, and CorruptLogBlockError
    if the file is shorter.
    """
    is_large = size > WHOLE_FILE_BYTES  # a smaller one is read as a whole from any storage
    whole_bytes = REMOTE_WHOLE_FILE_BYTES if is_large and storage.is_remote else WHOLE_FILE_BYTES
    ranges = ReadAhead(partial(storage.read_range, path), size, whole_bytes)
    for block in read_headers_of(ranges, path, size, is_strict=False):
        yield PlacedBlock(path, log_number, block, ranges.held(block.content_offset, block.content_length))


def read_headers_of(ranges: ReadRange, path: str, size: int, *, is_strict: bool) -> Iterator[LogBlock]:
    """The blocks of a log file whose bytes `ranges` returns, with all contents unread. A torn block raises if strict."""

    def read(offset: int, length: int) -> bytes:
        data = ranges(offset, length)
        if len(data) < min(length, size - offset):
            raise CorruptLogBlockError(f"log file {path} is shorter than the {size} bytes it was listed with")
        return data

    for block in read_blocks(read, size, path, is_strict=is_strict):
        if block.block_type is BlockType.CORRUPT and is_strict:
            raise CorruptLogBlockError(f"log file {path}: a block at byte {block.offset} was marked as torn")
        yield block


def counting_blocks(
    storage: Storage, logs: Sequence[tuple[str, int]], blocks: BlockFilter, *, is_strict: bool
) -> tuple[PlacedBlock, ...]:
    """The data and delete blocks that count, in reader order. `logs` are (path, size) in reader order."""
    written: Counter[tuple[str, str]] = Counter()

    def headers_of(number: int) -> Sequence[PlacedBlock]:
        path, size = logs[number]
        return list(read_headers(storage, path, size, number))

    def is_wanted(placed: PlacedBlock) -> bool:
        if placed.block.block_type is BlockType.CORRUPT:
            return is_strict and _may_be_committed(placed, blocks)
        written[placed.path, placed.instant] += 1
        if not blocks.accepts(placed.instant):
            return not blocks.explains(placed.instant)
        refuse_unknown(placed)
        return True

    counting = not_rolled_back(responses(storage, headers_of, range(len(logs))), is_wanted)
    if blocks.writers is not None:
        _require_writers(counting, written, [path for path, _ in logs], blocks, blocks.writers)
    for placed in counting:
        if placed.block.block_type is BlockType.CORRUPT:
            raise CorruptLogBlockError(
                f"{placed.place}: torn, although its write {placed.instant} has completed: readers don't see its "
                "records; restore the file from a copy"
            )
    merged = {placed.instant: placed.merged_instants for placed in counting if placed.merged_instants}
    if not merged:
        return tuple(counting)
    of_instant: dict[str, list[PlacedBlock]] = {}
    for placed in counting:
        of_instant.setdefault(placed.instant, []).append(placed)
    return tuple(placed for instant in counting_instants(tuple(of_instant), merged) for placed in of_instant[instant])


def not_rolled_back(
    of_logs: Iterable[Iterable[PlacedBlock]], is_wanted: Callable[[PlacedBlock], bool]
) -> list[PlacedBlock]:
    """The wanted blocks of log files, without those that a later command block rolls back.

    Raises UnsupportedTableError for another command.
    """
    left: list[PlacedBlock] = []
    for placed in chain.from_iterable(of_logs):
        if placed.block.block_type is BlockType.COMMAND:
            target = rollback_target(placed)
            left = [earlier for earlier in left if earlier.instant != target]
        elif is_wanted(placed):
            left.append(placed)
    return left


def _require_writers(
    left: Iterable[PlacedBlock],
    written: Mapping[tuple[str, str], int],
    paths: Sequence[str],
    blocks: BlockFilter,
    writers: LogWriters,
) -> None:
    """Raises CorruptLogBlockError for a block of an unknown write, and for a log file without a write's block.

    `written` counts the blocks of an instant in a log file, also those that were rolled back.
    """
    for placed in left:
        if placed.block.block_type is not BlockType.CORRUPT and not blocks.explains(placed.instant):
            raise CorruptLogBlockError(
                f"{placed.place}: its header has the instant {placed.instant}, which is not on the timeline, and no "
                "block rolls it back; restore the file from a copy"
            )
    for path in paths:
        for instant, least in writers.of_logs.get(path, {}).items():
            count = written.get((path, instant), 0)
            if count < least:
                raise CorruptLogBlockError(without_blocks(path, count, instant, least))


def _may_be_committed(placed: PlacedBlock, blocks: BlockFilter) -> bool:
    """Whether a torn block is of a completed write. Raises CorruptLogBlockError if that is unknown."""
    instant = placed.block.instant_time
    if instant is None and not blocks.is_abandoned(placed.path, placed.block.offset):
        raise CorruptLogBlockError(torn_without_name(placed.path, placed.block.offset))
    return instant is not None and blocks.accepts(instant)


def refuse_unknown(placed: PlacedBlock) -> None:
    """Raises UnsupportedTableError for a data or delete block that eventide cannot read correctly."""
    kind = placed.block.block_type
    if kind not in _READ_TYPES:
        raise UnsupportedTableError(f"{placed.place}: {kind.name} blocks are not supported")
    refuse_operations(without_event_times(placed.block.schema), placed.place)


def rollback_target(placed: PlacedBlock) -> str:
    """The instant whose blocks before it a command block rolls back. Raises UnsupportedTableError for another command."""
    header = placed.block.header
    command, target = header.get(HeaderKey.COMMAND_BLOCK_TYPE), header.get(HeaderKey.TARGET_INSTANT_TIME)
    if command != ROLLBACK_COMMAND or target is None:
        raise UnsupportedTableError(
            f"{placed.place}: unknown command {command!r}; supported is the rollback of an instant"
        )
    return target
