"""Ranges of a file that are mostly asked for in their order, read by few requests."""

from collections.abc import Callable

ReadRange = Callable[[int, int], bytes]
"""(offset, length) -> the bytes of that range, fewer where the file ends before."""

# A request on S3 takes some 20 ms, in which as many bytes arrive as in several such pieces: the headers of small blocks come
# together, mostly with their contents, and of large blocks little is read that is not asked for.
READ_AHEAD_BYTES = 64 * 1024


class ReadAhead:
    """A ReadRange over another one, whose every request takes READ_AHEAD_BYTES, or up to `size` if that is less."""

    def __init__(self, ranges: ReadRange, size: int) -> None:
        self._ranges = ranges
        self._size = size
        self._start = 0
        self._data = b""

    def __call__(self, offset: int, length: int) -> bytes:
        if not self._holds(offset, length):
            self._start = offset
            self._data = self._ranges(offset, max(length, min(READ_AHEAD_BYTES, self._size - offset)))
        return self._data[offset - self._start : offset - self._start + length]

    def held(self, offset: int, length: int) -> bytes | None:
        """That range, where it came with the last request; None where it takes another one."""
        return self(offset, length) if self._holds(offset, length) else None

    def _holds(self, offset: int, length: int) -> bool:
        return self._start <= offset and offset + length <= self._start + len(self._data)
