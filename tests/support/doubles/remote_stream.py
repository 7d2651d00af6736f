"""A stream of bytes that are not on this machine."""

import io


class RemoteStream(io.RawIOBase):
    """A stream without a file descriptor. `reads` are the offset and the size of each read."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)
        self.reads: list[tuple[int, int]] = []

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._data.seek(offset, whence)

    def tell(self) -> int:
        return self._data.tell()

    def read(self, size: int = -1, /) -> bytes:
        self.reads.append((self._data.tell(), size))
        return self._data.read(size)
