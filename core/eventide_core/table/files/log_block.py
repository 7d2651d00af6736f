"""The framing of a log file: blocks with a header, a content, and a footer.

    block   := "#HUDI#"  i64 size  i32 version=1  i32 type  header  i64 content length  content  footer  i64 reverse
    header  := i32 n  n x (i32 key  i32 length  bytes)          footer has the same form
    size    counts the bytes after itself, including the reverse pointer; reverse = size + 6 (the magic)

All numbers are big-endian. Lengths are checked against the file's size before anything is read or allocated.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from functools import lru_cache

from eventide_core.bulk_dataclass import bulk_dataclass
from eventide_core.errors import CorruptLogBlockError, UnsupportedLogFormatError
from eventide_core.table.files.read_ahead import ReadRange
from eventide_core.table.schema.avro_schema import AvroSchema

MAGIC = b"#HUDI#"
FORMAT_VERSION = 1
ROLLBACK_COMMAND = "0"
"""The only type of command block; it rolls back a write."""
_PREFIX_LENGTH = len(MAGIC) + 8  # magic and size
_ENTRY = struct.Struct(">ii")  # key and length of a header's value
_HEADER_ENTRIES_MAX = 64  # Hudi has 9 keys; a greater number comes from torn bytes
_HEADER_BYTES_MAX = 16 * 1024 * 1024  # the schema of a very wide table takes some hundred kilobytes
_HEADER_PROBE_BYTES = 16 * 1024  # one read that nearly always contains a whole header


class BlockType(IntEnum):
    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


# By code: calling an enum takes several times as long as a look into a dict.
_BLOCK_TYPES = {int(kind): kind for kind in BlockType}
_HEADER_KEYS = {int(key): key for key in HeaderKey}
_SHARED_TEXT_BYTES_MAX = 16 * 1024


@bulk_dataclass(frozen=True, slots=True)
class LogBlock:
    """One block without its content: its position in the file, its type, and its header.

    `offset` and `content_offset` are positions in the file; `end` is the position after the block. `content_length` is in
    bytes, without the header. `header` has the keys that the block states, each as text. A `block_type` of CORRUPT covers
    the torn bytes up to the next magic or the end of the file; it has a header if that is intact.
    """

    offset: int
    end: int
    block_type: BlockType
    header: Mapping[HeaderKey, str]
    content_offset: int
    content_length: int

    @property
    def instant_time(self) -> str | None:
        return self.header.get(HeaderKey.INSTANT_TIME)

    @property
    def schema(self) -> AvroSchema:
        """The schema in the header; an empty text's, which is refused wherever it is used, if there is none."""
        return AvroSchema.of(self.header.get(HeaderKey.SCHEMA, ""))


def encode_block(block_type: BlockType, header: Mapping[HeaderKey, str], content: bytes) -> bytes:
    """One block as bytes, with an empty footer."""
    entries = [(int(key), value.encode()) for key, value in header.items()]
    head = struct.pack(">i", len(entries)) + b"".join(struct.pack(">ii", k, len(v)) + v for k, v in entries)
    body = b"".join(
        (
            struct.pack(">ii", FORMAT_VERSION, block_type),
            head,
            struct.pack(">q", len(content)),
            content,
            struct.pack(">i", 0),
        )
    )
    size = len(body) + 8
    return MAGIC + struct.pack(">q", size) + body + struct.pack(">q", size + len(MAGIC))


def read_blocks(read: ReadRange, file_size: int, path: str, *, is_strict: bool) -> Iterator[LogBlock]:
    """The blocks of a log file in order, without their contents.

    With `is_strict`, a torn block raises CorruptLogBlockError, because a compaction must never skip records. Otherwise,
    the torn bytes come as a CORRUPT block, and reading continues at the next magic, as in Hudi's readers. An unknown
    header key, block type, or format version raises UnsupportedLogFormatError.
    """
    offset = 0
    while offset < file_size:
        try:
            block = _read_block(read, offset, file_size, path)
        except CorruptLogBlockError:
            if is_strict:
                raise
            end = _next_magic(read, offset + 1, file_size)
            header = _header_of_torn_block(read, offset, end, path)
            block = LogBlock(offset, end, BlockType.CORRUPT, header, offset, end - offset)
        yield block
        offset = block.end


def _read_block(read: ReadRange, offset: int, file_size: int, path: str) -> LogBlock:
    def torn(what: str) -> CorruptLogBlockError:
        return CorruptLogBlockError(
            f"log file {path} is torn at byte {offset}: {what}; restore the file, or roll back the write that made it"
        )

    def number(position: int) -> int:
        known = probe[position - offset : position - offset + 8]
        data = known if len(known) == 8 else read(position, 8)
        if len(data) < 8:
            raise torn("the file ends before it")
        return int.from_bytes(data, "big", signed=True)

    probe = read(offset, min(_HEADER_PROBE_BYTES, file_size - offset))
    if len(probe) < _PREFIX_LENGTH + 8 or not probe.startswith(MAGIC):
        raise torn("no block starts here")
    size, version, type_code = struct.unpack_from(">qii", probe, len(MAGIC))
    end = offset + _PREFIX_LENGTH + size
    if not 32 <= size <= file_size - offset - _PREFIX_LENGTH:
        raise torn(f"a block of {size} bytes does not fit the file's {file_size}")
    reverse = number(end - 8)
    if reverse != size + len(MAGIC):
        raise torn(f"its reverse pointer has {reverse}, its size {size}")
    if version != FORMAT_VERSION:
        raise UnsupportedLogFormatError(f"log file {path}: a block of format version {version} at byte {offset}")
    block_type = _BLOCK_TYPES.get(type_code)
    if block_type is None:
        raise UnsupportedLogFormatError(f"log file {path}: a block of unknown type {type_code} at byte {offset}")
    position = _PREFIX_LENGTH + 8
    header, position, probe = _read_header(read, offset, position, end, probe, path, torn)
    if offset + position + 8 > end:
        raise torn("its header extends beyond its end")
    content_length = number(offset + position)
    content_offset = offset + position + 8
    if content_length < 0 or content_offset + content_length > end - 12:  # an empty footer and the reverse pointer
        raise torn(f"its content of {content_length} bytes extends beyond its end")
    return LogBlock(offset, end, block_type, header, content_offset, content_length)


def _read_header(
    read: ReadRange,
    offset: int,
    position: int,
    end: int,
    probe: bytes,
    path: str,
    torn: Callable[[str], CorruptLogBlockError],
) -> tuple[dict[HeaderKey, str], int, bytes]:
    longest = min(end - offset, _HEADER_BYTES_MAX)
    held = min(len(probe), longest)

    def need(length: int) -> None:
        nonlocal probe, held
        if length > longest:
            raise torn("its header extends beyond its end")
        if len(probe) < length:
            probe = read(offset, max(length, min(2 * len(probe), end - offset)))
        if len(probe) < length:
            raise torn("the file ends before it")
        held = min(len(probe), longest)

    if position + 4 > held:
        need(position + 4)
    (count,) = struct.unpack_from(">i", probe, position)
    position += 4
    if not 0 <= count <= _HEADER_ENTRIES_MAX:
        raise torn(f"a header of {count} entries")
    header: dict[HeaderKey, str] = {}
    for _ in range(count):
        if position + 8 > held:
            need(position + 8)
        code, length = _ENTRY.unpack_from(probe, position)
        position += 8
        if length < 0:
            raise torn(f"a header value of {length} bytes")
        if position + length > held:
            need(position + length)
        key = _HEADER_KEYS.get(code)
        if key is None:
            raise UnsupportedLogFormatError(f"log file {path}: unknown header key {code} at byte {offset}")
        data = probe[position : position + length]
        try:
            header[key] = _shared_text(data) if length <= _SHARED_TEXT_BYTES_MAX else data.decode()
        except UnicodeDecodeError:
            raise torn(f"header {key.name} is not UTF-8") from None
        position += length
    return header, position, probe


@lru_cache(maxsize=256)
def _shared_text(data: bytes) -> str:
    """The text of a header's value: many blocks have the same schema, and many the same instant."""
    return data.decode()


def _header_of_torn_block(read: ReadRange, offset: int, end: int, path: str) -> dict[HeaderKey, str]:
    """The header of a torn block; empty if it doesn't end within the torn bytes."""
    probe = read(offset, min(_HEADER_PROBE_BYTES, end - offset))
    position = _PREFIX_LENGTH + 8
    if len(probe) < position or not probe.startswith(MAGIC):
        return {}
    version, type_code = struct.unpack_from(">ii", probe, _PREFIX_LENGTH)
    if version != FORMAT_VERSION or type_code not in _BLOCK_TYPES:
        return {}
    try:
        header, _, _ = _read_header(read, offset, position, end, probe, path, CorruptLogBlockError)
    except (CorruptLogBlockError, UnsupportedLogFormatError):
        return {}
    return header


def torn_without_name(log_path: str, offset: int) -> str:
    """What is wrong with a log file if torn bytes have no readable instant, and may be a completed write's."""
    return (
        f"log file {log_path}, block at byte {offset}: torn before it names its write, which may have completed; restore "
        "the file from a copy, or compact the table in full with Hudi, which skips these bytes for good"
    )


def without_blocks(log_path: str, count: int, instant: str, least: int) -> str:
    """What is wrong with a log file that holds fewer blocks of a completed write than its commit says."""
    holds = f"log file {log_path} has {count} blocks of {instant}, but that commit wrote {least}"
    return f"{holds}; restore the file from a copy"


def _next_magic(read: ReadRange, offset: int, file_size: int) -> int:
    step = 1024 * 1024
    while offset < file_size:
        chunk = read(offset, min(step + len(MAGIC) - 1, file_size - offset))
        if not chunk:
            break
        place = chunk.find(MAGIC)
        if place >= 0:
            return offset + place
        offset += step
    return file_size
