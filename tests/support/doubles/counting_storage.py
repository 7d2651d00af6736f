"""A storage that counts reads, for tests that limit what a query reads."""

import io
from collections import Counter
from typing import BinaryIO, cast

from eventide_adapters.storage.local import LocalStorage


class CountingStorage(LocalStorage):
    """Counts, by path, how often a file was `opened` and how many bytes were read. Every read opens its file."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.opened: Counter[str] = Counter()
        self.bytes_read: Counter[str] = Counter()

    def forget(self) -> None:
        self.opened.clear()
        self.bytes_read.clear()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        self.opened[path] += 1
        data = super().read_range(path, offset, length)
        self.bytes_read[path] += len(data)
        return data

    def open_input(self, path: str) -> BinaryIO:
        self.opened[path] += 1
        return cast(BinaryIO, _Counted(super().open_input(path), self.bytes_read, path))


class _Counted(io.RawIOBase):
    """A stream that counts its bytes."""

    def __init__(self, inner: BinaryIO, bytes_read: Counter[str], path: str) -> None:
        self._inner, self._bytes_read, self._path = inner, bytes_read, path

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def read(self, size: int = -1, /) -> bytes:
        data = self._inner.read(size)
        self._bytes_read[self._path] += len(data)
        return data

    def close(self) -> None:
        self._inner.close()
        super().close()
