"""Files of a storage that is reached by requests, while they are being read or written: ranges in, whole files out."""

import io
import tempfile
from collections.abc import Callable
from typing import Any, BinaryIO

# A request costs a round trip whatever it brings, and most reads of a log or a Parquet footer are smaller than this.
_READ_AHEAD_BYTES = 256 << 10

# What is larger waits on the local disk.
_MEMORY_BYTES = 32 << 20


def open_ranges(size: int, read_range: Callable[[int, int], bytes]) -> BinaryIO:
    """A seekable stream over a file of that size; `read_range` brings `length` bytes from `offset` on."""
    return io.BufferedReader(_RangeInput(size, read_range), _READ_AHEAD_BYTES)


class _RangeInput(io.RawIOBase):
    """Each read is one request."""

    def __init__(self, size: int, read_range: Callable[[int, int], bytes]) -> None:
        self._size = size
        self._read_range = read_range
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

    def readinto(self, buffer: Any, /) -> int:
        length = min(len(buffer), self._size - self._position)
        if length <= 0:
            return 0
        data = self._read_range(self._position, length)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def readall(self) -> bytes:
        """The rest in one request, where the inherited method asks for some kilobytes at a time."""
        if self._position >= self._size:
            return b""
        data = self._read_range(self._position, self._size - self._position)
        self._position += len(data)
        return data


class SpooledOutput:
    """ports.OutputFile: what is written waits here until `publish` takes the whole of it, and its size.

    So an upload that failed halfway can be begun again, and nobody sees a part of a file.
    """

    def __init__(self, publish: Callable[[BinaryIO, int], bool]) -> None:
        self._publish = publish
        self._file = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115  # closed by commit or abort

    def write(self, data: bytes | memoryview, /) -> int:
        assert not self._file.closed, "the output is closed"
        return self._file.write(data)

    def commit(self) -> bool:
        assert not self._file.closed, "the output is closed"
        with self._file as file:
            size = file.tell()
            file.seek(0)
            return self._publish(file, size)  # type: ignore[arg-type]  # it reads and seeks as a BinaryIO does

    def abort(self) -> None:
        self._file.close()
