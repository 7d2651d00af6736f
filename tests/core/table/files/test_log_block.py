"""The framing of log files: blocks are read back, torn ones are reported, and nothing is read beyond the file."""

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_core.errors import CorruptLogBlockError, UnsupportedLogFormatError
from eventide_core.table.files.log_block import (
    MAGIC,
    BlockType,
    HeaderKey,
    LogBlock,
    encode_block,
    read_blocks,
)
from support.faults.edited_bytes import edited

headers = st.dictionaries(st.sampled_from(HeaderKey), st.text(max_size=50), max_size=4)
written = st.lists(st.tuples(st.sampled_from(BlockType), headers, st.binary(max_size=200)), max_size=5)


class _File:
    """A file that counts what is asked of it, and hands out no byte that is not there."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.largest_read = 0

    def read(self, offset: int, length: int) -> bytes:
        assert offset >= 0
        assert length >= 0
        self.largest_read = max(self.largest_read, length)
        return self.data[offset : offset + length]

    def blocks(self, *, is_strict: bool = True, size: int | None = None) -> list[LogBlock]:
        file_size = len(self.data) if size is None else size
        return list(read_blocks(self.read, file_size, "part=a/.f.log.1", is_strict=is_strict))


def _block(content: bytes = b"content", instant: str = "20261121060113021") -> bytes:
    return encode_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: instant}, content)


@given(written)
def test_blocks_are_found_as_they_were_written(
    blocks: list[tuple[BlockType, dict[HeaderKey, str], bytes]],
) -> None:
    file = _File(b"".join(encode_block(*block) for block in blocks))
    parsed = file.blocks()
    assert [
        (b.block_type, dict(b.header), file.data[b.content_offset : b.content_offset + b.content_length])
        for b in parsed
    ] == blocks
    ends = [0, *(b.end for b in parsed)]
    assert [b.offset for b in parsed] == ends[:-1]
    assert ends[-1] == len(file.data)


def test_a_block_has_the_bytes_that_hudi_writes() -> None:
    header = struct.pack(">iii", 1, 0, 17) + b"20261121060113021"
    body = struct.pack(">ii", 1, 1) + header + struct.pack(">q", 2) + b"xy" + struct.pack(">i", 0)
    size = len(body) + 8
    assert encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: "20261121060113021"}, b"xy") == (
        b"#HUDI#" + struct.pack(">q", size) + body + struct.pack(">q", size + 6)
    )


def test_a_footer_is_passed_over() -> None:
    footer = struct.pack(">iii", 1, 2, 3) + b"abc"
    body = struct.pack(">iii", 1, 3, 0) + struct.pack(">q", 2) + b"xy" + footer
    size = len(body) + 8
    data = MAGIC + struct.pack(">q", size) + body + struct.pack(">q", size + 6)
    (block,) = _File(data).blocks()
    assert (block.content_length, block.end, block.instant_time) == (2, len(data), None)


def test_a_header_longer_than_one_read_is_found_whole() -> None:
    schema = "s" * 300_000
    data = encode_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: schema}, b"xy")
    (block,) = _File(data).blocks()
    assert block.header[HeaderKey.SCHEMA] == schema


def test_a_content_is_left_unread() -> None:
    file = _File(_block(b"x" * 5_000_000) + _block())
    assert len(file.blocks()) == 2
    assert file.largest_read <= 16 * 1024


def test_a_file_cut_anywhere_is_torn_unless_between_blocks() -> None:
    first, second = _block(b"first"), _block(b"second")
    whole = first + second
    for length in range(len(whole) + 1):
        file = _File(whole[:length])
        if length in (0, len(first), len(whole)):
            assert len(file.blocks()) == (length > 0) + (length == len(whole))
            continue
        with pytest.raises(CorruptLogBlockError, match=r"part=a/\.f\.log\.1 is torn at byte \d+.*restore"):
            file.blocks()


def test_a_file_shorter_than_in_its_listing_is_torn() -> None:
    whole = _block(b"x" * 100)
    for length in range(len(whole)):
        with pytest.raises(CorruptLogBlockError):
            _File(whole[:length]).blocks(size=len(whole))
        assert _File(whole[:length]).blocks(size=2**60, is_strict=False)


def test_reading_continues_behind_torn_bytes_as_in_hudis_readers() -> None:
    first, torn, last = _block(b"first"), _block(b"torn")[:-9], _block(b"last")
    file = _File(first + torn + last)
    with pytest.raises(CorruptLogBlockError, match=f"at byte {len(first)}"):
        file.blocks()
    blocks = file.blocks(is_strict=False)
    assert [block.block_type for block in blocks] == [
        BlockType.AVRO_DATA,
        BlockType.CORRUPT,
        BlockType.AVRO_DATA,
    ]
    assert (blocks[1].offset, blocks[1].end) == (len(first), len(first) + len(torn))


def test_a_torn_block_identifies_its_write_only_if_its_header_is_whole() -> None:
    whole, last = _block(b"torn"), _block(b"last")
    header_end = whole.index(b"torn") - 8
    for length in range(1, len(whole)):
        torn, *_ = _File(whole[:length] + last).blocks(is_strict=False)
        assert torn.block_type is BlockType.CORRUPT
        assert torn.end == length
        assert (torn.instant_time is not None) == (length >= header_end), length


def test_a_magic_that_lies_across_two_reads_is_found() -> None:
    step = 1024 * 1024
    for shift in range(-7, 8):
        garbage = b"g" * (step + 1 + shift)
        blocks = _File(garbage + _block()).blocks(is_strict=False)
        assert [block.offset for block in blocks] == [0, len(garbage)]


@pytest.mark.parametrize(
    ("position", "value", "error"),
    [
        (0, b"X", CorruptLogBlockError),
        (6, struct.pack(">q", -1), CorruptLogBlockError),
        (6, struct.pack(">q", 2**62), CorruptLogBlockError),
        (6, struct.pack(">q", 0), CorruptLogBlockError),
        (14, struct.pack(">i", 2), UnsupportedLogFormatError),
        (18, struct.pack(">i", 7), UnsupportedLogFormatError),
        (18, struct.pack(">i", -1), UnsupportedLogFormatError),
        (22, struct.pack(">i", -1), CorruptLogBlockError),
        (22, struct.pack(">i", 2**31 - 1), CorruptLogBlockError),
        (26, struct.pack(">i", 20), UnsupportedLogFormatError),
        (30, struct.pack(">i", -5), CorruptLogBlockError),
        (30, struct.pack(">i", 2**31 - 1), CorruptLogBlockError),
        (34, b"\xff", CorruptLogBlockError),
        (51, struct.pack(">q", -1), CorruptLogBlockError),
        (51, struct.pack(">q", 2**62), CorruptLogBlockError),
    ],
)
def test_a_frame_that_does_not_add_up_is_named(position: int, value: bytes, error: type[Exception]) -> None:
    data = bytearray(_block())
    data[position : position + len(value)] = value
    file = _File(bytes(data))
    with pytest.raises(error, match=r"part=a/\.f\.log\.1"):
        file.blocks()
    assert file.largest_read <= len(data)


def test_bytes_gone_wrong_anywhere_bring_a_typed_error_or_blocks_within_the_file() -> None:
    chance = random.Random(74)
    whole = _block(b"a" * 50) + _block(b"b" * 50) + encode_block(BlockType.DELETE, {}, b"c" * 20)
    failed = 0
    for round_ in range(3000):
        data = edited(chance, whole, longest=30)
        file = _File(data)
        try:
            blocks = file.blocks(is_strict=round_ % 2 == 0)
        except (CorruptLogBlockError, UnsupportedLogFormatError):
            failed += 1
        else:
            assert all(b.offset < b.content_offset + b.content_length <= b.end <= len(data) for b in blocks)
            assert sum(b.end - b.offset for b in blocks) == len(data)
        assert file.largest_read <= len(data)
    assert failed > 500


@given(st.binary(max_size=300))
def test_no_bytes_stop_a_reader_that_skips_torn_blocks(data: bytes) -> None:
    blocks = _File(data).blocks(is_strict=False)
    assert sum(block.end - block.offset for block in blocks) == len(data)
