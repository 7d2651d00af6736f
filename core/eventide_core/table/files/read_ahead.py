"""Reads ahead in a file, so that ranges in ascending order take few requests."""

from collections.abc import Callable

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
