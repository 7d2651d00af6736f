import io
from typing import BinaryIO

import pytest

from eventide_adapters.storage.remote_streams import SpooledOutput, open_ranges

DATA = bytes(range(256)) * 4096


def counted() -> tuple[list[tuple[int, int]], io.BufferedReader]:
    asked: list[tuple[int, int]] = []

    def read_range(offset: int, length: int) -> bytes:
        asked.append((offset, length))
        return DATA[offset : offset + length]

    stream = open_ranges(len(DATA), read_range)
    assert isinstance(stream, io.BufferedReader)
    return asked, stream


def test_the_whole_file_is_one_request() -> None:
    asked, stream = counted()
    assert stream.read() == DATA
    assert asked == [(0, len(DATA))]


def test_neighbouring_reads_share_a_request_and_large_ones_do_not_grow() -> None:
    asked, stream = counted()
    stream.seek(-8, io.SEEK_END)
    assert stream.read(4) + stream.read(4) == DATA[-8:]
    assert len(asked) == 1
    stream.seek(10)
    assert stream.read(700_000) == DATA[10:700_010]
    assert len(asked) <= 3
    assert stream.read(2 * len(DATA)) == DATA[700_010:]
    assert stream.read() == b""


def test_a_position_before_the_file_is_refused() -> None:
    _, stream = counted()
    with pytest.raises(ValueError, match="-1"):
        stream.raw.seek(-1, io.SEEK_SET)


@pytest.mark.parametrize("size", [0, 5, 40 << 20])
def test_what_is_published_is_all_that_was_written(size: int) -> None:
    published: list[tuple[int, int]] = []

    def publish(file: BinaryIO, told: int) -> bool:
        published.append((told, len(file.read())))
        return True

    output = SpooledOutput(publish)
    for _ in range(5):
        output.write(bytes(size // 5))
    assert output.commit()
    assert published == [(size, size)]
    output.abort()
