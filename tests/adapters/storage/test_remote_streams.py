import io
import random
import threading
from functools import partial
from typing import BinaryIO

import pytest

from eventide_adapters.storage import remote_streams
from eventide_adapters.storage.objects.contract import Upload
from eventide_adapters.storage.remote_streams import SpooledOutput, StreamedOutput, in_pieces, open_ranges
from eventide_core.errors import StorageError
from eventide_core.table.settings.properties import properties_bytes

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
    assert asked[1:] == [(10, 700_000)]
    assert stream.read(2 * len(DATA)) == DATA[700_010:]
    assert stream.read() == b""


def test_reads_in_any_order_bring_the_bytes_of_their_places() -> None:
    _, stream = counted()
    drawn = random.Random(0)
    for _ in range(200):
        start, size = (
            drawn.randrange(len(DATA) + 10),
            drawn.choice([0, 1, 8, 1000, 262_143, 262_144, 300_000, 2_000_000]),
        )
        if drawn.random() < 0.7:
            stream.seek(start)
        start = stream.tell()
        assert stream.read(size) == DATA[start : start + size]
        assert stream.tell() == max(start, min(start + size, len(DATA)))


class Pieces:
    """A file whose ranges are requested by several at a time; `limit` is where it ends by now."""

    def __init__(self, limit: int = len(DATA), failing: int | None = None) -> None:
        self.asked: list[tuple[int, int]] = []
        self.under_way = 0
        self._limit, self._failing = limit, failing
        self._lock = threading.Lock()

    def read(self, offset: int, length: int) -> bytes:
        with self._lock:
            self.asked.append((offset, length))
            self.under_way += 1
        try:
            if self._failing is not None and offset <= self._failing < offset + length:
                raise StorageError(f"the bytes from {offset} on are gone")
            return DATA[offset : min(offset + length, self._limit)]
        finally:
            with self._lock:
                self.under_way -= 1


in_small_pieces = partial(in_pieces, piece_bytes=1000)


@pytest.mark.parametrize(("offset", "length"), [(0, 1000), (7, 1001), (7, 2999), (500, 20_000), (123, 54_321)])
def test_a_large_range_is_asked_for_in_pieces_that_are_exactly_it(offset: int, length: int) -> None:
    file = Pieces()
    assert in_small_pieces(file.read, offset, length) == DATA[offset : offset + length]
    asked = sorted(file.asked)
    assert max(size for _, size in asked) <= 1000
    assert [start for start, _ in asked] == [offset, *(start + size for start, size in asked)][:-1]
    assert sum(size for _, size in asked) == length


def test_the_settings_of_a_table_are_one_request() -> None:
    file = Pieces()
    properties_bytes(lambda _path, offset, length: in_pieces(file.read, offset, length), "hoodie.properties")
    assert len(file.asked) == 1


def test_several_pieces_are_under_way_at_a_time() -> None:
    together = threading.Barrier(4, timeout=60)

    def read(offset: int, length: int) -> bytes:
        together.wait()
        return DATA[offset : offset + length]

    assert in_small_pieces(read, 0, 4000) == DATA[:4000]


@pytest.mark.parametrize("limit", [0, 500, 1000, 4321])
def test_a_range_is_cut_where_the_file_ends(limit: int) -> None:
    assert in_small_pieces(Pieces(limit).read, 0, 9000) == DATA[:limit]


def test_the_error_of_a_piece_is_that_of_the_read_which_leaves_nothing_under_way() -> None:
    file = Pieces(failing=400_000)
    stream = open_ranges(len(DATA), lambda offset, length: in_small_pieces(file.read, offset, length))
    assert stream.read(300_000) == DATA[:300_000]
    with pytest.raises(StorageError, match="are gone"):
        stream.read(300_000)
    assert file.under_way == 0
    stream.seek(500_000)
    assert stream.read(300_000) == DATA[500_000:800_000]


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


class Sent:
    """objects.Upload that keeps what it gets, and fails at one part."""

    def __init__(self, failing: int | None = None) -> None:
        self.parts: list[bytes] = []
        self.aborted = 0
        self._failing = failing

    def send(self, part: bytes) -> None:
        if len(self.parts) == self._failing:
            raise StorageError("no answer")
        self.parts.append(part)

    def complete(self, content: BinaryIO, *, is_conditional: bool = True) -> bool:
        assert content.read() == b"".join(self.parts)
        return is_conditional

    def abort(self) -> None:
        self.aborted += 1


def published(content: BinaryIO, upload: Upload | None) -> bool:
    return content.read() == DATA[:2500] if upload is None else upload.complete(content)


@pytest.mark.parametrize("size", [0, 999, 1000, 1001, 2000, 2500])
def test_parts_are_full_but_the_last_and_a_file_of_one_part_needs_no_upload(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_streams, "PART_BYTES", 1000)
    upload, whole = Sent(), list[bytes]()

    def publish(content: BinaryIO, given: Upload | None) -> bool:
        if given is None:
            whole.append(content.read())
            return True
        return given.complete(content)

    output = StreamedOutput(lambda: upload, publish)
    for start in range(0, size, 700):
        output.write(memoryview(DATA)[start : min(start + 700, size)])
    if size > 1000:
        assert upload.parts == [DATA[start : start + 1000] for start in range(0, (size - 1) // 1000 * 1000, 1000)]
    assert output.commit()
    if size <= 1000:
        assert (whole, upload.parts) == ([DATA[:size]], [])
    else:
        assert [len(part) for part in upload.parts[:-1]] == [1000] * (len(upload.parts) - 1)
        assert b"".join(upload.parts) == DATA[:size]


def test_a_store_without_parts_gets_the_whole_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_streams, "PART_BYTES", 1000)
    output = StreamedOutput(lambda: None, published)
    for start in range(0, 2500, 500):
        output.write(DATA[start : start + 500])
    assert output.commit()


def test_a_part_that_fails_ends_the_write_and_the_upload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_streams, "PART_BYTES", 1000)
    upload = Sent(failing=1)
    output = StreamedOutput(lambda: upload, published)
    output.write(DATA[:1500])
    with pytest.raises(StorageError, match="no answer"):
        output.write(DATA[1500:4000])
    assert upload.aborted == 1
    output.abort()
