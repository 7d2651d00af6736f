"""Reads ranges of a file: ahead, so that ranges in ascending order take few requests, and as a stream."""

import io
from collections.abc import Callable
from typing import Any

ReadRange = Callable[[int, int], bytes]
"""(offset, length) -> the bytes of that range; fewer if the file ends before."""

# A request on S3 takes about 20 ms, in which as many bytes arrive as in several such pieces. So a small file is read as
# a whole. In a larger file, the end of a block is read together with the next header (which is requested by 16 KiB),
# and little else: its blocks are large, and few of them may be needed.
WHOLE_FILE_BYTES = 64 * 1024
READ_AHEAD_BYTES = 16 * 1024 + 64
# From a server, 256 KiB take 3 ms longer, and two requests that follow one another 40 to 60.
REMOTE_WHOLE_FILE_BYTES = 256 * 1024


class ReadAhead:
    """A ReadRange over another ReadRange.

    A request reads at least READ_AHEAD_BYTES, or the whole rest of a file of at most `whole_bytes`.
    """

    def __init__(self, ranges: ReadRange, size: int, whole_bytes: int = WHOLE_FILE_BYTES) -> None:
        self._ranges = ranges
        self._size = size
        self._least = whole_bytes if size <= whole_bytes else READ_AHEAD_BYTES
        self._start = 0
        self._data = b""

    def __call__(self, offset: int, length: int) -> bytes:
        if not self._holds(offset, length):
            self._start = offset
            self._data = self._ranges(offset, max(length, min(self._least, self._size - offset)))
        return self._data[offset - self._start : offset - self._start + length]

    def held(self, offset: int, length: int) -> bytes | None:
        """The range, if the last request contained it; None if it needs another request."""
        return self(offset, length) if self._holds(offset, length) else None

    def _holds(self, offset: int, length: int) -> bool:
        return self._start <= offset and offset + length <= self._start + len(self._data)


class SeekableStream(io.RawIOBase):
    """The position in a stream of `size` bytes. The bytes themselves are a subclass's."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"cannot seek to {start + offset}")
        self._position = start + offset
        return self._position


class RangeStream(SeekableStream):
    """Each read is one call of `read_range`."""

    def __init__(self, size: int, read_range: ReadRange) -> None:
        super().__init__(size)
        self._read_range = read_range

    def read_at(self, position: int, length: int) -> bytes:
        """The range, which is shorter if the file ends before. Does not change the stream's position."""
        rest = min(length, self._size - position)
        return self._read_range(position, rest) if rest > 0 else b""

    def readinto(self, buffer: Any, /) -> int:
        data = self.read_at(self._position, len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def readall(self) -> bytes:
        """Reads the rest in one request; the inherited method requests some kilobytes at a time."""
        data = self.read_at(self._position, self._size)
        self._position += len(data)
        return data
